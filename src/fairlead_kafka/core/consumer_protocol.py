"""Kafka's embedded protocol "consumer", by which members of a group exchange subscriptions and
assignments through the coordinator.

| | version | fields |
|---|---|---|
| `ConsumerProtocolSubscription` | 0 on | topics: array of strings; user data: nullable bytes |
| | 1 on | owned partitions: array of (topic: string, partitions: array of int32) (KIP-429) |
| | 2 on | generation in which they were assigned: int32 (KIP-792) |
| | 3 on | rack: nullable string (KIP-881) |
| `ConsumerProtocolAssignment` | 0 on | array of (topic, partitions); user data: nullable bytes |

Version 3 is written; newer ones are read as far as they are known, as Kafka does.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition

PROTOCOL_TYPE = "consumer"
"""The protocol type of groups whose members speak this."""
NO_GENERATION = -1
_VERSION = 3


class Subscription(NamedTuple):
    """One member's subscription; `owned` was assigned to it in `generation` (-1: not known)."""

    topics: tuple[str, ...]
    user_data: bytes | None = None
    owned: tuple[TopicPartition, ...] = ()
    generation: int = NO_GENERATION
    rack: str | None = None


class Assignment(NamedTuple):
    """The partitions that one member is assigned."""

    partitions: tuple[TopicPartition, ...]
    user_data: bytes | None = None


def encode_subscription(subscription: Subscription) -> bytes:
    """Encode a `ConsumerProtocolSubscription`, version 3."""
    topics = b"".join(_string(topic) for topic in subscription.topics)
    return b"".join(
        (
            struct.pack(">hi", _VERSION, len(subscription.topics)),
            topics,
            _bytes(subscription.user_data),
            encode_partitions(subscription.owned),
            struct.pack(">i", subscription.generation),
            _string(subscription.rack),
        )
    )


def decode_subscription(data: bytes) -> Subscription:
    """Decode a `ConsumerProtocolSubscription`. DecodeError for garbage."""
    reader = Reader(data, "a consumer's subscription")
    version = reader.int16()
    topics = tuple(reader.text() for _ in range(reader.count()))
    user_data = reader.data()
    owned = reader.partitions() if version >= 1 else ()
    generation = reader.int32() if version >= 2 else NO_GENERATION
    rack = reader.text_or_null() if version >= 3 else None
    return Subscription(topics, user_data, owned, generation, rack)


def encode_assignment(assignment: Assignment) -> bytes:
    """Encode a `ConsumerProtocolAssignment`, version 3."""
    return (
        struct.pack(">h", _VERSION) + encode_partitions(assignment.partitions) + _bytes(assignment.user_data)
    )


def decode_assignment(data: bytes) -> Assignment:
    """Decode a `ConsumerProtocolAssignment`; empty: no partitions. DecodeError for garbage."""
    if not data:
        return Assignment(())
    reader = Reader(data, "a consumer's assignment")
    reader.int16()
    return Assignment(reader.partitions(), reader.data())


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """Encode partitions by topic: array of (string, array of int32)."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in partitions:
        by_topic.setdefault(topic, []).append(number)
    rows = [
        _string(topic) + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers)
        for topic, numbers in by_topic.items()
    ]
    return struct.pack(">i", len(rows)) + b"".join(rows)


class Reader:
    """Reads values from bytes; DecodeError, naming `what`, if they end too early or are no text."""

    def __init__(self, data: bytes, what: str) -> None:
        self._data = data
        self._what = what
        self._position = 0

    @property
    def left(self) -> int:
        """Bytes not taken yet."""
        return len(self._data) - self._position

    def int16(self) -> int:
        """Read a signed 16-bit integer."""
        return self._number(">h")

    def int32(self) -> int:
        """Read a signed 32-bit integer."""
        return self._number(">i")

    def count(self) -> int:
        """Read the length of an array; null counts as empty."""
        count = self.int32()
        if count > len(self._data):
            raise self._garbled()
        return max(count, 0)

    def text(self) -> str:
        """Read a string that may not be null."""
        text = self.text_or_null()
        if text is None:
            raise self._garbled()
        return text

    def text_or_null(self) -> str | None:
        """Read a string, or None for null."""
        length = self.int16()
        if length < 0:
            return None
        try:
            return self._take(length).decode()
        except UnicodeDecodeError:
            raise self._garbled() from None

    def data(self) -> bytes | None:
        """Read bytes behind their length, or None for null."""
        length = self.int32()
        return None if length < 0 else self._take(length)

    def partitions(self) -> tuple[TopicPartition, ...]:
        """Read partitions by topic, as `encode_partitions` writes them."""
        found: list[TopicPartition] = []
        for _ in range(self.count()):
            topic = self.text()
            found += [TopicPartition(topic, self.int32()) for _ in range(self.count())]
        return tuple(found)

    def _number(self, layout: str) -> int:
        try:
            (value,) = struct.unpack_from(layout, self._data, self._position)
        except struct.error:
            raise self._garbled() from None
        self._position += struct.calcsize(layout)
        return int(value)

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise self._garbled()
        taken, self._position = self._data[self._position : end], end
        return taken

    def _garbled(self) -> DecodeError:
        return DecodeError(f"not {self._what}: {self._data[:64]!r}", self._position)


def _string(text: str | None) -> bytes:
    if text is None:
        return struct.pack(">h", -1)
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _bytes(data: Sequence[int] | bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + bytes(data)
