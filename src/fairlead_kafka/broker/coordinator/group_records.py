"""Groups as records of `__consumer_offsets`, in Kafka's own format: who coordinates a group next
finds its members there.

| | version | fields | |---|---|---| | key (`GroupMetadataKey`) | 2 | group: string with an int16
length | | value (`GroupMetadataValue`) | 0-3 | protocol type: string; generation: int32; protocol,
leader: nullable strings; | | | 2 on | time of the state: int64; | | | | members: array of (member
id: string; from 3 on instance id: nullable string; client id, client host: strings; | | | 1 on |
rebalance time-out: int32; | | | | session time-out: int32; metadata, assignment: bytes with an
int32 length) |

Value 3 is written, as Kafka does; all are read. A null value takes the group back.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError

KEY_VERSION = 2
_VALUE_VERSION = 3
_REBALANCE_TIMEOUT_FROM = 1
_STATE_TIME_FROM = 2
_INSTANCE_ID_FROM = 3
_NO_TIME = -1


class GroupKey(NamedTuple):
    """Key of a group's record."""

    group_id: str


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
    """One generation of a group, assigned; without members the group is empty since `since_ms` (-1:
    not told)."""

    protocol_type: str
    generation: int
    protocol_name: str | None
    leader_id: str | None
    since_ms: int
    members: tuple[MemberRecord, ...] = ()


def encode_group_key(key: GroupKey) -> bytes:
    """A `GroupMetadataKey`."""
    return struct.pack(">h", KEY_VERSION) + _string(key.group_id)


def encode_group_value(record: GroupRecord) -> bytes:
    """A `GroupMetadataValue`."""
    parts = [
        struct.pack(">h", _VALUE_VERSION),
        _string(record.protocol_type),
        struct.pack(">i", record.generation),
        _string(record.protocol_name),
        _string(record.leader_id),
        struct.pack(">qi", record.since_ms, len(record.members)),
    ]
    for member in record.members:
        parts += [
            _string(member.member_id),
            _string(member.instance_id),
            _string(member.client_id),
            _string(member.client_host),
        ]
        parts.append(struct.pack(">ii", member.rebalance_timeout_ms, member.session_timeout_ms))
        parts += [
            struct.pack(">i", len(member.metadata)),
            member.metadata,
            struct.pack(">i", len(member.assignment)),
            member.assignment,
        ]
    return b"".join(parts)


def decode_group_key(data: bytes) -> GroupKey | None:
    """The key, or None for a record of another kind. DecodeError for garbage."""
    reader = _Reader(data)
    try:
        return GroupKey(reader.text()) if reader.number(">h") == KEY_VERSION else None
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not the key of a group: {data[:64]!r}", 0) from None


def decode_group_value(data: bytes) -> GroupRecord:
    """The value. DecodeError for garbage or a version that is not known."""
    reader = _Reader(data)
    try:
        version = reader.number(">h")
        if not 0 <= version <= _VALUE_VERSION:
            raise DecodeError(f"a group of version {version}; this release reads up to {_VALUE_VERSION}", 0)
        protocol_type, generation = reader.text(), reader.number(">i")
        protocol_name, leader_id = reader.text_or_null(), reader.text_or_null()
        since_ms = reader.number(">q") if version >= _STATE_TIME_FROM else _NO_TIME
        members = tuple(_read_member(reader, version) for _ in range(reader.number(">i")))
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not the value of a group: {data[:64]!r}", 0) from None
    return GroupRecord(protocol_type, generation, protocol_name, leader_id, since_ms, members)


def _read_member(reader: _Reader, version: int) -> MemberRecord:
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


class _Reader:
    """Takes values off bytes; struct.error where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def text(self) -> str:
        text = self.text_or_null()
        if text is None:
            raise struct.error("null")
        return text

    def text_or_null(self) -> str | None:
        length = self.number(">h")
        return None if length < 0 else self._take(length).decode()

    def data(self) -> bytes:
        return self._take(self.number(">i"))

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise struct.error("cut short")
        taken, self._position = self._data[self._position : end], end
        return taken


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data
