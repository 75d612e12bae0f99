"""Gives batches new places in the log: smaller after compaction, or as they are, out of a file in
which little else is alive.

The old place is valid until the new one is synced; then the index changes, and the old one is dead.
After a crash in between, recovery finds either, from the entries of the log (`entry`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from fairlead_kafka.broker.guard import shared
from fairlead_kafka.broker.log.checkpoints import Checkpoints
from fairlead_kafka.broker.log.entry import ENTRY_HEADER_BYTES, MOVED, NoteKind, pack_entry, pack_note
from fairlead_kafka.broker.log.index import Location
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.broker.log.writer import Writer
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import BatchHeader


class Move(NamedTuple):
    """A batch, read at `was`, that is to be rewritten as `data`; without `data` it is removed."""

    partition: Partition
    was: Location
    header: BatchHeader
    data: Buffer | None
    max_timestamp_ms: int


class _Place(NamedTuple):
    """A move under way, and where the batch will lie (None: it is removed)."""

    move: Move
    place: Location | None


class Mover:
    """Rewrites batches of one log at its end."""

    def __init__(self, writer: Writer, segments: SegmentFiles, checkpoints: Checkpoints) -> None:
        self._writer = writer
        self._segments = segments
        self._checkpoints = checkpoints
        self._under_way: list[list[_Place]] = []

    @shared("the writer of the log")
    def roll(self) -> None:
        """Have the log continue in a new file: the batches left in the present one can then be
        moved, and the file deleted."""
        self._writer.roll()
        self._checkpoints.new_entries += 1
        self._checkpoints.released()

    def move(
        self,
        moves: Sequence[Move],
        file_limit_bytes: int,
        done: Callable[[bool], None],
        passed: bytes | None = None,
    ) -> None:
        """Write the batches, then update the index; done(True), or done(False) if that failed and
        everything is as before. `passed` is a note that counts only if all the batches do. Batches
        that do not lie any more where they were read are left out: they were deleted meanwhile, or
        cut, and others written at the same offsets."""
        if self._writer.error is not None:
            done(False)
            return
        # Packed before anything is written: if that raises, nothing was moved.
        packed = [
            (one, _packed(one))
            for one in moves
            if one.partition.place_of(one.header.base_offset, one.header.last_offset) == one.was
        ]
        places = self._append(packed, passed, file_limit_bytes)
        self._writer.when_written(lambda success: self._written(places, success, done))

    @shared("the writer of the log")
    def _append(
        self, packed: list[tuple[Move, bytes]], passed: bytes | None, file_limit_bytes: int
    ) -> list[_Place]:
        places: list[_Place] = []
        for one, entry in packed:
            file, position = self._writer.append_moved(entry, file_limit_bytes)
            place = None
            if one.data is not None:
                place = Location(file, position + ENTRY_HEADER_BYTES, len(entry) - ENTRY_HEADER_BYTES)
                # Alive from now on, or the file might be deleted under it.
                self._segments.add_live(file, place.size_bytes)
            places.append(_Place(one, place))
        if passed is not None:
            self._writer.append_moved(passed, file_limit_bytes)
        self._checkpoints.new_entries += len(places)
        self._under_way.append(places)
        return places

    @shared("the writer of the log")
    def _written(self, places: list[_Place], success: bool, done: Callable[[bool], None]) -> None:
        self._under_way.remove(places)
        released: list[tuple[int, int]] = []
        for one, place in places:
            partition, base_offset, last_offset = (
                one.partition,
                one.header.base_offset,
                one.header.last_offset,
            )
            self._checkpoints.take(partition)
            # The partition may have been cut meanwhile, and written again at the same offsets:
            # then that counts, as in the log.
            applies = success and partition.place_of(base_offset, last_offset) == one.was
            if place is None:
                released += partition.remove(base_offset, last_offset) if applies else []
            elif applies:
                partition.move(base_offset, last_offset, place, one.max_timestamp_ms)
                released.append((one.was.file, one.was.size_bytes))
            else:
                released.append((place.file, place.size_bytes))
        if released:
            self._segments.release(released)
            self._checkpoints.released()
        done(success)

    def under_way(self) -> list[Location]:
        """The new locations of batches that are being moved: they count as live, beside the old
        ones."""
        return [place.place for places in self._under_way for place in places if place.place is not None]


def _packed(one: Move) -> bytes:
    """The entry that says of a batch that it was moved, or removed."""
    partition, header = one.partition, one.header
    if one.data is None:
        return pack_note(
            partition.topic_id_bytes,
            partition.partition,
            NoteKind.removed,
            header.base_offset,
            header.last_offset,
        )
    return pack_entry(
        partition.topic_id_bytes,
        partition.partition,
        header.base_offset,
        header.partition_leader_epoch,
        memoryview(one.data),
        MOVED,
    )
