"""Rebuilds a broker's index from its files: one scan, in the order of writing.

    listing -> checkpoint -> scanning (file after file, chunk after chunk) -> [cutting a torn tail] -> done | refused

A write that was cut short can only be the last one: it leaves a torn entry at the end of the last file, of which nothing was
acknowledged, and which is cut. Damage with sound entries behind it is something else, and guessing would lose acknowledged
records: recovery then refuses, and says where.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field

from fairlead.base.errors import DecodeError
from fairlead.base.units import MIB
from fairlead.broker.files import Files
from fairlead.broker.log.entry import ENTRY_CHECKED_BYTES, ENTRY_HEADER_BYTES, MAGIC, EntryHeader, parse_entry
from fairlead.broker.log.segments import SegmentFiles
from fairlead.core.effects import Buffer
from fairlead.records import BatchHeader, scan, verify

CHUNK_BYTES = 4 * MIB
CHECKPOINT_NAME = "log-starts.json"

_logger = logging.getLogger("fairlead.broker")

Recovered = Callable[[EntryHeader, BatchHeader, memoryview, int, int], None]
"""Called for each sound batch in order: its entry, its header, its bytes, the file's number and the batch's position there."""
Starts = dict[tuple[uuid.UUID, int], int]


@dataclass
class RecoveryResult:
    """How recovery ended: `refused` says what is wrong, or is None."""

    starts: Starts = field(default_factory=dict)
    batch_count: int = 0
    cut_bytes: int = 0
    refused: str | None = None


def encode_checkpoint(starts: Starts) -> bytes:
    """The file of log starts: those that are not 0."""
    rows = [[topic_id.hex, partition, offset] for (topic_id, partition), offset in starts.items()]
    return json.dumps({"version": 1, "log_starts": rows}).encode()


def decode_checkpoint(data: bytes) -> Starts:
    """Its contents; DecodeError if it is not such a file."""
    try:
        rows = json.loads(data)["log_starts"]
        return {(uuid.UUID(hex=topic_id), int(partition)): int(offset) for topic_id, partition, offset in rows}
    except (ValueError, KeyError, TypeError) as error:
        raise DecodeError(f"not a file of log starts: {error}", 0) from None


class Recovery:
    """One recovery. `begin` gives the starts before the first batch, `batch` hears of every batch, `done` of the end."""

    def __init__(
        self,
        files: Files,
        segments: SegmentFiles,
        begin: Callable[[Starts], None],
        batch: Recovered,
        done: Callable[[RecoveryResult], None],
    ) -> None:
        self._files = files
        self._segments = segments
        self._begin = begin
        self._batch = batch
        self._done = done
        self._result = RecoveryResult()
        self._numbers: list[int] = []
        self._sizes: dict[int, int] = {}
        self._rest: bytes = b""
        self._rest_position = 0

    def start(self) -> None:
        """List the folder; everything else follows from the answers."""
        self._files.list(self._segments.folder, self._listed)

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
        if any(name == CHECKPOINT_NAME for name, _size in names):
            self._files.read(f"{self._segments.folder}/{CHECKPOINT_NAME}", 0, -1, self._checkpoint_read)
        else:
            self._begin({})
            self._next_file(0)

    def _checkpoint_read(self, data: bytes | None, error: OSError | None) -> None:
        path = f"{self._segments.folder}/{CHECKPOINT_NAME}"
        if error is not None or data is None:
            self._refuse(f"{path}: cannot be read: {error}")
            return
        try:
            self._result.starts = decode_checkpoint(data)
        except DecodeError as wrong:
            self._refuse(f"{path}: {wrong}; delete the file to have deleted records come back, or restore it")
            return
        self._begin(self._result.starts)
        self._next_file(0)

    def _next_file(self, place: int) -> None:
        if place == len(self._numbers):
            if self._numbers:
                last = self._numbers[-1]
                self._segments.opened(last, self._sizes[last])
            self._done(self._result)
            return
        if place + 1 < len(self._numbers):
            self._segments.closed(self._numbers[place])
        self._rest, self._rest_position = b"", 0
        self._read_chunk(place)

    def _read_chunk(self, place: int) -> None:
        number = self._numbers[place]
        position = self._rest_position + len(self._rest)
        if position >= self._sizes[number]:
            self._file_ended(place)
            return
        # A batch longer than a chunk: read at least as much again as is held, so that the copying stays linear.
        size_bytes = max(CHUNK_BYTES, len(self._rest))
        self._files.read(self._segments.path(number), position, size_bytes, lambda data, error: self._chunk_read(place, data, error))

    def _chunk_read(self, place: int, data: bytes | None, error: OSError | None) -> None:
        path = self._segments.path(self._numbers[place])
        if error is not None or not data:
            self._refuse(f"{path}: cannot be read at byte {self._rest_position + len(self._rest)}: {error or 'the file ends early'}")
            return
        chunk = self._rest + data
        stop, sound = self._scan(chunk, self._numbers[place], self._rest_position)
        self._rest = chunk[stop:]
        self._rest_position += stop
        if sound:
            self._read_chunk(place)
        else:
            self._damaged(place)

    def _scan(self, chunk: bytes, number: int, origin: int) -> tuple[int, bool]:
        """Take entries off the front of `chunk`: how many bytes were taken, and False if what follows is not an entry."""
        view = memoryview(chunk)
        position = 0
        while position + ENTRY_CHECKED_BYTES <= len(chunk):
            entry = parse_entry(chunk, position)
            if entry is None:
                return position, False
            start = position + ENTRY_HEADER_BYTES
            stop = start + entry.size_bytes
            if stop > len(chunk):
                break
            header = _sound_batch(view[start:stop], entry)
            if header is None:
                return position, False
            self._batch(entry, header, view[start:stop], number, origin + start)
            self._result.batch_count += 1
            position = stop
        return position, True

    def _file_ended(self, place: int) -> None:
        if self._rest:
            self._damaged(place)
        else:
            self._next_file(place + 1)

    def _damaged(self, place: int) -> None:
        """The entry at `_rest_position` is not sound: read all that follows it, to see whether anything there is."""
        number = self._numbers[place]
        if place + 1 < len(self._numbers):
            self._refuse(self._damage_text(number))
            return
        position = self._rest_position
        self._files.read(self._segments.path(number), position, -1, lambda data, error: self._tail_read(place, data, error))

    def _tail_read(self, place: int, data: bytes | None, error: OSError | None) -> None:
        number = self._numbers[place]
        path = self._segments.path(number)
        if error is not None or data is None:
            self._refuse(f"{path}: cannot be read at byte {self._rest_position}: {error}")
            return
        if _holds_sound_entry(data):
            self._refuse(self._damage_text(number))
            return
        position = self._rest_position
        self._result.cut_bytes = len(data)
        _logger.warning("%s: the last write was cut short; the %d bytes from byte %d on are dropped", path, len(data), position)
        self._sizes[number] = position
        self._files.truncate(path, position, lambda _value, wrong: self._truncated(place, wrong))

    def _truncated(self, place: int, error: OSError | None) -> None:
        if error is not None:
            self._refuse(f"{self._segments.path(self._numbers[place])}: the torn tail cannot be cut: {error}")
        else:
            self._next_file(place + 1)

    def _damage_text(self, number: int) -> str:
        path, position = self._segments.path(number), self._rest_position
        return (
            f"{path}: damaged at byte {position}, with sound records behind it, so this is no write cut short; "
            f"restore the file from a copy, or cut it to {position} bytes and delete later ones to give up what follows"
        )

    def _refuse(self, reason: str) -> None:
        self._result.refused = reason
        self._done(self._result)


def _sound_batch(batch: memoryview, entry: EntryHeader) -> BatchHeader | None:
    """The header of an entry's batch if the batch is whole and its CRC holds; None otherwise."""
    try:
        headers = scan(batch)
        if len(headers) != 1 or headers[0].size_bytes != entry.size_bytes or headers[0].base_offset != entry.base_offset:
            return None
        verify(batch, headers[0])
    except DecodeError:
        return None
    return headers[0]


def _holds_sound_entry(data: Buffer) -> bool:
    """True if a whole, sound entry lies anywhere behind the first byte."""
    data = bytes(data)
    view = memoryview(data)
    position = data.find(MAGIC, 1)
    while position >= 0:
        start = position + ENTRY_HEADER_BYTES
        entry = parse_entry(data, position) if position + ENTRY_CHECKED_BYTES <= len(data) else None
        stop = start + entry.size_bytes if entry is not None else len(data) + 1
        if entry is not None and stop <= len(data) and _sound_batch(view[start:stop], entry) is not None:
            return True
        position = data.find(MAGIC, position + 1)
    return False
