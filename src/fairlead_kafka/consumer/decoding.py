"""Decoding of chunks to records; `tables` makes tables of chunks.

It is done in the caller's thread, where the kernels run without the GIL.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat

import numpy as np

from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.consumer.record import Record
from fairlead_kafka.records import MESSAGE_COLUMNS, DecodedRecords, Room, decode

_RECORD = partial(tuple.__new__, Record)
"""`Record._make` without its check of the length: a third faster, and it is all of the work per
record."""
ALL_COLUMNS: tuple[str, ...] = MESSAGE_COLUMNS


def check_columns(columns: Sequence[str] | None, known: Sequence[str] = ALL_COLUMNS) -> tuple[str, ...]:
    """The names asked for, in that order; None: all that are `known`. UsageError names those that
    do not exist."""
    if columns is None:
        return tuple(known)
    unknown = [name for name in columns if name not in known]
    if unknown or len(set(columns)) < len(columns) or not columns:
        wrong = f"unknown: {', '.join(unknown)}" if unknown else "name each column once, and one at least"
        raise UsageError(f"columns: {wrong}; there are {', '.join(known)}")
    return tuple(columns)


def decode_chunk(
    chunk: Chunk, columns: Sequence[str] = ALL_COLUMNS, *, check_crcs: bool, room: Room | None = None
) -> DecodedRecords:
    """The wanted records of a chunk, and the position after them; only what `columns` need.
    DecodeError names partition and offset.

    `room`: see `records.decode`.
    """
    try:
        return decode(
            chunk.data,
            from_offset=chunk.start,
            aborted=chunk.aborted,
            want_keys="key" in columns,
            want_values="value" in columns,
            want_headers="headers" in columns,
            check_crcs=check_crcs,
            room=room,
        )
    except DecodeError as error:
        raise named(error, chunk) from error


def named(error: DecodeError, chunk: Chunk) -> DecodeError:
    """The error, with the chunk's partition, and the offset at which decoding failed, in its
    text."""
    return DecodeError(
        f"{chunk.partition} from offset {chunk.start}: {error}; seek past it to go on", error.offset
    )


def wanted_count(chunk: Chunk, decoded: DecodedRecords) -> int:
    """How many of the decoded records lie before the chunk's end."""
    if decoded.count and decoded.offsets[-1] >= chunk.end:
        return int(np.searchsorted(decoded.offsets, chunk.end))
    return int(decoded.count)


class OpenChunk:
    """A decoded chunk whose records are returned one by one.

    `index` is the next record's index, `stop` the index after the last.
    """

    __slots__ = ("chunk", "decoded", "dropped", "held", "index", "stop")

    def __init__(self, chunk: Chunk, decoded: DecodedRecords) -> None:
        self.chunk = chunk
        self.decoded = decoded
        self.index = 0
        self.stop = wanted_count(chunk, decoded)
        self.dropped = False
        """A seek or an assignment has made the rest obsolete."""
        self.held = False
        """True while the partition is paused."""

    @property
    def position(self) -> int:
        """Offset of the next record to return."""
        return self.position_at(self.index)

    def position_at(self, index: int) -> int:
        """Offset of the next record to return once those before `index` are."""
        if index < self.stop:
            return int(self.decoded.offsets[index])
        return (
            min(self.decoded.next_offset, self.chunk.end)
            if self.stop < self.decoded.count
            else self.decoded.next_offset
        )

    def records(self, stop: int) -> list[Record]:
        """The records from `index` to `stop` (an index), without moving `index`."""
        return list(map(_RECORD, fields_of(self.chunk.partition, self.decoded, self.index, stop)))


def fields_of(
    partition: TopicPartition, decoded: DecodedRecords, start: int, stop: int
) -> Iterator[tuple[object, ...]]:
    """The fields of `Record`, of the decoded records `start` to `stop` (indexes), one by one."""
    headers = decoded.headers
    return zip(
        repeat(partition.topic, stop - start),
        repeat(partition.partition),
        decoded.offsets[start:stop].tolist(),
        decoded.timestamps_ms[start:stop].tolist(),
        decoded.timestamp_types[start:stop].tolist(),
        repeat(None) if decoded.keys is None else decoded.keys.to_list(start, stop),
        decoded.values.to_list(start, stop),
        repeat(()) if headers is None else [tuple(headers.item(index)) for index in range(start, stop)],
        strict=False,
    )
