"""Metadata and assignments of members of the classic protocol (Kafka's
`ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0 to 3).

Subscription: version: int16; topics: strings; user data: bytes; from 1 on the partitions owned;
from 2 on a generation: int32; from 3 on the rack: nullable string. Assignment: version: int16;
topics with their partitions; user data. Fields that a later version may have at the end are let
pass."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError

_OWNED_FROM_VERSION = 1
_GENERATION_FROM_VERSION = 2
_RACK_FROM_VERSION = 3
_NEWEST = 3


class Subscribed(NamedTuple):
    """A subscription; `owned`: topic → partitions."""

    version: int
    topics: frozenset[str]
    owned: Mapping[str, frozenset[int]]
    rack_id: str | None


class Assigned(NamedTuple):
    """An assignment: topic → partitions; `user_data` is an assignor's own."""

    partitions: Mapping[str, frozenset[int]]
    user_data: bytes


def read_subscription(metadata: bytes) -> Subscribed:
    """A subscription. DecodeError for garbage."""
    reader = _Reader(metadata)
    try:
        version = reader.number(">h")
        topics = frozenset(reader.text() for _ in range(reader.count()))
        reader.data()
        owned = reader.partitions() if version >= _OWNED_FROM_VERSION else {}
        if version >= _GENERATION_FROM_VERSION:
            reader.number(">i")
        rack_id = reader.text_or_null() if version >= _RACK_FROM_VERSION else None
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not a subscription: {metadata[:64]!r}", 0) from None
    return Subscribed(version, topics, owned, rack_id or None)


def read_assignment(assignment: bytes) -> Assigned:
    """An assignment; empty bytes are none. DecodeError for garbage."""
    if not assignment:
        return Assigned({}, b"")
    reader = _Reader(assignment)
    try:
        reader.number(">h")
        return Assigned(reader.partitions(), reader.data())
    except (struct.error, UnicodeDecodeError):
        raise DecodeError(f"not an assignment: {assignment[:64]!r}", 0) from None


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """An assignment, in the version that a member's subscription had."""
    parts = [struct.pack(">hi", min(max(version, 0), _NEWEST), len(partitions))]
    for topic in sorted(partitions):
        numbers = sorted(partitions[topic])
        name = topic.encode()
        parts += [struct.pack(">h", len(name)), name]
        parts.append(struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    parts.append(struct.pack(">i", -1))
    return b"".join(parts)


class _Reader:
    """Takes values off bytes; struct.error where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, layout: str) -> int:
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def count(self) -> int:
        count = self.number(">i")
        if not 0 <= count <= len(self._data) - self._position:
            raise struct.error("cut short")
        return count

    def text_or_null(self) -> str | None:
        length = self.number(">h")
        return None if length < 0 else self._take(length).decode()

    def text(self) -> str:
        text = self.text_or_null()
        if text is None:
            raise struct.error("null")
        return text

    def data(self) -> bytes:
        length = self.number(">i")
        return b"" if length < 0 else self._take(length)

    def partitions(self) -> dict[str, frozenset[int]]:
        found: dict[str, frozenset[int]] = {}
        for _ in range(self.count()):
            topic, count = self.text(), self.count()
            found[topic] = frozenset(struct.unpack(f">{count}i", self._take(4 * count)))
        return found

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise struct.error("cut short")
        taken, self._position = self._data[self._position : end], end
        return taken
