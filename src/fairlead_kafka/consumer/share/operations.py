"""Operations that a client class submits to a share consumer's machine.

Each carries a completion, answered once by `effects.Resolve`. Acknowledgements count once, by
their numbers, however often they are submitted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fairlead_kafka.consumer.share.acknowledging import AckResult, Acks
from fairlead_kafka.consumer.share.chunk import ShareChunk
from fairlead_kafka.core.completion import Completion


class Subscribe(NamedTuple):
    """Join the group `group.id`, and read these topics from now on. Answer: None."""

    completion: Completion[None]
    topics: Sequence[str]


class Unsubscribe(NamedTuple):
    """Leave the group, and read nothing. Answer: None, once the coordinator knows or cannot be
    reached."""

    completion: Completion[None]


class Taken(NamedTuple):
    """Answer to `Take`: chunks of records acquired, and outcomes of acknowledgements since the last
    one."""

    chunks: Sequence[ShareChunk]
    results: Sequence[AckResult]


class Take(NamedTuple):
    """Operation: send acknowledgements, and take acquired chunks as soon as there are any, until
    they have `max_records` offsets. Answer: Taken, without chunks if `deadline_ns` passed.
    Acknowledgements are tried until `acks_deadline_ns`. Submitted again, with the same completion,
    it is answered once."""

    completion: Completion[Taken]
    deadline_ns: int
    max_records: int
    acks: Sequence[Acks]
    acks_deadline_ns: int


class Acknowledge(NamedTuple):
    """Operation: send acknowledgements. Answer: list[AckResult], of these and of earlier ones, once
    all have an outcome or `deadline_ns` has passed; `deadline_ns` None: an empty answer at once,
    and a later operation's answer has the outcomes.

    Acknowledgements are tried until `acks_deadline_ns`.
    """

    completion: Completion[list[AckResult]]
    deadline_ns: int | None
    acks: Sequence[Acks]
    acks_deadline_ns: int


class GetLockTimeout(NamedTuple):
    """Operation: get for how long brokers lock the records that they deliver. Answer: milliseconds;
    None: not known yet."""

    completion: Completion[int | None]


class Shut(NamedTuple):
    """Operation: send acknowledgements, release all other records, leave the group and close
    connections. Answer: list[AckResult]."""

    completion: Completion[list[AckResult]]
    acks: Sequence[Acks] = ()


Operation = Subscribe | Unsubscribe | Take | Acknowledge | GetLockTimeout | Shut
"""Operations of a share consumer."""
