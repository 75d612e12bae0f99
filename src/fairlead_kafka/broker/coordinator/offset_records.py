"""Committed offsets as records of `__consumer_offsets`, in Kafka's own format, so that Kafka's
tools can read them.

| | version | fields |
|---|---|---|
| key (`OffsetCommitKey`) | 0, 1 | group, topic: strings with an int16 length; partition: int32 |
| value (`OffsetCommitValue`) | 0 | offset: int64, metadata: string, commit time: int64 |
| | 1 | as 0, then an expiry time: int64 |
| | 2 | as 0 |
| | 3 | offset: int64, leader epoch: int32, metadata: string, commit time: int64 |
| | 4 | as 3, compact (KIP-482), and tagged field 0: topic id, a UUID |

Key 1 and value 4 are written; all are read. Key 2 is a group's (`group_records`). A null value is a
tombstone: it deletes the offset. Times are in ms since 1970.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.base.ids import NO_LEADER_EPOCH, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.broker.coordinator.group import CommittedOffset
from fairlead_kafka.broker.fields import Reader, Writer

_KEY_VERSION = 1
_VALUE_VERSION = 4
_LEADER_EPOCH_FROM = 3
_COMPACT_FROM = 4
_TOPIC_ID_TAG = 0


class OffsetKey(NamedTuple):
    """Key of a committed offset's record: its group and partition."""

    group_id: str
    partition: TopicPartition


def encode_key(key: OffsetKey) -> bytes:
    """The bytes of an `OffsetCommitKey`."""
    writer = Writer()
    writer.number(">h", _KEY_VERSION)
    writer.text(key.group_id)
    writer.text(key.partition.topic)
    writer.number(">i", key.partition.partition)
    return writer.joined()


def encode_value(committed: CommittedOffset) -> bytes:
    """The bytes of an `OffsetCommitValue`."""
    writer = Writer(compact=True)
    writer.number(">hqi", _VALUE_VERSION, committed.offset, committed.leader_epoch)
    writer.text(committed.metadata)
    writer.number(">q", committed.commit_ms)
    known = committed.topic_id != NO_TOPIC_ID
    writer.tags({_TOPIC_ID_TAG: committed.topic_id.bytes} if known else {})
    return writer.joined()


def decode_key(data: bytes) -> OffsetKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    reader = Reader(data, "the key of a committed offset")
    if not 0 <= reader.number(">h") <= _KEY_VERSION:
        return None
    group_id, topic = reader.text(), reader.text()
    return OffsetKey(group_id, TopicPartition(topic, reader.number(">i")))


def decode_value(data: bytes, position: int) -> CommittedOffset:
    """The committed offset in the value of the record at offset `position`. DecodeError for garbage
    or a version that is not known."""
    reader = Reader(data, "the value of a committed offset")
    version, offset = reader.version(_VALUE_VERSION), reader.number(">q")
    reader.compact = version >= _COMPACT_FROM
    leader_epoch = reader.number(">i") if version >= _LEADER_EPOCH_FROM else NO_LEADER_EPOCH
    metadata, commit_ms = reader.text(), reader.number(">q")
    topic_id = reader.tags().get(_TOPIC_ID_TAG)
    known = NO_TOPIC_ID if topic_id is None else Reader(topic_id, "a topic id").uuid()
    return CommittedOffset(offset, leader_epoch, metadata, commit_ms, position, known)
