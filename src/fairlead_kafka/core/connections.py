"""The connections of one client machine: opening, negotiating, answering, timing out, backing off.

It knows peers and bytes; which requests go to which broker, and the metadata, is up to `Network`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import (
    AuthenticationFailed,
    BrokerError,
    ConnectionFailed,
    DecodeError,
    TimedOut,
    UnsupportedVersion,
    UsageError,
)
from fairlead_kafka.base.ids import Node
from fairlead_kafka.base.units import ms_to_ns, ns_to_ms
from fairlead_kafka.core.backoff import Backoff
from fairlead_kafka.core.connection import NEVER_NS, Callback, Connection, InFlight, OnDone, R, State, Trigger
from fairlead_kafka.core.effects import Buffer, Close, Connect, Effect, Fill, Write
from fairlead_kafka.core.event_log import (
    CONNECTION_CLOSED,
    CONNECTION_FAILED,
    CONNECTION_LOST,
    CONNECTION_OPENED,
    LOGGED_IN,
    Event,
    EventLog,
)
from fairlead_kafka.core.events import Authenticated, Connected, ConnectionEvent, Disconnected, Received
from fairlead_kafka.core.login import NO_LOGIN_HINT, TLS_ALERT, login_mechanism
from fairlead_kafka.core.logins import Logins
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.core.peers import BOOTSTRAP_FIRST, Peer, Peers
from fairlead_kafka.core.reachability import ANSWER_LONG_MS, CONNECTING_LONG_MS, Reachability, unanswered
from fairlead_kafka.core.throttling import wait_ms
from fairlead_kafka.core.traffic import Traffic
from fairlead_kafka.wire import (
    NEEDED_FIELDS,
    ApiKey,
    ApiMessage,
    PrivateApi,
    RequestMessage,
    refuse_lost_fields,
)

_ANSWER_LONG_NS = ms_to_ns(ANSWER_LONG_MS)


class Shared(NamedTuple):
    """Parts that several `Connections` of one machine share; each has its own of a part that is
    None.

    The connections of a machine are numbered once, and what is wrong with a broker is known in one
    place.
    """

    traffic: Traffic | None = None
    """Counter of bytes and requests; None: nobody counts."""
    numbers: Iterator[int] | None = None
    reachability: Reachability | None = None
    events: EventLog | None = None
    """Log lines about connections; None: there are none."""


class Connections:
    """Peers and their connections. `now_ns` is the time of the owner's step as far as it is known
    (`tick`).

    An owner that names the version of each request,
    because it knows what the other end speaks, need not negotiate (`negotiates`).
    """

    def __init__(
        self,
        settings: Settings,
        rng: Rng,
        max_in_flight: int,
        on_lost: Callable[[Peer, AuthenticationFailed | None], None],
        shared: Shared | None = None,
        negotiates: bool = True,
    ) -> None:
        shared = shared or Shared()
        rebootstraps = settings["metadata.recovery.strategy"] == "rebootstrap"
        self.peers = Peers(settings["bootstrap.servers"], rng, rebootstraps=rebootstraps)
        self.reachability = shared.reachability or Reachability(
            settings["client.id"], settings["request.timeout.ms"]
        )
        self.effects: list[Effect] = []
        self.finished: list[tuple[Callback, Exception | None]] = []
        """Callbacks due in the next `advance`: requests that expect no answer, or could not be
        sent."""
        self.now_ns = 0
        self.next_ns = 0
        """A lower bound of the time at which something expires."""
        self.changed = True
        """A peer became ready, or free to connect to, or was lost, since the owner last looked."""
        self._rng = rng
        self._max_in_flight = max_in_flight
        self._on_lost = on_lost
        self.traffic = shared.traffic
        self._events = shared.events
        self._client_id: str = settings["client.id"]
        self._request_timeout_ms: float = settings["request.timeout.ms"]
        self._reconnect = Backoff(settings["reconnect.backoff.ms"], settings["reconnect.backoff.max.ms"])
        self._setup = Backoff(
            settings["socket.connection.setup.timeout.ms"], settings["socket.connection.setup.timeout.max.ms"]
        )
        idle_ms = settings["connections.max.idle.ms"]
        self._idle_ns = NEVER_NS if idle_ms < 0 else ms_to_ns(idle_ms)
        self._by_number: dict[int, Peer] = {}
        self._negotiates = negotiates
        self._mechanism = login_mechanism(settings)
        self._logins = Logins(self, rng)
        self.numbers = itertools.count(1) if shared.numbers is None else shared.numbers
        self._fresh: list[InFlight] = []
        self._heard: dict[int, Connection] = {}

    def tick(self, now_ns: int) -> None:
        """Set the time of this step. Requests that were sent earlier in the step get their
        deadlines from it."""
        if now_ns == self.now_ns:
            return
        self.now_ns = now_ns
        for request in self._fresh:
            request.sent_ns, request.deadline_ns = now_ns, now_ns + request.timeout_ns

    def take_effects(self) -> list[Effect]:
        """The effects for the host since the last call; ends the step."""
        self._fresh.clear()
        # Only now: all that had come is fed, so that what comes next goes where the room begins.
        for number, connection in self._heard.items():
            room = connection.room() if number in self._by_number else None
            if room is not None:
                self.effects.append(Fill(number, room))
        self._heard.clear()
        effects, self.effects = self.effects, []
        return effects

    # Asking

    def connection(self, node_id: int, api_key: ApiKey) -> Connection:
        """The connection of a node that is connected. UsageError if it is not."""
        peer = self.peers.by_id.get(node_id)
        if peer is None or peer.connection is None or peer.connection.state is not State.READY:
            raise UsageError(f"{api_key.name}: broker {node_id} is not connected; ask ready() first")
        return peer.connection

    def connect(self, peer: Peer) -> None:
        """Begin to connect, unless that has begun or the peer is in back-off."""
        if not peer.connectable:
            return
        number = next(self.numbers)
        setup_ns = self._setup.wait_ns(peer.slow_setups, self._rng)
        peer.connection = Connection(number, str(peer), self._client_id, self.now_ns + setup_ns, self.now_ns)
        peer.tried_ns = self.now_ns
        self._by_number[number] = peer
        self.effects.append(Connect(number, peer.host, peer.port))
        self.next_ns = min(
            self.next_ns, peer.connection.setup_deadline_ns, self.now_ns + ms_to_ns(CONNECTING_LONG_MS)
        )

    def send(
        self,
        connection: Connection,
        api_key: ApiKey | PrivateApi,
        message: ApiMessage,
        on_done: Callback,
        timeout_ms: float | None,
        expects_response: bool,
        version: int | None,
    ) -> None:
        """Write one request; see `Network.send`, which holds `on_done` against `message`."""
        if len(connection.in_flight) >= self._max_in_flight:
            raise UsageError(
                f"{api_key.name}: {connection.peer} has {len(connection.in_flight)} requests in flight; ask "
                "ready() first"
            )
        try:
            spoken = connection.version(api_key) if version is None else version
            if api_key in NEEDED_FIELDS:
                refuse_lost_fields(api_key, spoken, message)
        except UnsupportedVersion as error:
            self.finished.append((on_done, error))
            return
        timeout_ns = ms_to_ns(self._request_timeout_ms if timeout_ms is None else timeout_ms)
        deadline_ns = self.now_ns + timeout_ns
        request = InFlight(0, api_key, spoken, on_done, timeout_ns, deadline_ns, self.now_ns)
        try:
            buffers = connection.encode(request, message, expects_response)
        except UsageError as error:  # a value does not fit its field: only this request fails
            self.finished.append((on_done, error))
            return
        self._write(connection, buffers)
        if not expects_response:
            self.finished.append((on_done, None))
            return
        # The owner may send before it tells the time of its step: `tick` sets the deadline right
        # until the step ends.
        self._fresh.append(request)
        self.next_ns = min(self.next_ns, deadline_ns, self.now_ns + _ANSWER_LONG_NS)

    # Events

    def handle(self, event: ConnectionEvent) -> None:
        """Handle one event of a connection; events of connections that are closed already are
        ignored."""
        peer = self._by_number.get(event.connection)
        if peer is None or peer.connection is None:
            return
        if type(event) is Received:
            self._received(peer, peer.connection, event.data)
        elif type(event) is Connected:
            peer.connection.fire(Trigger.CONNECTED)
            peer.slow_setups = 0
            self._log(CONNECTION_OPENED, peer, peer.address)
            if self.traffic is not None:
                self.traffic.connected(peer.node_id)
            if self._negotiates:
                self._ask_versions(peer.connection)
            else:
                peer.connection.fire(Trigger.NEGOTIATED)
                self._usable(peer)
        elif type(event) is Authenticated:
            self._logins.host_answered(peer.connection, event)
        elif type(event) is Disconnected:
            self._disconnected(peer, peer.connection, event)

    def _disconnected(self, peer: Peer, connection: Connection, event: Disconnected) -> None:
        # A listener that wants a log-in closes a connection without one silently. So does a broker
        # that dies, but that is unlikely as long as this client has reached none.
        unheard = (
            peer.connected
            and connection.in_flight
            and self._mechanism is None
            and not self.reachability.reached
        )
        self.lose(peer, Trigger.LOST, event.reason + (NO_LOGIN_HINT if unheard else ""), refusal=event.error)

    def _received(self, peer: Peer, connection: Connection, data: bytes | memoryview) -> None:
        connection.used_ns = connection.heard_ns = self.now_ns
        try:
            frames = connection.frames(data)
        except DecodeError as error:
            if connection.state is State.NEGOTIATING and bytes(data).startswith(TLS_ALERT):
                refusal = AuthenticationFailed(
                    f"{peer} speaks TLS at this port: set security.protocol to SSL or SASL_SSL"
                )
                self.lose(peer, Trigger.REFUSED, str(refusal), refusal=refusal)
            else:
                self.lose(peer, Trigger.BROKEN, str(error), error)
            return
        self._heard[connection.number] = connection
        if self.traffic is not None:
            self.traffic.read_bytes(peer.node_id, len(data), len(frames))
        if frames and connection.state is State.READY:
            self.reachability.answered(peer, self.now_ns, connection)
        for frame in frames:
            try:
                if connection.state is State.NEGOTIATING:
                    if connection.hear_versions(frame):
                        self._throttle(peer, connection, connection.negotiation_wait_ms)
                        self._negotiated(peer, connection)
                    else:
                        self._ask_versions(connection)
                    continue
                request, response = connection.answer(frame)
            except (DecodeError, BrokerError) as error:
                self.lose(peer, Trigger.BROKEN, str(error), error)
                return
            throttle_ms = wait_ms(request.api_key, request.version, response)
            if throttle_ms > 0:
                self._throttle(peer, connection, throttle_ms)
            if self.traffic is not None and type(request.api_key) is ApiKey:
                self.traffic.served(peer.node_id, request.api_key, self.now_ns - request.sent_ns)
            request.on_done(response, None)
            if connection.state is State.CLOSED:
                return  # the callback closed it

    def _negotiated(self, peer: Peer, connection: Connection) -> None:
        self.reachability.negotiated = True
        if self._mechanism is None:
            connection.fire(Trigger.NEGOTIATED)
            self._usable(peer)
        else:
            self._logins.begin(connection, self._mechanism)

    # What a log-in needs (`core.logins.Asker`)

    def ask_now(
        self, connection: Connection, api_key: ApiKey, message: RequestMessage[R], on_done: OnDone[R]
    ) -> None:
        """Send a request that serves the connection itself (versions, log-in), whatever its state.
        UnsupportedVersion if the broker has no such API."""
        version = connection.version(api_key)
        timeout_ns = ms_to_ns(self._request_timeout_ms)
        request = InFlight(0, api_key, version, on_done, timeout_ns, self.now_ns + timeout_ns, self.now_ns)
        self._write(connection, connection.encode(request, message))
        self.next_ns = min(self.next_ns, request.deadline_ns)

    def refused(self, connection: Connection, refusal: Exception) -> None:
        """Called when the log-in on a connection failed: `refusal` is why."""
        self.lose(self._by_number[connection.number], Trigger.REFUSED, str(refusal), refusal=refusal)

    def authenticated(self, connection: Connection, renew_ns: int | None) -> None:
        """Called when the log-in on a connection is complete. It has to be renewed by `renew_ns`
        (monotonic; None: never)."""
        if renew_ns is not None:
            self.next_ns = min(self.next_ns, renew_ns)
        peer = self._by_number[connection.number]
        self._log(LOGGED_IN, peer, self._mechanism)
        self._usable(peer)

    def _usable(self, peer: Peer) -> None:
        peer.failures, self.changed = 0, True
        self.reachability.usable(peer, self.now_ns)

    def _ask_versions(self, connection: Connection) -> None:
        deadline_ns = self.now_ns + ms_to_ns(self._request_timeout_ms)
        self._write(connection, connection.ask_versions(deadline_ns))
        self.next_ns = min(self.next_ns, deadline_ns)

    def _write(self, connection: Connection, buffers: list[Buffer]) -> None:
        connection.used_ns = self.now_ns
        self.effects.append(Write(connection.number, buffers))
        if self.traffic is not None:
            self.traffic.wrote(self._by_number[connection.number].node_id, sum(map(len, buffers)))

    def _throttle(self, peer: Peer, connection: Connection, throttle_ms: int) -> None:
        """Send nothing to a broker that throttles us; it does not read meanwhile (KIP-219).

        Requests that it has not begun are answered later by as much, so their deadlines move too.
        """
        before_ns = max(peer.throttled_until_ns or 0, self.now_ns)
        until_ns = self.now_ns + ms_to_ns(throttle_ms)
        if until_ns > before_ns:
            peer.throttled_until_ns = until_ns
            connection.put_off(until_ns - before_ns)
            self.next_ns = min(self.next_ns, until_ns)

    # Ends

    def lose(
        self,
        peer: Peer,
        trigger: Trigger,
        reason: str,
        blame: Exception | None = None,
        refusal: Exception | None = None,
    ) -> None:
        """Called when a connection failed: back off, and fail what was in flight (the oldest
        request with `blame`, if given).

        `refusal`: what the log-in or the TLS handshake failed with; final for callers if it is
        AuthenticationFailed.
        """
        worked = peer.connected
        connection = self._detach(peer, trigger)
        if worked:
            self._log(CONNECTION_LOST, peer, peer.address, reason)
        else:
            self._log(CONNECTION_FAILED, peer, peer.address, reason, peer.failures + 1)
        self.reachability.failed(peer, reason, self.now_ns, worked=worked, refused=refusal is not None)
        peer.blocked_until_ns = self.now_ns + self._reconnect.wait_ns(peer.failures, self._rng)
        peer.failures += 1
        self.next_ns = min(self.next_ns, peer.blocked_until_ns)
        self.changed = True
        self._on_lost(peer, refusal if isinstance(refusal, AuthenticationFailed) else None)
        self._fail(connection, ConnectionFailed(f"the connection to {peer} was lost ({reason})"), blame)

    def end(self, peer: Peer, error: Exception) -> None:
        """Close a connection that is of no use any more, without back-off; what was in flight fails
        with `error`, by `finished`."""
        if peer.connection is not None:
            connection = self._detach(peer, Trigger.ENDED)
            self._log(CONNECTION_CLOSED, peer, error)
            self.finished += [(request.on_done, error) for request in connection.in_flight]
            connection.in_flight.clear()

    def sync(self, nodes: Mapping[int, Node]) -> None:
        """Follow the metadata: a broker with a new address, or gone, loses its connection."""
        for peer in self.peers.sync(nodes):
            self.end(
                peer,
                ConnectionFailed(
                    f"the connection to {peer} was closed: the broker moved or left the cluster"
                ),
            )
        self._by_number = {
            peer.connection.number: peer for peer in self.peers.by_id.values() if peer.connection is not None
        }
        self.reachability.forget_old(self.now_ns)

    def end_all(self, error: Exception) -> None:
        """Close every connection."""
        for peer in list(self._by_number.values()):
            self.end(peer, error)

    def _log(self, event: Event, peer: Peer, *values: object) -> None:
        if self._events is not None:
            self._events.log(event, peer.node_id if peer.node_id > BOOTSTRAP_FIRST else None, *values)

    def _detach(self, peer: Peer, trigger: Trigger) -> Connection:
        connection = peer.connection
        assert connection is not None
        if self.traffic is not None and connection.state is not State.CONNECTING:
            self.traffic.disconnected(peer.node_id)
        connection.fire(trigger)
        peer.connection = None
        peer.throttled_until_ns = None
        del self._by_number[connection.number]
        if trigger is not Trigger.LOST:
            # Requests without answer (acks=0) may still be on their way out of a connection that is
            # merely of no use any more.
            self.effects.append(
                Close(connection.number, drain=trigger is Trigger.ENDED and not connection.in_flight)
            )
        return connection

    def _fail(self, connection: Connection, error: Exception, blame: Exception | None = None) -> None:
        in_flight = list(connection.in_flight)
        connection.in_flight.clear()
        for request in in_flight:
            request.on_done(None, blame or error)
            blame = None

    # Time

    def expire(self) -> None:
        """End the back-offs and throttling whose time is over; close connections whose requests are
        late, and renew log-ins that are due."""
        for peer in list(self.peers.by_id.values()):
            if peer.blocked_until_ns is not None and peer.blocked_until_ns <= self.now_ns:
                peer.blocked_until_ns, self.changed = None, True
            if peer.throttled_until_ns is not None and peer.throttled_until_ns <= self.now_ns:
                peer.throttled_until_ns, self.changed = None, True
            if peer.connection is not None:
                self._expire(peer, peer.connection)

    def _expire(self, peer: Peer, connection: Connection) -> None:
        self.reachability.late(peer, connection, self.now_ns)
        if connection.state is State.CONNECTING:
            if connection.setup_deadline_ns <= self.now_ns:
                waited_ms = ns_to_ms(connection.setup_deadline_ns - connection.used_ns)
                peer.slow_setups += 1
                self.lose(peer, Trigger.EXPIRED, f"no connection within {waited_ms:.0f} ms")
            return
        late = connection.expired(self.now_ns)
        if late is not None:
            # Answers come in order, so nothing behind the missing one could arrive: the connection
            # goes, as in Kafka.
            waited_ms = ns_to_ms(late.timeout_ns) or self._request_timeout_ms
            reason = unanswered(connection, late.api_key, waited_ms)
            connection.in_flight.remove(late)
            connection.in_flight.appendleft(late)
            self.lose(peer, Trigger.EXPIRED, reason, TimedOut(f"{peer}: {reason}"))
        elif not connection.in_flight and self._idle_until_ns(connection) <= self.now_ns:
            if connection.state is State.READY:
                self.end(peer, ConnectionFailed(f"the connection to {peer} was closed (idle)"))
            else:  # it waits for this end: a token provider may hang
                waited_ms = ns_to_ms(self.now_ns - connection.used_ns)
                self.lose(peer, Trigger.EXPIRED, f"no next message of the log-in within {waited_ms:.0f} ms")
        elif (
            connection.state is State.READY
            and connection.login is not None
            and connection.login.due(self.now_ns)
        ):
            if connection.used_ns > connection.login.done_ns:
                self._logins.begin(connection, connection.login.mechanism)
            else:
                self.end(
                    peer, ConnectionFailed(f"the connection to {peer} was closed (its session ended unused)")
                )

    def _idle_until_ns(self, connection: Connection) -> int:
        """Monotonic time, ns, until which a connection may have nothing in flight: a log-in waits
        for this end no longer than for the other."""
        if connection.state is State.READY:
            return connection.used_ns + self._idle_ns
        return connection.used_ns + ms_to_ns(self._request_timeout_ms)

    def plan(self) -> None:
        """Set `next_ns` to the monotonic time at which `expire` has something to do next."""
        next_ns = NEVER_NS
        for peer in self.peers.by_id.values():
            for time_ns in (peer.blocked_until_ns, peer.throttled_until_ns):
                if time_ns is not None:
                    next_ns = min(next_ns, time_ns)
            connection = peer.connection
            if connection is None:
                continue
            next_ns = min(next_ns, self.reachability.late_ns(peer, connection))
            if (
                connection.login is not None
                and connection.state is State.READY
                and connection.login.renew_ns is not None
            ):
                next_ns = min(next_ns, connection.login.renew_ns)
            if connection.state is State.CONNECTING:
                next_ns = min(next_ns, connection.setup_deadline_ns)
            elif connection.expiry_ns is not None:
                next_ns = min(next_ns, connection.expiry_ns)
            else:
                next_ns = min(next_ns, self._idle_until_ns(connection))
        self.next_ns = next_ns
