"""Operations that a client class submits to a share consumer's machine.

Each carries a completion, answered once by `effects.Resolve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fairlead_kafka.consumer.share.acknowledging import AckResult, Acks
from fairlead_kafka.consumer.share.chunk import ShareChunk


class Subscribe(NamedTuple):
    """Join the group `group.id`, and read these topics from now on. Answer: None."""

    completion: Any
    topics: Sequence[str]


class Unsubscribe(NamedTuple):
    """Leave the group, and read nothing. Answer: None, once the coordinator knows or cannot be
    told."""

    completion: Any


class Taken(NamedTuple):
    """Chunks of records acquired, and outcomes of acknowledgements since the last answer."""

    chunks: Sequence[ShareChunk]
    results: Sequence[AckResult]


class Take(NamedTuple):
    """Acknowledge, and take what is acquired, as soon as there is anything.

    Chunks until they have `max_records` offsets. Answer: Taken, without chunks if `deadline_ns`
    passed. Acknowledgements are tried until `acks_deadline_ns`.
    """

    completion: Any
    deadline_ns: int
    max_records: int
    acks: Sequence[Acks]
    acks_deadline_ns: int


class Acknowledge(NamedTuple):
    """Acknowledge. Answer: list[AckResult], of these and of earlier ones, once all are settled or
    `deadline_ns` has passed; None: at once, without any, and a later answer has them.

    Acknowledgements are tried until `acks_deadline_ns`.
    """

    completion: Any
    deadline_ns: int | None
    acks: Sequence[Acks]
    acks_deadline_ns: int


class TellMetrics(NamedTuple):
    """Get the counters. Answer: dict[str, Any]; see `ShareConsumerMachine.metrics`."""

    completion: Any


class Shut(NamedTuple):
    """Acknowledge, release all else that was acquired, leave the group and close connections.

    Answer: list[AckResult].
    """

    completion: Any
    acks: Sequence[Acks] = ()


Operation = Subscribe | Unsubscribe | Take | Acknowledge | TellMetrics | Shut
"""Operations of a share consumer."""
