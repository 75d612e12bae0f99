"""Writes checkpoints: when one is due, in which of the two files, and which dead log files may go
with it.

A checkpoint holds the state in memory at one moment. Gathering that takes long where there are many
partitions, so it is done a slice at a time, and a partition that is about to change meanwhile is
gathered before it does (`taking`). It is written once everything appended before that moment is
synced, so that no checkpoint ever refers to bytes that a power cut may lose. The two files are
written in turn, so that one is whole at any time. A log file in which nothing is alive is deleted
only when both checkpoints have that: neither may refer recovery to a deleted file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice

from fairlead_kafka.base.checks import holds
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.guard import shared
from fairlead_kafka.broker.log.checkpoint import Encoder, Place
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.recovery import CHECKPOINT_NAMES
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.broker.log.table import PartitionTable
from fairlead_kafka.broker.log.writer import Later, Writer

GROWTH = 8
"""A checkpoint costs as much as all batches known. It is due once one batch in so many is new, or
after so many intervals if nothing but high watermarks rose."""
ENOUGH_ENTRIES = 50_000
"""A checkpoint is due after so many entries in any case: recovery scans them in about a second."""

SLICE_PARTITIONS = 1_000
"""Partitions gathered in one step, in some milliseconds."""

_logger = GuardedLogger("fairlead_kafka.broker")


class Checkpoints:
    """Writes the checkpoints of one log."""

    def __init__(
        self, files: Files, segments: SegmentFiles, writer: Writer, partitions: PartitionTable, later: Later
    ) -> None:
        self._files = files
        self._segments = segments
        self._writer = writer
        self._partitions = partitions
        self._sequence = 0
        self._place = (0, 0)
        self._written_marks = 0
        self._waited = 0
        self._busy = False
        self._closing: Callable[[], None] | None = None
        self._reclaim = False
        self._later = later
        self._encoder = Encoder()
        self._more: Callable[[], None] | None = None
        """Goes on with gathering a checkpoint; None: none is being gathered."""
        self.taking: dict[Partition, None] = {}
        """Partitions that the checkpoint being gathered has not taken yet: call `take` before any
        of them changes."""
        self.new_entries = 0
        """Entries appended since the last checkpoint was begun."""

    def recovered(self, place: Place, new_entries: int) -> None:
        """Called when recovery has ended: it began at `place` and scanned `new_entries`."""
        self._sequence, self._place, self.new_entries = (
            place.sequence,
            (place.file, place.position),
            new_entries,
        )
        self._written_marks = self._marks()
        self.released()

    def released(self) -> None:
        """Called when batches were dropped: a file may have none that is needed any more."""
        self._reclaim = True

    def reclaim(self) -> None:
        """Delete files without live batches, if there are any, after writing both checkpoints.
        Called at the end of each step."""
        if self._reclaim and not self._busy:
            self._reclaim = False
            dead = self._segments.dead()
            if dead:
                self._begin(dead, synced=False, done=lambda: None)

    def write_if_due(self) -> None:
        """Write a checkpoint if enough has changed since the last one. Called at intervals."""
        self._reclaim = True  # what could not be deleted before
        if self._busy:
            return
        known = sum(len(partition.index) for partition in self._partitions)
        marks = self._marks()
        self._waited += 1
        enough = self.new_entries >= ENOUGH_ENTRIES or self.new_entries * GROWTH >= known
        if (self.new_entries and enough) or (marks != self._written_marks and self._waited >= GROWTH):
            self._begin([], synced=False, done=lambda: None)

    def close(self, done: Callable[[], None]) -> None:
        """Write the last checkpoint, after everything was synced, then call `done`."""
        if self._busy:
            self._closing = done
            self._go_on()  # nobody will wait for a later step any more
        elif self._writer.error is not None or (
            self._place == self._now() and self._written_marks == self._marks()
        ):
            done()
        else:
            self._begin([], synced=True, done=done)

    def _marks(self) -> int:
        """A number that changes whenever a high watermark does: their sum. (They only rise; when
        one falls, by a truncation, the log has a new note.)"""
        return sum(partition.high_watermark for partition in self._partitions)

    def _now(self) -> tuple[int, int]:
        return self._segments.active, self._segments.active_size_bytes

    @shared("the checkpoints of the log")
    def _begin(self, dead: list[int], *, synced: bool, done: Callable[[], None]) -> None:
        if self._writer.error is not None:
            done()
            return
        self._busy, self.new_entries = True, 0
        self._sequence += 1
        self._place, self._written_marks, self._waited = self._now(), self._marks(), 0
        closed = {
            number: size for number, size in self._segments.closed_sizes().items() if number not in dead
        }
        place = Place(*self._place, self._sequence, closed)
        self._encoder, self.taking = Encoder(), dict.fromkeys(self._partitions)
        names = list(CHECKPOINT_NAMES) if dead else [CHECKPOINT_NAMES[self._sequence % 2]]

        def ended() -> None:
            self._busy = False
            closing, self._closing = self._closing, None
            done()
            if closing is not None:
                self.close(closing)

        def failed(error: object) -> None:
            self._place = (0, 0)
            _logger.warning(
                "%s: no checkpoint could be written: %s; recovery will take longer",
                self._segments.folder,
                error,
            )
            ended()

        def write(rest: list[str], content: list[bytes]) -> None:
            if not rest:
                self._delete(dead)
                ended()
                return

            def written(_value: object, error: OSError | None) -> None:
                if error is not None:
                    failed(error)
                else:
                    write(rest[1:], content)

            self._files.replace(f"{self._segments.folder}/{rest[0]}", content, written)

        @shared("the checkpoints of the log")
        def collect(success: bool) -> None:
            if not success:
                self.taking.clear()
                failed(self._writer.error)
                return
            at_once = synced or self._closing is not None
            for partition in list(islice(self.taking, None if at_once else SLICE_PARTITIONS)):
                self.take(partition)
            if self.taking:
                self._more = lambda: collect(True)
                self._later(0.0, self._go_on)
            else:
                # What was gathered is as large as all indexes: it goes before the file is written.
                encoder, self._encoder = self._encoder, Encoder()
                write(names, encoder.content(place))

        if synced:
            collect(True)
        else:
            self._writer.when_synced(collect)

    def _go_on(self) -> None:
        more, self._more = self._more, None
        if more is not None:
            more()

    @shared("the checkpoints of the log")
    def take(self, partition: Partition) -> None:
        """Add a partition to the checkpoint that is being made, as it is now, unless it is in
        it."""
        if self.taking.pop(partition, self) is None:
            self._encoder.take(partition)

    def _delete(self, dead: Iterable[int]) -> None:
        for number in dead:
            self._segments.forget(number)
            self._files.delete(self._segments.path(number), self._deleted)

    def _deleted(self, _value: object, error: OSError | None) -> None:
        if error is not None:
            _logger.warning("%s: a dead log file could not be deleted: %s", self._segments.folder, error)

    def check(self) -> None:
        """Raise CheckFailed if parts of a checkpoint are kept while none is being written."""
        holds(
            "no checkpoint is written, so none waits for a partition",
            self._busy or not (self.taking or self._more or self._closing),
        )
        holds("entries since the last checkpoint are counted upward", self.new_entries >= 0)
