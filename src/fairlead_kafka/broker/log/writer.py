"""Writes the entries that one step appended to all partitions as one group, and syncs groups
together if a sync is asked for.

    gathering --flush--> writing --written--> (syncing --synced-->) complete
        │                   │                     │
        └───────────────────┴──── error ──────────┘──> lost; the log is failed until it is mended

One group is gathered while the one before is being written; several may wait for a sync, and one
`fdatasync` serves all that were written when it began (group commit). Groups complete in order, so
that a partition's written end never passes a batch that still waits for its sync.

After a sync the next group says in a note how far it went: where a power cut loses a page and keeps
a later one, recovery then knows whether that page may have been acknowledged.

A failed write or sync loses its group and those behind it: no request of theirs is acknowledged,
their partitions are cut to their previous ends, and appends are refused. Every second the log is
then repaired: the lost groups' bytes are cut off the files, and once that, a sync and a file of
about their size have worked, appends are accepted again. So a full disk, a read-only folder or a
fault of the device costs the writes of its time, and no more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from functools import partial

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.guard import shared
from fairlead_kafka.broker.log.cache import TailCache
from fairlead_kafka.broker.log.entry import NoteKind, pack_note, pack_synced
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.segments import SegmentFiles
from fairlead_kafka.core.effects import Buffer

MEND_AFTER_MS = 1000.0
"""How long after a failure the log is mended, and after a failed mending again."""
PROBE = "probe"
PROBE_MIN_BYTES, PROBE_MAX_BYTES = 1 << 12, 1 << 20
"""A file as long as what was lost is written and deleted, to see if there is room again: on a full
disk a cut and a sync work as ever."""

NOBODYS_NOTE = pack_note(bytes(16), 0, NoteKind.start_moved, 0)
"""A note about no topic, which recovery ignores; `roll` begins a file with it, so it exists."""
_NO_LIMIT = 1 << 62
_NOWHERE = (0, 0)
_logger = GuardedLogger("fairlead_kafka.broker")

Written = Callable[[bool], None]
"""Called once what was appended is written (and synced, where asked): True; or could not be:
False."""
Later = Callable[[float, Callable[[], None]], object]
"""later(milliseconds, function): call the function in a step of its own, then."""


class _Group:
    __slots__ = ("ends", "notes", "parts", "starts", "wants_sync", "written")

    def __init__(self) -> None:
        self.parts: list[tuple[int, list[Buffer], int]] = []
        """(file, buffers, position of the first) in the order of writing."""
        self.starts: dict[Partition, int] = {}
        """Log end of each partition before the group, or where a cut in it left that."""
        self.ends: dict[Partition, int] = {}
        self.notes: list[bytes] = []
        """Notes of what was done in memory already: if the group is lost they are written later."""
        self.written: list[Written] = []
        self.wants_sync = False


class Writer:
    """Writes a broker's log: collects entries into groups, and writes and syncs these. `cache` gets
    all entries; `advanced` is called for each partition of which more is written; `later` calls a
    function later, to mend the log after a failure."""

    def __init__(
        self,
        files: Files,
        segments: SegmentFiles,
        cache: TailCache,
        advanced: Callable[[Partition], None],
        later: Later,
    ) -> None:
        self._files = files
        self._cache = cache
        self._segments = segments
        self._advanced = advanced
        self._later = later
        self._open = _Group()
        self._writing: _Group | None = None
        self._unsynced: deque[_Group] = deque()
        self._syncing = 0
        self.failures = 0
        """How many writes and syncs have failed; each cut the logs that it was for."""
        self._sync_timers: set[float] = set()
        """The values of `flush.ms` for which a timer runs: one each, so that none is late."""
        self._unsynced_since = False
        self._syncing_to = self._synced_to = _NOWHERE
        """(file, position): how far the log will be synced by the sync that is under way, and is
        synced. By this Writer."""
        self._noted_synced = _NOWHERE
        """(file, position): how far a note in the log says that it is synced."""
        self._idle: list[Callable[[], None]] = []
        self._doomed: list[int] = []
        """Files begun by lost groups, to be deleted."""
        self._probe_bytes = PROBE_MIN_BYTES
        self.error: OSError | None = None
        """Why appends are refused now; None: they are not."""

    def recovered(self) -> None:
        """Called when recovery has ended and synced the files: everything in them is synced."""
        self._synced_to = self._written_to()

    def _written_to(self) -> tuple[int, int]:
        """(file, position): how far the log is written; position 0: there is nothing in it. Told
        from the groups that are not, so that it goes back with a group that is lost."""
        segments = self._segments
        begun = (part for group in (self._writing, self._open) if group is not None for part in group.parts)
        file, _buffers, position = next(begun, (segments.active, (), segments.active_size_bytes))
        if position == 0 and segments.is_closed(file - 1):
            return file - 1, segments.closed_sizes()[file - 1]
        return file, position

    @hook("log: a batch is taken for writing")
    @shared("the writer of the log")
    def append(
        self, entry: bytes, partition: Partition, end_offset: int, wants_sync: bool, file_limit_bytes: int
    ) -> tuple[int, int]:
        """Add an entry to the group that is being collected; returns (file, position) where it will
        lie."""
        group = self._open
        group.starts.setdefault(partition, partition.log_end)
        group.ends[partition] = end_offset
        group.wants_sync = group.wants_sync or wants_sync
        return self._take(entry, file_limit_bytes)

    def append_moved(self, entry: bytes, file_limit_bytes: int) -> tuple[int, int]:
        """Add an entry that is moved, or a note that counts only with such entries, to a group that
        will be synced; returns (file, position) where it will lie."""
        self._open.wants_sync = True
        return self._take(entry, file_limit_bytes)

    @shared("the writer of the log")
    def note(self, note: bytes, file_limit_bytes: int) -> None:
        """Add a note of a change that was made in memory. It is written in its place among the
        entries, or, if that fails, once the log is mended."""
        if self.error is None:
            self._take(note, file_limit_bytes)
        self._open.notes.append(note)

    def roll(self) -> None:
        """Continue in a new file although the present one has room, so that its batches can be
        moved. Does nothing while the disk fails."""
        if self.error is None:
            self._segments.opened(self._segments.active + 1, 0)
            self._take(NOBODYS_NOTE, _NO_LIMIT)

    def _take(self, entry: bytes, file_limit_bytes: int) -> tuple[int, int]:
        segments, group = self._segments, self._open
        if segments.active_size_bytes + len(entry) > file_limit_bytes and segments.active_size_bytes:
            segments.opened(segments.active + 1, 0)
        file, position = segments.active, segments.appended(len(entry))
        if not group.parts or group.parts[-1][0] != file:
            group.parts.append((file, [], position))
        group.parts[-1][1].append(entry)
        self._cache.add(file, position, entry)
        return file, position

    @shared("the writer of the log")
    def truncated(self, partition: Partition, end_offset: int) -> None:
        """Note that `partition` was truncated: its entries that are being written and lie beyond
        `end_offset` do not count."""
        for group in self._groups():
            for offsets in (group.starts, group.ends):
                if offsets.get(partition, end_offset) > end_offset:
                    offsets[partition] = end_offset

    def forget(self, partition: Partition) -> None:
        """Forget `partition`, which was deleted or restarts: none of its entries that are being
        written counts."""
        for group in self._groups():
            group.ends.pop(partition, None)
            group.starts.pop(partition, None)

    def _groups(self) -> list[_Group]:
        return [*self._unsynced, *([self._writing] if self._writing is not None else []), self._open]

    @hook("log: what waits for a write")
    def when_written(self, done: Written) -> None:
        """Call `done` once all entries appended so far are complete; at once if they are."""
        if self.error is not None:
            done(False)
        elif self._open.parts:
            self._open.written.append(done)
        elif self._writing is not None:
            self._writing.written.append(done)
        elif self._unsynced:
            self._unsynced[-1].written.append(done)
        else:
            done(True)

    def when_synced(self, done: Written) -> None:
        """Call `done` once all entries appended so far are written and synced, whether they asked
        for a sync or not."""
        if self.error is not None:
            done(False)
            return
        last = self._open if self._open.parts else self._writing
        if last is None and not self._written_to()[1]:
            done(True)
            return
        if last is None:
            last = _Group()
            self._unsynced.append(last)
        last.wants_sync = True
        last.written.append(done)
        if self._writing is None and not self._syncing:
            self._complete_or_sync()

    def sync_within(self, milliseconds: float) -> None:
        """Have the entries appended so far synced within `milliseconds` (`flush.ms`); no caller
        waits for that sync."""
        self._unsynced_since = True
        if milliseconds not in self._sync_timers:
            self._sync_timers.add(milliseconds)
            self._later(milliseconds, lambda: self._sync_if_due(milliseconds))

    def _sync_if_due(self, milliseconds: float) -> None:
        self._sync_timers.discard(milliseconds)
        if self._unsynced_since:
            self._unsynced_since = False
            self.when_synced(lambda _success: None)

    def when_idle(self, done: Callable[[], None]) -> None:
        """Call `done` once nothing is being written or synced; the last file is then synced too."""
        self._idle.append(done)
        self._check_idle()

    @shared("the writer of the log")
    def flush(self) -> None:
        """Begin to write the group collected so far, unless another is being written. Called at the
        end of each step."""
        if self._writing is not None or not self._open.parts or self.error is not None:
            return
        if self._noted_synced != self._synced_to:
            self._noted_synced = self._synced_to
            self._take(pack_synced(*self._synced_to), _NO_LIMIT)
        self._writing, self._open = self._open, _Group()
        self._write_part(0)

    def _write_part(self, number: int) -> None:
        """Write part `number` of the group; a new file is begun only after the one before it was
        synced."""
        group, failures = self._writing, self.failures
        assert group is not None
        if number == len(group.parts):
            self._group_written(group)
            return
        file, buffers, position = group.parts[number]

        def appended(value: int, error: OSError | None) -> None:
            if failures != self.failures:
                return  # a sync failed meanwhile, and the group is lost
            if error is None and value != position:
                error = OSError(
                    f"{self._segments.path(file)}: written at byte {value}, not {position}; something else "
                    "writes to this file"
                )
            if error is not None:
                self._fail(error, ())
            else:
                self._write_part(number + 1)

        def begin(_value: object = None, error: OSError | None = None) -> None:
            if failures != self.failures:
                return
            if error is not None:
                self._fail(error, ())
            else:
                self._files.append(self._segments.path(file), buffers, appended)

        if position == 0 and self._segments.is_closed(file - 1):
            self._files.sync(self._segments.path(file - 1), begin)
        else:
            begin()

    def _group_written(self, group: _Group) -> None:
        self._writing = None
        self._unsynced.append(group)
        if not self._syncing:
            self._complete_or_sync()
        self._check_idle()

    def _complete_or_sync(self) -> None:
        """Complete groups from the front that need no sync; begin a sync for the rest."""
        while self._unsynced and not self._unsynced[0].wants_sync:
            self._complete(self._unsynced.popleft())
        if self._unsynced:
            self._syncing, self._syncing_to = len(self._unsynced), self._written_to()
            self._files.sync(self._segments.path(self._syncing_to[0]), self._synced)

    def _synced(self, _value: object, error: OSError | None) -> None:
        covered, self._syncing = self._syncing, 0
        if error is not None:
            lost = list(self._unsynced)
            self._unsynced.clear()
            self._fail(error, lost)
            return
        self._synced_to = self._syncing_to
        for _ in range(covered):
            self._complete(self._unsynced.popleft())
        self._complete_or_sync()
        self._check_idle()

    def _complete(self, group: _Group) -> None:
        for partition, end_offset in group.ends.items():
            partition.written_end = max(partition.written_end, end_offset)
        for partition in group.ends:
            self._advanced(partition)
        for written in group.written:
            written(True)

    # --- Failures

    def _fail(self, error: OSError, lost: Iterable[_Group]) -> None:
        """Fail all groups that are not complete: those in `lost`, the one that is being written,
        and the one being collected."""
        lost = [*lost, *([self._writing] if self._writing is not None else []), self._open]
        self._writing, self._open = None, _Group()
        self._noted_synced = _NOWHERE  # the note may be among what is lost
        self.failures += 1
        failing, self.error = self.error is not None, error
        lost_bytes = sum(
            len(buffer) for group in lost for _file, buffers, _position in group.parts for buffer in buffers
        )
        self._probe_bytes = min(max(lost_bytes, PROBE_MIN_BYTES), PROBE_MAX_BYTES)
        self._take_back(lost)
        if not failing:
            _logger.error("%s: appends are refused until this works again: %s", self._segments.folder, error)
            self._later(MEND_AFTER_MS, self._mend)
        for group in lost:
            self._open.notes += group.notes
            for written in group.written:
                written(False)
        self._check_idle()

    def _take_back(self, lost: list[_Group]) -> None:
        starts: dict[Partition, int] = {}
        for group in lost:
            for partition, start in group.starts.items():
                starts[partition] = min(start, starts.get(partition, start))
        for partition, start in starts.items():
            if partition.log_end > start:
                self._segments.release(partition.truncate(start))
        begun = next(((file, position) for group in lost for file, _buffers, position in group.parts), None)
        if begun is not None:
            self._doomed += self._segments.rewind(*begun)
            self._cache.rewind(*begun)

    def _mend(self) -> None:
        """Delete the files and cut off the bytes that failed groups left, and try whether the disk
        takes a sync and some bytes again.

        The files go first, the last of them first, each for good before the next: until then a
        restart finds the lost groups as they were written. Behind a file that is cut already it
        would read what is left of them as the log's next.
        """
        failures = self.failures
        if self._doomed:
            number = max(self._doomed)
            self._files.delete(self._segments.path(number), partial(self._deleted, number, failures))
        else:
            self._cut(failures)

    def _deleted(self, number: int, failures: int, _value: object, error: OSError | None) -> None:
        if error is not None and not isinstance(error, FileNotFoundError):
            self._mended(error, failures)
            return

        def synced(_value: object, error: OSError | None) -> None:
            if error is not None or failures != self.failures:
                self._mended(error, failures)
                return
            self._doomed.remove(number)
            self._mend()

        self._files.replace(self._probe_path, [b""], synced)  # which syncs the folder

    def _cut(self, failures: int) -> None:
        segments = self._segments
        path, size_bytes = segments.path(segments.active), segments.active_size_bytes

        def cut(_value: object, error: OSError | None) -> None:
            if error is None:
                self._files.sync(path, lambda _value, error: self._probe(error, failures))
            else:
                # A file that is not there has nothing to be cut.
                missing = isinstance(error, FileNotFoundError) and size_bytes == 0
                self._probe(None if missing else error, failures)

        self._files.truncate(path, size_bytes, cut)

    def _probe(self, error: OSError | None, failures: int) -> None:
        if error is not None:
            self._mended(error, failures)
            return
        path = self._probe_path

        def probed(_value: object, error: OSError | None) -> None:
            self._files.delete(path, lambda _value, _error: None)
            self._mended(error, failures)

        self._files.replace(path, [bytes(self._probe_bytes)], probed)

    @property
    def _probe_path(self) -> str:
        return f"{self._segments.folder}/{PROBE}"

    def _mended(self, error: OSError | None, failures: int) -> None:
        """`failures` is how many there were when the mending began: later ones took back more."""
        if error is not None or failures != self.failures:
            self.error = error or self.error
            self._later(MEND_AFTER_MS, self._mend)
            return
        self.error = None
        _logger.warning("%s: the disk works again, appends are taken", self._segments.folder)
        for note in self._open.notes:
            self._take(note, _NO_LIMIT)

    def _check_idle(self) -> None:
        if (
            not self._idle
            or self._writing is not None
            or self._unsynced
            or (self._open.parts and self.error is None)
        ):
            return
        waiting, self._idle = self._idle, []

        def synced(_value: object, error: OSError | None) -> None:
            if error is not None:
                self._fail(error, ())  # a checkpoint may not tell of what is not synced
            for done in waiting:
                done()

        file, position = self._written_to()
        if position and self.error is None:
            self._files.sync(self._segments.path(file), synced)
        else:
            synced(None, None)

    def check(self, partitions: Iterable[Partition]) -> None:
        """Raise CheckFailed unless the entries being written follow each other in the files without
        a gap, and every partition without such entries has `written_end` at its log end."""
        groups, on_its_way = self._groups(), set[Partition]()
        end: tuple[int, int] | None = None
        for group in groups:
            on_its_way.update(group.ends)
            same("partitions of a group that begin and end", group.starts.keys(), group.ends.keys())
            for partition, start in group.starts.items():
                holds(
                    f"{partition}: a group's part is within the log",
                    start <= group.ends[partition] <= partition.log_end,
                )
            for file, buffers, position in group.parts:
                if end is not None:
                    same(
                        "where a part of a group begins",
                        (file, position),
                        end if file == end[0] else (end[0] + 1, 0),
                    )
                end = file, position + sum(map(len, buffers))
        if end is not None:
            active = self._segments.active, self._segments.active_size_bytes
            # After a rewind to the beginning of a file the group before it is in the other.
            same("where the last group ends", active, end if active[0] == end[0] else (end[0] + 1, 0))
        holds(
            "files of lost groups lie behind the log, which takes nothing until they are deleted",
            not self._doomed or (self.error is not None and min(self._doomed) > self._segments.active),
        )
        holds("no more groups are being synced than wait for it", self._syncing <= len(self._unsynced))
        holds("no more is synced than is written", self._synced_to <= self._written_to())
        for partition in partitions:
            if partition not in on_its_way:
                same(
                    f"{partition}: written end, with nothing on its way",
                    partition.written_end,
                    partition.log_end,
                )
