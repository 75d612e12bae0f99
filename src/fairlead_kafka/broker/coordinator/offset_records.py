"""Committed offsets as records of `__consumer_offsets`, in Kafka's own format, so that Kafka's
tools can read them.

| | version | fields |
|---|---|---|
| key (`OffsetCommitKey`) | 0, 1 | group, topic: strings with an int16 length; partition: int32 |
| value (`OffsetCommitValue`) | 0 | offset: int64, metadata: string, commit time: int64 |
| | 1 | as 0, then an expiry time: int64 |
| | 2 | as 0 |
| | 3 | offset: int64, leader epoch: int32, metadata: string, commit time: int64 |

Key 1 and value 3 are written; all are read. Key 2 is a group's (`group_records`). A null value
takes the offset back.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, TopicPartition
from fairlead_kafka.broker.coordinator.group import CommittedOffset

_KEY_VERSION = 1
_VALUE_VERSION = 3


class OffsetKey(NamedTuple):
    """Key of a committed offset's record: its group and partition."""

    group_id: str
    partition: TopicPartition


def encode_key(key: OffsetKey) -> bytes:
    """An `OffsetCommitKey`."""
    return (
        struct.pack(">h", _KEY_VERSION)
        + _string(key.group_id)
        + _string(key.partition.topic)
        + struct.pack(">i", key.partition.partition)
    )


def encode_value(committed: CommittedOffset) -> bytes:
    """An `OffsetCommitValue`."""
    head = struct.pack(">hqi", _VALUE_VERSION, committed.offset, committed.leader_epoch)
    return head + _string(committed.metadata) + struct.pack(">q", committed.commit_ms)


def decode_key(data: bytes) -> OffsetKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    try:
        (version,) = struct.unpack_from(">h", data, 0)
        if version not in (0, 1):
            return None
        group_id, position = _read_string(data, 2)
        topic, position = _read_string(data, position)
        (partition,) = struct.unpack_from(">i", data, position)
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not the key of a committed offset: {data[:64]!r}", 0) from None
    return OffsetKey(group_id, TopicPartition(topic, partition))


def decode_value(data: bytes, position: int) -> CommittedOffset:
    """The value of the record at offset `position`. DecodeError for garbage or a version that is
    not known."""
    try:
        version, offset = struct.unpack_from(">hq", data, 0)
        if not 0 <= version <= _VALUE_VERSION:
            raise DecodeError(
                f"a committed offset of version {version}; this release reads up to {_VALUE_VERSION}", 0
            )
        leader_epoch, place = NO_LEADER_EPOCH, 10
        if version >= _VALUE_VERSION:
            (leader_epoch,) = struct.unpack_from(">i", data, place)
            place += 4
        metadata, place = _read_string(data, place)
        (commit_ms,) = struct.unpack_from(">q", data, place)
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not the value of a committed offset: {data[:64]!r}", 0) from None
    return CommittedOffset(offset, leader_epoch, metadata, commit_ms, position)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _read_string(data: bytes, position: int) -> tuple[str, int]:
    (length,) = struct.unpack_from(">h", data, position)
    end = position + 2 + length
    if length < 0 or end > len(data):
        raise struct.error("cut short")
    return data[position + 2 : end].decode(), end
