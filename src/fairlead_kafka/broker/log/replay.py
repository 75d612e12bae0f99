"""Replay: applies the entries of the log to partitions again, for recovery."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from struct import Struct

from fairlead_kafka.broker.log.checkpoint import Checkpoint
from fairlead_kafka.broker.log.compaction import passes_after
from fairlead_kafka.broker.log.entry import Note, NoteKind
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.records import BatchHeader, end_marker

_KEY = Struct(">16si")


class Replay:
    """Restores partitions from the log's entries. `partition_of` gives each, None if its topic was
    deleted."""

    def __init__(
        self, partition_of: Callable[[uuid.UUID, int], Partition | None], segments: SegmentFiles, wall_ms: int
    ) -> None:
        self._partition_of = partition_of
        self._segments = segments
        self._wall_ms = wall_ms
        self._found: dict[bytes, Partition | None] = {}

    def restore(self, checkpoint: Checkpoint) -> None:
        """Restore the partitions that a checkpoint has."""
        for file, live_bytes in checkpoint.restore(self._partition_of).items():
            self._segments.add_live(file, live_bytes)

    def batch(
        self, key: bytes, moved: bool, header: BatchHeader, batch: memoryview, file: int, position: int
    ) -> None:
        """Enter a batch that the scan has found; for the arguments see `scan.Found`."""
        try:
            partition = self._found[key]
        except KeyError:
            topic_id, number = _KEY.unpack(key)
            partition = self._found[key] = self._partition_of(uuid.UUID(bytes=topic_id), number)
        if partition is None:
            return
        location = Location(file, position, header.size_bytes)
        timestamp_ms = header.max_timestamp_ms if header.max_timestamp_ms >= 0 else self._wall_ms
        if moved:
            was = partition.move(header.base_offset, header.last_offset, location, timestamp_ms)
            if was is not None:
                self._segments.release((was,))
                self._segments.add_live(file, header.size_bytes)
            return
        marker = end_marker(batch, header) if header.control else None
        partition.record(
            header,
            header.base_offset,
            header.partition_leader_epoch,
            location,
            timestamp_ms,
            marker,
            self._wall_ms,
        )
        self._segments.add_live(file, header.size_bytes)

    def note(self, note: Note) -> None:
        """Do again to the partition what a note says was done."""
        partition = self._partition_of(note.topic_id, note.partition)
        if partition is not None:
            self._segments.release(_ON_NOTE[note.kind](partition, note))


def _cleaned(partition: Partition, note: Note) -> list[tuple[int, int]]:
    partition.passes = passes_after(partition, note.offset, note.argument)
    return []


_ON_NOTE: dict[NoteKind, Callable[[Partition, Note], list[tuple[int, int]]]] = {
    NoteKind.truncated: lambda partition, note: partition.truncate(note.offset),
    NoteKind.restarted: lambda partition, note: partition.restart(note.offset),
    NoteKind.start_moved: lambda partition, note: partition.move_start(note.offset),
    NoteKind.cleaned: _cleaned,
    NoteKind.removed: lambda partition, note: partition.remove(note.offset, note.argument),
}
