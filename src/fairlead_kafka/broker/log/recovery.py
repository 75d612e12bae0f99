"""Recovery: rebuilds the state of the partitions from the checkpoint, and from a scan of the
entries behind it.

    listing -> checkpoints -> scanning (file after file, chunk after chunk)
        -> [cutting a torn tail] -> [syncing] -> done | refused

There are two checkpoint files, written in turn; the newer intact one is used. Without one
everything is scanned, which is complete only if no file was ever deleted: else recovery refuses,
because deleted records would come back.

Synced bytes may be acknowledged, and are never dropped. All bytes before a checkpoint's place are
synced, so are all before a later file (each is begun once the one before is synced), and so are
those that the writer's notes name after a sync. A power cut may lose bytes that were not synced, in
any order of pages: it leaves a torn entry at the end, or a hole with intact entries behind it, none
of which was acknowledged. There the log is cut, with a warning. If synced bytes are damaged, or a
file is shorter than its synced part in the checkpoint, guessing would lose acknowledged records:
recovery refuses, with a message that says where, what is lost, and what can be done.

Entries that a scan finds may never have been synced: the process was killed before, and only the
page cache has them. From now on they count (consumers read them, producers get duplicates
acknowledged), so they are synced before recovery is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.units import MIB
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.log.checkpoint import Checkpoint, Place
from fairlead_kafka.broker.log.entry import Note
from fairlead_kafka.broker.log.scan import Found, look_behind, scan_entries
from fairlead_kafka.broker.log.segments import SegmentFiles

CHUNK_BYTES = 4 * MIB
CHECKPOINT_NAMES = ("checkpoint-a", "checkpoint-b")

_logger = GuardedLogger("fairlead_kafka.broker")


@dataclass
class RecoveryResult:
    """The result of a recovery. `refused` says why the log cannot be used, or is None. `place` is
    the position of the checkpoint; everything after it was scanned."""

    place: Place
    entry_count: int = 0
    scanned_bytes: int = 0
    cut_bytes: int = 0
    refused: str | None = None


class Recovery:
    """Rebuilds the state of a broker's partitions, once.

    `restore` is called with the checkpoint, if there is one; then `batch` with every batch behind
    it and `note` with every note, in order; and `done` at the end.
    """

    def __init__(
        self,
        files: Files,
        segments: SegmentFiles,
        restore: Callable[[Checkpoint], None],
        batch: Found,
        note: Callable[[Note], None],
        done: Callable[[RecoveryResult], None],
    ) -> None:
        self._files = files
        self._segments = segments
        self._restore = restore
        self._batch = batch
        self._note = note
        self._done = done
        self._result = RecoveryResult(Place())
        self._checkpoints: list[Checkpoint] = []
        self._damaged_checkpoints: list[str] = []
        self._numbers: list[int] = []
        self._sizes: dict[int, int] = {}
        self._rest: bytes = b""
        self._rest_position = 0

    def start(self) -> None:
        """List the folder; the rest of the recovery follows from the answers of the host."""
        self._files.list(self._segments.folder, self._listed)

    # --- Checkpoints

    def _listed(self, names: list[tuple[str, int]] | None, error: OSError | None) -> None:
        if error is not None or names is None:
            self._refuse(f"{self._segments.folder}: the folder cannot be listed: {error}")
            return
        for name, size_bytes in names:
            number = SegmentFiles.number_of(name)
            if number is not None:
                self._numbers.append(number)
                self._sizes[number] = size_bytes
        self._numbers.sort()
        self._read_checkpoints([name for name, _size in names if name in CHECKPOINT_NAMES])

    def _read_checkpoints(self, names: list[str]) -> None:
        if not names:
            self._choose()
            return
        path = f"{self._segments.folder}/{names[0]}"

        def read(data: bytes | None, error: OSError | None) -> None:
            try:
                if error is not None or data is None:
                    raise DecodeError(f"it cannot be read: {error}", 0)
                self._checkpoints.append(Checkpoint(data))
            except DecodeError as wrong:
                _logger.warning("%s: not used: %s", path, wrong)
                self._damaged_checkpoints.append(path)
            self._read_checkpoints(names[1:])

        self._files.read(path, 0, -1, read)

    def _choose(self) -> None:
        checkpoint = max(self._checkpoints, key=lambda one: one.place.sequence, default=None)
        wrong = (
            self._missing_without_checkpoint() if checkpoint is None else self._missing_for(checkpoint.place)
        )
        if wrong is not None:
            self._refuse(wrong)
            return
        place = self._result.place
        if checkpoint is not None:
            place = self._result.place = checkpoint.place
            self._restore(checkpoint)
        active = max([place.file, *self._numbers])
        for number in self._numbers:
            if number != active:
                self._segments.closed(number, self._sizes[number])
        self._segments.opened(active, self._sizes.get(active, 0))
        self._numbers = [number for number in self._numbers if number >= place.file]
        self._rest_position = place.position
        self._read_chunk(0) if self._numbers else self._done(self._result)

    def _missing_without_checkpoint(self) -> str | None:
        if self._numbers == list(range(1, len(self._numbers) + 1)):
            return None
        missing = next(number for number in range(1, self._numbers[-1]) if number not in self._sizes)
        damaged = (
            f" ({', '.join(self._damaged_checkpoints)} cannot be used)" if self._damaged_checkpoints else ""
        )
        return (
            f"{self._segments.path(missing)}: missing, and no checkpoint says that it was deleted{damaged}; "
            "restore it, or a checkpoint file, from a copy. To go on with what is left, number the log "
            "files from 1 without a gap: "
            f"deleted records will come back, and partitions whose records are gone begin at offset 0"
        )

    def _missing_for(self, place: Place) -> str | None:
        """Why the log cannot be used, in words: a file lacks bytes that were synced before the
        checkpoint; None: none does."""
        expected = dict(place.closed)
        if place.position:
            expected[place.file] = place.position
        for number, size_bytes in expected.items():
            found = self._sizes.get(number, 0)
            if found < size_bytes:
                state = "missing" if number not in self._sizes else f"ends at byte {found}"
                return (
                    f"{self._segments.path(number)}: {state}, but {size_bytes} bytes of it were synced when "
                    "the checkpoint was written, "
                    f"so {size_bytes - found} bytes of acknowledged records are lost; restore the file from "
                    "a copy, "
                    f"or delete {' and '.join(CHECKPOINT_NAMES)} beside it to go on with what is left"
                )
        return None

    # --- Scanning

    def _next_file(self, place: int) -> None:
        if place == len(self._numbers):
            self._sync()
            return
        self._rest, self._rest_position = b"", 0
        self._read_chunk(place)

    @hook("recovery: what was found is synced")
    def _sync(self) -> None:
        """Sync the last file, if entries were found. (Each earlier file was synced before the next
        was begun.)"""
        if not self._result.entry_count:
            self._done(self._result)
            return
        path = self._segments.path(self._numbers[-1])

        def synced(_value: object, error: OSError | None) -> None:
            if error is not None:
                self._refuse(f"{path}: cannot be synced, so what was found in it may be lost again: {error}")
            else:
                self._done(self._result)

        self._files.sync(path, synced)

    def _read_chunk(self, place: int) -> None:
        number = self._numbers[place]
        position = self._rest_position + len(self._rest)
        if position >= self._sizes[number]:
            self._file_ended(place)
            return
        # A batch longer than a chunk: read at least as much again as is held, so that the copying
        # stays linear.
        size_bytes = max(CHUNK_BYTES, len(self._rest))
        self._files.read(
            self._segments.path(number),
            position,
            size_bytes,
            lambda data, error: self._chunk_read(place, data, error),
        )

    def _chunk_read(self, place: int, data: bytes | None, error: OSError | None) -> None:
        path = self._segments.path(self._numbers[place])
        if error is not None or not data:
            self._refuse(
                f"{path}: cannot be read at byte {self._rest_position + len(self._rest)}: "
                f"{error or 'the file ends early'}"
            )
            return
        chunk = self._rest + data if self._rest else data
        scanned = scan_entries(chunk, self._numbers[place], self._rest_position, self._batch, self._note)
        self._result.entry_count += scanned.entry_count
        self._result.scanned_bytes += scanned.taken_bytes
        self._rest = chunk[scanned.taken_bytes :]
        self._rest_position += scanned.taken_bytes
        if scanned.sound:
            self._read_chunk(place)
        else:
            self._damaged(place)

    def _file_ended(self, place: int) -> None:
        if self._rest:
            self._damaged(place)
        else:
            self._next_file(place + 1)

    # --- Damage

    def _damaged(self, place: int) -> None:
        """Handle a damaged entry at `_rest_position`: read everything behind it, to see whether it
        was synced."""
        position = self._rest_position
        self._files.read(
            self._segments.path(self._numbers[place]),
            position,
            -1,
            lambda data, error: self._tail_read(place, data, error),
        )

    def _tail_read(self, place: int, data: bytes | None, error: OSError | None) -> None:
        number = self._numbers[place]
        path, position = self._segments.path(number), self._rest_position
        if error is not None or data is None:
            self._refuse(f"{path}: cannot be read at byte {position}: {error}")
            return
        behind = look_behind(data)
        if place + 1 < len(self._numbers) or behind.synced > (number, position):
            self._refuse(self._damage_text(place, behind.sound, len(data)))
            return
        self._result.cut_bytes = len(data)
        if behind.sound is None:
            _logger.warning(
                "%s: the last write was cut short; the %d bytes from byte %d on are dropped",
                path,
                len(data),
                position,
            )
        else:
            _logger.warning(
                "%s: a hole at byte %d, with sound records behind it from byte %d on, as a power cut leaves "
                "where nothing is synced "
                "(flush.messages); the %d bytes from byte %d on, which were never known to be synced, are "
                "dropped",
                path,
                position,
                position + behind.sound,
                len(data),
                position,
            )
        self._sizes[number] = position
        self._files.truncate(path, position, lambda _value, wrong: self._truncated(place, wrong))

    def _truncated(self, place: int, error: OSError | None) -> None:
        number = self._numbers[place]
        if error is not None:
            self._refuse(f"{self._segments.path(number)}: the torn tail cannot be cut: {error}")
        else:
            self._segments.opened(number, self._sizes[number])
            self._next_file(place + 1)

    def _damage_text(self, place: int, sound: int | None, left_bytes: int) -> str:
        number, position = self._numbers[place], self._rest_position
        path = self._segments.path(number)
        if sound is None:
            extent = (
                f"up to its end, {left_bytes} bytes, and "
                f"{self._segments.path(self._numbers[place + 1])} follows"
            )
        else:
            extent = f"for {sound} bytes, with sound records behind them from byte {position + sound} on"
        return (
            f"{path}: damaged at byte {position} {extent}, and it was synced, so this is no write cut short: "
            f"records that were acknowledged are lost there. "
            "Restore the file from a copy; or, to give up all that was written to this broker since, cut it "
            f"to {position} bytes and "
            f"delete the log files with higher numbers"
        )

    def _refuse(self, reason: str) -> None:
        self._result.refused = reason
        self._done(self._result)
