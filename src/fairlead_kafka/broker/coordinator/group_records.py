"""Groups as records of `__consumer_offsets`, in Kafka's own format, from which the next coordinator
of a group learns its members.

- Key (`GroupMetadataKey`), version 2: the group, a string with an int16 length.
- Value (`GroupMetadataValue`), versions 0 to 3: protocol type: string; generation: int32; protocol
  and leader: nullable strings; from version 2 on time of the state: int64, ms since 1970; members:
  an array.
- A member: member id: string; from version 3 on instance id: nullable string; client id and client
  host: strings; from version 1 on rebalance time-out: int32, ms; session time-out: int32, ms;
  metadata and assignment: bytes with an int32 length.

Value 3 is written, as Kafka does; all are read. A null value is a tombstone: it deletes the group.
"""

from __future__ import annotations

from typing import NamedTuple

from fairlead_kafka.broker.fields import KeysOfTexts, Reader, Writer

_VALUE_VERSION = 3
_REBALANCE_TIMEOUT_FROM = 1
_STATE_TIME_FROM = 2
_INSTANCE_ID_FROM = 3
_NO_TIME = -1


class GroupKey(NamedTuple):
    """Key of a group's record."""

    group_id: str


_KEYS = KeysOfTexts("the key of a group", {2: GroupKey})


class MemberRecord(NamedTuple):
    """A member of a generation; `metadata` is the one for the generation's protocol."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    metadata: bytes
    assignment: bytes


class GroupRecord(NamedTuple):
    """One generation of a group, assigned; without members the group is empty since `since_ms` (ms
    since 1970, -1: not known)."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader_id: str | None
    since_ms: int
    members: tuple[MemberRecord, ...] = ()


def encode_group_key(key: GroupKey) -> bytes:
    """The bytes of a `GroupMetadataKey`."""
    return _KEYS.encode(key)


def encode_group_value(record: GroupRecord) -> bytes:
    """The bytes of a `GroupMetadataValue`."""
    writer = Writer()
    writer.number(">h", _VALUE_VERSION)
    writer.text(record.protocol_type)
    writer.number(">i", record.generation)
    writer.text(record.protocol_name)
    writer.text(record.leader_id)
    writer.number(">q", record.since_ms)
    writer.count(len(record.members))
    for member in record.members:
        writer.text(member.member_id)
        writer.text(member.instance_id)
        writer.text(member.client_id)
        writer.text(member.client_host)
        writer.number(">ii", member.rebalance_timeout_ms, member.session_timeout_ms)
        writer.data(member.metadata)
        writer.data(member.assignment)
    return writer.joined()


def decode_group_key(data: bytes) -> GroupKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    return _KEYS.decode(data)


def decode_group_value(data: bytes) -> GroupRecord:
    """The record in the bytes of a `GroupMetadataValue`. DecodeError for garbage or an unknown
    version."""
    reader = Reader(data, "the value of a group")
    version = reader.version(_VALUE_VERSION)
    protocol_type, generation = reader.text(), reader.number(">i")
    protocol_name, leader_id = reader.text_or_null(), reader.text_or_null()
    since_ms = reader.number(">q") if version >= _STATE_TIME_FROM else _NO_TIME
    members = tuple(_read_member(reader, version) for _ in range(reader.count()))
    return GroupRecord(protocol_type, generation, protocol_name, leader_id, since_ms, members)


def _read_member(reader: Reader, version: int) -> MemberRecord:
    member_id = reader.text()
    instance_id = reader.text_or_null() if version >= _INSTANCE_ID_FROM else None
    client_id, client_host = reader.text(), reader.text()
    rebalance_ms = reader.number(">i") if version >= _REBALANCE_TIMEOUT_FROM else None
    session_ms = reader.number(">i")
    metadata, assignment = reader.data(), reader.data()
    return MemberRecord(
        member_id,
        instance_id,
        client_id,
        client_host,
        session_ms if rebalance_ms is None else rebalance_ms,
        session_ms,
        metadata,
        assignment,
    )
