"""States of a group's member, as a table."""

from __future__ import annotations

from enum import Enum, auto


class MemberState(Enum):
    """State of a group's member."""

    OUTSIDE = auto()
    """The member has no subscription."""
    JOINING = auto()
    """JoinGroup and SyncGroup are under way, or wait for the application to poll again."""
    ADOPTING = auto()
    """It has an assignment that the client class has not taken over yet."""
    STABLE = auto()
    """It reads what it was assigned."""
    GIVING_UP = auto()
    """The client class is to give up partitions before the next generation."""
    FAILED = auto()
    """It has an error that only a new subscription ends; every poll raises it."""


class MemberSignal(Enum):
    """Events that change a member's state."""

    SUBSCRIBE = auto()
    ASSIGNED = auto()
    TAKEN = auto()
    """The client class has done its part of the change."""
    REJOIN = auto()
    LOST = auto()
    """The group went on without it."""
    FAIL = auto()
    LEAVE = auto()


_OUTSIDE, _JOINING, _ADOPTING, _STABLE, _GIVING_UP, _FAILED = MemberState

TRANSITIONS: dict[tuple[MemberState, MemberSignal], MemberState] = {
    (_OUTSIDE, MemberSignal.SUBSCRIBE): _JOINING,
    (_FAILED, MemberSignal.SUBSCRIBE): _JOINING,
    (_JOINING, MemberSignal.ASSIGNED): _ADOPTING,
    (_ADOPTING, MemberSignal.TAKEN): _STABLE,
    (_STABLE, MemberSignal.REJOIN): _GIVING_UP,
    (_GIVING_UP, MemberSignal.TAKEN): _JOINING,
    **{(state, MemberSignal.LOST): _GIVING_UP for state in (_ADOPTING, _STABLE, _GIVING_UP)},
    **{(state, MemberSignal.FAIL): _FAILED for state in MemberState},
    **{(state, MemberSignal.LEAVE): _OUTSIDE for state in MemberState},
}
"""(state, signal) → next state; what is not here cannot happen."""

BEATING = frozenset({_ADOPTING, _STABLE, _GIVING_UP})
"""The states in which a member of a generation sends heartbeats."""
