"""What a face can ask about groups. Each operation carries a completion, answered once by `effects.Resolve`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.group_offsets import OffsetAndMetadata


class Subscribe(NamedTuple):
    """Have the group assign partitions of `topics`, or of all topics whose whole name `pattern` matches. Answer: None."""

    completion: Any
    topics: Sequence[str]
    pattern: re.Pattern[str] | None = None


class Unsubscribe(NamedTuple):
    """Leave the group, and read nothing. Answer: None, once the coordinator knows or cannot be told."""

    completion: Any


class Acknowledge(NamedTuple):
    """The face has done its part of change `number`. Answer: (True if it stands, {partition: generation} as it is now)."""

    completion: Any
    number: int


class Commit(NamedTuple):
    """Commit offsets for the group. Answer: None."""

    completion: Any
    deadline_ns: int
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


class FindCommitted(NamedTuple):
    """Answer: {partition: OffsetAndMetadata | None}, what the group has committed."""

    completion: Any
    deadline_ns: int
    partitions: Sequence[TopicPartition]


class TellPositions(NamedTuple):
    """Answer: {partition: Position after the last record handed over to the face}, of those assigned that have one."""

    completion: Any


class TellGroup(NamedTuple):
    """Answer: GroupMetadata, for commits in a producer's transaction."""

    completion: Any


class TellSubscription(NamedTuple):
    """Answer: the topics subscribed to, in the order given; of a pattern, those known by now."""

    completion: Any


GroupOperation = Subscribe | Unsubscribe | Acknowledge | Commit | FindCommitted | TellPositions | TellGroup | TellSubscription
