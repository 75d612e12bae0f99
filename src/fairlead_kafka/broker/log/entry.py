"""Entries of a log file: batches, each behind a header that names its partition, and notes of other
changes of partitions.

All integers are big-endian. The header has a CRC of its own, so that recovery can distinguish a
header from chance bytes before it uses the length in it. That CRC goes on over the batch's first
bytes (base offset, length, leader epoch), which Kafka's own CRC inside the batch leaves out;
between the two every byte is covered. A note is as long as what the header's CRC covers of a batch.

    batch  magic 4 · CRC-32 4 · topic id 16 · partition 4 · base offset 8 · batch's size 4 · batch
    note   magic 4 · CRC-32 4 · topic id 16 · partition 4 · offset 8 · kind 4 · argument 8 · zeros 8

A batch comes in two kinds: appended at the end of its partition, or moved: it takes the place of
what the partition has at its offsets (compaction, and the rewriting of files in which little is
alive).
"""

from __future__ import annotations

import struct
import uuid
import zlib
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.effects import Buffer

APPENDED = b"FLR1"
MOVED = b"FLM1"
NOTE = b"FLN1"
MAGICS = (APPENDED, MOVED, NOTE)
"""The first bytes of each kind of entry; the last character is the version of the layout."""
MAGIC_PREFIX = b"FL"
"""Prefix of all magics."""
HEAD = struct.Struct(">4sI")
_BODY = struct.Struct(">16siqI")
_STAMP = struct.Struct(">qIi")
CHECKED = struct.Struct(">16siqIqIi")
ENTRY_HEADER_BYTES = HEAD.size + _BODY.size
STAMP_BYTES = _STAMP.size
"""Size of the fields that a broker stamps into a batch: base offset, length, leader epoch. They lie
in front of all that the batch's CRC covers."""
ENTRY_CHECKED_BYTES = ENTRY_HEADER_BYTES + STAMP_BYTES
"""Bytes of an entry that `parse_entry` looks at."""
NOTE_BYTES = ENTRY_CHECKED_BYTES

_crc32 = zlib.crc32


class NoteKind(IntEnum):
    """Kinds of notes about a partition in the log, with the meaning of a note's `offset` and
    `argument`."""

    truncated = 1
    """Everything from `offset` on is gone."""
    restarted = 2
    """Everything is gone; the log begins and ends at `offset`."""
    start_moved = 3
    """The log starts at `offset`."""
    cleaned = 4
    """A pass of compaction came to `offset` at the time `argument` (milliseconds since 1970)."""
    removed = 5
    """The batches from `offset` to `argument` (last offset) hold nothing any more."""
    synced = 6
    """About no partition: everything before byte `offset` of file `argument` was synced when this
    was written."""


class EntryHeader(NamedTuple):
    """The parsed header of a batch. `size_bytes` counts the batch alone, and so begins
    `ENTRY_HEADER_BYTES` behind the entry."""

    topic_id: uuid.UUID
    partition: int
    base_offset: int
    size_bytes: int
    moved: bool = False


class Note(NamedTuple):
    """A parsed note."""

    topic_id: uuid.UUID
    partition: int
    kind: NoteKind
    offset: int
    argument: int


def pack_entry(
    topic_id: bytes,
    partition: int,
    base_offset: int,
    leader_epoch: int,
    batch: memoryview | bytes,
    magic: bytes = APPENDED,
) -> bytes:
    """Header and batch as one buffer, the batch stamped with its base offset and leader epoch;
    `topic_id` is 16 bytes."""
    size_bytes = len(batch)
    checked = CHECKED.pack(
        topic_id, partition, base_offset, size_bytes, base_offset, size_bytes - 12, leader_epoch
    )
    return b"".join((HEAD.pack(magic, _crc32(checked)), checked, batch[STAMP_BYTES:]))


def pack_synced(file: int, position: int) -> bytes:
    """The note that everything before byte `position` of a file was synced."""
    return pack_note(bytes(16), 0, NoteKind.synced, position, file)


def pack_note(topic_id: bytes, partition: int, kind: NoteKind, offset: int, argument: int = 0) -> bytes:
    """The bytes of a note, as the file has them."""
    checked = CHECKED.pack(topic_id, partition, offset, kind, argument, 0, 0)
    return HEAD.pack(NOTE, _crc32(checked)) + checked


def parse_entry(data: Buffer, position: int) -> EntryHeader | Note | None:
    """The entry header or note at `position`; None if these bytes are neither.

    The caller makes sure that ENTRY_CHECKED_BYTES are there.
    """
    magic, crc = HEAD.unpack_from(data, position)
    if magic not in MAGICS:
        return None
    start = position + HEAD.size
    if _crc32(data[start : start + CHECKED.size]) != crc:
        return None
    topic_id, partition, offset, size_or_kind, argument, _, _ = CHECKED.unpack_from(data, start)
    if partition < 0 or offset < 0:
        return None
    if magic == NOTE:
        known = size_or_kind in NoteKind._value2member_map_
        return (
            Note(uuid.UUID(bytes=topic_id), partition, NoteKind(size_or_kind), offset, argument)
            if known
            else None
        )
    if size_or_kind < BATCH_OVERHEAD_BYTES:
        return None
    return EntryHeader(uuid.UUID(bytes=topic_id), partition, offset, size_or_kind, magic == MOVED)
