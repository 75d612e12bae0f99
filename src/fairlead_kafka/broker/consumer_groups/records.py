"""Consumer groups as records of `__consumer_offsets`, in Kafka's own format (version 0 of each), so
that Kafka's tools can read them, and the next coordinator of a group continues from the log.

| key | Kafka's name | key's fields after the version | value |
|---|---|---|---|
| 3 | `ConsumerGroupMetadata` | group | `EpochRecord` |
| 5 | `ConsumerGroupMemberMetadata` | group, member | `About` |
| 6 | `ConsumerGroupTargetAssignmentMetadata` | group | `TargetEpochRecord` |
| 7 | `ConsumerGroupTargetAssignmentMember` | group, member | target of the member |
| 8 | `ConsumerGroupCurrentMemberAssignment` | group, member | `Current` |
| 16 | `ConsumerGroupRegularExpression` | group, expression | `Resolved` |

Key 4 (`ConsumerGroupPartitionMetadata`) is what Kafka 4.0 wrote in place of the hash in
`EpochRecord` (KIP-1101); it is passed over. Strings of keys have an int16 length, values are
flexible (KIP-482). A null value is a tombstone: it deletes the record.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.broker.consumer_groups.assignors import Target
from fairlead_kafka.broker.consumer_groups.states import MemberState, member_state
from fairlead_kafka.broker.fields import KeysOfTexts, Reader, Writer

_VALUE_VERSION = 0
_HASH_TAG, _ASSIGNED_TAG, _EPOCHS_TAG, _CLASSIC_TAG = 0, 0, 0, 0
"""Each structure counts its own tags."""

Partitions = Mapping[UUID, Mapping[int, int]]
"""Topic id → partition → the epoch at which the member got it."""


class EpochKey(NamedTuple):
    """Key of the record with a group's epoch."""

    group_id: str


class MemberKey(NamedTuple):
    """Key of the record with a member's subscription."""

    group_id: str
    member_id: str


class TargetEpochKey(NamedTuple):
    """Key of the record with the epoch of a group's target assignments."""

    group_id: str


class TargetKey(NamedTuple):
    """Key of the record with a member's target assignment."""

    group_id: str
    member_id: str


class CurrentKey(NamedTuple):
    """Key of the record with a member's present assignment."""

    group_id: str
    member_id: str


class PatternKey(NamedTuple):
    """Key of the record with the topics that a regular expression matches in a group."""

    group_id: str
    pattern: str


class EpochRecord(NamedTuple):
    """A group's epoch, and a hash of the metadata of its topics at that epoch; 0: no topics."""

    epoch: int
    metadata_hash: int


class TargetEpochRecord(NamedTuple):
    """The group epoch that the targets are of, and when they were computed, ms since 1970; 0: not
    known."""

    epoch: int
    assigned_ms: int


class ClassicAbout(NamedTuple):
    """Subscription of a member of the classic protocol; `protocols` (name, metadata), its first
    choice first."""

    session_timeout_ms: int
    protocols: tuple[tuple[str, bytes], ...]


class About(NamedTuple):
    """A member's subscription, and its client. `pattern` is empty for none; `classic` is None for a
    member of the consumer protocol."""

    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    topics: frozenset[str] = frozenset()
    pattern: str = ""
    rebalance_timeout_ms: int = -1
    assignor: str | None = None
    classic: ClassicAbout | None = None


class Current(NamedTuple):
    """A member's assignment: `assigned` are the partitions that it is given, `revoking` those that
    it has to give up."""

    epoch: int = 0
    previous_epoch: int = -1
    state: MemberState = MemberState.STABLE
    assigned: Partitions = {}
    revoking: Partitions = {}


class Resolved(NamedTuple):
    """The topics that a regular expression matches, when that was found (ms since 1970), and in
    which version of the metadata."""

    topics: frozenset[str] = frozenset()
    version: int = 0
    resolved_ms: int = 0


GroupsKey = EpochKey | MemberKey | TargetEpochKey | TargetKey | CurrentKey | PatternKey
GroupsValue = EpochRecord | About | TargetEpochRecord | Target | Current | Resolved
GroupsEntry = tuple[GroupsKey, GroupsValue | None]
"""One record of a consumer group; value None: a tombstone."""

_KEYS: KeysOfTexts[GroupsKey] = KeysOfTexts(
    "the key of a consumer group",
    {3: EpochKey, 5: MemberKey, 6: TargetEpochKey, 7: TargetKey, 8: CurrentKey, 16: PatternKey},
)


def encode_groups_key(key: GroupsKey) -> bytes:
    """The bytes of a key."""
    return _KEYS.encode(key)


def decode_groups_key(data: bytes) -> GroupsKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    return _KEYS.decode(data)


# --- Values


def encode_groups_value(key: GroupsKey, value: GroupsValue) -> bytes:
    """The value of a record with this key."""
    writer = Writer(compact=True)
    writer.number(">h", _VALUE_VERSION)
    match value:
        case EpochRecord(epoch, metadata_hash):
            writer.number(">i", epoch)
            writer.tags({_HASH_TAG: struct.pack(">q", metadata_hash)} if metadata_hash else {})
        case TargetEpochRecord(epoch, assigned_ms):
            writer.number(">i", epoch)
            writer.tags({_ASSIGNED_TAG: struct.pack(">q", assigned_ms)} if assigned_ms else {})
        case About():
            _write_about(writer, value)
        case Current():
            writer.number(">iib", value.epoch, value.previous_epoch, value.state)
            _write_partitions(writer, value.assigned)
            _write_partitions(writer, value.revoking)
            writer.tags({})
        case Resolved():
            writer.texts(sorted(value.topics))
            writer.number(">qq", value.version, value.resolved_ms)
            writer.tags({})
        case _:
            writer.partitions(value)
            writer.tags({})
    return writer.joined()


def decode_groups_value(key: GroupsKey, data: bytes) -> GroupsValue:
    """The value of a record with this key. DecodeError for garbage or a version that is not
    known."""
    reader = Reader(data, "the value of a consumer group", compact=True)
    reader.version(_VALUE_VERSION)
    return _READ[type(key)](reader)


def _write_about(writer: Writer, about: About) -> None:
    writer.text(about.instance_id)
    writer.text(about.rack_id)
    writer.text(about.client_id)
    writer.text(about.client_host)
    writer.texts(sorted(about.topics))
    writer.text(about.pattern)
    writer.number(">i", about.rebalance_timeout_ms)
    writer.text(about.assignor)
    if about.classic is None:
        writer.tags({})
        return
    inner = Writer(compact=True)
    inner.varint(1)  # a structure that could be null begins with a byte that says it is not
    inner.number(">i", about.classic.session_timeout_ms)
    inner.count(len(about.classic.protocols))
    for name, metadata in about.classic.protocols:
        inner.text(name)
        inner.data(metadata)
        inner.tags({})
    inner.tags({})
    writer.tags({_CLASSIC_TAG: inner.joined()})


def _read_about(reader: Reader) -> About:
    instance_id, rack_id = reader.text_or_null(), reader.text_or_null()
    client_id, client_host = reader.text(), reader.text()
    topics = frozenset(reader.texts())
    pattern = reader.text_or_null() or ""
    rebalance_ms = reader.number(">i")
    assignor = reader.text_or_null()
    tagged = reader.tags().get(_CLASSIC_TAG)
    classic = (
        None
        if tagged is None
        else _read_classic(Reader(tagged, "a member of the classic protocol", compact=True))
    )
    return About(
        instance_id, rack_id, client_id, client_host, topics, pattern, rebalance_ms, assignor, classic
    )


def _read_classic(reader: Reader) -> ClassicAbout | None:
    if reader.number(">b") < 0:
        return None
    session_ms = reader.number(">i")
    protocols = []
    for _ in range(reader.count()):
        protocols.append((reader.text(), reader.data()))
        reader.tags()
    return ClassicAbout(session_ms, tuple(protocols))


def _write_partitions(writer: Writer, partitions: Partitions) -> None:
    writer.count(len(partitions))
    for topic in sorted(partitions):
        epochs = partitions[topic]
        numbers = sorted(epochs)
        writer.uuid(topic)
        writer.numbers(numbers)
        tagged = Writer(compact=True)
        tagged.numbers(epochs[number] for number in numbers)
        writer.tags({_EPOCHS_TAG: tagged.joined()})


def _read_partitions(reader: Reader, epoch: int) -> Partitions:
    """Partitions with their epochs; without these (Kafka before 4.3), `epoch`, the member's own."""
    partitions: dict[UUID, dict[int, int]] = {}
    for _ in range(reader.count()):
        topic, numbers = reader.uuid(), reader.numbers()
        tagged = reader.tags().get(_EPOCHS_TAG)
        epochs = [] if tagged is None else Reader(tagged, "epochs of partitions", compact=True).numbers()
        if len(epochs) != len(numbers):
            epochs = [max(epoch, 0)] * len(numbers)
        partitions[topic] = dict(zip(numbers, epochs, strict=True))
    return partitions


def _read_current(reader: Reader) -> Current:
    epoch, previous, state = reader.number(">i"), reader.number(">i"), reader.number(">b")
    assigned, revoking = _read_partitions(reader, epoch), _read_partitions(reader, epoch)
    return Current(epoch, previous, member_state(state), assigned, revoking)


def _read_epoch(reader: Reader) -> EpochRecord:
    return EpochRecord(reader.number(">i"), reader.tagged(reader.tags(), _HASH_TAG, ">q", 0))


def _read_target_epoch(reader: Reader) -> TargetEpochRecord:
    return TargetEpochRecord(reader.number(">i"), reader.tagged(reader.tags(), _ASSIGNED_TAG, ">q", 0))


def _read_resolved(reader: Reader) -> Resolved:
    topics = frozenset(reader.texts())
    return Resolved(topics, reader.number(">q"), reader.number(">q"))


_READ: Mapping[type[GroupsKey], Callable[[Reader], GroupsValue]] = {
    EpochKey: _read_epoch,
    MemberKey: _read_about,
    TargetEpochKey: _read_target_epoch,
    TargetKey: Reader.partitions,
    CurrentKey: _read_current,
    PatternKey: _read_resolved,
}
"""Key → what reads its value."""
