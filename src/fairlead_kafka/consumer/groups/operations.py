"""What a face can ask about groups. Each operation carries a completion, answered once by `effects.Resolve`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.group_offsets import OffsetAndMetadata


@dataclass(slots=True)
class Subscribe:
    """Have the group assign partitions of `topics`, or of all topics whose whole name `pattern` matches. Answer: None."""

    completion: Any
    topics: Sequence[str]
    pattern: re.Pattern[str] | None = None


@dataclass(slots=True)
class Unsubscribe:
    """Leave the group, and read nothing. Answer: None, once the coordinator knows or cannot be told."""

    completion: Any


@dataclass(slots=True)
class Acknowledge:
    """The face has done its part of change `number`. Answer: (True if it stands, {partition: generation} as it is now)."""

    completion: Any
    number: int


@dataclass(slots=True)
class Commit:
    """Commit offsets for the group. Answer: None."""

    completion: Any
    deadline_ns: int
    offsets: Mapping[TopicPartition, OffsetAndMetadata]


@dataclass(slots=True)
class FindCommitted:
    """Answer: {partition: OffsetAndMetadata | None}, what the group has committed."""

    completion: Any
    deadline_ns: int
    partitions: Sequence[TopicPartition]


@dataclass(slots=True)
class TellPositions:
    """Answer: {partition: Position after the last record handed over to the face}, of those assigned that have one."""

    completion: Any


@dataclass(slots=True)
class TellGroup:
    """Answer: GroupMetadata, for commits in a producer's transaction."""

    completion: Any


@dataclass(slots=True)
class TellSubscription:
    """Answer: the topics subscribed to, in the order given; of a pattern, those known by now."""

    completion: Any


GroupOperation = Subscribe | Unsubscribe | Acknowledge | Commit | FindCommitted | TellPositions | TellGroup | TellSubscription
