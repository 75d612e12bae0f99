"""Requests of one client machine to brokers, those for metadata too; see `fairlead_kafka.core`."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import (
    AuthenticationFailed,
    ConnectionFailed,
    NoBrokerReached,
    TimedOut,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.connection import NEVER_NS, Callback, OnDone, R
from fairlead_kafka.core.connections import Connections, Shared
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.event_log import METADATA_FAILED, EventLog
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.peers import BOOTSTRAP_FIRST, Peer
from fairlead_kafka.core.pushing import Pushing
from fairlead_kafka.core.queued import Queued
from fairlead_kafka.core.reachability import Reachability
from fairlead_kafka.core.traffic import Traffic
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import MetadataResponse

CONTROLLER = -2
"""As `node_id` of `Network.request`: the controller that the metadata names."""
REQUESTS_QUEUED_MAX = 10_000
"""Requests that may wait for a broker; with more, their owner ignores what it has asked already."""
REFUSALS_KEPT = 15
"""Failed log-ins kept, beside the newest, for an owner that does not take them."""


class AwaitConnection(NamedTuple):
    """An operation of every client: answered with None once a broker was ever reached, with
    NoBrokerReached at `deadline_ns`."""

    completion: Completion[None]
    deadline_ns: int


class Network:
    """A part of a client machine, not a machine: everything runs inside its owner's `step`, and
    calls back there.

    In each step the owner passes on connection events (`handle`), calls `advance` before or after
    its own work, or both, and returns `take_effects` with its own effects. Its deadline includes
    `deadline_ns`. `settings`: parsed client configs (`base.config_client`). `traffic` counts bytes
    and requests. `beside`: the machine's first `Network`, if it has several; its `traffic` counts
    for both.
    """

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        *,
        max_in_flight: int,
        traffic: Traffic | None = None,
        beside: Network | None = None,
    ) -> None:
        self.events: EventLog = (
            EventLog(settings["client.id"], lambda: self._connections.now_ns)
            if beside is None
            else beside.events
        )
        """The client's log lines."""
        self.metadata = Metadata(settings, rng, self.stir, self.events)
        self._max_in_flight = max_in_flight
        other: Connections | None = None if beside is None else beside._connections
        shared = (
            Shared(traffic, events=self.events)
            if other is None
            else Shared(traffic or other.traffic, other.numbers, other.reachability, self.events)
        )
        self._connections: Connections = Connections(settings, rng, max_in_flight, self._on_lost, shared)
        self.peers = self._connections.peers
        self._peers_by_id = self.peers.by_id
        self._metadata_version = self.metadata.version
        self._wanted: list[int] = []
        self._queue: list[Queued] = []
        self._awaiting: list[tuple[int, Callable[[None, Exception | None], object]]] = []
        self._next_ns = 0  # as of the last plan: deadlines of the queue, and metadata
        self._dirty = True  # something was asked for, or became possible, since the last look
        self._nudge = False  # `advance` changed what the owner may already have looked at in this step
        self._waits_for_broker = False  # metadata is due and no peer could take the request
        self._closed = False
        self._wall_ms = 0
        self.pushing = Pushing(self, rng, beside is None and bool(settings.get("enable.metrics.push", False)))
        self._refusals: list[tuple[int | None, AuthenticationFailed]] = []

    # What the owner may ask

    def ready(self, node_id: int) -> bool:
        """True if a request can be sent to this node now: connected, negotiated, with room."""
        peer = self._peers_by_id.get(node_id)
        return peer is not None and peer.ready(self._max_in_flight)

    def blocked(self, node_id: int) -> bool:
        """True while this node is in back-off after a failure."""
        peer = self._peers_by_id.get(node_id)
        return peer is not None and peer.blocked_until_ns is not None

    def throttled(self, node_id: int) -> bool:
        """True while this node has asked to be left alone, for the sake of a quota (KIP-219)."""
        peer = self._peers_by_id.get(node_id)
        return peer is not None and peer.throttled_until_ns is not None

    def in_flight(self, node_id: int) -> int:
        """Number of requests to this node that await their answers."""
        peer = self._peers_by_id.get(node_id)
        return 0 if peer is None or peer.connection is None else len(peer.connection.in_flight)

    def open_connections(self) -> int:
        """Number of connections that are open and negotiated; from any thread."""
        return sum(peer.connected for peer in list(self._peers_by_id.values()))

    def version(self, node_id: int, api_key: ApiKey) -> int:
        """The version of an API to use with this node. UnsupportedVersion if client and broker have
        none in common; UsageError if the node is not connected."""
        return self._connections.connection(node_id, api_key).version(api_key)

    def known_version(self, node_id: int, api_key: ApiKey) -> int | None:
        """The version of an API to use with this node; None if it is not connected (any more), or
        has none in common."""
        try:
            return self.version(node_id, api_key)
        except (UsageError, UnsupportedVersion):
            return None

    def offering(self, api_key: ApiKey) -> list[int]:
        """The nodes that are connected and serve this API."""
        return [
            peer.node_id
            for peer in self._peers_by_id.values()
            if peer.connected and peer.connection is not None and api_key in peer.connection.offered
        ]

    def trouble(self) -> str:
        """Why nothing moves: what was wrong with the last answer about the cluster, and with the
        brokers that were asked; "" if nothing is known to be wrong.

        For messages about time-outs: "could not reach any of 127.0.0.1:9092 (connection refused)".
        """
        problem = (
            self.metadata.last_error if any(peer.connected for peer in self._peers_by_id.values()) else None
        )
        reached = self._connections.reachability.trouble(self.peers.tried())
        return (
            "; ".join(filter(None, [str(problem or ""), reached]))
            or "all brokers that were asked have answered"
        )

    def take_refusals(self) -> list[tuple[int | None, AuthenticationFailed]]:
        """Failed log-ins since the last call: of one node, or (None) while nobody was connected, of
        this client."""
        refusals, self._refusals = self._refusals, []
        return refusals

    @property
    def reachability(self) -> Reachability:
        """Which brokers cannot be reached, and why."""
        return self._connections.reachability

    @property
    def reached(self) -> bool:
        """True once any broker was reached."""
        return self._connections.reachability.reached

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, of the next `advance` if nothing happens before, now or past if one
        is due; None: none is needed."""
        if self._closed:
            return None
        connections = self._connections
        if self._dirty or self._nudge or connections.changed or connections.finished:
            return connections.now_ns
        next_ns = min(self._next_ns, connections.next_ns, *(at_ns for at_ns, _ in self._awaiting))
        return None if next_ns == NEVER_NS else next_ns

    # What the owner may do

    def connect(self, node_id: int) -> None:
        """Begin to connect (with this step's effects) if not connected, not connecting and not in
        back-off; otherwise nothing.

        For a node that is not known the metadata is asked again.
        """
        peer = self._peers_by_id.get(node_id)
        if self._closed:
            return
        if peer is None:
            self.metadata.request_update()  # a leader that the same metadata does not list among the brokers
        elif peer.connection is None:
            self._wanted.append(node_id)
            self._dirty = True

    def send(
        self,
        node_id: int,
        api_key: ApiKey,
        message: RequestMessage[R],
        on_done: OnDone[R],
        *,
        timeout_ms: float | None = None,
        expects_response: bool = True,
        version: int | None = None,
    ) -> None:
        """Send now, to a node that is `ready`. `on_done(response, error)` is called exactly once,
        in a later `handle` or `advance`.

        `timeout_ms` defaults to `request.timeout.ms`; when it passes the connection is closed, as
        Kafka does: nothing behind the missing answer could arrive. Errors: ConnectionFailed,
        TimedOut, DecodeError, UnsupportedVersion. Without `expects_response` (acks=0): (None,
        None). UsageError if the node is not ready.
        """
        connection = self._connections.connection(node_id, api_key)
        self._connections.send(connection, api_key, message, on_done, timeout_ms, expects_response, version)

    def request(
        self,
        api_key: ApiKey,
        message: RequestMessage[R],
        on_done: OnDone[R],
        *,
        node_id: int | None = None,
        deadline_ns: int,
        timeout_ms: float | None = None,
        version_max: int | None = None,
        fails_fast: bool = False,
    ) -> None:
        """Send once a node is ready: the given one, CONTROLLER, or (None) the least loaded,
        bootstrap servers included. `on_done` is called exactly once, as for `send`; with TimedOut
        if there is no answer by `deadline_ns`. With `fails_fast` it is called with ConnectionFailed
        as soon as the given node is in back-off or not known, instead of waiting for it.
        `version_max`: the highest version that can say what the message has to, None: any. A
        request that was sent is not sent again by itself. UsageError if too many are waiting.
        """
        if self._closed:
            raise UsageError(f"{api_key.name}: this client is closed")
        if not self.request_room:
            raise UsageError(f"{api_key.name}: {REQUESTS_QUEUED_MAX} requests wait for a broker already")
        self._queue.append(
            Queued(api_key, message, on_done, node_id, deadline_ns, timeout_ms, version_max, fails_fast)
        )
        self._dirty = True

    @property
    def request_room(self) -> int:
        """How many more requests may wait."""
        return REQUESTS_QUEUED_MAX - len(self._queue)

    def stir(self) -> None:
        """Have the next `advance` look at everything that may be due."""
        self._dirty = True

    def await_connection(self, deadline_ns: int, done: Callable[[None, Exception | None], object]) -> None:
        """Call `done`, as a rule in a later `advance`: with None once a broker was ever reached,
        NoBrokerReached at `deadline_ns`."""
        if self._closed:
            done(None, UsageError("this client is closed"))
        elif len(self._awaiting) >= REQUESTS_QUEUED_MAX:
            done(None, UsageError(f"{REQUESTS_QUEUED_MAX} calls are waiting for a first connection already"))
        else:
            self._awaiting.append((deadline_ns, done))
            self._nudge = True

    def close(self, error: Exception | None = None) -> None:
        """Close all connections and fail everything under way, with `error` or UsageError. Nothing
        can be asked afterwards."""
        if self._closed:
            return
        self._closed = True
        error = error or UsageError("closed before the answer came")
        try:
            self.pushing.end(error)
            self._connections.end_all(error)
        finally:
            self._fail_all(error)

    def _fail_all(self, error: Exception) -> None:
        finished, self._connections.finished = self._connections.finished, []
        for on_done, own_error in finished:
            on_done(None, own_error or error)
        queue, self._queue, self._wanted = self._queue, [], []
        for queued in queue:
            queued.finish(None, error)
        awaiting, self._awaiting = self._awaiting, []
        for _, done in awaiting:
            done(None, error)

    # The owner's step

    def handle(self, event: ConnectionEvent, now_ns: int, wall_ms: int) -> None:
        """Handle one event of a connection of this network; answers run their callbacks here. Late
        events of closed ones are ignored.

        `wall_ms`, milliseconds since 1970, is the time of metrics that are pushed.
        """
        self._wall_ms = wall_ms
        self._connections.tick(now_ns)
        self._connections.handle(event)
        if self._queue or self._waits_for_broker:
            self._dirty = True

    def advance(self, now_ns: int, wall_ms: int) -> None:
        """Do all that is due or became possible, until nothing is left; cheap if nothing is due."""
        connections = self._connections
        connections.tick(now_ns)
        self._wall_ms = wall_ms
        self._nudge = False
        while not self._closed:
            if connections.finished:
                finished, connections.finished = connections.finished, []
                for on_done, error in finished:
                    on_done(None, error)
                self._nudge = True
            if now_ns >= connections.next_ns or now_ns >= self._next_ns:
                self._nudge = True
                connections.expire()
                self._expire_queue()
                self._dirty = True
            if self._awaiting:  # after `expire`, which notes what is late: the error names it
                self._report_awaiting()
            if not (self._dirty or connections.changed):
                return
            self._dispatch()

    def take_effects(self) -> list[Effect]:
        """The effects for the host since the last call, also of requests made after `advance`."""
        if self._dirty and not self._closed:
            self._dispatch()
        return self._connections.take_effects()

    # Inside

    def _report_awaiting(self) -> None:
        """Complete waits for a first connection: with None, or NoBrokerReached if they are late."""
        awaiting, self._awaiting = self._awaiting, []
        for deadline_ns, done in awaiting:
            if self.reached:
                done(None, None)
            elif deadline_ns <= self._connections.now_ns:
                hint = "" if self._connections.reachability.negotiated else NoBrokerReached.HINT
                done(None, NoBrokerReached(self.trouble() + hint))
            else:
                self._awaiting.append((deadline_ns, done))

    def _on_lost(self, peer: Peer, refusal: AuthenticationFailed | None) -> None:
        if peer.node_id > BOOTSTRAP_FIRST:
            self.metadata.request_update()
        if refusal is not None:
            self._on_refused(peer, refusal)

    def _on_refused(self, peer: Peer, error: AuthenticationFailed) -> None:
        """Fail at once the requests that wait for this peer, which refused the client, or all that
        wait if no other peer is connected: waiting longer would not help."""
        alone = not any(each.connected for each in self._peers_by_id.values())
        del self._refusals[:-REFUSALS_KEPT]
        self._refusals.append((None if alone else peer.node_id, error))
        for queued in self._queue:
            if queued.sent_to is None and not queued.done and (alone or queued.node_id == peer.node_id):
                queued.failing = True
                self._connections.finished.append((queued.finish, error))
        if alone:
            awaiting, self._awaiting = self._awaiting, []
            self._connections.finished += [(_awaiter(done), error) for _, done in awaiting]

    def _dispatch(self) -> None:
        """Do what can be done now and plan the rest. Runs no callbacks."""
        changed = self._connections.changed
        self._dirty = self._connections.changed = False
        self._rebootstrap()
        if self.metadata.version != self._metadata_version:
            self._metadata_version = self.metadata.version
            self._connections.sync(self.metadata.nodes)
        wanted, self._wanted = self._wanted, []
        for node_id in wanted:
            peer = self._peers_by_id.get(node_id)
            if peer is not None:
                self._connections.connect(peer)
        self._ask_metadata()
        self._queue = [queued for queued in self._queue if not queued.done]
        for queued in self._queue:
            if queued.sent_to is None and not queued.failing:
                self._place(queued)
        if self.pushing.begun or changed:
            self._push_metrics()
        self._connections.plan()
        due_ns = self.metadata.due_ns()
        now_ns = self._connections.now_ns
        # Metadata that is due and could not be asked for waits for a peer, not for a time.
        self._next_ns = NEVER_NS if due_ns is None or due_ns <= now_ns else due_ns
        rebootstrap_ns = self.metadata.rebootstrap_ns()
        if rebootstrap_ns is not None:
            self._next_ns = min(self._next_ns, rebootstrap_ns)
        for queued in self._queue:
            self._next_ns = min(self._next_ns, queued.deadline_ns)
        self._next_ns = min(self._next_ns, self.pushing.next_ns())

    def _rebootstrap(self) -> None:
        """Go back to the bootstrap servers if metadata has not come for too long (KIP-1102)."""
        due_ns = self.metadata.rebootstrap_ns()
        if due_ns is not None and due_ns <= self._connections.now_ns:
            self.metadata.rebootstrap(self._connections.now_ns, self.trouble())

    def _push_metrics(self) -> None:
        self.pushing.advance(self._connections.now_ns, self._wall_ms)
        if self.pushing.waits_for_broker:
            self._waits_for_broker = True
            if self.pushing.wanted:
                self._least_loaded()  # connects to one if there is none

    def _least_loaded(self) -> Peer | None:
        """A peer that is ready, or None and one is being connected to, if any can be."""
        peer = self.peers.least_loaded(self._max_in_flight)
        if peer is not None and peer.connection is None:
            self._connections.connect(peer)
            return None
        return peer

    def _ask_metadata(self) -> None:
        now_ns = self._connections.now_ns
        due_ns = self.metadata.due_ns()
        self._waits_for_broker = due_ns is not None and due_ns <= now_ns
        if self._waits_for_broker:
            self.metadata.missing(now_ns)
        peer = self._least_loaded() if self._waits_for_broker else None
        if peer is not None and peer.connection is not None:
            self._waits_for_broker = False
            message = self.metadata.begin(now_ns)
            self._connections.send(
                peer.connection, ApiKey.METADATA, message, self._on_metadata, None, True, None
            )

    def _on_metadata(self, response: MetadataResponse | None, error: Exception | None) -> None:
        if response is not None:
            self.metadata.apply(response, self._connections.now_ns)
        elif error is not None and not self._closed:
            self.events.log(METADATA_FAILED, error)
            self.metadata.failed(self._connections.now_ns, error)
        self._dirty = True

    def _target(self, queued: Queued) -> Peer | None:
        """The peer to send to if it is ready; else None, and a connection or metadata request is
        begun."""
        if queued.node_id is None:
            return self._least_loaded()
        node_id = self.metadata.controller_id if queued.node_id == CONTROLLER else queued.node_id
        peer = self._peers_by_id.get(node_id)
        if peer is None:
            self.metadata.request_update()
            return None
        self._connections.connect(peer)
        return peer if peer.ready(self._max_in_flight) else None

    def _place(self, queued: Queued) -> None:
        peer = self._target(queued)
        if peer is None or peer.connection is None:
            if queued.fails_fast and self._out_of_reach(queued):
                queued.failing = True  # told by `advance`: nothing calls back from here
                self._connections.finished.append((queued.finish, ConnectionFailed(self._lateness(queued))))
            return
        version = None
        if queued.version_max is not None:
            try:
                version = peer.connection.version(queued.api_key, queued.version_max)
            except UnsupportedVersion as error:
                queued.failing = True
                self._connections.finished.append((queued.finish, error))
                return
        queued.sent_to = peer
        self._connections.send(
            peer.connection,
            queued.api_key,
            queued.message,
            queued.finish,
            queued.timeout_ms,
            True,
            version,
        )

    def _out_of_reach(self, queued: Queued) -> bool:
        peer = None if queued.node_id is None else self._peers_by_id.get(queued.node_id)
        return queued.node_id is not None and (peer is None or peer.blocked_until_ns is not None)

    def _expire_queue(self) -> None:
        now_ns = self._connections.now_ns
        for queued in list(self._queue):
            if queued.deadline_ns <= now_ns and not queued.done:
                queued.finish(None, TimedOut(self._lateness(queued)))

    def _lateness(self, queued: Queued) -> str:
        """Why a request got no answer, for its error."""
        name = queued.api_key.name
        if queued.sent_to is not None:
            return f"{name}: no answer in time from {queued.sent_to}"
        if queued.node_id is None:
            return f"{name}: {self.trouble()}"
        node_id = self.metadata.controller_id if queued.node_id == CONTROLLER else queued.node_id
        peer = self._peers_by_id.get(node_id)
        if peer is None:
            who = "the controller" if queued.node_id == CONTROLLER else f"broker {node_id}"
            return f"{name}: {who} is not known; {self.metadata.last_error or self.trouble()}"
        if peer.throttled_until_ns is not None:
            return f"{name}: {peer} asked to be left alone, for a quota of this client is used up"
        if peer.connected:
            return f"{name}: {peer} was busy with {self.in_flight(node_id)} requests"
        return f"{name}: could not reach {peer} ({self._connections.reachability.reason(peer)})"


def _awaiter(done: Callable[[None, Exception | None], object]) -> Callback:
    return lambda _response, error: done(None, error)
