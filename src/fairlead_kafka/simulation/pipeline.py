"""Connections of a client that has several requests on their way, as a machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.effects import Connect, Effect, Write
from fairlead_kafka.core.events import Connected, Disconnected, Event, Received
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.wire import (
    ApiKey,
    FrameReader,
    RequestMessage,
    decode_response,
    encode_request,
)


class _Asked(NamedTuple):
    api_key: ApiKey
    version: int
    answered: Callable[..., None]


@dataclass(slots=True)
class _Connection:
    """One connection; brokers answer its requests in their order."""

    address: str
    unsent: list[bytes] | None = field(default_factory=list)
    """Requests that wait for the connection; None: it is open."""
    asked: list[_Asked] = field(default_factory=list)
    frames: FrameReader = field(default_factory=FrameReader)


class Pipeline:
    """A machine with one connection to each server, opened when it is needed, on which requests
    follow each other without a wait. The caller gets each answer, or None if the connection was
    lost."""

    def __init__(self, host: VirtualHost) -> None:
        self._host = host
        self._events: list[Event] = []
        self._effects: list[Effect] = []
        self._connections: dict[int, _Connection] = {}
        self._numbers: dict[str, int] = {}
        self._last = 0
        self.handle = host.add(self)

    def ask(
        self,
        address: str,
        api_key: ApiKey,
        version: int,
        message: RequestMessage[R],
        answered: Callable[[R | None], None],
    ) -> None:
        """Send a request to the server at host:port, behind those sent before."""
        number = self._numbers.get(address)
        if number is None:
            self._last += 1
            number = self._numbers[address] = self._last
            self._connections[number] = _Connection(address)
            name, port = address.rsplit(":", 1)
            self._effects.append(Connect(number, name, int(port)))
        connection = self._connections[number]
        request = b"".join(encode_request(api_key, version, 1, "pipeline", message))
        connection.asked.append(_Asked(api_key, version, answered))
        if connection.unsent is None:
            self._effects.append(Write(number, [request]))
        else:
            connection.unsent.append(request)
        self._host.wake(self.handle)

    def receive(self, event: Event) -> None:
        """Queue an event."""
        self._events.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on the events that arrived and on what is due; returns the effects for the host.
        `now_ns` is monotonic, `wall_ms` milliseconds since 1970."""
        events, self._events = self._events, []
        for event in events:
            if not isinstance(event, Connected | Received | Disconnected):
                continue
            connection = self._connections.get(event.connection)
            if connection is None:
                continue
            if isinstance(event, Connected):
                self._effects.append(Write(event.connection, connection.unsent or []))
                connection.unsent = None
            elif isinstance(event, Received):
                for frame in connection.frames.feed(event.data):
                    asked = connection.asked.pop(0)
                    try:
                        asked.answered(decode_response(asked.api_key, asked.version, memoryview(frame)))
                    except DecodeError:
                        asked.answered(None)
            else:
                del self._connections[event.connection], self._numbers[connection.address]
                for asked in connection.asked:
                    asked.answered(None)
        effects, self._effects = self._effects, []
        return effects

    def deadline_ns(self) -> int | None:
        """Monotonic time of the next step if nothing arrives, ns; None: none is needed."""
        return None
