"""Requests of a broker to the other brokers of its cluster, over connections like any client's.

    asked ──connection ready──▶ sent ──answer──▶ done(response)
      └──the broker is gone, or the connection was lost, or too late──▶ done(error)

A broker sends others requests for transactions (WriteTxnMarkers, and AddPartitionsToTxn to verify),
and for replication. Each kind has a lane of its own, a connection to each broker, because an answer
that waits for data delays all later answers of its connection. Brokers of one cluster are of one
release, so nothing is negotiated. The controller's image has the brokers and addresses. No request
is sent twice here: its caller decides whether to retry.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from enum import Enum
from typing import NamedTuple, Protocol, TypeVar

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, ConnectionFailed
from fairlead_kafka.broker.controller import ClusterView
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.guard import Guard
from fairlead_kafka.broker.listeners import Listener, between_brokers, mechanism_between_brokers
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.connections import Connections, Shared
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import ConnectionEvent
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.peers import Peer
from fairlead_kafka.core.reachability import Reachability
from fairlead_kafka.wire import ApiKey, ApiMessage, Message, PrivateApi, RequestMessage

R = TypeVar("R")
Done = Callable[[R | None, Exception | None], None]

IN_FLIGHT_MAX = 1_000
CLIENT_ID = "broker-"
"""Prefix of the client id of a broker at other brokers; its node id follows."""
_REQUEST_TIMEOUT_MS = 30_000
_SETTINGS: dict[str, object] = {
    "bootstrap.servers": (),
    "metadata.recovery.strategy": "none",
    "request.timeout.ms": _REQUEST_TIMEOUT_MS,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "socket.connection.setup.timeout.ms": 10_000,
    "socket.connection.setup.timeout.max.ms": 30_000,
    "connections.max.idle.ms": 540_000,
}


class LinksHost(Protocol):
    """The parts of a broker that its links to the other brokers use."""

    node_id: int
    now_ns: int
    settings: Settings
    listeners: tuple[Listener, ...]
    controller: ClusterView
    faults: Faults
    guard: Guard
    rng: Rng

    def emit(self, effect: Effect) -> None:
        """Ask the host for `effect` at the end of this step."""


class Lane(Enum):
    """Purpose of a connection between brokers."""

    REQUESTS = "requests"
    REPLICATION = "replication"


class _Asked(NamedTuple):
    api_key: ApiKey | PrivateApi
    version: int
    message: ApiMessage
    done: Callable[..., None]
    """A `Done` of the response to `message`."""
    timeout_ms: float | None


class Links:
    """The connections of one broker to the others. `advance` is called in each step, after the
    events."""

    def __init__(self, broker: LinksHost) -> None:
        numbers = itertools.count(1)
        self.listener = between_brokers(broker.controller.broker_settings(broker.node_id), broker.listeners)
        """The listener at which the other brokers are reached."""
        self._broker = broker
        self._lanes = {lane: _Lane(broker, numbers, self.listener) for lane in Lane}

    def ask(
        self,
        node_id: int,
        api_key: ApiKey | PrivateApi,
        version: int,
        message: RequestMessage[R] | Message,
        done: Done[R],
        lane: Lane = Lane.REQUESTS,
        timeout_ms: float | None = None,
    ) -> None:
        """Send a request to a broker; done(response, None) or done(None, error), once, in this step
        or a later one.

        Without an answer for `timeout_ms` (30 s if it is not given) the connection counts as dead,
        and is closed.
        """
        self._lanes[lane].ask(
            node_id, _Asked(api_key, version, message, self._broker.guard.bind(done), timeout_ms)
        )

    def handle(self, event: ConnectionEvent) -> None:
        """Take an event of a connection to another broker."""
        for lane in self._lanes.values():
            lane.handle(event)

    def brokers_changed(self) -> None:
        """Called when a broker started or ended: requests to one that ended are answered with an
        error in the next `advance`."""
        for lane in self._lanes.values():
            lane.connections.changed = True

    def advance(self) -> None:
        """Send the requests that can be sent, and give up those whose time is up. Cheap if there is
        nothing to do."""
        for lane in self._lanes.values():
            lane.advance()

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which `advance` has something to do if nothing happens before;
        None: never."""
        next_ns = min(lane.connections.next_ns for lane in self._lanes.values())
        return None if next_ns >= NEVER_NS else next_ns

    def failed(self, error: Exception) -> None:
        """Recover when the work of these connections raised: they connect again, and requests that
        wait for an answer fail with ConnectionFailed."""
        for lane in self._lanes.values():
            lane.restart(ConnectionFailed(f"the connections to other brokers failed: {error!r}"))

    def close(self) -> None:
        """Close all connections. Requests under way are not answered: their broker has ended."""
        for lane in self._lanes.values():
            lane.close()


class _Lane:
    """The connections of one purpose: one to each broker that a request was sent to."""

    def __init__(self, broker: LinksHost, numbers: Iterator[int], listener: Listener) -> None:
        self._broker = broker
        mechanism = mechanism_between_brokers(broker.settings, listener)
        client_id = f"{CLIENT_ID}{broker.node_id}"
        settings = Settings(
            _SETTINGS
            | {
                "client.id": client_id,
                "security.protocol": listener.protocol,
                "sasl.mechanism": mechanism,
            }
        )
        unsaid = Reachability(client_id, _REQUEST_TIMEOUT_MS, quiet=True)  # replication has a log of its own
        self.connections = Connections(
            settings,
            broker.rng,
            IN_FLIGHT_MAX,
            self._lost,
            Shared(numbers=numbers, reachability=unsaid),
            negotiates=listener.logs_in,  # a log-in wants to know which versions of it there are
        )
        self.connections.next_ns = NEVER_NS
        self._asked: dict[int, list[_Asked]] = {}
        self._closed = False

    def ask(self, node_id: int, asked: _Asked) -> None:
        if self._closed:
            asked.done(None, ConnectionFailed(f"broker {self._broker.node_id} is stopping"))
            return
        self._asked.setdefault(node_id, []).append(asked)

    def handle(self, event: ConnectionEvent) -> None:
        self.connections.tick(self._broker.now_ns)
        self.connections.handle(event)

    def advance(self) -> None:
        connections, now_ns = self.connections, self._broker.now_ns
        if (
            not (self._asked or connections.changed or connections.finished or connections.effects)
            and now_ns < connections.next_ns
        ):
            return
        connections.tick(now_ns)
        if now_ns >= connections.next_ns:
            connections.expire()
        brokers, apart = (
            self._broker.controller.image.brokers,
            {self._broker.node_id, *self._broker.faults.cut_from},
        )
        connections.sync(
            {node_id: info.node for node_id, info in brokers.items() if info.alive and node_id not in apart}
        )
        while connections.finished:
            finished, connections.finished = connections.finished, []
            for on_done, error in finished:
                on_done(None, error)
        connections.changed = False
        for node_id in list(self._asked):
            self._send(node_id)
        connections.plan()
        for effect in connections.take_effects():
            self._broker.emit(effect)

    def _send(self, node_id: int) -> None:
        peer = self.connections.peers.by_id.get(node_id)
        if peer is None:
            self._fail(node_id, ConnectionFailed(f"broker {node_id} does not run"))
            return
        self.connections.connect(peer)
        while self._asked.get(node_id) and peer.connection is not None and peer.ready(IN_FLIGHT_MAX):
            asked = self._asked[node_id].pop(0)
            self.connections.send(
                peer.connection,
                asked.api_key,
                asked.message,
                asked.done,
                asked.timeout_ms,
                True,
                asked.version,
            )
        if not self._asked.get(node_id):
            self._asked.pop(node_id, None)

    def _lost(self, peer: Peer, _refusal: AuthenticationFailed | None) -> None:
        self._fail(
            peer.node_id,
            ConnectionFailed(f"{peer} cannot be reached ({self.connections.reachability.reason(peer)})"),
        )

    def _fail(self, node_id: int, error: Exception) -> None:
        for asked in self._asked.pop(node_id, ()):
            asked.done(None, error)

    def restart(self, error: Exception) -> None:
        for node_id in list(self._asked):
            self._fail(node_id, error)
        self.connections.end_all(error)
        self.connections.changed = True

    def close(self) -> None:
        self._closed = True
        self._asked.clear()
        self.connections.end_all(ConnectionFailed("the broker is stopping"))
        self.connections.finished.clear()
        for effect in self.connections.take_effects():
            self._broker.emit(effect)
        self.connections.next_ns = NEVER_NS
