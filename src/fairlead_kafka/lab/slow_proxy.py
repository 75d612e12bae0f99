"""A proxy that slows down a broker without a switch for that, such as Apache Kafka's.

It is a machine (`core.machine`): real on a selector host, tested in virtual time. Requests pass at
once, answers are delayed as `testing.Cluster`'s `slow` keeps them: `produce_service_time_ms` for
each Produce, one after another on a connection, with all later answers (KIP-794's sleep);
`latency_ms` for every answer, all concurrently. Order on a connection is kept.

    client --request--> proxy --request--> broker
    client <--due------ proxy <--answer--- broker
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from fairlead_kafka.base.errors import ConnectionFailed
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.effects import Close, Connect, Effect, Listen, Resolve, Write
from fairlead_kafka.core.events import (
    Accepted,
    Connected,
    Disconnected,
    Event,
    Listening,
    Received,
    Submitted,
)
from fairlead_kafka.runtime import Completion, Handle, SelectorHost
from fairlead_kafka.wire import ApiKey, FrameReader

_LISTENER = 1
_SIZE = struct.Struct(">i")
_REQUEST = struct.Struct(">hhi")
"""API key, version, correlation id."""
_TIMEOUT_S = 10.0


@dataclass(slots=True)
class OpenDoor:
    """Operation: listen on a free port; answered with the port."""

    completion: Completion[int]


@dataclass(slots=True)
class SetDelays:
    """Operation: hold answers back by so many milliseconds from now on; zeros: pass them on at
    once. Answered with None."""

    produce_service_time_ms: float
    latency_ms: float
    completion: Completion[None]


@dataclass(eq=False, slots=True)
class _Pair:
    """A client's connection and the one to the broker that answers it."""

    client: int
    broker: int
    connected: bool = False
    early: list[bytes] = field(default_factory=list)
    """Bytes that came before the connection to the broker was open."""
    requests: FrameReader = field(default_factory=FrameReader)
    answers: FrameReader = field(default_factory=FrameReader)
    produces: set[int] = field(default_factory=set)
    """Correlation ids of Produce requests in flight."""
    departing: deque[tuple[int, bytes]] = field(default_factory=deque)
    served_ns: int = 0
    """Time when the last Produce's service time is over, ns."""


class SlowProxy:
    """A listening port in front of the broker at `host`:`port`.

    A machine; operations are OpenDoor and SetDelays.
    """

    def __init__(self, host: str, port: int) -> None:
        self._address = (host, port)
        self._events: deque[Event] = deque()
        self._effects: list[Effect] = []
        self._pairs: dict[int, _Pair] = {}
        self._opening: Completion[int] | None = None
        self._last_number = 0
        self._service_ns = self._latency_ns = 0

    def receive(self, event: Event) -> None:
        """Queue `event` for the next step."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on what arrived and what is due; returns effects for the host."""
        while self._events:
            event = self._events.popleft()
            if isinstance(event, Received):
                self._received(event, now_ns)
            elif isinstance(event, Accepted):
                self._accepted(event.connection)
            elif isinstance(event, Connected):
                self._connected(event.connection)
            elif isinstance(event, Disconnected):
                self._disconnected(event.connection)
            elif isinstance(event, Listening):
                self._listening(event)
            elif isinstance(event, Submitted):
                self._operate(event.operation)
        for pair in dict.fromkeys(self._pairs.values()):
            while pair.departing and pair.departing[0][0] <= now_ns:
                self._effects.append(Write(pair.client, [pair.departing.popleft()[1]]))
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return min((pair.departing[0][0] for pair in self._pairs.values() if pair.departing), default=None)

    def _operate(self, operation: object) -> None:
        if isinstance(operation, OpenDoor):
            self._opening = operation.completion
            self._effects.append(Listen(_LISTENER, "127.0.0.1", 0))
        elif isinstance(operation, SetDelays):
            self._service_ns, self._latency_ns = (
                ms_to_ns(operation.produce_service_time_ms),
                ms_to_ns(operation.latency_ms),
            )
            self._effects.append(Resolve(operation.completion))

    def _listening(self, event: Listening) -> None:
        error = (
            None
            if event.error is None
            else ConnectionFailed(f"the proxy cannot listen at {event.host}: {event.error}")
        )
        if self._opening is not None:
            self._effects.append(Resolve(self._opening, event.port, error))

    def _accepted(self, client: int) -> None:
        self._last_number += 1
        pair = _Pair(client, self._last_number)
        self._pairs[client] = self._pairs[pair.broker] = pair
        self._effects.append(Connect(pair.broker, *self._address))

    def _connected(self, connection: int) -> None:
        pair = self._pairs.get(connection)
        if pair is not None:
            pair.connected = True
            if pair.early:
                self._effects.append(Write(pair.broker, pair.early))

    def _disconnected(self, connection: int) -> None:
        """Close the other side too; the broker's pending answers are lost, as when the broker
        itself ends.
        """
        pair = self._pairs.pop(connection, None)
        if pair is not None:
            other = pair.broker if connection == pair.client else pair.client
            self._pairs.pop(other)
            self._effects.append(Close(other))

    def _received(self, event: Received, now_ns: int) -> None:
        pair = self._pairs.get(event.connection)
        if pair is None:
            return
        if event.connection == pair.client:
            for frame in pair.requests.feed(event.data):
                api_key, _, correlation_id = _REQUEST.unpack_from(frame)
                if api_key == ApiKey.PRODUCE:
                    pair.produces.add(correlation_id)
            if pair.connected:
                self._effects.append(Write(pair.broker, [event.data]))
            else:
                pair.early.append(bytes(event.data))
            return
        for frame in pair.answers.feed(event.data):
            pair.departing.append(
                (self._due_ns(pair, _SIZE.unpack_from(frame)[0], now_ns), _SIZE.pack(len(frame)) + frame)
            )

    def _due_ns(self, pair: _Pair, correlation_id: int, now_ns: int) -> int:
        """Time when an answer that is here now may be sent, ns; never before an earlier one."""
        pair.served_ns = max(pair.served_ns, now_ns)
        if correlation_id in pair.produces:
            pair.produces.remove(correlation_id)
            pair.served_ns += self._service_ns
        due_ns = pair.served_ns + self._latency_ns
        return max(due_ns, pair.departing[-1][0]) if pair.departing else due_ns


class SlowProxies:
    """Proxies on one thread, one for each broker that is to be slowed; a context manager."""

    def __init__(self) -> None:
        self._host = SelectorHost("fairlead-slow-proxies")
        self._handles: dict[int, Handle] = {}
        self._host.start()

    def open(self, node_id: int, port: int) -> int:
        """Open a proxy in front of broker `node_id`, which listens (or will) at 127.0.0.1:`port`;
        returns the proxy's port."""
        self._handles[node_id] = self._host.add(SlowProxy("127.0.0.1", port))
        completion: Completion[int] = Completion()
        self._host.submit(self._handles[node_id], OpenDoor(completion))
        return completion.result(_TIMEOUT_S)

    def slow(self, node_id: int, produce_service_time_ms: float = 0, latency_ms: float = 0) -> None:
        """Slow the broker behind the proxy of `node_id` down, or with zeros no longer; as
        `testing.Cluster`'s `broker(i).slow`.
        """
        completion: Completion[None] = Completion()
        self._host.submit(self._handles[node_id], SetDelays(produce_service_time_ms, latency_ms, completion))
        completion.result(_TIMEOUT_S)

    def close(self) -> None:
        """Close all doors and connections."""
        self._host.close()

    def __enter__(self) -> SlowProxies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
