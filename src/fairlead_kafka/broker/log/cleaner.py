"""The work on old files, a piece at a time: compaction of partitions, and rewriting of files in
which little is alive.

    idle ──look──> mapping ──all keys known, or no room for more──> compacting ──end──> idle
      └────nothing to compact──> collecting ──> copying ──end──> idle

Partitions are compacted one after the other, the dirtiest first. The file that is copied is the
emptiest one; the file written to is closed before.

Each piece is one read of about PIECE_BYTES and what follows from it, and other work of the broker
comes between two pieces. An error, or a change (the partition was truncated, its topic deleted),
ends the present work: its finished part is kept, and the next look starts from scratch. Each
compaction and rewriting owns its pieces (`guard`): what cannot be read, or raises, is put aside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import KIB
from fairlead_kafka.broker.guard import Owner, Task
from fairlead_kafka.broker.log.compaction import BatchCompactor, Due, Latest, due, passes_after
from fairlead_kafka.broker.log.entry import NoteKind, pack_note
from fairlead_kafka.broker.log.index import FILE, Location
from fairlead_kafka.broker.log.moving import Move, Mover
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.reader import ReadBatch, Reader, readable
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.broker.log.settings import LogSettings
from fairlead_kafka.broker.log.table import PartitionTable
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import scan

PIECE_BYTES = 256 * KIB
PARTITIONS_PER_PIECE = 1000
"""Partitions looked at in one piece where the index of each is searched."""
ASIDE_MS = 3_600_000
SPARSE_RATIO = 0.25
"""A closed file of which less than this share is alive is rewritten: three times its cost comes
back at once."""
ROLL_MIN_BYTES = 1 << 20
"""The file being written to is closed early if it is so long and as sparse: on an idle topic
retention would free nothing otherwise."""

_logger = GuardedLogger("fairlead_kafka.broker")

Later = Callable[[Callable[[], None]], object]
Bind = Callable[[Callable[..., object], Owner], Callable[..., None]]


class Cleaner:
    """Compacts partitions and rewrites files. `later(function)` calls a function in a step of its
    own, soon; `bind(function, owner)` binds it to the owner whose fault it is if it raises;
    `wall_ms()` gives milliseconds since 1970."""

    def __init__(
        self,
        partitions: PartitionTable,
        segments: SegmentFiles,
        reader: Reader,
        mover: Mover,
        later: Later,
        bind: Bind,
        wall_ms: Callable[[], int],
    ) -> None:
        self._partitions = partitions
        self._segments = segments
        self._reader = reader
        self._mover = mover
        self._later = later
        self._bind = bind
        self._wall_ms = wall_ms
        self._task = Task("the next look of the cleaner")
        self._settings: LogSettings | None = None
        self._busy: _Work | None = None
        """The compaction or rewriting under way."""
        self._aside: dict[Partition | int, int] = {}
        """Partitions and files that could not be read or raised, as Kafka's uncleanable partitions:
        not looked at again before a time in ms."""

    def look(self, settings: LogSettings) -> None:
        """Begin the compaction or rewriting that is due, unless one is under way."""
        self._settings = settings
        if self._busy is not None:
            return
        now_ms = self._wall_ms()
        self._aside = {of: until_ms for of, until_ms in self._aside.items() if until_ms > now_ms}
        found = [
            one
            for one in (due(partition, now_ms) for partition in self._partitions if partition.limits.compact)
            if one
        ]
        found = [one for one in found if one.partition not in self._aside]
        if found and settings.cleaner_enabled:
            compaction = _Compaction(self, max(found, key=lambda one: one.dirtiness))
            self._begin(compaction, compaction.map_piece)
            return
        if self._segments.stale(SPARSE_RATIO, ROLL_MIN_BYTES):
            # Once it is on the disk, a later look empties the file, if it is not dead already.
            self._mover.roll()
            return
        sparse = [file for file in self._segments.sparse(SPARSE_RATIO) if file not in self._aside]
        if sparse:
            rewriting = _Rewriting(self, sparse[0])
            self._begin(rewriting, rewriting.collect_piece)

    def _begin(self, work: _Work, first_piece: Callable[[], None]) -> None:
        self._busy = work
        self._bind(first_piece, work)()

    def ended(self, again: bool) -> None:
        """Called when the compaction or rewriting has ended; with `again`, look for the next."""
        self._busy = None
        if again and self._settings is not None:
            settings = self._settings
            self._later(self._bind(lambda: self.look(settings), self._task))

    def failed(self, work: _Work, error: Exception) -> None:
        """Called when work raised: what it was for is put aside, and the next is looked for."""
        if self._busy is not work:
            return  # it raised once more after it had ended
        _logger.error(
            "%s: old records cannot be cleaned, and are left as they are for an hour: %s",
            self.name(work.of),
            error,
        )
        self._aside[work.of] = self._wall_ms() + ASIDE_MS
        self.ended(again=True)

    # --- What the work at hand uses

    def name(self, of: Partition | int) -> str:
        """The name of a partition, or the path of a file."""
        return str(of) if isinstance(of, Partition) else self._segments.path(of)

    def later(self, work: _Work, function: Callable[[], None]) -> None:
        """Call a function of the work in a step of its own."""
        self._later(self._bind(function, work))

    @property
    def settings(self) -> LogSettings:
        """The settings of the last look."""
        assert self._settings is not None
        return self._settings

    def hosted(self) -> list[Partition]:
        """All partitions of the log."""
        return list(self._partitions)

    def holds(self, partition: Partition) -> bool:
        """Whether the partition is still in the log; False if its topic is gone."""
        return self._partitions.holds(partition)

    def now_ms(self) -> int:
        """The time of day, in ms since 1970."""
        return self._wall_ms()

    def read(self, work: _Work, locations: list[Location], done: Callable[[list[Buffer]], None]) -> None:
        """Read batches; if that fails the compaction or rewriting ends."""

        def taken(found: list[ReadBatch]) -> None:
            try:
                batches, error = readable(found)
                if error:
                    raise DecodeError("a batch cannot be read", 0)
                done(batches)
            except DecodeError as error:
                self.failed(work, error)

        self._reader.read(locations, self._bind(taken, work))

    def move(
        self, work: _Work, moves: list[Move], then: Callable[[], None], passed: bytes | None = None
    ) -> None:
        """Move batches, then call `then` in a step of its own; if that fails the compaction or
        rewriting ends."""

        def moved(success: bool) -> None:
            if success:
                self.later(work, then)
            else:
                self.ended(again=False)

        if moves or passed is not None:
            self._mover.move(moves, self.settings.file_limit_bytes, self._bind(moved, work), passed)
        else:
            self.later(work, then)


class _Work:
    """A compaction of a partition or rewriting of a file (`of`), the owner of its pieces."""

    def __init__(self, cleaner: Cleaner, of: Partition | int) -> None:
        self._cleaner = cleaner
        self.of = of

    def __str__(self) -> str:
        return f"the cleaning of {self._cleaner.name(self.of)}"

    def failed(self, error: Exception) -> None:
        """Called when a piece raised `error`: the work ends."""
        self._cleaner.failed(self, error)


class _Compaction(_Work):
    """One pass of compaction over one partition."""

    def __init__(self, cleaner: Cleaner, what: Due) -> None:
        super().__init__(cleaner, what.partition)
        self._partition = what.partition
        self._offset = what.dirty_start
        self._stop = what.stop
        self._cuts = what.partition.cuts
        self._latest = Latest(cleaner.settings.cleaner_keys_limit_bytes)
        self._compactor: BatchCompactor | None = None

    def _obsolete(self) -> bool:
        """End the pass, and return True, if what it knows of the partition does not hold any more:
        its topic is gone or is not compacted, or other records may be at offsets it has seen."""
        partition = self._partition
        obsolete = (
            not self._cleaner.holds(partition) or partition.cuts != self._cuts or not partition.limits.compact
        )
        if obsolete:
            self._cleaner.ended(again=False)
        return obsolete

    def _next_piece(self) -> tuple[list[Location], int] | None:
        """Locations of the next piece's batches, and the offset where it ends; None if the pass has
        ended."""
        partition = self._partition
        if self._obsolete():
            return None
        self._offset = max(self._offset, partition.log_start)
        locations = partition.select(self._offset, self._stop, PIECE_BYTES, at_least_one=True)
        end = self._stop
        if locations:
            end = (
                partition.index.last_offset(partition.index.first_reaching(self._offset) + len(locations) - 1)
                + 1
            )
        return locations, end

    def map_piece(self) -> None:
        """Enter the keys of the next piece's records."""
        piece = self._next_piece()
        if piece is None:
            return
        locations, end = piece
        if not locations or self._latest.full:
            self._stop = min(self._stop, self._offset) if self._latest.full else self._stop
            self._compactor = BatchCompactor(
                self._partition, self._latest, self._stop, self._cleaner.now_ms()
            )
            self._offset = self._partition.log_start
            self.compact_piece()
            return
        aborted = [(one.producer_id, one.first_offset) for one in self._partition.aborted(self._offset, end)]

        def taken(batches: list[Buffer]) -> None:
            if self._obsolete():
                return
            self._latest.add(b"".join(batches), aborted, self._offset, end)
            self._offset = end
            self._cleaner.later(self, self.map_piece)

        self._cleaner.read(self, locations, taken)

    def compact_piece(self) -> None:
        """Decide which records of the next piece stay, and have its batches rewritten."""
        piece = self._next_piece()
        if piece is None:
            return
        locations, end = piece
        if not locations:
            self._finish()
            return

        def taken(batches: list[Buffer]) -> None:
            if self._obsolete():
                return
            assert self._compactor is not None
            moves = []
            for location, batch in zip(locations, batches, strict=True):
                header = scan(batch)[0]
                compacted = self._compactor.batch(batch, header)
                if compacted is not None:
                    moves.append(Move(self._partition, location, *compacted))
            self._offset = end
            self._cleaner.move(self, moves, self.compact_piece)

        self._cleaner.read(self, locations, taken)

    def _finish(self) -> None:
        partition, end, now_ms = self._partition, self._stop, self._cleaner.now_ms()
        note = pack_note(partition.topic_id_bytes, partition.partition, NoteKind.cleaned, end, now_ms)

        def noted() -> None:
            if self._obsolete():
                return
            partition.passes = passes_after(partition, end, now_ms)
            self._cleaner.ended(again=True)

        self._cleaner.move(self, [], noted, note)


class _Rewriting(_Work):
    """Copies the live batches of one file to the end of the log, so that the file can be
    deleted."""

    def __init__(self, cleaner: Cleaner, file: int) -> None:
        super().__init__(cleaner, file)
        self._file = file
        self._partitions = cleaner.hosted()
        self._found: list[tuple[Partition, int]] = []

    def collect_piece(self) -> None:
        """Find the batches in the file that belong to the next partitions."""
        looked, self._partitions = (
            self._partitions[:PARTITIONS_PER_PIECE],
            self._partitions[PARTITIONS_PER_PIECE:],
        )
        for partition in looked:
            for number in np.flatnonzero(partition.index.column(FILE) == self._file).tolist():
                self._found.append((partition, partition.index.last_offset(number)))
        self._cleaner.later(self, self.collect_piece if self._partitions else self.copy_piece)

    def copy_piece(self) -> None:
        """Copy the next batches."""
        piece = list(self._take())
        if not piece:
            self._cleaner.ended(again=True)
            return

        def taken(batches: list[Buffer]) -> None:
            moves = [
                Move(partition, location, scan(batch)[0], batch, max_timestamp_ms)
                for (partition, location, max_timestamp_ms), batch in zip(piece, batches, strict=True)
            ]
            self._cleaner.move(self, moves, self.copy_piece)

        self._cleaner.read(self, [location for _partition, location, _ms in piece], taken)

    def _take(self) -> Iterator[tuple[Partition, Location, int]]:
        """The next batches: where each lies now, and its greatest timestamp."""
        size_bytes = 0
        while self._found and size_bytes < PIECE_BYTES:
            partition, last_offset = self._found.pop()
            number = partition.index.first_reaching(last_offset)
            if not self._cleaner.holds(partition) or number == len(partition.index):
                continue
            location = partition.index.location(number)
            if location.file == self._file:  # not moved or cut meanwhile
                size_bytes += location.size_bytes
                yield partition, location, partition.index.max_timestamp_ms(number)
