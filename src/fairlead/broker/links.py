"""Requests of a broker to the other brokers of its cluster, over connections like any client's.

    asked ──connection ready──▶ sent ──answer──▶ done(response)
      └──the broker is gone, or the connection was lost, or too late──▶ done(error)

A broker asks another only for what a transaction needs: WriteTxnMarkers, and AddPartitionsToTxn to verify. Whom there is to ask
the controller's image says. Nothing is tried twice here: who asks knows better what to do.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.base.errors import ConnectionFailed
from fairlead.core.connections import NEVER_NS, Connections
from fairlead.core.events import Connected, Disconnected, Received
from fairlead.core.peers import Peer
from fairlead.wire import ApiKey, Message

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker

Done = Callable[[Message | None, Exception | None], None]

IN_FLIGHT_MAX = 1_000
_SETTINGS: dict[str, Any] = {
    "bootstrap.servers": (),
    "request.timeout.ms": 30_000,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1_000,
    "socket.connection.setup.timeout.ms": 10_000,
    "socket.connection.setup.timeout.max.ms": 30_000,
    "connections.max.idle.ms": 540_000,
}


class _Asked(NamedTuple):
    api_key: ApiKey
    version: int
    message: Message
    done: Done


class Links:
    """The connections of one broker to the others. `advance` is called in each step, after the events."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        settings = _SETTINGS | {"client.id": f"broker-{broker.node_id}"}
        self._connections = Connections(settings, broker.dice, IN_FLIGHT_MAX, self._lost)
        self._connections.next_ns = NEVER_NS
        self._asked: dict[int, list[_Asked]] = {}
        self._closed = False

    def ask(self, node_id: int, api_key: ApiKey, version: int, message: Message, done: Done) -> None:
        """Send a request to a broker; done(response, None) or done(None, error), once, in this step or a later one."""
        if self._closed:
            done(None, ConnectionFailed(f"broker {self._broker.node_id} is stopping"))
            return
        self._asked.setdefault(node_id, []).append(_Asked(api_key, version, message, done))

    def handle(self, event: Connected | Disconnected | Received) -> None:
        """Take an event of one of these connections."""
        self._connections.tick(self._broker.now_ns)
        self._connections.handle(event)

    def brokers_changed(self) -> None:
        """A broker came or went: what was asked of one that is gone is answered with an error in the next `advance`."""
        self._connections.changed = True

    def advance(self) -> None:
        """Send what can be sent, give up what is too late. Cheap if there is nothing to do."""
        connections, now_ns = self._connections, self._broker.now_ns
        if not (self._asked or connections.changed or connections.finished or connections.effects) and now_ns < connections.next_ns:
            return
        connections.tick(now_ns)
        if now_ns >= connections.next_ns:
            connections.expire()
        brokers = self._broker.controller.image.brokers
        connections.sync({node_id: info.node for node_id, info in brokers.items() if info.alive and node_id != self._broker.node_id})
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
        peer = self._connections.peers.by_id.get(node_id)
        if peer is None:
            self._fail(node_id, ConnectionFailed(f"broker {node_id} does not run"))
            return
        self._connections.connect(peer)
        while self._asked.get(node_id) and peer.connection is not None and peer.ready(IN_FLIGHT_MAX):
            asked = self._asked[node_id].pop(0)
            self._connections.send(peer.connection, asked.api_key, asked.message, asked.done, None, True, asked.version)
        if not self._asked.get(node_id):
            self._asked.pop(node_id, None)

    def _lost(self, peer: Peer) -> None:
        self._fail(peer.node_id, ConnectionFailed(f"{peer} cannot be reached ({peer.reason})"))

    def _fail(self, node_id: int, error: Exception) -> None:
        for asked in self._asked.pop(node_id, ()):
            asked.done(None, error)

    def deadline_ns(self) -> int | None:
        """When `advance` has something to do though nothing happens; None: never."""
        return None if self._connections.next_ns >= NEVER_NS else self._connections.next_ns

    def close(self) -> None:
        """End all connections; nobody is told, for nobody is there any more."""
        self._closed = True
        self._asked.clear()
        self._connections.end_all(ConnectionFailed("the broker is stopping"))
        self._connections.finished.clear()
        for effect in self._connections.take_effects():
            self._broker.emit(effect)
        self._connections.next_ns = NEVER_NS
