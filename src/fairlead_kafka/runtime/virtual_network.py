"""A network in memory: machines of one virtual host reach each other by host:port, over links that
take time and can fail."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.units import KIB
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.core.events import Accepted, Connected, Disconnected, Event, Listening, Received, Sent
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.runtime.handle import Handle
from fairlead_kafka.runtime.virtual_link import Conditions, VirtualLink

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Authenticator, ServerAuthenticator

FIRST_FREE_PORT = 49_152
SOCKET_BUFFER_BYTES = 256 * KIB
"""Bytes on their way, or waiting for a slow reader, that count as sent: at least as much as the
buffers of real sockets hold."""
ACCEPTED_AT_ONCE, ACCEPTING_NS = 16, 1_000
"""Connections that waited for a listener and are accepted at once, and ns until so many more."""
_ANYWHERE = ("", "0.0.0.0", "::")
_LOCAL = ("localhost", "127.0.0.1", "::1")


class End:
    """One machine's side of a connection."""

    __slots__ = (
        "arrival_ns",
        "authenticator",
        "awaited_bytes",
        "early",
        "handle",
        "held",
        "host",
        "kept",
        "link",
        "listener",
        "network",
        "number",
        "open",
        "other",
        "room",
        "sent_ns",
        "taken_bytes",
        "written_bytes",
    )

    def __init__(
        self,
        network: VirtualNetwork,
        handle: Handle,
        number: int,
        link: VirtualLink,
        other: End | None = None,
    ) -> None:
        self.network = network
        self.handle = handle
        self.number = number
        self.link = link
        self.other = other
        self.open = True
        self.host = ""
        self.listener: int | None = None
        self.authenticator: Authenticator | ServerAuthenticator | None = None
        self.early: list[bytes] = []
        """Bytes written before the connection was open."""
        self.held = False
        self.room = memoryview(b"")
        """The machine's memory for the next bytes (`effects.Fill`)."""
        self.kept: list[bytes] = []
        """Bytes that arrived while this side read nothing."""
        self.arrival_ns = 0
        """When the last thing sent to this side arrives: nothing overtakes it."""
        self.sent_ns = 0
        """When the last thing written by this side has left, on a link of limited speed."""
        self.written_bytes = 0
        self.taken_bytes = 0
        """Bytes of `written_bytes` that the other side's machine was given."""
        self.awaited_bytes: int | None = None
        """The machine is told once so many bytes have left; None: it did not ask."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Send a copy of the buffers to the other side."""
        data = b"".join(buffers)
        other = self.other
        if not data:
            return
        self.written_bytes += len(data)
        if other is None:
            self.early.append(data)
        elif self.link.resets():
            self.reset()
        else:
            self.link.carry(other.handle, self.network.arrive, other, other.receive, data)
        if self.awaited_bytes is not None:
            self.taken(0)

    def close(self) -> None:
        """Close the connection, as this machine asked; the other side is informed after all bytes
        that were sent."""
        self.open = False
        self.handle.links.pop(self.number, None)
        other = self.other
        if other is not None:
            self.link.carry(other.handle, self.network.arrive, other, other.lose, "closed by the peer")

    def reset(self) -> None:
        """Break the connection: both sides are informed now, and bytes under way are lost."""
        if self.other is not None:
            self.other.lose("connection reset by peer")
        self.lose("connection reset by peer")

    def receive(self, data: bytes) -> None:
        """Deliver bytes that arrive, in the pieces that the host is set to."""
        if self.held or self.handle in self.link.not_reading:
            self.kept.append(data)
        else:
            self._take(data)

    def _take(self, data: bytes) -> None:
        if self.other is not None:
            self.other.taken(len(data))
        size_bytes = self.network.chunk_bytes or len(data)
        start = 0
        while start < len(data) and self.open:
            piece: bytes | memoryview = data[start : start + min(size_bytes, len(self.room) or size_bytes)]
            start += len(piece)
            if self.room:
                self.room[: len(piece)] = piece
                piece, self.room = self.room[: len(piece)], self.room[len(piece) :]
            self.network.deliver(self.handle, Received(self.number, piece))

    def hold(self, held: bool) -> None:
        """Read nothing more from the connection, or go on with the bytes that have arrived
        meanwhile."""
        self.held = held
        if not held:
            kept, self.kept = self.kept, []
            for data in kept:
                self.receive(data)

    def await_sent(self, position: int) -> None:
        """Report to this machine, by `events.Sent`, once `position` bytes of those that it writes
        have left: no more of them wait than the network's buffers hold."""
        self.awaited_bytes = position
        self.taken(0)

    def taken(self, size_bytes: int) -> None:
        """Note that the other side took `size_bytes` more of the bytes written here."""
        self.taken_bytes += size_bytes
        sent_bytes = min(self.written_bytes, self.taken_bytes + SOCKET_BUFFER_BYTES)
        if self.awaited_bytes is not None and self.awaited_bytes <= sent_bytes:
            self.awaited_bytes = None
            self.network.deliver(self.handle, Sent(self.number, sent_bytes))

    def lose(self, reason: str) -> None:
        """End the connection without this machine's doing, and report that to the machine by an
        event."""
        if self.open:
            for data in self.kept:  # what arrived before the end is not lost with it
                self._take(data)
            self.open = False
            self.handle.links.pop(self.number, None)
            self.network.deliver(self.handle, Disconnected(self.number, reason))


class VirtualNetwork:
    """Listeners, links and connections of one virtual host. `conditions` are those of links made
    from now on."""

    def __init__(
        self,
        conditions: Conditions,
        chunk_bytes: int | None,
        rng: Rng | None,
        now_ns: Callable[[], int],
        call_at: Callable[..., None],
        deliver: Callable[[Handle, Event], None],
    ) -> None:
        self.conditions = conditions
        self.chunk_bytes = chunk_bytes
        self.deliver = deliver
        self._rng = rng
        self._now_ns = now_ns
        self._call_at = call_at
        self._listeners: dict[tuple[str, int], tuple[Handle, int]] = {}
        self._held: dict[tuple[str, int], list[tuple[End, str, int]]] = {}
        """Listeners that accept no connections for now → those that wait there."""
        self._links: dict[tuple[Handle, Handle], VirtualLink] = {}
        self._last_port = FIRST_FREE_PORT - 1

    def rng(self) -> Rng:
        """The generator that faults are drawn from; UsageError if the host was made without one."""
        if self._rng is None:
            raise UsageError(
                "conditions that leave something to chance need rng: make the host with VirtualHost(rng=...)"
            )
        return self._rng

    def link(self, one: Handle, other: Handle) -> VirtualLink:
        """The link between two machines, made if there is none."""
        found = self._links.get((one, other))
        if found is None:
            found = self._links[one, other] = self._links[other, one] = self._new_link()
        return found

    def _new_link(self) -> VirtualLink:
        return VirtualLink(self.conditions, self.rng)

    def arrive(self, end: End, function: Callable[..., None], *arguments: object) -> None:
        """Call `function(*arguments)` at the time at which something sent now arrives at `end`. If
        the first argument is `bytes`, their number adds to the time, at the link's speed."""
        now_ns, link = self._now_ns(), end.link
        if link.plain:
            arrival_ns = now_ns + link.latency_ns
        else:
            sender, size_bytes = (
                end.other or end,
                len(arguments[0]) if arguments and type(arguments[0]) is bytes else 0,
            )
            sender.sent_ns = max(sender.sent_ns, now_ns) + link.sending_ns(size_bytes)
            arrival_ns = sender.sent_ns + link.delay_ns()
        if arrival_ns < end.arrival_ns:
            arrival_ns = end.arrival_ns
        end.arrival_ns = arrival_ns
        self._call_at(arrival_ns, function, *arguments)

    def listen(self, handle: Handle, listener: int, host: str, port: int) -> None:
        """Accept connections to host:port; port 0: the next free one."""
        if port == 0:
            self._last_port += 1
            port = self._last_port
        key = _key(host, port)
        if key in self._listeners:
            self.deliver(handle, Listening(listener, host, port, "address already in use"))
            return
        self._listeners[key] = (handle, listener)
        handle.listeners[listener] = key
        self.deliver(handle, Listening(listener, host, port))

    def stop_listening(self, handle: Handle, listener: int) -> None:
        """Close a listener; connections that waited to be accepted are refused."""
        key = handle.listeners.pop(listener, ("", 0))
        self._listeners.pop(key, None)
        for number, waiting in enumerate(self._held.pop(key, ())):
            # Some at a time, as in `hold_listener`.
            if number < ACCEPTED_AT_ONCE:
                self._answer(*waiting)
            else:
                self._call_at(
                    self._now_ns() + number // ACCEPTED_AT_ONCE * ACCEPTING_NS, self._answer, *waiting
                )

    def hold_listener(self, handle: Handle, listener: int, held: bool) -> None:
        """Let attempts to connect wait, or accept them again, first those that have waited."""
        key = handle.listeners.get(listener)
        if key is None:
            return
        if held:
            self._held.setdefault(key, [])
            return
        for number, waiting in enumerate(self._held.pop(key, ())):
            # Some at a time, as a real listener accepts: its machine may have it held again in
            # between.
            if number < ACCEPTED_AT_ONCE:
                self._answer(*waiting)
            else:
                self._call_at(
                    self._now_ns() + number // ACCEPTED_AT_ONCE * ACCEPTING_NS, self._answer, *waiting
                )

    def connect(self, handle: Handle, number: int, host: str, port: int) -> None:
        """Connect to the listener at host:port, if there is one when the attempt gets there."""
        target = self._find(host, port)
        link = self._new_link() if target is None else self.link(handle, target[0])
        end = handle.links[number] = End(self, handle, number, link)
        end.host = host
        link.attach(end)
        toward = None if target is None else target[0]
        link.carry(toward, self.arrive, end, link.carry, toward, self._answer, end, host, port)

    def _answer(self, end: End, host: str, port: int) -> None:
        target = self._find(host, port)
        if not end.open:
            return
        if target is None:
            self.arrive(end, end.lose, "connection refused")
            return
        handle, listener = target
        waiting = self._held.get(handle.listeners[listener])
        if waiting is not None:
            waiting.append((end, host, port))
            return
        link = self.link(end.handle, handle)
        if end.link is not link:  # nobody listened there when the attempt was made
            end.link = link
            link.attach(end)
        other = End(self, handle, handle.next_accepted(), end.link, end)
        other.listener = listener
        handle.links[other.number] = other
        end.link.attach(other)
        self.deliver(
            handle, Accepted(other.number, listener, f"{type(end.handle.machine).__name__}:{end.number}")
        )
        end.link.carry(end.handle, self.arrive, end, self._established, end, other)

    def _established(self, end: End, other: End) -> None:
        end.other = other
        if not end.open:
            end.close()
            return
        self.deliver(end.handle, Connected(end.number))
        early, end.early = end.early, []
        end.write(early)

    def _find(self, host: str, port: int) -> tuple[Handle, int] | None:
        return self._listeners.get(_key(host, port)) or self._listeners.get(_key("", port))

    def release(self, handle: Handle) -> None:
        """Close all connections and listeners of a machine."""
        for end in list(handle.links.values()):
            end.close()
        for listener in list(handle.listeners):
            self.stop_listening(handle, listener)


def _key(host: str, port: int) -> tuple[str, int]:
    if host in _ANYWHERE:
        return ("", port)
    return ("localhost" if host in _LOCAL else host, port)
