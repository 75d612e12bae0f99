"""Machines that do what a test tells them, and both hosts behind one set of words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_kafka.core.effects import Connect, Effect, Listen, Write
from fairlead_kafka.core.events import (
    Accepted,
    Connected,
    Disconnected,
    Event,
    FileDone,
    Listening,
    Received,
    Submitted,
)
from fairlead_kafka.runtime import Handle, SelectorHost, VirtualHost
from tests.support.waiting import PATIENCE_S


class Puppet:
    """A machine that carries out submitted effects and records every other event. `react(event)`
    may answer with effects.

    A submitted function is called with the puppet and the time, and may give effects.
    """

    def __init__(self, react: Callable[[Event], Sequence[Effect]] = lambda event: ()) -> None:
        self.events: list[Event] = []
        self.deadline: int | None = None
        self.stepped_ns: list[int] = []
        self.on_step: Callable[[], None] = lambda: None
        self._react = react
        self._queued: list[Event] = []

    def receive(self, event: Event) -> None:
        self._queued.append(event)

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        queued, self._queued = self._queued, []
        self.stepped_ns.append(now_ns)
        effects: list[Effect] = []
        for event in queued:
            if isinstance(event, Submitted) and callable(event.operation):
                effects += event.operation(self, now_ns) or ()
            elif isinstance(event, Submitted):
                effects += event.operation
            else:
                self.events.append(event)
                effects += self._react(event)
        self.on_step()
        return effects

    def deadline_ns(self) -> int | None:
        return self.deadline

    def of(self, kind: type[Any]) -> list[Any]:
        """The events of one kind, so far."""
        return [event for event in list(self.events) if isinstance(event, kind)]

    def bytes_on(self, connection: int) -> bytes:
        """Everything received on one connection, so far."""
        return b"".join(event.data for event in self.of(Received) if event.connection == connection)


@dataclass
class Stage:
    """A host with puppets on it: selector or virtual."""

    host: SelectorHost | VirtualHost
    changed: threading.Condition = field(default_factory=threading.Condition)

    def puppet(self, react: Callable[[Event], Sequence[Effect]] = lambda event: ()) -> tuple[Puppet, Handle]:
        """A new machine on the host."""
        puppet = Puppet(react)
        puppet.on_step = self.notify
        return puppet, self.host.add(puppet)

    def tell(self, handle: Handle, *effects: Effect) -> None:
        """Have a puppet ask for effects."""
        self.host.submit(handle, list(effects))

    def until(self, predicate: Callable[[], object], timeout_s: float = PATIENCE_S) -> None:
        """Wait for something to be true; fails if it does not become so."""
        if isinstance(self.host, VirtualHost):
            self.host.run_until(predicate, timeout_s * 1000)
            return
        with self.changed:
            assert self.changed.wait_for(predicate, timeout_s), "it did not come to pass"

    def listen(
        self, react: Callable[[Event], Sequence[Effect]] = lambda event: ()
    ) -> tuple[Puppet, Handle, int]:
        """A puppet that listens, and its port."""
        puppet, handle = self.puppet(react)
        self.tell(handle, Listen(1, "127.0.0.1", 0))
        self.until(lambda: puppet.of(Listening))
        answer = puppet.of(Listening)[0]
        assert answer.error is None
        return puppet, handle, answer.port

    def connect(self, handle: Handle, puppet: Puppet, port: int, connection: int = 1) -> None:
        """Connect a puppet to a port of this machine."""
        self.tell(handle, Connect(connection, "127.0.0.1", port))
        self.until(lambda: Connected(connection) in puppet.events)

    def pair(self) -> tuple[Puppet, Handle, Puppet, Handle]:
        """Client and server, connected: connection 1 at the client, -1 at the server."""
        server, server_handle, port = self.listen()
        client, client_handle = self.puppet()
        self.connect(client_handle, client, port)
        self.until(lambda: server.of(Accepted))
        return client, client_handle, server, server_handle

    def file_done(self, puppet: Puppet, handle: Handle, effect: Any) -> FileDone:
        """Carry out one file effect and give its answer."""
        self.tell(handle, effect)
        self.until(lambda: any(done.token == effect.token for done in puppet.of(FileDone)))
        return next(done for done in puppet.of(FileDone) if done.token == effect.token)

    def notify(self) -> None:
        """Have `until` look again."""
        with self.changed:
            self.changed.notify_all()


def echo(event: Event) -> Sequence[Effect]:
    """A reaction: send back what came."""
    return [Write(event.connection, [event.data])] if isinstance(event, Received) else []


def lost(puppet: Puppet, connection: int) -> bool:
    """True once a puppet saw the end of a connection."""
    return any(event.connection == connection for event in puppet.of(Disconnected))
