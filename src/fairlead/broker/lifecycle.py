"""The life of a broker as a table, and the operations its launcher submits."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from fairlead.broker.sessions import Faults


class BrokerState(Enum):
    """Where a broker is in its one life; a restart is another machine over the same folder."""

    NEW = "new"
    RECOVERING = "recovering"
    OPENING = "opening"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


TRANSITIONS: dict[BrokerState, tuple[BrokerState, ...]] = {
    BrokerState.NEW: (BrokerState.RECOVERING,),
    BrokerState.RECOVERING: (BrokerState.OPENING, BrokerState.STOPPED),
    BrokerState.OPENING: (BrokerState.RUNNING, BrokerState.STOPPED),
    BrokerState.RUNNING: (BrokerState.STOPPING, BrokerState.STOPPED),
    BrokerState.STOPPING: (BrokerState.STOPPED,),
    BrokerState.STOPPED: (),
}
"""The log is read, the port opened, requests served, everything written and synced; a failed start or a kill ends it at once."""


def check_transition(before: BrokerState, after: BrokerState) -> None:
    """AssertionError for a step that the table has not."""
    if after not in TRANSITIONS[before]:
        raise AssertionError(f"a broker cannot go from {before.value} to {after.value}")


@dataclass(slots=True)
class StartBroker:
    """Recover the log and listen; resolved with the port."""

    completion: Any


@dataclass(slots=True)
class StopBroker:
    """Leave in good order: connections closed, everything written and synced; then resolved."""

    completion: Any


@dataclass(slots=True)
class KillBroker:
    """Drop everything, as `kill -9` would; resolved at once."""

    completion: Any


@dataclass(slots=True)
class SetFaults:
    """Change what the broker does to its answers on purpose."""

    faults: Faults
    completion: Any
