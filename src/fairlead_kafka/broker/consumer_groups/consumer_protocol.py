"""Metadata and assignments of members of the classic protocol (Kafka's
`ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0 to 3).

Subscription: version: int16; topics: strings; user data: bytes; from 1 on the partitions owned;
from 2 on a generation: int32; from 3 on the rack: nullable string. Assignment: version: int16;
topics with their partitions; user data. Fields that a later version may have at the end are
ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairlead_kafka.broker.fields import Reader, Writer

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
    """The subscription in a member's metadata. DecodeError for garbage."""
    reader = Reader(metadata, "a subscription")
    version = reader.number(">h")
    topics = frozenset(reader.texts())
    reader.data_or_null()
    owned = _read_partitions(reader) if version >= _OWNED_FROM_VERSION else {}
    if version >= _GENERATION_FROM_VERSION:
        reader.number(">i")
    rack_id = reader.text_or_null() if version >= _RACK_FROM_VERSION else None
    return Subscribed(version, topics, owned, rack_id or None)


def read_assignment(assignment: bytes) -> Assigned:
    """The assignment in bytes; empty bytes are no partitions. DecodeError for garbage."""
    if not assignment:
        return Assigned({}, b"")
    reader = Reader(assignment, "an assignment")
    reader.number(">h")
    return Assigned(_read_partitions(reader), reader.data_or_null() or b"")


def write_assignment(partitions: Mapping[str, Iterable[int]], version: int) -> bytes:
    """The bytes of an assignment, in the version that a member's subscription had."""
    writer = Writer()
    writer.number(">h", min(max(version, 0), _NEWEST))
    writer.count(len(partitions))
    for topic in sorted(partitions):
        writer.text(topic)
        writer.numbers(sorted(partitions[topic]))
    writer.data(None)
    return writer.joined()


def _read_partitions(reader: Reader) -> dict[str, frozenset[int]]:
    found: dict[str, frozenset[int]] = {}
    for _ in range(reader.count()):
        topic = reader.text()
        found[topic] = frozenset(reader.numbers())
    return found
