"""Share groups as records of `__consumer_offsets`, in Kafka's own format (version 0 of each).

| key | Kafka's name | key's fields after the version | value |
|---|---|---|---|
| 10 | `ShareGroupMemberMetadata` | group, member | `ShareAbout` |
| 11 | `ShareGroupMetadata` | group | `ShareEpoch` |
| 12 | `ShareGroupTargetAssignmentMetadata` | group | `ShareTargetEpoch` |
| 13 | `ShareGroupTargetAssignmentMember` | group, member | target of the member |
| 14 | `ShareGroupCurrentMemberAssignment` | group, member | `ShareCurrent` |
| 15 | `ShareGroupStatePartitionMetadata` | group | `StatePartitions` |

Strings of keys have an int16 length, values are flexible (KIP-482). A null value is a tombstone: it
deletes the record. `StatePartitions` has one tagged field of Fairlead's own, which Kafka's tools
ignore: offsets that are being altered.

The epoch recorded for the empty name belongs to no group (`RETIRED`): new groups of the partition
begin with it. So epochs, which are also state epochs of share partitions, are greater in a later
group of the same name, and a late request of the earlier group is recognized. In Kafka each group
begins with 1.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.broker.consumer_groups import Target
from fairlead_kafka.broker.fields import KeysOfTexts, Reader, Writer

_VALUE_VERSION = 0
_ASSIGNED_TAG = 0
_ALTERING_TAG = 10_000
"""Far above the tags that Kafka counts from 0."""
_STABLE = 0
"""The state of a member: those of share groups have no other."""


class ShareMemberKey(NamedTuple):
    """Key of the record with a member's subscription."""

    group_id: str
    member_id: str


class ShareEpochKey(NamedTuple):
    """Key of the record with a group's epoch."""

    group_id: str


RETIRED = ShareEpochKey("")
"""Key of the greatest epoch of the share groups that were deleted from a partition of
`__consumer_offsets`. No share group has an empty name."""


class ShareTargetEpochKey(NamedTuple):
    """Key of the record with the epoch of a group's target assignments."""

    group_id: str


class ShareTargetKey(NamedTuple):
    """Key of the record with a member's target assignment."""

    group_id: str
    member_id: str


class ShareCurrentKey(NamedTuple):
    """Key of the record with a member's present assignment."""

    group_id: str
    member_id: str


class StatePartitionsKey(NamedTuple):
    """Key of the record with the partitions whose state the share coordinator has."""

    group_id: str


class ShareAbout(NamedTuple):
    """A member's subscription, and its client."""

    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()


class ShareEpoch(NamedTuple):
    """A group's epoch, and a hash of the topics that it is of; 0: no topics."""

    epoch: int
    metadata_hash: int


class ShareTargetEpoch(NamedTuple):
    """The group epoch that the targets are of, and when they were computed, ms since 1970; 0: not
    known."""

    epoch: int
    assigned_ms: int


class ShareCurrent(NamedTuple):
    """A member's present assignment, and its epoch."""

    epoch: int = 0
    previous_epoch: int = -1
    assigned: Target = {}


class TopicState(NamedTuple):
    """A topic's name, and those of its partitions that have a state at the share coordinator."""

    name: str
    partitions: frozenset[int]


class Alteration(NamedTuple):
    """The start offset that an admin has set for a share partition, and the state epoch of the
    state that begins there."""

    state_epoch: int
    start_offset: int


Alterations = Mapping[tuple[UUID, int], Alteration]
"""By topic id and number of the partition."""


class StatePartitions(NamedTuple):
    """The share partitions of a group at the share coordinator, by topic id: those whose state is
    being begun, those that have one, and the topics whose state is being deleted, with their names.
    `altering`: the alterations of those that are begun at an offset that an admin has set."""

    initializing: Mapping[UUID, TopicState] = {}
    initialized: Mapping[UUID, TopicState] = {}
    deleting: Mapping[UUID, str] = {}
    altering: Alterations = {}


_OfMember = ShareMemberKey | ShareTargetKey | ShareCurrentKey
_OfGroup = ShareEpochKey | ShareTargetEpochKey | StatePartitionsKey
ShareGroupKey = _OfMember | _OfGroup
ShareGroupValue = ShareAbout | ShareEpoch | ShareTargetEpoch | Target | ShareCurrent | StatePartitions
ShareGroupEntry = tuple[ShareGroupKey, ShareGroupValue | None]
"""One record of a share group; value None: a tombstone."""

_KEYS: KeysOfTexts[ShareGroupKey] = KeysOfTexts(
    "the key of a share group",
    {
        10: ShareMemberKey,
        11: ShareEpochKey,
        12: ShareTargetEpochKey,
        13: ShareTargetKey,
        14: ShareCurrentKey,
        15: StatePartitionsKey,
    },
)
SHARE_KEYS = (
    ShareMemberKey,
    ShareEpochKey,
    ShareTargetEpochKey,
    ShareTargetKey,
    ShareCurrentKey,
    StatePartitionsKey,
)
"""The keys of share groups' records."""
SHARE_VALUES = (ShareAbout, ShareEpoch, ShareTargetEpoch, ShareCurrent, StatePartitions)
"""The values of share groups' records that no other group has."""


def encode_share_key(key: ShareGroupKey) -> bytes:
    """The bytes of a key."""
    return _KEYS.encode(key)


def decode_share_key(data: bytes) -> ShareGroupKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    return _KEYS.decode(data)


# --- Values


def encode_share_value(value: ShareGroupValue) -> bytes:
    """The value of a record."""
    writer = Writer(compact=True)
    writer.number(">h", _VALUE_VERSION)
    tags: dict[int, bytes] = {}
    match value:
        case ShareAbout():
            writer.text(value.rack_id)
            writer.text(value.client_id)
            writer.text(value.client_host)
            writer.texts(sorted(value.topics))
        case ShareEpoch(epoch, metadata_hash):
            writer.number(">iq", epoch, metadata_hash)
        case ShareTargetEpoch(epoch, assigned_ms):
            writer.number(">i", epoch)
            tags = {_ASSIGNED_TAG: struct.pack(">q", assigned_ms)} if assigned_ms else {}
        case ShareCurrent(epoch, previous_epoch, assigned):
            writer.number(">iib", epoch, previous_epoch, _STABLE)
            writer.partitions(assigned)
        case StatePartitions():
            _write_topics(writer, value.initializing)
            _write_topics(writer, value.initialized)
            writer.count(len(value.deleting))
            for topic in sorted(value.deleting):
                writer.uuid(topic)
                writer.text(value.deleting[topic])
                writer.tags({})
            tags = {_ALTERING_TAG: _alterations(value)} if value.altering else {}
        case _:
            writer.partitions(value)
    writer.tags(tags)
    return writer.joined()


def decode_share_value(key: ShareGroupKey, data: bytes) -> ShareGroupValue:
    """The value of a record with this key. DecodeError for garbage or a version that is not
    known."""
    reader = Reader(data, "the value of a share group", compact=True)
    reader.version(_VALUE_VERSION)
    return _READ[type(key)](reader)


def _write_topics(writer: Writer, topics: Mapping[UUID, TopicState]) -> None:
    writer.count(len(topics))
    for topic in sorted(topics):
        writer.uuid(topic)
        writer.text(topics[topic].name)
        writer.numbers(sorted(topics[topic].partitions))
        writer.tags({})


def _alterations(value: StatePartitions) -> bytes:
    writer = Writer(compact=True)
    writer.count(len(value.altering))
    for (topic, number), one in sorted(value.altering.items()):
        writer.uuid(topic)
        writer.number(">iiq", number, *one)
    return writer.joined()


def _read_alterations(data: bytes) -> dict[tuple[UUID, int], Alteration]:
    reader = Reader(data, "the offsets that are being altered", compact=True)
    return {
        (reader.uuid(), reader.number(">i")): Alteration(reader.number(">i"), reader.number(">q"))
        for _ in range(reader.count())
    }


def _read_about(reader: Reader) -> ShareAbout:
    rack_id = reader.text_or_null()
    client_id, client_host = reader.text(), reader.text()
    topics = frozenset(reader.texts())
    return ShareAbout(rack_id, client_id, client_host, topics)


def _read_epoch(reader: Reader) -> ShareEpoch:
    return ShareEpoch(reader.number(">i"), reader.number(">q"))


def _read_target_epoch(reader: Reader) -> ShareTargetEpoch:
    return ShareTargetEpoch(reader.number(">i"), reader.tagged(reader.tags(), _ASSIGNED_TAG, ">q", 0))


def _read_current(reader: Reader) -> ShareCurrent:
    epoch, previous_epoch, _state = reader.number(">i"), reader.number(">i"), reader.number(">b")
    return ShareCurrent(epoch, previous_epoch, reader.partitions())


def _read_topics(reader: Reader) -> dict[UUID, TopicState]:
    topics: dict[UUID, TopicState] = {}
    for _ in range(reader.count()):
        topic = reader.uuid()
        name = reader.text()
        topics[topic] = TopicState(name, frozenset(reader.numbers()))
        reader.tags()
    return topics


def _read_state_partitions(reader: Reader) -> StatePartitions:
    initializing, initialized = _read_topics(reader), _read_topics(reader)
    deleting: dict[UUID, str] = {}
    for _ in range(reader.count()):
        topic = reader.uuid()
        deleting[topic] = reader.text()
        reader.tags()
    tags = reader.tags()
    altering = _read_alterations(tags[_ALTERING_TAG]) if _ALTERING_TAG in tags else {}
    return StatePartitions(initializing, initialized, deleting, altering)


_READ: Mapping[type[ShareGroupKey], Callable[[Reader], ShareGroupValue]] = {
    ShareMemberKey: _read_about,
    ShareEpochKey: _read_epoch,
    ShareTargetEpochKey: _read_target_epoch,
    ShareTargetKey: Reader.partitions,
    ShareCurrentKey: _read_current,
    StatePartitionsKey: _read_state_partitions,
}
"""Key → what reads its value."""
