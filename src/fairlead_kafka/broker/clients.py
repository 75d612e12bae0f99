"""The connections of clients to one broker: how many there may be, which are closed as idle, and
the memory that all of them hold together.

Kafka's rules (`ConnectionQuotas`, `Selector.IdleExpiryManager`, `SimpleMemoryPool`), with its
configs. Above `max.connections` no connection is accepted until another is closed: connections
accepted meanwhile are neither read nor served. Where brokers have a listener of their own, theirs
are accepted, and for each the client's that was used longest ago is closed. Above
`max.connections.per.ip` a connection is closed at once, and above its address'
`connection_creation_rate` after a while. One on which nothing happened for
`connections.max.idle.ms` is closed, but never while a request waits for its answer, or the
connection is muted by a quota.

Once all requests that were read and not answered take more than `queued.max.request.bytes`, nothing
more is read until they take half of it. Exceptions are connections of brokers, because clients wait
for them; connections that are not authenticated yet; and one connection at a time that has sent
part of a request, oldest first, so that all are completed in turn even if parts alone exceed the
bound.
"""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import DELAYED_CLOSES_MAX, OUTBOUND_BROKER_MAX_BYTES
from fairlead_kafka.base.principal import USER, Principal
from fairlead_kafka.base.units import NS_PER_MS, ms_to_ns
from fairlead_kafka.broker.listeners import Listener
from fairlead_kafka.broker.sessions import Session, SessionHost
from fairlead_kafka.core.effects import Close, Hold, HoldListener
from fairlead_kafka.core.events import Accepted, Authenticated, Disconnected, Received, Secured, Sent

_logger = GuardedLogger("fairlead_kafka.broker")
_LOOKS_PER_IDLE_TIME = 20
"""Looks for idle connections per `connections.max.idle.ms`: a connection is closed at most a
twentieth of that time too late."""


class ClientsHost(SessionHost, Protocol):
    """The parts of a broker that the clients' sessions use."""

    listeners: tuple[Listener, ...]

    @property
    def running(self) -> bool:
        """True if the broker serves requests."""

    def listener_by_number(self, number: int) -> Listener:
        """The listener with this number."""


class Clients:
    """All sessions of one broker, by connection."""

    def __init__(self, broker: ClientsHost) -> None:
        self.sessions: dict[int, Session] = {}
        self.queued_bytes = 0
        """Bytes of memory taken by requests that were read and not answered."""
        self.outbound_bytes = 0
        """Bytes of answers that have not left, of sessions with more than OUTBOUND_MAX_BYTES."""
        self._broker = broker
        self._by_address: dict[str, int] = {}
        self._blocked: dict[Session, None] = {}
        self._listener_held = False
        self._looks = False
        self.full = False
        """True once `queued_bytes` passes `queued.max.request.bytes`, until it is at half of it."""
        self._unfinished: dict[Session, None] = {}
        """While full: sessions with a part of a request, in the order in which they may go on."""
        self._going_on: Session | None = None
        self._closing: set[int] = set()
        """Connections that were refused and are closed after a while."""

    # --- Events

    def accepted(self, event: Accepted) -> None:
        """Take a new connection, or close it if there are as many as may be."""
        self._broker.guard.call(None, self._accept, event)

    def _accept(self, event: Accepted) -> None:
        broker = self._broker
        if not broker.running:
            broker.emit(Close(event.connection))
            return
        address = address_of(event.peer)
        wait_ms = broker.quotas.connection_wait_ms(address) if broker.quotas.limits_connections else 0
        if wait_ms:
            self._close_later(event, wait_ms)
            return
        if self._by_address.get(address, 0) >= self._allowed(address):
            _logger.info(
                "broker %d refuses a connection from %s: its address has as many as it may",
                broker.node_id,
                event.peer,
            )
            broker.emit(Close(event.connection))
            return
        session = Session(broker, event.connection, event.peer, broker.listener_by_number(event.listener))
        self.sessions[event.connection] = session
        self._by_address[address] = self._by_address.get(address, 0) + 1
        if self._protects(session.listener):
            self._close_excess()
        elif len(self.sessions) > broker.settings["max.connections"]:
            session.blocked = True
            self._blocked[session] = None
            self.hold(session)
        self._hold_listener()
        self._look_later()

    def _close_later(self, event: Accepted, wait_ms: int) -> None:
        """Close a connection above its address' quota after `wait_ms` (KIP-612): if it were closed
        at once, its client would only come again sooner."""
        broker, connection = self._broker, event.connection
        _logger.info(
            "broker %d refuses a connection from %s: its address makes more than it may",
            broker.node_id,
            event.peer,
        )
        if len(self._closing) >= DELAYED_CLOSES_MAX:
            broker.emit(Close(connection))
            return
        self._closing.add(connection)
        broker.emit(Hold(connection, True))
        broker.call_later(wait_ms, lambda: self._close_refused(connection))

    def _close_refused(self, connection: int) -> None:
        if connection in self._closing:
            self._closing.remove(connection)
            self._broker.emit(Close(connection))

    def received(self, event: Received) -> None:
        """Pass bytes that a client sent to its session."""
        session = self.sessions.get(event.connection)
        if session is not None:
            self._broker.guard.call(session, session.received, event.data)

    def secured(self, event: Secured) -> None:
        """Called when a client's TLS handshake is over, with the user that its certificate names,
        if it showed one."""
        session = self.sessions.get(event.connection)
        if session is not None and event.subject is not None:
            session.principal = Principal(USER, event.subject)

    def authenticated(self, event: Authenticated) -> None:
        """Called when the host has checked a client's message of a log-in."""
        session = self.sessions.get(event.connection)
        if session is not None and session.login is not None:
            self._broker.guard.call(session, session.login.token_checked, event)

    def sent(self, event: Sent) -> None:
        """Called when the host has sent answers of a connection."""
        session = self.sessions.get(event.connection)
        if session is not None:
            self._broker.guard.call(session, session.sent, event.position)

    def disconnected(self, event: Disconnected) -> None:
        """Called when a client's connection has ended."""
        session = self.sessions.get(event.connection)
        if session is not None:
            self._broker.guard.call(session, session.ended)
            self.forget(session)
        self._closing.discard(event.connection)

    def forget(self, session: Session) -> None:
        """Called when a session ends, which makes room for another."""
        del self.sessions[session.connection]
        address = address_of(session.peer)
        self._by_address[address] -= 1
        if not self._by_address[address]:
            del self._by_address[address]
        self._blocked.pop(session, None)
        self._unfinished.pop(session, None)
        if self._going_on is session:
            self._go_on_with_next()
        self._unblock()
        self._hold_listener()

    def configured(self) -> None:
        """Called when the configs have changed. If there are too many connections by the new ones,
        those used longest ago are closed, as in Kafka."""
        self._broker.guard.call(None, self._configure)

    def _configure(self) -> None:
        self._unblock()
        self._close_excess()
        self._hold_listener()

    # --- How many

    def _protects(self, listener: str) -> bool:
        """True if the connections of a listener never wait for `max.connections`: it is the
        brokers', and clients have another (`ConnectionQuotas.protectedListener`)."""
        broker = self._broker
        return len(broker.listeners) > 1 and listener == broker.links.listener.name

    def _close_excess(self) -> None:
        """Close the clients' connections used longest ago while more than `max.connections` are
        served."""
        excess = len(self.sessions) - len(self._blocked) - self._broker.settings["max.connections"]
        if excess <= 0:
            return
        served = (
            each for each in self.sessions.values() if not each.blocked and not self._protects(each.listener)
        )
        for session in sorted(served, key=lambda each: each.active_ns)[:excess]:
            session.close()

    def _allowed(self, address: str) -> int:
        settings = self._broker.settings
        allowed: int = overrides(settings["max.connections.per.ip.overrides"]).get(
            address, settings["max.connections.per.ip"]
        )
        return allowed

    def _unblock(self) -> None:
        most = self._broker.settings["max.connections"]
        while self._blocked and len(self.sessions) - len(self._blocked) < most:
            session = next(iter(self._blocked))
            del self._blocked[session]
            session.blocked = False
            self.hold(session)
            self._broker.guard.call(session, session.serve)

    @hook("clients: no more connections than max.connections")
    def _hold_listener(self) -> None:
        held = len(self.sessions) >= self._broker.settings["max.connections"]
        if held != self._listener_held:
            self._listener_held = held
            for listener in self._broker.listeners:
                if not self._protects(listener.name):
                    self._broker.emit(HoldListener(listener.number, held))

    # --- How long idle

    def _look_later(self) -> None:
        idle_ms = self._broker.settings["connections.max.idle.ms"]
        if not self._looks and idle_ms >= 0:
            self._looks = True
            self._broker.call_later(idle_ms, self._look)

    @hook("clients: idle connections are closed")
    def _look(self) -> None:
        broker, idle_ns = self._broker, ms_to_ns(self._broker.settings["connections.max.idle.ms"])
        self._looks = False
        first_ns = broker.now_ns
        for session in list(self.sessions.values()):
            if session.waits_for_answer or session.muting.on:
                continue
            if session.active_ns + idle_ns <= broker.now_ns:
                _logger.info(
                    "broker %d closes the connection from %s: it was idle", broker.node_id, session.peer
                )
                session.close()
            else:
                first_ns = min(first_ns, session.active_ns)
        if self.sessions:
            self._looks = True
            pause_ns = max(idle_ns // _LOOKS_PER_IDLE_TIME, NS_PER_MS)
            broker.call_at(max(first_ns + idle_ns, broker.now_ns + pause_ns), self._look)

    # --- How much

    @property
    def answer_room_bytes(self) -> int:
        """Bytes that an answer may have, given the bytes of other connections' answers that are not
        sent yet."""
        return max(0, OUTBOUND_BROKER_MAX_BYTES - self.outbound_bytes)

    @hook("clients: a broker with too much to answer reads no more")
    def count(self, session: Session, difference_bytes: int) -> None:
        """Called when a session holds `difference_bytes` more of requests that were read and not
        answered."""
        self.queued_bytes += difference_bytes
        bound_bytes = self._broker.settings["queued.max.request.bytes"]
        if bound_bytes < 0:
            return
        if self.full:
            if self.queued_bytes <= bound_bytes // 2:
                self._set_full(False)
            elif not session.closed:
                if session.unfinished:
                    self._unfinished.setdefault(session)
                self.hold(session)
                if self._going_on is None:
                    self._go_on_with_next()
        elif self.queued_bytes > bound_bytes:
            self._set_full(True)

    def _set_full(self, full: bool) -> None:
        self.full = full
        self._going_on = None
        self._unfinished = (
            {session: None for session in self.sessions.values() if session.unfinished} if full else {}
        )
        if full:
            self._go_on_with_next()
        for session in list(self.sessions.values()):
            self.hold(session)

    def finished_one(self, session: Session) -> None:
        """Called, while the queue of requests is `full`, when a session's request has come whole.
        If that was the session whose turn it was to read, the next one reads on."""
        self._unfinished.pop(session, None)
        if session.unfinished:
            self._unfinished[session] = None
        if self._going_on is session:
            self._go_on_with_next()
        self.hold(session)

    def _go_on_with_next(self) -> None:
        before = self._going_on
        self._going_on = next(
            (each for each in self._unfinished if each.unfinished and not each.kept_waiting), None
        )
        for session in (before, self._going_on):
            if session is not None:
                self.hold(session)

    def hold(self, session: Session) -> None:
        """Have the host read a session's connection, or not: it does not while the session is
        blocked or muted, or too many bytes of requests are queued."""
        full = self.full and session.heard and not session.of_broker and session is not self._going_on
        session.hold(session.blocked or session.muting.on or full)

    def muting_changed(self, session: Session) -> None:
        """Called when a session is muted (nothing is read from it and no request of it is begun) or
        unmuted."""
        if session is self._going_on or (self.full and self._going_on is None):
            self._go_on_with_next()
        self.hold(session)

    # --- Ends and checks

    def end_all(self, drain: bool) -> None:
        """Close all connections; if `drain`, after their answers were sent."""
        for session in list(self.sessions.values()):
            session.close(drain=drain)
        for connection in list(self._closing):
            self._close_refused(connection)

    def check(self) -> None:
        """Check the counts against the sessions, between two steps; CheckFailed if not."""
        sessions = self.sessions.values()
        addresses = [address_of(session.peer) for session in sessions]
        same(
            "connections by address",
            self._by_address,
            {address: addresses.count(address) for address in set(addresses)},
        )
        same("bytes of queued requests", self.queued_bytes, sum(session.queued_bytes for session in sessions))
        same(
            "bytes of answers that have not left",
            self.outbound_bytes,
            sum(session.awaited_bytes for session in sessions),
        )
        same("blocked sessions", list(self._blocked), [session for session in sessions if session.blocked])
        for session in sessions:
            session.check()


def address_of(peer: str) -> str:
    """The address in `address:port`."""
    return peer.rpartition(":")[0]


def overrides(listed: tuple[str, ...]) -> dict[str, int]:
    """{address: most connections}, from `address:number` entries
    (`max.connections.per.ip.overrides`)."""
    pairs = (entry.rpartition(":") for entry in listed)
    return {address.strip("[]"): int(number) for address, _colon, number in pairs}
