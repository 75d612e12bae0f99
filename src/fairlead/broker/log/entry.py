"""The header in front of every batch in a log file: whose batch it is, where it goes, how long it is.

All integers are big-endian. The header has a CRC of its own, so that recovery can tell a header from chance bytes before it
believes the length in it. That CRC goes on over the batch's first bytes (base offset, length, leader epoch), which Kafka's own CRC
inside the batch leaves out; between the two every byte is covered.

    magic 4 · CRC-32 4 · topic id 16 · partition 4 · base offset 8 · batch size in bytes 4 · batch
"""

from __future__ import annotations

import struct
import uuid
import zlib
from typing import NamedTuple

from fairlead.base.limits import BATCH_OVERHEAD_BYTES
from fairlead.core.effects import Buffer

MAGIC = b"FLR1"
"""The last character is the version of the layout."""
_HEAD = struct.Struct(">4sI")
_BODY = struct.Struct(">16siqI")
_STAMP = struct.Struct(">qIi")
_CHECKED = struct.Struct(">16siqIqIi")
ENTRY_HEADER_BYTES = _HEAD.size + _BODY.size
STAMP_BYTES = _STAMP.size
"""What a broker stamps into a batch (base offset, length, leader epoch) lies in front of all that the batch's CRC covers."""
ENTRY_CHECKED_BYTES = ENTRY_HEADER_BYTES + STAMP_BYTES
"""What `parse_entry` looks at."""

_crc32 = zlib.crc32


class EntryHeader(NamedTuple):
    """One parsed header. `size_bytes` counts the batch alone."""

    topic_id: uuid.UUID
    partition: int
    base_offset: int
    size_bytes: int


def pack_entry(topic_id: bytes, partition: int, base_offset: int, leader_epoch: int, batch: memoryview) -> bytes:
    """Header and batch as one buffer, the batch stamped with its base offset and leader epoch; `topic_id` is 16 bytes."""
    size_bytes = len(batch)
    checked = _CHECKED.pack(topic_id, partition, base_offset, size_bytes, base_offset, size_bytes - 12, leader_epoch)
    return b"".join((_HEAD.pack(MAGIC, _crc32(checked)), checked, batch[STAMP_BYTES:]))


def parse_entry(data: Buffer, position: int) -> EntryHeader | None:
    """The header at `position`; None if these bytes are no header. The caller has seen to it that enough bytes are there."""
    magic, crc = _HEAD.unpack_from(data, position)
    if magic != MAGIC:
        return None
    start = position + _HEAD.size
    if _crc32(data[start : start + _CHECKED.size]) != crc:
        return None
    topic_id, partition, base_offset, size_bytes = _BODY.unpack_from(data, start)
    if size_bytes < BATCH_OVERHEAD_BYTES or partition < 0 or base_offset < 0:
        return None
    return EntryHeader(uuid.UUID(bytes=topic_id), partition, base_offset, size_bytes)
