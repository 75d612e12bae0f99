"""States of consumer groups and of their members as tables (Kafka's `ConsumerGroupState` and
`MemberState`)."""

from __future__ import annotations

from enum import Enum, IntEnum


class ConsumerGroupState(Enum):
    """State of a group; the values are Kafka's names, as ConsumerGroupDescribe shows them.

    It is not kept: `ConsumerGroup.state` derives it from epochs and members.
    """

    EMPTY = "Empty"
    """No members; it may still hold committed offsets."""
    ASSIGNING = "Assigning"
    """The group's epoch is ahead of its target: members or topics changed, and the next heartbeat
    that may computes a target."""
    RECONCILING = "Reconciling"
    """Some member is on its way to the target."""
    STABLE = "Stable"
    """Every member has its target."""
    DEAD = "Dead"
    """The state answered for a group that does not exist."""


class MemberState(IntEnum):
    """State of a member, by the number that its record has."""

    STABLE = 0
    """The member owns all partitions of its assignment, and no more are free for it."""
    UNREVOKED_PARTITIONS = 1
    """The member was asked to revoke partitions, and has not acknowledged that yet."""
    UNRELEASED_PARTITIONS = 2
    """Partitions of the member's target are still with others."""
    UNKNOWN = 127
    """A number that a later release wrote: the member must come again with nothing."""


def member_state(number: int) -> MemberState:
    """The state with a record's number; UNKNOWN for one that this release does not know."""
    try:
        return MemberState(number)
    except ValueError:
        return MemberState.UNKNOWN
