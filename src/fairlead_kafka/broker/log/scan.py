"""Walks over the entries of a log file and checks every byte of them: the part of recovery that
touches each batch."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.broker.log.entry import (
    APPENDED,
    CHECKED,
    ENTRY_CHECKED_BYTES,
    ENTRY_HEADER_BYTES,
    HEAD,
    MAGIC_PREFIX,
    MAGICS,
    MOVED,
    NOTE,
    NOTE_BYTES,
    EntryHeader,
    Note,
    NoteKind,
    parse_entry,
)
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.records.crc import batch_crc
from fairlead_kafka.records.layout import HEADER, LENGTH_PREFIX_BYTES, MAGIC

KEY = slice(HEAD.size, HEAD.size + 20)
"""Position in an entry of its topic id and partition number."""

_BATCHES = (APPENDED, MOVED)

Found = Callable[[bytes, bool, BatchHeader, memoryview, int, int], None]
"""found(key, moved, header, batch, file, position) is called for each sound batch in order: the 20
bytes that say whose it is, whether it takes the place of others, its header (`position` 0), its
bytes, its file's number and its position there."""


class Scanned(NamedTuple):
    """The result of a scan: how many bytes and entries it took, and whether an intact entry, or
    nothing, begins behind them."""

    taken_bytes: int
    entry_count: int
    sound: bool


def scan_entries(chunk: bytes, file: int, origin: int, found: Found, note: Callable[[Note], None]) -> Scanned:
    """Take whole entries off the front of `chunk`, which lies at byte `origin` of its file, and
    call `found` or `note` with each."""
    view, array = memoryview(chunk), np.frombuffer(chunk, np.uint8)
    position, count, size = 0, 0, len(chunk)
    crc32, head, checked = zlib.crc32, HEAD.unpack_from, CHECKED.unpack_from
    while position + ENTRY_CHECKED_BYTES <= size:
        magic, crc = head(chunk, position)
        body = position + HEAD.size
        if magic not in MAGICS or crc32(view[body : position + ENTRY_CHECKED_BYTES]) != crc:
            return Scanned(position, count, False)
        if magic == NOTE:
            entry = parse_entry(chunk, position)
            if not isinstance(entry, Note):
                return Scanned(position, count, False)
            note(entry)
            position += NOTE_BYTES
            count += 1
            continue
        size_bytes = checked(chunk, body)[3]
        start = position + ENTRY_HEADER_BYTES
        stop = start + size_bytes
        if stop > size:
            # A length that no batch can have is no torn write.
            return Scanned(position, count, size_bytes >= BATCH_OVERHEAD_BYTES)
        header = sound_batch(chunk, array, start, stop)
        if header is None:
            return Scanned(position, count, False)
        found(
            chunk[position + KEY.start : position + KEY.stop],
            magic == MOVED,
            header,
            view[start:stop],
            file,
            origin + start,
        )
        count += 1
        position = stop
    return Scanned(position, count, True)


def sound_batch(data: bytes, array: npt.NDArray[np.uint8], start: int, stop: int) -> BatchHeader | None:
    """The header of the one batch at `data[start:stop]`, of which `array` is a view, if it is whole
    and its CRC holds; None otherwise.

    (Batches were checked before they were written, so the CRC is enough.)
    """
    if stop - start < BATCH_OVERHEAD_BYTES or stop > len(data):
        return None
    base_offset, length, epoch, magic, crc, *rest = HEADER.unpack_from(data, start)
    if magic != MAGIC or length + LENGTH_PREFIX_BYTES != stop - start or batch_crc(array, start, stop) != crc:
        return None
    return BatchHeader(0, stop - start, base_offset, epoch, crc, *rest)


def sound_entry(data: bytes, array: npt.NDArray[np.uint8], start: int, stop: int) -> bool:
    """True if at `data[start:stop]` lies one batch in its entry, whole and as it was written: both
    CRCs hold."""
    body = start + HEAD.size
    if stop > len(data) or body + CHECKED.size > stop:
        return False
    magic, crc = HEAD.unpack_from(data, start)
    if magic not in _BATCHES or zlib.crc32(data[body : body + CHECKED.size]) != crc:
        return False
    return sound_batch(data, array, start + ENTRY_HEADER_BYTES, stop) is not None


class Behind(NamedTuple):
    """The log behind a damaged entry: where its first intact entry begins (None: there is none),
    and up to where notes there say that the log was synced."""

    sound: int | None
    synced: tuple[int, int]


def look_behind(data: bytes) -> Behind:
    """Look for intact entries in `data`, which begins with a damaged one; `synced` is (file,
    position), (0, 0) if no note says."""
    array = np.frombuffer(data, np.uint8)
    sound, synced = None, (0, 0)
    torn = parse_entry(data, 0) if len(data) >= ENTRY_CHECKED_BYTES else None
    # If its header holds, what looks like entries within its length are records that somebody made
    # of them.
    position = data.find(
        MAGIC_PREFIX, ENTRY_HEADER_BYTES + torn.size_bytes if isinstance(torn, EntryHeader) else 1
    )
    while position >= 0:
        size_bytes, entry = _entry_at(data, array, position)
        if size_bytes and sound is None:
            sound = position
        if isinstance(entry, Note) and entry.kind is NoteKind.synced:
            synced = max(synced, (entry.argument, entry.offset))
        position = data.find(MAGIC_PREFIX, position + max(size_bytes, 1))
    return Behind(sound, synced)


def _entry_at(
    data: bytes, array: npt.NDArray[np.uint8], position: int
) -> tuple[int, EntryHeader | Note | None]:
    """The size in bytes of the intact entry that begins at `position`, and the entry; size 0: there
    is none."""
    entry = parse_entry(data, position) if position + ENTRY_CHECKED_BYTES <= len(data) else None
    if isinstance(entry, Note):
        return NOTE_BYTES, entry
    if entry is None:
        return 0, None
    start = position + ENTRY_HEADER_BYTES
    stop = start + entry.size_bytes
    return (stop - position, entry) if sound_batch(data, array, start, stop) is not None else (0, None)
