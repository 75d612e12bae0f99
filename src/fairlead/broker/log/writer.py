"""Writes what one step appended, to all partitions together, as one group; and syncs groups together where a sync is asked for.

    gathering --flush--> writing --written--> (syncing --synced-->) complete

One group is gathered while the one before is being written; several may wait for a sync, and one `fdatasync` serves all that were
written when it began (group commit). Groups complete in order, so that a partition's high watermark never passes a batch that
still waits for its sync. After a failed write nothing more is written: what lies behind a torn entry could not be recovered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

from fairlead.broker.files import Files
from fairlead.broker.log.partition import Partition
from fairlead.broker.log.segments import SegmentFiles
from fairlead.core.effects import Buffer

Written = Callable[[bool], None]
"""Called once what was appended is written (and synced, where asked): True; or could not be: False."""


class _Group:
    __slots__ = ("ends", "parts", "wants_sync", "written")

    def __init__(self) -> None:
        self.parts: list[tuple[int, list[Buffer], int]] = []
        """(file, buffers, position of the first) in the order of writing."""
        self.ends: dict[Partition, int] = {}
        self.written: list[Written] = []
        self.wants_sync = False


class Writer:
    """The one writer of a broker's log. `advanced` hears of each partition whose high watermark rose."""

    def __init__(self, files: Files, segments: SegmentFiles, advanced: Callable[[Partition], None]) -> None:
        self._files = files
        self._segments = segments
        self._advanced = advanced
        self._open = _Group()
        self._writing: _Group | None = None
        self._unsynced: deque[_Group] = deque()
        self._syncing = 0
        self._idle: list[Callable[[], None]] = []
        self.error: OSError | None = None
        """Set by the first failed write or sync, for good."""

    def append(self, entry: bytes, partition: Partition, end_offset: int, wants_sync: bool, file_limit_bytes: int) -> tuple[int, int]:
        """Take an entry into the group being gathered; (file, position) where it will lie."""
        segments, group = self._segments, self._open
        if segments.active_size_bytes + len(entry) > file_limit_bytes and segments.active_size_bytes:
            segments.opened(segments.active + 1, 0)
        position = segments.appended(len(entry))
        if not group.parts or group.parts[-1][0] != segments.active:
            group.parts.append((segments.active, [], position))
        group.parts[-1][1].append(entry)
        group.ends[partition] = end_offset
        group.wants_sync = group.wants_sync or wants_sync
        return segments.active, position

    def when_written(self, done: Written) -> None:
        """Call `done` once everything appended so far is complete; at once if it is."""
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

    def when_idle(self, done: Callable[[], None]) -> None:
        """Call `done` once nothing is being written or synced; the last file is then synced too."""
        self._idle.append(done)
        self._check_idle()

    def flush(self) -> None:
        """Begin to write the gathered group, unless another is being written. Called at the end of each step."""
        if self._writing is not None or not self._open.parts or self.error is not None:
            return
        self._writing, self._open = self._open, _Group()
        self._write_part(0)

    def _write_part(self, number: int) -> None:
        """Write part `number` of the group; a new file is begun only after the one before it was synced."""
        group = self._writing
        assert group is not None
        if number == len(group.parts):
            self._group_written(group)
            return
        file, buffers, position = group.parts[number]

        def appended(value: int, error: OSError | None) -> None:
            if error is None and value != position:
                error = OSError(f"{self._segments.path(file)}: written at byte {value}, not {position}; something else writes to this file")
            if error is not None:
                self._fail(error)
            else:
                self._write_part(number + 1)

        def begin(_value: object = None, error: OSError | None = None) -> None:
            if error is not None:
                self._fail(error)
            else:
                self._files.append(self._segments.path(file), buffers, appended)

        if position == 0 and file > 1 and self._segments.is_closed(file - 1):
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
            self._syncing = len(self._unsynced)
            self._files.sync(self._segments.path(self._unsynced[-1].parts[-1][0]), self._synced)

    def _synced(self, _value: object, error: OSError | None) -> None:
        covered, self._syncing = self._syncing, 0
        if error is not None:
            self._fail(error)
            return
        for _ in range(covered):
            self._complete(self._unsynced.popleft())
        self._complete_or_sync()
        self._check_idle()

    def _complete(self, group: _Group) -> None:
        for partition, end_offset in group.ends.items():
            partition.high_watermark = max(partition.high_watermark, end_offset)
        for written in group.written:
            written(True)
        for partition in group.ends:
            self._advanced(partition)

    def _fail(self, error: OSError) -> None:
        if self.error is None:
            self.error = error
        groups = [*self._unsynced, *([self._writing] if self._writing is not None else []), self._open]
        self._unsynced.clear()
        self._writing, self._open, self._syncing = None, _Group(), 0
        for group in groups:
            for written in group.written:
                written(False)
        self._check_idle()

    def _check_idle(self) -> None:
        if not self._idle or self._writing is not None or self._unsynced or (self._open.parts and self.error is None):
            return
        waiting, self._idle = self._idle, []

        def synced(_value: object, error: OSError | None) -> None:
            for done in waiting:
                done()

        if self._segments.active_size_bytes and self.error is None:
            self._files.sync(self._segments.path(self._segments.active), synced)
        else:
            synced(None, None)
