"""The classic group protocol's states as tables (Kafka's `ClassicGroupState`), from which errors
and documentation come."""

from __future__ import annotations

from enum import Enum

from fairlead_kafka.base.codes import ErrorCode


class GroupState(Enum):
    """State of a group; the values are Kafka's names, as DescribeGroups shows them."""

    EMPTY = "Empty"
    """No members; it may still hold committed offsets."""
    PREPARING_REBALANCE = "PreparingRebalance"
    """Members are expected to join again."""
    COMPLETING_REBALANCE = "CompletingRebalance"
    """All have joined; the leader's assignment is awaited."""
    STABLE = "Stable"
    """All members have an assignment."""
    DEAD = "Dead"
    """The group was deleted, or its coordinator moved to another broker."""


_EMPTY, _PREPARING, _COMPLETING, _STABLE, _DEAD = GroupState

TRANSITIONS: dict[GroupState, frozenset[GroupState]] = {
    _EMPTY: frozenset({_PREPARING, _DEAD}),
    _PREPARING: frozenset({_COMPLETING, _EMPTY, _DEAD}),
    _COMPLETING: frozenset({_STABLE, _PREPARING, _DEAD}),
    _STABLE: frozenset({_PREPARING, _DEAD}),
    _DEAD: frozenset(),
}
"""State → the states it may go to."""

HEARTBEAT_ERRORS: dict[GroupState, int] = {
    _EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    _PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    _COMPLETING: ErrorCode.NONE,  # members may send heartbeats between their join and their sync
    _STABLE: ErrorCode.NONE,
    _DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""State → what a heartbeat of a member of the current generation is answered."""

SYNC_ERRORS: dict[GroupState, int] = {
    _EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    _PREPARING: ErrorCode.REBALANCE_IN_PROGRESS,
    _COMPLETING: ErrorCode.NONE,  # held until the leader's assignment is there
    _STABLE: ErrorCode.NONE,  # the assignment is there already
    _DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""State → what a sync of a member of the current generation is answered."""

COMMIT_ERRORS: dict[GroupState, int] = {
    _EMPTY: ErrorCode.UNKNOWN_MEMBER_ID,
    _PREPARING: ErrorCode.NONE,  # a member commits what it did before it joins again
    _COMPLETING: ErrorCode.REBALANCE_IN_PROGRESS,  # the partition may be someone else's by now
    _STABLE: ErrorCode.NONE,
    _DEAD: ErrorCode.COORDINATOR_NOT_AVAILABLE,
}
"""State → what a commit of a member of the current generation is answered."""
