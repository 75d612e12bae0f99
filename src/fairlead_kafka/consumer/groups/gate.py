"""What a face and its machine share about a group, between their threads: one note of each to the other."""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupChange:
    """What a rebalance does to the assignment, told before it is done."""

    number: int
    """Acknowledged by it: a change may be overtaken by another before the face gets to it."""
    revoked: tuple[TopicPartition, ...] = ()
    """Partitions that go."""
    added: tuple[TopicPartition, ...] = ()
    """Partitions that come."""
    lost: bool = False
    """What goes is gone already: others may be reading it, and nothing can be committed."""
    complete: bool = False
    """It ends a rebalance: the application hears of what comes, even if that is nothing."""


@dataclass(slots=True)
class Gate:
    """`change` is the machine's to set and the face's to look at in each poll; `polled_ns` (monotonic) is the other way round."""

    change: GroupChange | None = None
    polled_ns: int = 0
