"""States of a member of a KIP-848 group, as a table: Kafka's `MemberState`.

PREPARE_LEAVING and LEAVING are missing: the client class has released the partitions when it has
the machine leave, and the heartbeat that leaves goes out in the same step.
"""

from __future__ import annotations

from enum import Enum, auto


class EpochState(Enum):
    """State of a member of a KIP-848 group."""

    UNSUBSCRIBED = auto()
    """The member has no subscription."""
    JOINING = auto()
    """It sends heartbeats with epoch 0, until one is answered with a higher epoch."""
    RECONCILING = auto()
    """It has a target assignment that the client class has not taken over yet."""
    ACKNOWLEDGING = auto()
    """It has taken over what it was assigned, and the next heartbeat is to say so."""
    STABLE = auto()
    """It reads what it was assigned."""
    FENCED = auto()
    """The group went on without it; it joins again once the client class has given up all."""
    STALE = auto()
    """It left because the application did not poll; it joins again when it does."""
    FATAL = auto()
    """It has an error that only a new subscription ends; every poll raises it."""


class EpochSignal(Enum):
    """Events that change the state of a member."""

    SUBSCRIBE = auto()
    TARGET = auto()
    """The coordinator assigns something else than the member reads."""
    REACHED = auto()
    """The coordinator assigns what the member reads."""
    TAKEN = auto()
    """The client class has taken the target over."""
    SENT = auto()
    """A heartbeat has said what the member reads."""
    FENCE = auto()
    """The group went on without it."""
    SILENT = auto()
    """The application has not polled for `max.poll.interval.ms`."""
    RELEASED = auto()
    """The member has given up its partitions, and may join again."""
    FAIL = auto()
    LEAVE = auto()


_State, _Signal = EpochState, EpochSignal
BEATING = frozenset({_State.JOINING, _State.RECONCILING, _State.ACKNOWLEDGING, _State.STABLE})
"""The states in which a member sends heartbeats."""

EPOCH_TRANSITIONS: dict[tuple[EpochState, EpochSignal], EpochState] = {
    (_State.UNSUBSCRIBED, _Signal.SUBSCRIBE): _State.JOINING,
    (_State.FATAL, _Signal.SUBSCRIBE): _State.FENCED,
    **{(state, _Signal.TARGET): _State.RECONCILING for state in BEATING},
    (_State.RECONCILING, _Signal.REACHED): _State.ACKNOWLEDGING,
    (_State.ACKNOWLEDGING, _Signal.REACHED): _State.ACKNOWLEDGING,
    (_State.STABLE, _Signal.REACHED): _State.ACKNOWLEDGING,
    (_State.RECONCILING, _Signal.TAKEN): _State.ACKNOWLEDGING,
    (_State.ACKNOWLEDGING, _Signal.SENT): _State.STABLE,
    **{(state, _Signal.FENCE): _State.FENCED for state in BEATING},
    **{(state, _Signal.SILENT): _State.STALE for state in BEATING},
    (_State.FENCED, _Signal.RELEASED): _State.JOINING,
    (_State.STALE, _Signal.RELEASED): _State.JOINING,
    **{(state, _Signal.FAIL): _State.FATAL for state in EpochState},
    **{(state, _Signal.LEAVE): _State.UNSUBSCRIBED for state in EpochState},
}
"""(state, signal) → next state; what is not here cannot happen."""
