"""One broker as a machine: events to sessions, timers, files and handlers; effects back to the
host."""

from __future__ import annotations

import errno
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns
from fairlead_kafka.broker import api as _api  # noqa: F401  (fills the registry)
from fairlead_kafka.broker.authorizer import Authorizer
from fairlead_kafka.broker.clients import Clients
from fairlead_kafka.broker.control import FIRST_CONNECTION, ProducerIds
from fairlead_kafka.broker.controller import (
    AclsChanged,
    BrokerConfigsChanged,
    BrokersChanged,
    Change,
    ClientQuotasChanged,
    ClusterView,
)
from fairlead_kafka.broker.coordinator import GroupCoordinator
from fairlead_kafka.broker.disk_watch import DiskWatch
from fairlead_kafka.broker.dispatch import Interceptor
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.fetch_sessions import FetchSessions
from fairlead_kafka.broker.files import Files
from fairlead_kafka.broker.guard import Guard, Owner, PartitionOwner, SharedDamage
from fairlead_kafka.broker.internal import (
    NO_PRODUCER,
    ProducerIdentity,
    append_internal,
    read_internal,
    when_log_replicated,
)
from fairlead_kafka.broker.lifecycle import BrokerState, Life
from fairlead_kafka.broker.links import Links
from fairlead_kafka.broker.listeners import Listener, listeners_of
from fairlead_kafka.broker.log import Logs, LogSettings, Partition
from fairlead_kafka.broker.partitions import HostedPartitions
from fairlead_kafka.broker.purgatory import Deadlines, Purgatory
from fairlead_kafka.broker.quotas.quotas import Quotas, no_time
from fairlead_kafka.broker.replication import Replication
from fairlead_kafka.broker.share_groups import (
    ShareCoordinator,
    SharePartitions,
    ShareSessions,
    StatePersister,
)
from fairlead_kafka.broker.telemetry import ClientTelemetry
from fairlead_kafka.broker.timers import Repeating, Timer, Timers
from fairlead_kafka.broker.transactions import TransactionCoordinator, Verifier
from fairlead_kafka.core.effects import Buffer, Effect, FileAppend, FileReplace, Resolve
from fairlead_kafka.core.events import (
    Accepted,
    Authenticated,
    Connected,
    ConnectionEvent,
    Disconnected,
    Event,
    FileDone,
    Listening,
    Received,
    Secured,
    Sent,
    Submitted,
)
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.records import RecordColumns

_logger = GuardedLogger("fairlead_kafka.broker")

DISK_FULL = "no space left on the device (as the script of faults has it)"


class Broker:
    """The machine of one broker, from one start to its end. `folder` is where its log lives.

    `host` and `port` are where it listens if its config has no `listeners`; port 0 takes any free
    one, and after the start `port` says which. `controller` is the cluster as this broker sees it:
    the controller itself if all run on one thread, else a copy that follows it.
    """

    def __init__(
        self,
        node_id: int,
        controller: ClusterView,
        folder: str,
        rng: Rng,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.node_id = node_id
        self.controller = controller
        self.rng = rng
        self.folder = folder
        self.settings: Settings = controller.broker_settings(node_id)
        self.listeners = listeners_of(controller.broker_settings(node_id), node_id, host, port)
        """The broker's listeners. Clients of the launcher are sent to the first."""
        self.rack: str | None = None
        """Rack of the broker, for placement and `replica.selector.class`; set by the launcher
        before the start."""
        self.now_ns = 0
        self.wall_ms = 0
        self.faults = Faults()
        self.interceptor: Interceptor | None = None
        """Stands between requests and their handlers; set by the launcher."""
        self.life: Life = Life(self)
        self.authorizer: Authorizer | None = None
        """Says who may do what, from the moment when the image is whole; None: everybody may do
        everything."""
        self.guard: Guard = Guard(f"broker {node_id}")
        self.bind = self.guard.bind
        self.files: Files = Files(self._emit_file, self.guard.bind)
        self.handler_clock: Callable[[], int] = no_time
        """Nanoseconds that the thread of this machine has worked; set by the launcher, for
        request_percentage."""
        self.quotas: Quotas = Quotas(self)
        self.clients: Clients = Clients(self)
        self.purgatory: Purgatory = Purgatory(self.guard)
        self.fetch_sessions: FetchSessions = FetchSessions(self)
        self.telemetry: ClientTelemetry = ClientTelemetry()
        self.deadlines: Deadlines = Deadlines(self.call_at, self.guard.bind, lambda: self.now_ns)
        self.partitions: HostedPartitions = HostedPartitions(self)
        log_settings = LogSettings.of(self.settings)
        self.logs: Logs = Logs(
            self.files, f"{folder}/log", self.partitions.topic_of, self._written, self, log_settings
        )
        self.disk_watch: DiskWatch = DiskWatch(self)
        self.links: Links = Links(self)
        self.replication: Replication = Replication(self)
        self.share_coordinator: ShareCoordinator = ShareCoordinator(self)
        self.share_persister: StatePersister = StatePersister(self)
        self.share_partitions: SharePartitions = SharePartitions(self, self.share_persister)
        self.share_sessions: ShareSessions = ShareSessions(self)
        self.coordinator: GroupCoordinator = GroupCoordinator(self)
        self.transactions: TransactionCoordinator = TransactionCoordinator(self)
        self.verifier: Verifier = Verifier(self)
        self.producer_ids: ProducerIds = ProducerIds(controller, node_id, self.guard.bind)
        self._inbox: deque[Event] = deque()
        self._outbox: list[Effect] = []
        self._timers = Timers()
        self._stepping = False
        self._damage: Exception | None = None
        """Exception that ends this broker in its own next step; None: none."""
        self.wake: Callable[[], None] = lambda: None
        """Set by the launcher: has the host step this machine soon. Needed when another broker's
        step changes something here."""
        self._unsubscribe: Callable[[], None] = lambda: None

    # --- The machine protocol

    def receive(self, event: Event) -> None:
        """Queue an event for the next step."""
        self._inbox.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Serve the events that arrived and do the work that is due, then begin the writes that
        follow; returns the effects for the host."""
        self.now_ns = self.guard.now_ns = self.controller.now_ns = now_ns
        self.wall_ms = wall_ms
        if self._damage is not None:
            raise self._damage
        self._stepping = True
        for _ in range(len(self._inbox)):
            event = self._inbox[0]
            _ON_EVENT[type(event)](self, event)
            self._inbox.popleft()  # only now: `crashed` tells those whose operation was begun, too
        self._timers.run_due(now_ns)
        if self.state is BrokerState.RUNNING:
            self.guard.call(self.disk_watch, self.disk_watch.look)
        self.replication.advance()
        self.guard.call(self.links, self.links.advance)
        if self.state is not BrokerState.STOPPED:
            self.logs.flush()
        effects, self._outbox = self._outbox, []
        self._stepping = False
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which the next timer or the links have something to do, or now if
        something arrived; None: never."""
        if self._inbox:
            return self.now_ns  # what it was told by itself
        timer_ns, links_ns = self._timers.deadline_ns(), self.links.deadline_ns()
        if timer_ns is None or links_ns is None:
            return links_ns if timer_ns is None else timer_ns
        return min(timer_ns, links_ns)

    def crashed(self, error: Exception) -> Sequence[Effect]:
        """Give up leadership, and fail the launcher's operations: the host will not step this
        machine any more. Clients notice that the host closes their connections."""
        operations = [
            *self.life.crashed(),
            *(event.operation for event in self._inbox if isinstance(event, Submitted)),
        ]
        return [Resolve(operation.completion, None, error) for operation in operations]

    # --- For handlers and the coordinator

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` inside a step at `deadline_ns` or soon after, in the name of `owner`;
        `Timer.cancel()` prevents it."""
        return self._timers.call_at(deadline_ns, self.guard.bind(function, owner))

    def call_later(
        self, milliseconds: float, function: Callable[[], None], owner: Owner | None = None
    ) -> Timer:
        """Run `function` inside a step `milliseconds` from now or soon after; see `call_at`."""
        return self.call_at(self.now_ns + ms_to_ns(milliseconds), function, owner)

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> Repeating:
        """Run `function` again and again, `wait_ms()` milliseconds after its last end, whatever it
        raises. `name` is for the log."""
        return Repeating(self, name, wait_ms, function)

    def check(self) -> None:
        """Raise CheckFailed unless redundant state agrees, between two steps. For tests and the
        simulator.

        Nothing is checked before the log was read, and after the broker has ended.
        """
        if self.state not in (
            BrokerState.OPENING,
            BrokerState.JOINING,
            BrokerState.RUNNING,
            BrokerState.STOPPING,
        ):
            return
        self.logs.check()
        self.replication.check()
        self.clients.check()
        for part in (
            self.coordinator,
            self.transactions,
            self.share_coordinator,
            self.share_partitions,
            self.share_sessions,
            self.fetch_sessions,
            self.purgatory,
            self.deadlines,
        ):
            part.check()
        if self.authorizer is not None:
            self.authorizer.check(self.controller.image.acls)

    @property
    def errors(self) -> int:
        """Number of exceptions of requests, partitions and tasks that this broker survived, and of
        decisions of a controller in its thread (the metric `broker.errors`)."""
        return self.guard.errors + self.controller.errors

    def emit(self, effect: Effect) -> None:
        """Ask the host for `effect` at the end of this step."""
        self._outbox.append(effect)

    def _emit_file(self, effect: Effect) -> None:
        if self.faults.disk_full and isinstance(effect, FileAppend | FileReplace):
            self._inbox.append(FileDone(effect.token, None, OSError(errno.ENOSPC, DISK_FULL, effect.path)))
            self.wake()
        else:
            self.emit(effect)

    @property
    def port(self) -> int:
        """Port of the first listener; 0: not known before the start."""
        return self.listeners[0].port

    def take_ports(self, ports: Mapping[str, int]) -> None:
        """Set the ports of listeners whose config leaves them free, by listener name; called before
        the start."""
        self.listeners = tuple(
            each._replace(port=each.port or ports.get(each.name, 0)) for each in self.listeners
        )

    def listener_by_number(self, number: int) -> Listener:
        """The listener with this number."""
        return self.listeners[number - 1]

    def append_internal(
        self,
        topic: str,
        partition: int,
        columns: RecordColumns,
        done: Callable[[int, int], None],
        producer: ProducerIdentity = NO_PRODUCER,
    ) -> None:
        """Append records to a partition led here; done(error_code, base_offset) once they are
        replicated (error 0) or refused."""
        append_internal(self, topic, partition, columns, done, producer)

    def when_log_replicated(self, topic: str, partition: int, done: Callable[[int], None]) -> None:
        """Call done(0) once all that is in the log of a partition led here is replicated, or
        done(error code); once."""
        when_log_replicated(self, topic, partition, done)

    def read_internal(
        self,
        topic: str,
        partition: int,
        offset: int,
        done: Callable[[int, Sequence[Buffer], int], None],
        max_bytes: int = 1 << 20,
    ) -> None:
        """Read whole batches from `offset` on: done(error_code, batches, next_offset); no batches:
        the end was reached."""
        read_internal(self, topic, partition, offset, done, max_bytes)

    # --- Connections

    def _outgoing(self, event: ConnectionEvent) -> None:
        if event.connection >= FIRST_CONNECTION and not isinstance(event, Authenticated):
            self.controller.handle(event)
        else:
            self.guard.call(self.links, self.links.handle, event)

    # --- Beginning and end, called by `life`

    @property
    def state(self) -> BrokerState:
        """The present state of the broker, from starting to ended."""
        return self.life.state

    @property
    def running(self) -> bool:
        """Whether the broker takes part in the cluster and serves requests."""
        return self.life.state is BrokerState.RUNNING

    def follow(self) -> None:
        """Follow changes of the cluster from now on."""
        self.settings = self.controller.broker_settings(self.node_id)
        self.authorizer = Authorizer.of(self.settings, self.controller.image.acls)
        self.quotas.follow()
        self._unsubscribe = self.controller.subscribe(self._changed)

    def begin(self) -> None:
        """Begin to take part: coordinate groups and transactions, and do the log's regular work."""
        self.replication.start()
        self.coordinator.start()
        self.transactions.start()
        self.share_coordinator.start()
        self.repeat("retention", lambda: self.settings["log.retention.check.interval.ms"], self._retain)
        self._tick()

    def stop_coordinators(self) -> None:
        """Stop coordinators and replication: clients that wait for a group or a transaction are
        answered that they find another coordinator, and no more requests are sent to other
        brokers."""
        self.coordinator.stop()
        self.transactions.stop()
        self.share_coordinator.stop()
        self.replication.stop()
        self.links.close()

    def forget(self) -> None:
        """Follow no more changes, and do nothing by itself any more."""
        self._unsubscribe()
        self._timers = Timers()

    # --- What changes, and what comes round

    def _changed(self, change: Change) -> None:
        try:
            self._follow_change(change)
        except Exception as error:
            # The controller calls in the step of whichever broker asked for the change: it is this
            # one's end, not that one's.
            self._damage = SharedDamage(f"this broker's image of the cluster: {error!r}")
            self._damage.__cause__ = error
        if not self._stepping:
            self.wake()

    def _follow_change(self, change: Change) -> None:
        if isinstance(change, BrokerConfigsChanged):
            self.settings = self.controller.broker_settings(self.node_id)
            self.clients.configured()
            self.logs.configure(LogSettings.of(self.settings))
        elif isinstance(change, BrokersChanged):
            self.links.brokers_changed()
        elif isinstance(change, AclsChanged) and self.authorizer is not None:
            self.authorizer.changed(change.added, change.removed)
            self.fetch_sessions.rights_changed()
        elif isinstance(change, ClientQuotasChanged):
            self.quotas.changed(change.entity)
        self.partitions.changed(change)
        self.replication.changed(change)
        self.share_partitions.changed(change)

    def _tick(self) -> None:
        """Advance the controller's clock, if it shares this broker's thread. After an exception of
        it, it is called again a little later."""
        soonest_ns = self.now_ns + NS_PER_S
        try:
            self.controller.tick(self.now_ns)
            soonest_ns = 0
        finally:
            deadline_ns = self.controller.deadline_ns()
            if deadline_ns is not None:
                self.call_at(max(deadline_ns, soonest_ns), self._tick)

    def _retain(self) -> None:
        self.logs.retain(self.wall_ms, self.settings["producer.id.expiration.ms"])

    def _written(self, partition: Partition) -> None:
        """Note that more of a partition is written.

        If that raises, the partition goes offline on this broker, and nothing else does.
        """
        try:
            self.replication.written(partition)
        except Exception as error:
            self.guard.blame(PartitionOwner(partition, self.partitions.take_offline), error)

    def log_of(self, topic: str, number: int) -> Partition | int:
        """A partition led here, by topic name, or the error code to answer."""
        return self.partitions.find(self.controller.image.topics.get(topic), number)

    def _file_done(self, event: FileDone) -> None:
        if self.state is not BrokerState.STOPPED:
            self.files.finished(event)


_ON_EVENT: dict[type, Callable[[Broker, Any], None]] = {
    Accepted: lambda broker, event: broker.clients.accepted(event),
    Connected: Broker._outgoing,
    Received: lambda broker, event: (
        broker._outgoing(event) if event.connection > 0 else broker.clients.received(event)
    ),
    Disconnected: lambda broker, event: (
        broker._outgoing(event) if event.connection > 0 else broker.clients.disconnected(event)
    ),
    Secured: lambda broker, event: broker.clients.secured(event),
    Authenticated: lambda broker, event: (
        broker._outgoing(event) if event.connection > 0 else broker.clients.authenticated(event)
    ),
    Sent: lambda broker, event: broker.clients.sent(event),
    Submitted: lambda broker, event: broker.life.submitted(event),
    Listening: lambda broker, event: broker.life.listening(event),
    FileDone: Broker._file_done,
}
