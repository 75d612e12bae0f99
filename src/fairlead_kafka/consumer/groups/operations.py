"""Operations on groups that a client class submits to a consumer machine.

Each carries a completion, answered once by `effects.Resolve`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.group_offsets import GroupMetadata, OffsetAndMetadata, Position


@dataclass(frozen=True, slots=True)
class SubscriptionPattern:
    """A regular expression that brokers match with the names of topics, in the form of RE2.

    For groups of `group.protocol=consumer` alone. It matches a whole name. Kafka's counterpart:
    `org.apache.kafka.clients.consumer.SubscriptionPattern` (KIP-848).
    """

    pattern: str

    def __str__(self) -> str:
        return self.pattern


class Subscribe(NamedTuple):
    """Operation: have the group assign partitions of `topics`, or of all topics whose whole name
    `pattern` matches. Answer: None."""

    completion: Completion[None]
    topics: Sequence[str]
    pattern: re.Pattern[str] | SubscriptionPattern | None = None


class Unsubscribe(NamedTuple):
    """Leave the group, and read nothing. Answer: None, once the coordinator knows that this member
    left, or cannot be reached."""

    completion: Completion[None]


class Acknowledge(NamedTuple):
    """Operation: the client class has done its part of change `number`.

    Answer: (True if the change still holds, {partition: generation} of what is assigned now).
    """

    completion: Completion[tuple[bool, Mapping[TopicPartition, int]]]
    number: int


class Commit(NamedTuple):
    """Commit offsets for the group. Answer: None."""

    completion: Completion[None]
    deadline_ns: int
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


class FindCommitted(NamedTuple):
    """Look up committed offsets. Answer: {partition: OffsetAndMetadata | None}."""

    completion: Completion[dict[TopicPartition, OffsetAndMetadata | None]]
    deadline_ns: int
    partitions: Sequence[TopicPartition]


class GetPositions(NamedTuple):
    """Get positions after the last record passed on to the client class.

    Answer: {partition: Position}, of those assigned that have one.
    """

    completion: Completion[Mapping[TopicPartition, Position]]


class GetGroup(NamedTuple):
    """Get group, generation and member id. Answer: GroupMetadata."""

    completion: Completion[GroupMetadata]


class GetSubscription(NamedTuple):
    """Get the topics subscribed to. Answer: the topics, in the order given; for a pattern, those
    known by now."""

    completion: Completion[Sequence[str]]


GroupOperation = (
    Subscribe | Unsubscribe | Acknowledge | Commit | FindCommitted | GetPositions | GetGroup | GetSubscription
)
