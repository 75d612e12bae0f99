"""Columns of records: flat arrays that kernels read, and their way to Arrow."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead_kafka.base.ids import NO_TIMESTAMP
from fairlead_kafka.base.kernel import kernel, read_only
from fairlead_kafka.records.arrays import Bools, Bytes, FlatColumns, Int64

if TYPE_CHECKING:
    import pyarrow as pa

_NO_BYTES: Bytes = read_only(np.empty(0, np.uint8))
_NO_INT64: Int64 = read_only(np.empty(0, np.int64))
_NO_BOOLS: Bools = read_only(np.empty(0, np.bool_))
_ARROW_BINARY_MAX_BYTES = 2**31 - 1


@kernel
def list_items(data: Bytes, offsets: Int64, valid: Bools, start: int, stop: int) -> list[bytes | None]:
    """Items `start` to `stop` of a binary column, each as bytes, or None if it is not valid (empty:
    all are).

    Assumes nothing: IndexError or ValueError for items that are not there. Holds the GIL, for it
    makes Python's objects.
    """
    return [
        data[offsets[item] : offsets[item + 1]].tobytes() if not len(valid) or valid[item] else None
        for item in range(start, stop)
    ]


@dataclass(slots=True, eq=False)
class BinaryColumn:
    """n byte strings: item i is `data[offsets[i]:offsets[i + 1]]`.

    `data` uint8[], `offsets` int64[n + 1], ascending positions in `data` that need not start at 0;
    `valid` bool[n], or None if nothing is null. A null item has the length that its offsets say,
    usually 0.
    """

    data: Bytes
    offsets: Int64
    valid: Bools | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def item(self, index: int) -> bytes | None:
        """Item `index` as bytes, or None if it is null."""
        if self.valid is not None and not self.valid[index]:
            return None
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes()

    def to_list(self, start: int = 0, stop: int | None = None) -> list[bytes | None]:
        """Items `start` to `stop` as bytes or None."""
        valid = _NO_BOOLS if self.valid is None else self.valid
        return list_items(self.data, self.offsets, valid, start, len(self) if stop is None else stop)

    def to_arrow(self, *, text: bool = False) -> pa.Array:
        """An Arrow `binary` array over the same data (with `text`: `string`, which the caller knows
        to be UTF-8).

        The type is `large_binary` or `large_string` if the items exceed 2 GiB, which `binary`
        cannot address.
        """
        import pyarrow as pa

        from fairlead_kafka.records.buffers import bitmap

        count = len(self)
        first, last = (int(self.offsets[0]), int(self.offsets[-1])) if count else (0, 0)
        data = self.data[first:last]
        if last - first <= _ARROW_BINARY_MAX_BYTES:
            kind = pa.string() if text else pa.binary()
            offsets = np.subtract(self.offsets, first, out=np.empty(count + 1, np.int32), casting="unsafe")
        else:
            kind = pa.large_string() if text else pa.large_binary()
            offsets = np.subtract(self.offsets, first)
        buffers = [bitmap(self.valid), pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(data))]
        return pa.Array.from_buffers(kind, count, buffers)


@dataclass(slots=True, eq=False)
class HeaderColumns:
    """Headers of n records: record i has headers `offsets[i]` to `offsets[i + 1]` of `keys` (UTF-8,
    never null) and `values`."""

    offsets: Int64
    keys: BinaryColumn
    values: BinaryColumn

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def item(self, index: int) -> list[tuple[str, bytes | None]]:
        """The headers of record `index`; a key that is not UTF-8 has its bad bytes replaced."""
        span = range(int(self.offsets[index]), int(self.offsets[index + 1]))
        return [((self.keys.item(i) or b"").decode("utf-8", "replace"), self.values.item(i)) for i in span]

    def to_arrow(self) -> pa.Array:
        """An Arrow array `list<element: struct<key: string, value: binary>>`; keys that are not
        UTF-8 are mended."""
        import pyarrow as pa

        from fairlead_kafka.records.buffers import arrow_array

        first, last = int(self.offsets[0]), int(self.offsets[-1])
        keys = self.keys.to_arrow(text=True).slice(first, last - first)
        try:
            keys.validate(full=True)
        except pa.ArrowInvalid:
            mended = [(key or b"").decode("utf-8", "replace") for key in self.keys.to_list()[first:last]]
            keys = pa.array(mended, pa.string())
        values = self.values.to_arrow().slice(first, last - first)
        fields = [pa.field("key", pa.string()), pa.field("value", pa.binary())]
        structs = pa.StructArray.from_arrays(
            [keys.cast(pa.string()), values.cast(pa.binary())], fields=fields
        )
        offsets = arrow_array((self.offsets - first).astype(np.int32), pa.int32())
        return pa.ListArray.from_arrays(offsets, structs, type=pa.list_(pa.field("element", structs.type)))


@dataclass(slots=True, eq=False)
class RecordColumns:
    """`count` records to be encoded.

    `keys`, `values`: None if every one is null. `timestamps_ms`: int64[count], where -1 stands for
    the create time given to the encoder; None if that holds for all. The arrays are read, never
    written, and must not change afterwards.
    """

    count: int
    keys: BinaryColumn | None
    values: BinaryColumn | None
    headers: HeaderColumns | None = None
    timestamps_ms: Int64 | None = None
    _sizes: Int64 | None = field(default=None, init=False, repr=False)
    _flat: FlatColumns | None = field(default=None, init=False, repr=False)

    def sizes_bytes(self) -> Int64:
        """int64[count]: the encoded size of each record, counting its timestamp delta as 1 byte and
        its offset delta as 2.

        Computed once. The true size differs by a few bytes: a batch of more than 8192 records needs
        3 bytes for an offset delta, timestamps more than 63 ms apart 2 and more.
        """
        if self._sizes is None:
            from fairlead_kafka.records.encode_kernels import measure_records

            sizes = np.empty(self.count, np.int64)
            measure_records(*self.flat()[:-1], sizes)
            self._sizes = sizes
        return self._sizes

    def flat(self) -> FlatColumns:
        """The arrays as kernels take them (see `FlatColumns`), made once."""
        if self._flat is None:
            headers = self.headers
            header_keys, header_values = (
                (headers.keys, headers.values) if headers is not None else (None, None)
            )
            header_offsets = (
                _NO_INT64 if headers is None else read_only(np.asarray(headers.offsets, np.int64))
            )
            key_data, key_offsets, _ = _flat(header_keys)
            timestamps = (
                _NO_INT64
                if self.timestamps_ms is None
                else read_only(np.asarray(self.timestamps_ms, np.int64))
            )
            self._flat = (
                *_flat(self.keys),
                *_flat(self.values),
                header_offsets,
                key_data,
                key_offsets,
                *_flat(header_values),
                timestamps,
            )
        return self._flat


@dataclass(slots=True, frozen=True)
class Slice:
    """Records `order[start:stop]` of `columns`, or `start..stop` where there is no order."""

    columns: RecordColumns
    start: int
    stop: int
    order: Int64 | None = None

    def __len__(self) -> int:
        return self.stop - self.start


def all_null(count: int) -> BinaryColumn:
    """A column of `count` nulls."""
    return BinaryColumn(np.empty(0, np.uint8), np.zeros(count + 1, np.int64), np.zeros(count, np.bool_))


def flat_order(order: Int64 | None) -> Int64:
    """An order, cuts or sequences as kernels take them: a read-only int64 array, empty for None."""
    return _NO_INT64 if order is None else read_only(np.asarray(order, np.int64))


def timestamps_or_none(timestamps: Int64) -> Int64 | None:
    """`timestamps`, or None if all are -1, which leaves them to the create time."""
    return None if (timestamps == NO_TIMESTAMP).all() else timestamps


def _flat(column: BinaryColumn | None) -> tuple[Bytes, Int64, Bools]:
    if column is None:
        return _NO_BYTES, _NO_INT64, _NO_BOOLS
    valid = _NO_BOOLS if column.valid is None else read_only(column.valid)
    return read_only(column.data), read_only(np.asarray(column.offsets, np.int64)), valid
