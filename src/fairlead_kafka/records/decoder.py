"""Decoding of record batches: all batches of a fetch answer become one set of columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.kernel import read_only
from fairlead_kafka.base.limits import INFLATED_BATCH_MAX_BYTES
from fairlead_kafka.records import faults
from fairlead_kafka.records.arrays import Bools, Bytes, Int32, Int64, Table
from fairlead_kafka.records.batch import records_of
from fairlead_kafka.records.columns import BinaryColumn, HeaderColumns, all_null
from fairlead_kafka.records.control import ControlType, control_type
from fairlead_kafka.records.crc import crc_value
from fairlead_kafka.records.decode_kernels import decode_headers, decode_records, scan_batches
from fairlead_kafka.records.layout import (
    ATTRIBUTES,
    COMPRESSION_MASK,
    CONTROL_MASK,
    CRC,
    HEADER_SIZE_BYTES,
    RECORD_COUNT,
    RECORD_MIN_SIZE_BYTES,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Data,
)

_POSITION, _SIZE, _BASE_OFFSET, _CRC, _ATTRIBUTES, _LAST_DELTA, _PRODUCER_ID, _COUNT = 0, 1, 2, 4, 5, 6, 9, 12
_FIELDS = len(BatchHeader._fields)
_ROWS_PER_SCAN = 4096
_CURSORS = 9
_NOT_INFLATED = -1
_TRIM_BELOW = 0.5
"""Data that fill less than this share of their memory are copied, so that it can be freed."""


class _Aborted(Protocol):
    @property
    def producer_id(self) -> int: ...
    @property
    def first_offset(self) -> int: ...


@dataclass(slots=True, eq=False)
class DecodedRecords:
    """`count` records: `offsets` int64[], `timestamps_ms` int64[] (milliseconds since 1970),
    `timestamp_types` int32[] (0 create, 1 log append); `keys` and `headers` are None if not wanted
    or if no record has any, `values` all null if not wanted.

    `next_offset` is where to fetch from next: after the last batch looked at, also where that held
    no records.
    """

    count: int
    offsets: Int64
    timestamps_ms: Int64
    timestamp_types: Int32
    keys: BinaryColumn | None
    values: BinaryColumn
    headers: HeaderColumns | None
    next_offset: int


Room = Callable[[int], Bytes]
"""Allocates memory: uint8[n] for n bytes, whatever is in them."""


class _Wants(NamedTuple):
    """The arguments of `decode` that say what is wanted."""

    from_offset: int
    keys: bool
    values: bool
    headers: bool
    room: Room


class _Run(NamedTuple):
    """A run of batches, `first` to `last` of the rows, that one kernel call decodes. Their records
    are in `source`: in place, or inflated (then it is one batch, with its inflated size)."""

    source: Bytes
    first: int
    last: int
    inflated_size: int


def decode(
    data: Data,
    *,
    from_offset: int = 0,
    aborted: Sequence[_Aborted | tuple[int, int]] = (),
    want_keys: bool = True,
    want_values: bool = True,
    want_headers: bool = True,
    check_crcs: bool = True,
    room: Room | None = None,
) -> DecodedRecords:
    """The records of every whole batch in `data` from `from_offset` on, as one set of columns.

    Batches of the transactions in `aborted` ((producer id, first offset), as a Fetch answer lists
    them for `read_committed`) and control batches are skipped; a last batch that is cut short is
    ignored. Raises DecodeError for garbage. Compressed batches are taken until they have inflated
    to `INFLATED_BATCH_MAX_BYTES`, at least one, or of one that inflates to more as many records as
    fit; `next_offset` then points at the first that was not taken. `room`: where the memory for
    keys, values and headers comes from; None: NumPy. Source: Kafka's `CompletedFetch`.
    """
    wants = _Wants(from_offset, want_keys, want_values, want_headers, room or _unpooled)
    array = read_only(np.frombuffer(data, np.uint8)) if len(data) else read_only(np.empty(0, np.uint8))
    rows = scanned = scan_rows(array)
    if len(rows) and rows[0, _BASE_OFFSET] < from_offset:
        rows = rows[rows[:, _BASE_OFFSET] + rows[:, _LAST_DELTA] >= from_offset]
    if not len(rows):
        return _empty(from_offset, wants)
    if check_crcs:
        verify_rows(array, rows)
    kept = rows
    attributes = int(np.bitwise_or.reduce(rows[:, _ATTRIBUTES]))
    if attributes & (CONTROL_MASK | TRANSACTIONAL_MASK):
        # All rows are looked at: the marker that ends an aborted transaction may lie before the
        # first one wanted.
        kept = rows[_wanted(array, scanned, aborted)[-len(rows) :]]
    runs, taken = _runs(array, kept, attributes)
    if len(kept) and not taken:
        from fairlead_kafka.records.parts import part_of  # which loads the compressors

        row = kept[:1].copy()
        part = part_of(array, _header(row, 0), from_offset, INFLATED_BATCH_MAX_BYTES)
        row[0, _COUNT] = part.records
        runs = [_Run(part.source, 0, 1, len(part.source))]
        return _Decoder(row, runs, wants).decode(part.next_offset)
    next_row = rows[-1] if taken == len(kept) else kept[taken - 1]
    next_offset = int(next_row[_BASE_OFFSET] + next_row[_LAST_DELTA]) + 1
    if not runs:
        return _empty(next_offset, wants)
    return _Decoder(kept, runs, wants).decode(next_offset)


def scan_rows(array: Bytes) -> Table:
    """The headers of all whole batches as rows of `BatchHeader`'s fields: int64[n, 13]. DecodeError
    names the byte."""
    tables = []
    position = 0
    while True:
        rows = np.empty((min(_ROWS_PER_SCAN, len(array) // HEADER_SIZE_BYTES), _FIELDS), np.int64)
        filled, fault, position = scan_batches(array, position, rows)
        if fault:
            raise DecodeError(
                faults.magic(int(array[position])) if fault == faults.MAGIC else faults.MESSAGES[fault],
                position,
            )
        tables.append(rows[:filled])
        if filled < _ROWS_PER_SCAN:
            return tables[0] if len(tables) == 1 else np.concatenate(tables)


def verify_rows(array: Bytes, rows: Table) -> None:
    """Raise DecodeError unless the CRC-32C of every batch is that of its bytes."""
    # Column by column: NumPy releases the GIL to pick several, and a lone record waits for it.
    columns = [rows[:, column].tolist() for column in (_POSITION, _SIZE, _CRC)]
    for position, size, stated in zip(*columns, strict=True):
        found = crc_value(array[position + ATTRIBUTES : position + size])
        if found != stated:
            raise DecodeError(faults.crc(stated, found), position + CRC)


def _header(rows: Table, row: int) -> BatchHeader:
    return BatchHeader._make(rows[row].tolist())


def _wanted(array: Bytes, rows: Table, aborted: Sequence[_Aborted | tuple[int, int]]) -> Bools:
    """Which batches hold users' records of transactions that were not aborted."""
    waiting = sorted(
        (
            (each[1], each[0]) if isinstance(each, tuple) else (each.first_offset, each.producer_id)
            for each in aborted
        ),
        reverse=True,
    )
    open_aborted: set[int] = set()
    wanted: Bools = (rows[:, _ATTRIBUTES] & CONTROL_MASK) == 0
    if not waiting:
        return wanted
    for row in range(len(rows)):
        header = _header(rows, row)
        while waiting and waiting[-1][0] <= header.last_offset:
            open_aborted.add(waiting.pop()[1])
        if header.control:
            if header.producer_id in open_aborted and control_type(array, header) == ControlType.abort:
                open_aborted.discard(header.producer_id)
        elif header.transactional and header.producer_id in open_aborted:
            wanted[row] = False
    return wanted


def _runs(array: Bytes, rows: Table, any_attributes: int) -> tuple[list[_Run], int]:
    """The rows as runs, each decoded by one kernel call, and how many rows were taken; compressed
    batches are inflated. DecodeError if a record count is invalid.

    A compressed batch is left for another call if `INFLATED_BATCH_MAX_BYTES` are inflated already,
    or if it alone inflates to more. (That next call takes no rows, and the batch is then taken in
    parts.)
    """
    if not any_attributes & COMPRESSION_MASK:
        return ([_Run(array, 0, len(rows), _NOT_INFLATED)] if len(rows) else []), len(rows)
    runs: list[_Run] = []
    inflated_bytes = 0
    for row, attributes in enumerate(rows[:, _ATTRIBUTES].tolist()):
        if not attributes & COMPRESSION_MASK:
            begin = row
            if runs and runs[-1].inflated_size == _NOT_INFLATED:
                begin = runs.pop().first
            runs.append(_Run(array, begin, row + 1, _NOT_INFLATED))
            continue
        if inflated_bytes >= INFLATED_BATCH_MAX_BYTES:
            return runs, row
        header = _header(rows, row)
        try:
            source, _, size = records_of(array, header, INFLATED_BATCH_MAX_BYTES)
        except faults.InflatesTooFar:
            return runs, row
        if header.count * RECORD_MIN_SIZE_BYTES > size:
            raise DecodeError(faults.MESSAGES[faults.COUNT], header.position + RECORD_COUNT)
        inflated_bytes += size
        runs.append(_Run(read_only(source), row, row + 1, size))
    return runs, len(rows)


class _Decoder:
    """The columns that the kernels fill, and the position in each."""

    def __init__(self, rows: Table, runs: list[_Run], wants: _Wants) -> None:
        self.rows = rows
        self.runs = runs
        self.wants = wants
        taken = rows[: runs[-1].last]
        count = int(taken[:, _COUNT].sum())
        size = sum(_size_of_run(rows, run) for run in runs)
        self.offsets = np.empty(count, np.int64)
        self.timestamps = np.empty(count, np.int64)
        self.timestamp_types = np.empty(count, np.int32)
        self.keys = _Field(count, size, wants.room) if wants.keys else _no_field()
        self.values = _Field(count, size, wants.room) if wants.values else _no_field()
        self.header_offsets = np.empty(count + 1 if wants.headers else 1, np.int64)
        self.header_offsets[0] = 0
        self.header_starts = np.empty(count if wants.headers else 0, np.int64)
        self.cursors = np.zeros(_CURSORS, np.int64)

    def decode(self, next_offset: int) -> DecodedRecords:
        """Run the kernels, and return the columns that they filled. DecodeError for garbage."""
        keys, values, cursors = self.keys, self.values, self.cursors
        ends = []
        for run in self.runs:
            fault, position = decode_records(
                run.source, self.rows, run.first, run.last, run.inflated_size, self.wants.from_offset,
                self.offsets, self.timestamps, self.timestamp_types,
                keys.offsets, keys.valid, keys.data, values.offsets, values.valid, values.data,
                self.header_offsets, self.header_starts, cursors,
            )  # fmt: skip
            if fault:
                raise faults.in_records(fault, position, _header(self.rows, int(cursors[8])))
            ends.append(int(cursors[0]))
        count, key_bytes, value_bytes, headers, _, _, null_keys, null_values, _ = cursors.tolist()
        return DecodedRecords(
            count,
            self.offsets[:count],
            self.timestamps[:count],
            self.timestamp_types[:count],
            keys.column(count, key_bytes, null_keys)
            if self.wants.keys and not 0 < null_keys == count
            else None,
            values.column(count, value_bytes, null_values) if self.wants.values else all_null(count),
            self._headers(count, ends) if headers else None,
            next_offset,
        )

    def _headers(self, count: int, ends: list[int]) -> HeaderColumns:
        """The headers of the `count` records, decoded from each run's source."""
        _, _, _, headers, key_bytes, value_bytes, *_ = self.cursors.tolist()
        keys, values = (
            _Field(headers, key_bytes, self.wants.room),
            _Field(headers, value_bytes, self.wants.room),
        )
        first = 0
        for run, end in zip(self.runs, ends, strict=True):
            decode_headers(
                run.source, first, end, self.header_offsets, self.header_starts,
                keys.offsets, keys.data, values.offsets, values.valid, values.data,
            )  # fmt: skip
            first = end
        nulls = int(headers - np.count_nonzero(values.valid))
        return HeaderColumns(
            self.header_offsets[: count + 1],
            keys.column(headers, key_bytes, 0),
            values.column(headers, value_bytes, nulls),
        )


def _size_of_run(rows: Table, run: _Run) -> int:
    """An upper bound of the bytes of the records of a run."""
    if run.inflated_size != _NOT_INFLATED:
        return run.inflated_size
    last = run.last - 1
    return int(rows[last, _POSITION] + rows[last, _SIZE] - rows[run.first, _POSITION])


class _Field:
    """A binary column being filled: room for `count` items of `size_bytes` in all."""

    def __init__(self, count: int, size_bytes: int, room: Room) -> None:
        self.offsets = np.empty(count + 1, np.int64)
        self.offsets[0] = 0
        self.valid = np.empty(count, np.bool_)
        self.data = room(size_bytes)

    def column(self, count: int, size_bytes: int, nulls: int) -> BinaryColumn:
        """The column of the `count` items that were filled in, without validity if `nulls` is 0.
        The data are copied if they use little of the memory taken."""
        data = self.data[:size_bytes]
        if size_bytes < len(self.data) * _TRIM_BELOW:
            data = data.copy()
        return BinaryColumn(data, self.offsets[: count + 1], self.valid[:count] if nulls else None)


def _unpooled(size_bytes: int) -> Bytes:
    return np.empty(size_bytes, np.uint8)


def _no_field() -> _Field:
    return _Field(0, 0, _unpooled)


def _empty(next_offset: int, wants: _Wants) -> DecodedRecords:
    none = np.empty(0, np.int64)
    keys = _no_field().column(0, 0, 0) if wants.keys else None
    return DecodedRecords(
        0, none, none, np.empty(0, np.int32), keys, _no_field().column(0, 0, 0), None, next_offset
    )
