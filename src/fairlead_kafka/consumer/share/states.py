"""States of a member of a share group, as a table: Kafka's `MemberState`, as far as share groups
have it.

RECONCILING and ACKNOWLEDGING are missing: partitions are shared, so none is taken from one member
before another has it, and an assignment is applied as soon as it arrives.
"""

from __future__ import annotations

from enum import Enum, auto


class ShareState(Enum):
    """State of a member of a share group."""

    UNSUBSCRIBED = auto()
    """The member has no subscription."""
    JOINING = auto()
    """It sends heartbeats with epoch 0, until one is answered with a higher epoch."""
    STABLE = auto()
    """It has an epoch, and reads what it was assigned."""
    STALE = auto()
    """It left because the application did not poll; it joins again when it does."""
    FATAL = auto()
    """It has an error that only a new subscription ends; every poll raises it."""


class ShareSignal(Enum):
    """Events that change the state of a member."""

    SUBSCRIBE = auto()
    JOINED = auto()
    """A heartbeat was answered with an epoch."""
    FENCE = auto()
    """The group went on without it: it joins again."""
    SILENT = auto()
    """The application has not polled for `max.poll.interval.ms`."""
    POLL = auto()
    """The application polls again."""
    FAIL = auto()
    LEAVE = auto()


_State, _Signal = ShareState, ShareSignal
BEATING = frozenset({_State.JOINING, _State.STABLE})
"""The states in which a member sends heartbeats."""

SHARE_TRANSITIONS: dict[tuple[ShareState, ShareSignal], ShareState] = {
    (_State.UNSUBSCRIBED, _Signal.SUBSCRIBE): _State.JOINING,
    (_State.FATAL, _Signal.SUBSCRIBE): _State.JOINING,
    **{(state, _Signal.JOINED): _State.STABLE for state in BEATING},
    **{(state, _Signal.FENCE): _State.JOINING for state in BEATING},
    **{(state, _Signal.SILENT): _State.STALE for state in BEATING},
    (_State.STALE, _Signal.POLL): _State.JOINING,
    **{(state, _Signal.FAIL): _State.FATAL for state in ShareState},
    **{(state, _Signal.LEAVE): _State.UNSUBSCRIBED for state in ShareState},
}
"""(state, signal) → next state; what is not here cannot happen."""
