"""States of a record of a share partition, and of a share partition, as tables (KIP-932)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, IntEnum


class RecordState(IntEnum):
    """Delivery state of a record; the values are those of the log of `__share_group_state`."""

    AVAILABLE = 0
    """The record may be delivered."""
    ACQUIRED = 1
    """It is with a member, and locked for it until the lock is over. Never written to the log."""
    ACKNOWLEDGED = 2
    """The record was processed."""
    ARCHIVED = 4
    """It will not be delivered: rejected, delivered too often, a gap, or aborted."""


class RecordEvent(Enum):
    """An event that changes the state of a record."""

    ACQUIRE = "acquire"
    ACCEPT = "accept"
    RELEASE = "release"
    REJECT = "reject"
    RENEW = "renew"
    LOCK_OVER = "lock over"
    """Nobody acknowledged it while it was locked."""
    EXHAUST = "exhaust"
    """It is given back after as many deliveries as there may be."""
    UNREAD = "unread"
    """It could not be read for the member that has acquired it, who did not get it."""
    SKIP = "skip"
    """There is no such record for readers: a gap, or of an aborted transaction."""


TRANSITIONS: Mapping[tuple[RecordState, RecordEvent], RecordState] = {
    (RecordState.AVAILABLE, RecordEvent.ACQUIRE): RecordState.ACQUIRED,
    (RecordState.AVAILABLE, RecordEvent.SKIP): RecordState.ARCHIVED,
    (RecordState.ACQUIRED, RecordEvent.ACCEPT): RecordState.ACKNOWLEDGED,
    (RecordState.ACQUIRED, RecordEvent.RELEASE): RecordState.AVAILABLE,
    (RecordState.ACQUIRED, RecordEvent.REJECT): RecordState.ARCHIVED,
    (RecordState.ACQUIRED, RecordEvent.SKIP): RecordState.ARCHIVED,
    (RecordState.ACQUIRED, RecordEvent.RENEW): RecordState.ACQUIRED,
    (RecordState.ACQUIRED, RecordEvent.LOCK_OVER): RecordState.AVAILABLE,
    (RecordState.ACQUIRED, RecordEvent.EXHAUST): RecordState.ARCHIVED,
    (RecordState.ACQUIRED, RecordEvent.UNREAD): RecordState.AVAILABLE,
}
"""(state, event) → the state after it; what is not here cannot happen."""

FINAL = frozenset({RecordState.ACKNOWLEDGED, RecordState.ARCHIVED})
"""States that nothing leads out of."""
WRITTEN = frozenset(RecordState) - {RecordState.ACQUIRED}
"""States that the log of `__share_group_state` has: who has acquired records knows only their
leader."""

EVENTS_BY_TYPE: Mapping[int, RecordEvent] = {
    0: RecordEvent.SKIP,
    1: RecordEvent.ACCEPT,
    2: RecordEvent.RELEASE,
    3: RecordEvent.REJECT,
    4: RecordEvent.RENEW,
}
"""Acknowledge type of ShareFetch and ShareAcknowledge → what it does; 0 is a gap, 4 is KIP-1222."""
RENEW_TYPE = 4


class SharePartitionState(Enum):
    """State of a share partition at its leader."""

    EMPTY = "Empty"
    """Nothing is known of it yet."""
    INITIALIZING = "Initializing"
    """Its state is being read from the share coordinator."""
    ACTIVE = "Active"
    """The records of the share partition are delivered."""
    FAILED = "Failed"
    """Its state could not be read; the next request reads it again."""
    FENCED = "Fenced"
    """Another leader, or a newer state epoch, has taken its place. It is kept no more."""


PARTITION_TRANSITIONS: Mapping[SharePartitionState, frozenset[SharePartitionState]] = {
    SharePartitionState.EMPTY: frozenset({SharePartitionState.INITIALIZING, SharePartitionState.FENCED}),
    SharePartitionState.INITIALIZING: frozenset(
        {SharePartitionState.ACTIVE, SharePartitionState.FAILED, SharePartitionState.FENCED}
    ),
    SharePartitionState.ACTIVE: frozenset({SharePartitionState.FENCED}),
    SharePartitionState.FAILED: frozenset({SharePartitionState.FENCED}),
    SharePartitionState.FENCED: frozenset(),
}
"""State → the states that may follow."""
