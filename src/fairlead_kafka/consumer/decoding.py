"""Chunks to tables and records: the work a face does in the caller's thread, where the kernels run without the GIL."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.consumer.record import Record
from fairlead_kafka.records import HEADER_SCHEMA, MESSAGE_SCHEMA, BinaryColumn, DecodedRecords, decode, headers_of

_MICROSECONDS_PER_MS = 1000
_RECORD = partial(tuple.__new__, Record)
"""`Record._make` without its check of the length: a third faster, and it is all of the work per record."""
ALL_COLUMNS: tuple[str, ...] = tuple(MESSAGE_SCHEMA.names)
BATCH_SCHEMA = pa.schema([("topic", pa.string()), ("partition", pa.int32()), *HEADER_SCHEMA])
"""A row per record batch: where it is, and what its header says (`records.HEADER_SCHEMA`)."""


def check_columns(columns: Sequence[str] | None) -> tuple[str, ...]:
    """The names asked for, in that order; None: all. UsageError names those that do not exist."""
    if columns is None:
        return ALL_COLUMNS
    unknown = [name for name in columns if name not in ALL_COLUMNS]
    if unknown or len(set(columns)) < len(columns) or not columns:
        wrong = f"unknown: {', '.join(unknown)}" if unknown else "name each column once, and one at least"
        raise UsageError(f"columns: {wrong}; there are {', '.join(ALL_COLUMNS)}")
    return tuple(columns)


def decode_chunk(chunk: Chunk, columns: Sequence[str] = ALL_COLUMNS, *, check_crcs: bool) -> DecodedRecords:
    """The wanted records of a chunk, and the position after them; only what `columns` need. DecodeError names partition and offset."""
    try:
        return decode(
            chunk.data,
            from_offset=chunk.start,
            aborted=chunk.aborted,
            want_keys="key" in columns,
            want_values="value" in columns,
            want_headers="headers" in columns,
            check_crcs=check_crcs,
        )
    except DecodeError as error:
        raise _named(error, chunk) from error


def _named(error: DecodeError, chunk: Chunk) -> DecodeError:
    return DecodeError(f"{chunk.partition} from offset {chunk.start}: {error}; seek past it to go on", error.offset)


def chunk_headers(chunk: Chunk, *, measure: bool, check_crcs: bool) -> pa.RecordBatch:
    """A row of `BATCH_SCHEMA` per batch of a chunk, none of its records decoded. DecodeError names partition and offset."""
    try:
        headers = headers_of(chunk.data, chunk.start, chunk.end, measure=measure, check_crcs=check_crcs)
    except DecodeError as error:
        raise _named(error, chunk) from error
    count = headers.num_rows
    names = [pa.repeat(pa.scalar(chunk.partition.topic, pa.string()), count), pa.array(np.full(count, chunk.partition.partition, np.int32))]
    return pa.RecordBatch.from_arrays([*names, *headers.columns], schema=BATCH_SCHEMA)


def wanted_count(chunk: Chunk, decoded: DecodedRecords) -> int:
    """How many of the decoded records lie before the chunk's end."""
    if decoded.count and decoded.offsets[-1] >= chunk.end:
        return int(np.searchsorted(decoded.offsets, chunk.end))
    return int(decoded.count)


def to_batch(partition: TopicPartition, decoded: DecodedRecords, columns: Iterable[str], start: int, stop: int) -> pa.RecordBatch:
    """Records start..stop (positions) as an Arrow record batch with `columns`: zero copies of keys and values."""
    makers = {
        "topic": lambda: pa.repeat(pa.scalar(partition.topic, pa.string()), decoded.count),
        "partition": lambda: pa.array(np.full(decoded.count, partition.partition, np.int32)),
        "offset": lambda: pa.array(decoded.offsets),
        "timestamp": lambda: pa.array(decoded.timestamps_ms * _MICROSECONDS_PER_MS).view(pa.timestamp("us", tz="UTC")),
        "timestampType": lambda: pa.array(decoded.timestamp_types.astype(np.int32)),
        "key": lambda: _binary(decoded.keys, decoded.count),
        "value": lambda: _binary(decoded.values, decoded.count),
        "headers": lambda: _headers(decoded),
    }
    names = list(columns)
    schema = pa.schema([MESSAGE_SCHEMA.field(name) for name in names])
    batch = pa.RecordBatch.from_arrays([makers[name]() for name in names], schema=schema)
    return batch if (start, stop) == (0, decoded.count) else batch.slice(start, stop - start)


def empty_table(columns: Iterable[str]) -> pa.Table:
    """A table without rows."""
    return pa.schema([MESSAGE_SCHEMA.field(name) for name in columns]).empty_table()


def _binary(column: BinaryColumn | None, count: int) -> Any:
    return pa.nulls(count, pa.binary()) if column is None else column.to_arrow()


def _headers(decoded: DecodedRecords) -> Any:
    if decoded.headers is None:
        return pa.nulls(decoded.count, MESSAGE_SCHEMA.field("headers").type)
    return decoded.headers.to_arrow()


class OpenChunk:
    """A decoded chunk that is being handed over record by record: `index` is the next one, `stop` the end."""

    __slots__ = ("_arrays", "chunk", "decoded", "dropped", "held", "index", "stop")

    def __init__(self, chunk: Chunk, decoded: DecodedRecords) -> None:
        self.chunk = chunk
        self.decoded = decoded
        self._arrays: tuple[Any, Any] | None = None
        self.index = 0
        self.stop = wanted_count(chunk, decoded)
        self.dropped = False
        """A seek, an assignment or a table took the rest."""
        self.held = False
        """The partition is paused."""

    @property
    def position(self) -> int:
        """The offset of the next record to hand over."""
        if self.index < self.stop:
            return int(self.decoded.offsets[self.index])
        return min(self.decoded.next_offset, self.chunk.end) if self.stop < self.decoded.count else self.decoded.next_offset

    def records(self, limit: int) -> list[Record]:
        """Up to `limit` records from `index` on, which stays where it is."""
        start, stop = self.index, min(self.stop, self.index + limit)
        decoded, partition = self.decoded, self.chunk.partition
        if self._arrays is None:
            self._arrays = (_binary(decoded.keys, decoded.count), _binary(decoded.values, decoded.count))
        keys, values = self._arrays
        headers = decoded.headers
        fields = zip(
            repeat(partition.topic),
            repeat(partition.partition),
            decoded.offsets[start:stop].tolist(),
            decoded.timestamps_ms[start:stop].tolist(),
            decoded.timestamp_types[start:stop].tolist(),
            repeat(None) if decoded.keys is None else _items(keys, start, stop),
            _items(values, start, stop),
            repeat(()) if headers is None else [tuple(headers.item(index)) for index in range(start, stop)],
            strict=False,
        )
        return list(map(_RECORD, fields))


def _items(array: Any, start: int, stop: int) -> Iterable[bytes | None]:
    return array.slice(start, stop - start).to_numpy(zero_copy_only=False).tolist()  # type: ignore[no-any-return]
