"""One broker as a machine: events to sessions, timers, files and handlers; effects back to the host."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.base.errors import ConnectionFailed, FairleadError, UsageError
from fairlead.base.ids import Node
from fairlead.base.units import ms_to_ns
from fairlead.broker import api as _api  # noqa: F401  (fills the registry)
from fairlead.broker.controller import BrokerConfigsChanged, BrokersChanged, Change, Controller
from fairlead.broker.coordinator import GroupCoordinator
from fairlead.broker.files import Files
from fairlead.broker.internal import NO_PRODUCER, ProducerIdentity, append_internal, read_internal
from fairlead.broker.lifecycle import BrokerState, KillBroker, SetFaults, StartBroker, StopBroker, check_transition
from fairlead.broker.links import Links
from fairlead.broker.log import Logs, Partition, RecoveryResult
from fairlead.broker.partitions import HostedPartitions
from fairlead.broker.purgatory import Purgatory
from fairlead.broker.sessions import Faults, Session
from fairlead.broker.timers import Timer, Timers
from fairlead.broker.transactions import TransactionCoordinator, Verifier
from fairlead.core.effects import Buffer, Close, Effect, Listen, Resolve, StopListening
from fairlead.core.events import Accepted, Connected, Disconnected, Event, FileDone, Listening, Received, Submitted
from fairlead.core.machine import Dice

if TYPE_CHECKING:
    from fairlead.records import RecordColumns

_LISTENER = 1


class Broker:
    """The machine of one broker, from one start to its stop or death. `folder` is where its log lives.

    `port` 0 takes any free one; after the start `port` is the one taken. Hosted by any host; it reaches the controller directly,
    so both run on one thread.
    """

    def __init__(self, node_id: int, controller: Controller, folder: str, dice: Dice, host: str = "127.0.0.1", port: int = 0) -> None:
        self.node_id = node_id
        self.controller = controller
        self.dice = dice
        self.host = host
        self.port = port
        self.now_ns = 0
        self.wall_ms = 0
        self.state = BrokerState.NEW
        self.faults = Faults()
        self.settings: Mapping[str, Any] = controller.broker_settings(node_id)
        self.files = Files(self.emit)
        self.purgatory = Purgatory()
        self.partitions = HostedPartitions(self)
        self.logs = Logs(self.files, f"{folder}/log", self.partitions.topic_of, self.purgatory.advanced)
        self.logs.file_limit_bytes = self.settings["log.segment.bytes"]
        self.links = Links(self)
        self.coordinator = GroupCoordinator(self)
        self.transactions = TransactionCoordinator(self)
        self.verifier = Verifier(self)
        self.producer_ids = iter(range(0))
        self._inbox: list[Event] = []
        self._outbox: list[Effect] = []
        self._timers = Timers()
        self._sessions: dict[int, Session] = {}
        self._starting: StartBroker | None = None
        self._stepping = False
        self.wake: Callable[[], None] = lambda: None
        """Set by the launcher: has the host step this machine soon. Needed when another broker's step changes something here."""
        self._unsubscribe: Callable[[], None] = lambda: None

    # --- The machine protocol

    def receive(self, event: Event) -> None:
        """Queue an event."""
        self._inbox.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Serve what arrived and what is due, then begin the writing that it asked for."""
        self.now_ns, self.wall_ms = now_ns, wall_ms
        self._stepping = True
        events, self._inbox = self._inbox, []
        for event in events:
            _ON_EVENT[type(event)](self, event)
        self._timers.run_due(now_ns)
        self.links.advance()
        if self.state is not BrokerState.STOPPED:
            self.logs.flush()
        effects, self._outbox = self._outbox, []
        self._stepping = False
        return effects

    def deadline_ns(self) -> int | None:
        """The next timer's, or the links'."""
        timer_ns, links_ns = self._timers.deadline_ns(), self.links.deadline_ns()
        if timer_ns is None or links_ns is None:
            return links_ns if timer_ns is None else timer_ns
        return min(timer_ns, links_ns)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """The host will not step this machine any more: give up leadership, and fail what the launcher waits for."""
        self.state = BrokerState.STOPPED
        self._unsubscribe()
        self._stop_coordinators()
        self.controller.broker_stopped(self.node_id)
        operations = [self._starting, *(event.operation for event in self._inbox if isinstance(event, Submitted))]
        return [Resolve(operation.completion, None, error) for operation in operations if operation is not None]

    # --- For handlers and the coordinator

    def call_at(self, deadline_ns: int, function: Callable[[], None]) -> Timer:
        """Run `function` inside a step at `deadline_ns` or soon after; `Timer.cancel()` prevents it."""
        return self._timers.call_at(deadline_ns, function)

    def emit(self, effect: Effect) -> None:
        """Ask the host for `effect` at the end of this step."""
        self._outbox.append(effect)

    def append_internal(
        self,
        topic: str,
        partition: int,
        columns: RecordColumns,
        done: Callable[[int, int], None],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        """Append records to a partition led here; done(error_code, base_offset) once they are written (error 0) or refused."""
        append_internal(self, topic, partition, columns, done, producer)

    def read_internal(
        self, topic: str, partition: int, offset: int, done: Callable[[int, Sequence[Buffer], int], None], max_bytes: int = 1 << 20
    ) -> None:
        """Read whole batches from `offset` on: done(error_code, batches, next_offset); no batches: the end was reached."""
        read_internal(self, topic, partition, offset, done, max_bytes)

    def raise_start(self, topic: str, partition: int, offset: int) -> None:
        """Let go of the records of a partition led here before `offset`; nothing if it is not led here."""
        found = self.log_of(topic, partition)
        if isinstance(found, Partition):
            self.logs.move_start(found, min(offset, found.high_watermark))

    def next_producer_id(self) -> int:
        """A producer id that nobody else has; BrokerError if the controller gives none."""
        for producer_id in self.producer_ids:
            return producer_id
        self.producer_ids = iter(self.controller.allocate_producer_ids(self.node_id))
        return next(self.producer_ids)

    def session_ended(self, session: Session) -> None:
        """A session closed itself."""
        self._sessions.pop(session.connection, None)

    # --- Connections

    def _accepted(self, event: Accepted) -> None:
        if self.state is BrokerState.RUNNING:
            self._sessions[event.connection] = Session(self, event.connection, event.peer)
        else:
            self.emit(Close(event.connection))

    def _connected(self, event: Connected) -> None:
        self.links.handle(event)

    def _received(self, event: Received) -> None:
        if event.connection > 0:
            self.links.handle(event)
            return
        session = self._sessions.get(event.connection)
        if session is not None:
            session.received(event.data)

    def _disconnected(self, event: Disconnected) -> None:
        if event.connection > 0:
            self.links.handle(event)
            return
        session = self._sessions.pop(event.connection, None)
        if session is not None:
            session.ended()

    # --- Life: see `lifecycle` for the table

    def _enter(self, state: BrokerState) -> None:
        check_transition(self.state, state)
        self.state = state

    def _submitted(self, event: Submitted) -> None:
        operation = event.operation
        if isinstance(operation, SetFaults):
            self.faults = operation.faults
            self.emit(Resolve(operation.completion))
        elif isinstance(operation, StartBroker):
            self._start(operation)
        elif isinstance(operation, StopBroker):
            self._stop(operation)
        elif isinstance(operation, KillBroker):
            self._kill(operation)
        else:
            raise AssertionError(f"a broker knows no operation {operation!r}")

    def _start(self, operation: StartBroker) -> None:
        self._enter(BrokerState.RECOVERING)
        self._starting = operation
        self.settings = self.controller.broker_settings(self.node_id)
        self._unsubscribe = self.controller.subscribe(self._changed)
        self.logs.recover(self.wall_ms, self._recovered)

    def _recovered(self, result: RecoveryResult) -> None:
        if self.state is not BrokerState.RECOVERING:
            return
        if result.refused is not None:
            self._failed(FairleadError(f"broker {self.node_id} cannot start: {result.refused}"))
            return
        self._enter(BrokerState.OPENING)
        self.emit(Listen(_LISTENER, self.host, self.port))

    def _listening(self, event: Listening) -> None:
        if self.state is not BrokerState.OPENING:
            return
        if event.error is not None:
            where = f"{self.host}:{self.port}"
            self._failed(
                ConnectionFailed(f"broker {self.node_id} cannot listen on {where}: {event.error}; give another port, or 0 for any")
            )
            return
        self.port = event.port
        self._enter(BrokerState.RUNNING)
        self.controller.broker_started(Node(self.node_id, self.host, self.port))
        self.coordinator.start()
        self.transactions.start()
        self._retain_later()
        assert self._starting is not None
        self.emit(Resolve(self._starting.completion, self.port))

    def _failed(self, error: Exception) -> None:
        self._enter(BrokerState.STOPPED)
        self._unsubscribe()
        assert self._starting is not None
        self.emit(Resolve(self._starting.completion, None, error))

    def _stop(self, operation: StopBroker) -> None:
        if self.state is not BrokerState.RUNNING:
            self.emit(Resolve(operation.completion, None, UsageError(f"broker {self.node_id} is {self.state.value}, not running")))
            return
        self._enter(BrokerState.STOPPING)
        self._leave(drain=True)

        def written() -> None:
            self._enter(BrokerState.STOPPED)
            self.emit(Resolve(operation.completion))

        self.logs.close(written)

    def _kill(self, operation: KillBroker) -> None:
        """As `kill -9`: what is not with the host yet is lost, and nobody is told."""
        if self.state not in (BrokerState.NEW, BrokerState.STOPPED):
            self._enter(BrokerState.STOPPED)
            self._leave(drain=False)
        self.emit(Resolve(operation.completion))

    def _leave(self, drain: bool) -> None:
        """Stop taking part: no listener, no connections, no leadership."""
        self.emit(StopListening(_LISTENER))
        if drain:
            # Whoever waits for a group is told to look elsewhere before the connection closes.
            self._stop_coordinators()
        for session in list(self._sessions.values()):
            session.close(drain=drain)
        if not drain:
            self._stop_coordinators()
        self._unsubscribe()
        self._timers = Timers()
        self.controller.broker_stopped(self.node_id)

    def _stop_coordinators(self) -> None:
        self.coordinator.stop()
        self.transactions.stop()
        self.links.close()

    # --- What changes, and what comes round

    def _changed(self, change: Change) -> None:
        if isinstance(change, BrokerConfigsChanged):
            self.settings = self.controller.broker_settings(self.node_id)
            self.logs.file_limit_bytes = self.settings["log.segment.bytes"]
        elif isinstance(change, BrokersChanged):
            self.links.brokers_changed()
        self.partitions.changed(change)
        if not self._stepping:
            self.wake()

    def _retain_later(self) -> None:
        self.call_at(self.now_ns + ms_to_ns(self.settings["log.retention.check.interval.ms"]), self._retain)

    def _retain(self) -> None:
        self.logs.retain(self.wall_ms, self.settings["producer.id.expiration.ms"])
        self._retain_later()

    def log_of(self, topic: str, number: int) -> Partition | int:
        """A partition led here, by topic name, or the error code to answer."""
        return self.partitions.find(self.controller.image.topics.get(topic), number)

    def _file_done(self, event: FileDone) -> None:
        if self.state is not BrokerState.STOPPED:
            self.files.finished(event)


_ON_EVENT: dict[type, Callable[[Broker, Any], None]] = {
    Accepted: Broker._accepted,
    Connected: Broker._connected,
    Received: Broker._received,
    Disconnected: Broker._disconnected,
    Submitted: Broker._submitted,
    Listening: Broker._listening,
    FileDone: Broker._file_done,
}
