"""The life cycle of a broker: the table of its states, the operations that its launcher submits,
and the actions between states."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ConnectionFailed, FairleadError, UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import Node
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.controller import BrokerStarted, BrokerStopping, ClusterView, DecisionDone
from fairlead_kafka.broker.controller.view import Attached
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.listeners import Listener
from fairlead_kafka.broker.log import Logs, RecoveryResult
from fairlead_kafka.broker.timers import Timer
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.effects import Listen, Resolve, StopListening
from fairlead_kafka.core.events import Listening, Submitted

_logger = GuardedLogger("fairlead_kafka.broker")

REGISTER_AGAIN_MS = 1_000
"""How long a running broker that the controller did not let in again waits before it asks once
more."""


class BrokerState(Enum):
    """State of a broker from its start to its end; a restart is another machine over the same
    folder."""

    NEW = "new"
    ATTACHING = "attaching"
    RECOVERING = "recovering"
    OPENING = "opening"
    JOINING = "joining"
    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"


TRANSITIONS: dict[BrokerState, tuple[BrokerState, ...]] = {
    BrokerState.NEW: (BrokerState.ATTACHING,),
    BrokerState.ATTACHING: (BrokerState.RECOVERING, BrokerState.STOPPED),
    BrokerState.RECOVERING: (BrokerState.OPENING, BrokerState.STOPPED),
    BrokerState.OPENING: (BrokerState.JOINING, BrokerState.STOPPED),
    BrokerState.JOINING: (BrokerState.RUNNING, BrokerState.STOPPED),
    BrokerState.RUNNING: (BrokerState.STOPPING, BrokerState.STOPPED),
    BrokerState.STOPPING: (BrokerState.STOPPED,),
    BrokerState.STOPPED: (),
}
"""State → the states that may follow. Forward they mean: the cluster's image is there, the log is
read, the port opened, the controller told, requests served, everything written and synced. A failed
start or a kill ends it at once."""


def check_transition(before: BrokerState, after: BrokerState) -> None:
    """Raise AssertionError for a transition between states that the table does not have."""
    if after not in TRANSITIONS[before]:
        raise AssertionError(f"a broker cannot go from {before.value} to {after.value}")


class StartBroker(NamedTuple):
    """Operation: recover the log and listen; answered with the ports, by listener."""

    completion: Completion[Mapping[str, int]]


class StopBroker(NamedTuple):
    """Operation: stop in good order: connections are closed, everything is written and synced.
    Answered then."""

    completion: Completion[None]


class KillBroker(NamedTuple):
    """Operation: drop everything, as `kill -9` would; answered at once."""

    completion: Completion[None]


class SetFaults(NamedTuple):
    """Operation: change the faults that the broker has on purpose."""

    faults: Faults
    completion: Completion[None]


class CallInStep(NamedTuple):
    """Operation: call `function` within a step of the broker, without an owner; answered then."""

    function: Callable[[], object]
    completion: Completion[None]


class Connections(Protocol):
    """The connections of clients, as the life of the broker needs them (`clients`)."""

    def end_all(self, drain: bool) -> None:
        """Close all connections; after what they are owed was sent, if `drain`."""


class LifeHost(Attached, Protocol):
    """The parts of a broker that starting and stopping it use."""

    rack: str | None
    listeners: tuple[Listener, ...]
    controller: ClusterView
    faults: Faults
    guard: Guard
    logs: Logs
    links: Links

    @property
    def clients(self) -> Connections:
        """The connections of clients."""

    def listener_by_number(self, number: int) -> Listener:
        """The listener with this number."""

    def follow(self) -> None:
        """Follow changes of the cluster from now on."""

    def begin(self) -> None:
        """Begin to take part: coordinate groups and transactions, and do the log's regular work."""

    def stop_coordinators(self) -> None:
        """Stop coordinators and replication, and send no more requests to other brokers."""

    def forget(self) -> None:
        """Follow no more changes, and do nothing by itself any more."""


class Life:
    """Carries one broker through its states, which it alone changes."""

    def __init__(self, broker: LifeHost) -> None:
        self.state = BrokerState.NEW
        self._broker = broker
        self._starting: StartBroker | None = None
        self._stopping: StopBroker | None = None
        self._again: Timer | None = None
        """When the broker tries once more to register while it runs."""
        self._to_open: set[int] = set()
        """Listeners whose port is not open yet."""

    def submitted(self, event: Submitted) -> None:
        """Carry out an operation of the launcher."""
        operation = event.operation
        if isinstance(operation, SetFaults):
            self._set_faults(operation)
        elif isinstance(operation, CallInStep):
            self._broker.guard.call(None, operation.function)
            self._broker.emit(Resolve(operation.completion))
        elif isinstance(operation, StartBroker):
            self._start(operation)
        elif isinstance(operation, StopBroker):
            self._stop(operation)
        elif isinstance(operation, KillBroker):
            self._kill(operation)
        else:
            raise AssertionError(f"a broker knows no operation {operation!r}")

    def crashed(self) -> Sequence[StartBroker | StopBroker]:
        """Stop taking part: the host has ended the machine. Returns the operations that were begun
        and not answered."""
        broker = self._broker
        self.state = BrokerState.STOPPED
        broker.forget()
        broker.stop_coordinators()
        broker.controller.detach(broker.node_id)
        return [operation for operation in (self._starting, self._stopping) if operation is not None]

    def _enter(self, state: BrokerState) -> None:
        check_transition(self.state, state)
        self.state = state

    # --- Faults

    def _set_faults(self, operation: SetFaults) -> None:
        broker = self._broker
        try:
            broker.controller.cut(operation.faults.cut_from_controller)
        except UsageError as error:
            broker.emit(Resolve(operation.completion, None, error))
            return
        broker.faults = operation.faults
        broker.links.brokers_changed()
        broker.emit(Resolve(operation.completion))

    # --- Start

    def _start(self, operation: StartBroker) -> None:
        self._enter(BrokerState.ATTACHING)
        self._starting = operation
        self._broker.controller.attach(self._broker, self._attached)

    def _attached(self, error: FairleadError | None) -> None:
        """Called when the image is up to date, so that the log can be read. If the broker runs
        already, the link to the controller was lost and is back: the broker registers as after a
        restart."""
        if self.state is BrokerState.RUNNING and error is not None:
            _logger.error("broker %d is not let in again, and takes no part: %s", self._broker.node_id, error)
        elif self.state is BrokerState.RUNNING:
            if self._again is not None:
                self._again.cancel()
            self._register_again()
        if self.state is not BrokerState.ATTACHING:
            return
        if error is not None:
            self._failed(error)
            return
        self._enter(BrokerState.RECOVERING)
        self._broker.follow()
        self._broker.guard.call(self, self._broker.logs.recover, self._recovered)

    def __str__(self) -> str:
        return "the start of the broker"

    def failed(self, error: Exception) -> None:
        """Called when work to start the broker raised: the start fails with `error`."""
        if self._starting is not None and self.state is not BrokerState.STOPPED:
            self._failed(error)

    def _recovered(self, result: RecoveryResult) -> None:
        if self.state is not BrokerState.RECOVERING:
            return
        broker = self._broker
        if result.refused is not None:
            self._failed(FairleadError(f"broker {broker.node_id} cannot start: {result.refused}"))
            return
        self._enter(BrokerState.OPENING)
        self._to_open = {listener.number for listener in broker.listeners}
        for listener in broker.listeners:
            broker.emit(Listen(listener.number, listener.host, listener.port))

    def listening(self, event: Listening) -> None:
        """Called when a port is open, or cannot be opened."""
        if self.state is not BrokerState.OPENING:
            return
        broker = self._broker
        listener = broker.listener_by_number(event.listener)
        if event.error is not None:
            where = f"{listener.host}:{listener.port}"
            instead = "another address" if "assign" in event.error else "another port, or 0 for any"
            self._stop_listening()
            self._failed(
                ConnectionFailed(
                    f"broker {broker.node_id} cannot listen on {where}: {event.error}; give {instead}"
                )
            )
            return
        broker.listeners = tuple(
            each._replace(port=event.port) if each is listener else each for each in broker.listeners
        )
        self._to_open.discard(event.listener)
        if not self._to_open:
            self._enter(BrokerState.JOINING)
            self._register(self._registered)

    def _stop_listening(self) -> None:
        for listener in self._broker.listeners:
            self._broker.emit(StopListening(listener.number))

    def _register(self, done: DecisionDone[int]) -> None:
        broker = self._broker
        endpoints = {
            each.name: (each.advertised_host, each.advertised_port or each.port) for each in broker.listeners
        }
        node = Node(broker.node_id, *endpoints[broker.links.listener.name], broker.rack)
        broker.controller.decide(BrokerStarted(node, endpoints), done)

    def _registered(self, _epoch: int | None, error: BrokerError | None) -> None:
        if self.state is not BrokerState.JOINING:
            return
        if error is not None:
            self._stop_listening()
            self._failed(error)
            return
        self._enter(BrokerState.RUNNING)
        self._broker.begin()
        operation, self._starting = self._starting, None
        assert operation is not None
        self._broker.emit(
            Resolve(operation.completion, {each.name: each.port for each in self._broker.listeners})
        )

    def _register_again(self) -> None:
        """Register while running: the link to the controller was lost and is back, or it could not
        take the last try, with its disk full perhaps."""
        if self.state is BrokerState.RUNNING:
            self._register(self._registered_again)

    def _registered_again(self, _epoch: int | None, error: BrokerError | None) -> None:
        if error is None or self.state is not BrokerState.RUNNING:
            return
        if error.code == ErrorCode.NOT_CONTROLLER:
            return  # the link is lost once more: when it is back it is the time
        broker = self._broker
        _logger.warning("broker %d could not join again, and tries once more soon: %s", broker.node_id, error)
        if self._again is None or not self._again.pending:
            again_ns = broker.now_ns + ms_to_ns(REGISTER_AGAIN_MS)
            self._again = broker.call_at(again_ns, self._register_again, self)

    def _failed(self, error: Exception) -> None:
        self._enter(BrokerState.STOPPED)
        self._broker.forget()
        self._broker.controller.detach(self._broker.node_id)
        operation, self._starting = self._starting, None
        assert operation is not None
        self._broker.emit(Resolve(operation.completion, None, error))

    # --- End

    def _stop(self, operation: StopBroker) -> None:
        broker = self._broker
        if self.state is not BrokerState.RUNNING:
            error = UsageError(f"broker {broker.node_id} is {self.state.value}, not running")
            broker.emit(Resolve(operation.completion, None, error))
            return
        self._enter(BrokerState.STOPPING)
        self._stopping = operation
        # What it leads goes to others while it still serves, so that no client is kept waiting
        # (controlled shutdown).
        broker.controller.decide(BrokerStopping(broker.node_id), self._leadership_moved)

    def _leadership_moved(self, _result: object, error: BrokerError | None) -> None:
        if self.state is not BrokerState.STOPPING:
            return
        broker = self._broker
        if error is not None:
            _logger.warning("broker %d stops without handing over what it leads: %s", broker.node_id, error)
        self._leave(drain=True)

        def written() -> None:
            self._enter(BrokerState.STOPPED)
            operation, self._stopping = self._stopping, None
            assert operation is not None
            broker.emit(Resolve(operation.completion))

        broker.logs.close(written)

    def _kill(self, operation: KillBroker) -> None:
        """End as by `kill -9`: bytes that the host does not have yet are lost, and no client is
        informed."""
        if self.state not in (BrokerState.NEW, BrokerState.STOPPED):
            self._enter(BrokerState.STOPPED)
            self._leave(drain=False)
        self._broker.emit(Resolve(operation.completion))

    def _leave(self, drain: bool) -> None:
        """Stop taking part: close listeners and connections, and give up leadership."""
        broker = self._broker
        self._stop_listening()
        if drain:
            # Clients that wait for a group are told to look elsewhere before the connection closes.
            broker.stop_coordinators()
        broker.clients.end_all(drain)
        if not drain:
            broker.stop_coordinators()
        broker.forget()
        broker.controller.detach(broker.node_id)
