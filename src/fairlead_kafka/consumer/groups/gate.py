"""State of a group that a client class and its machine share between their threads.

Each writes one field that the other reads.
"""

from __future__ import annotations

from dataclasses import dataclass

from fairlead_kafka.base.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class GroupChange:
    """Change of the assignment by a rebalance, which the machine announces before it makes it."""

    number: int
    """Number that acknowledges it: another change may overtake it before it is seen."""
    revoked: tuple[TopicPartition, ...] = ()
    """Partitions that are revoked."""
    added: tuple[TopicPartition, ...] = ()
    """Partitions that are newly assigned."""
    lost: bool = False
    """The revoked partitions are gone: others may read them, and nothing can be committed."""
    complete: bool = False
    """It ends a rebalance: `on_assigned` is called, even if nothing is added."""


@dataclass(slots=True)
class Gate:
    """Notes between a machine and its client class.

    The machine sets `change`, the client looks at it in each poll. The client sets `polled_ns`
    (monotonic) in each poll, and the machine when it subscribes.
    """

    change: GroupChange | None = None
    polled_ns: int = 0
