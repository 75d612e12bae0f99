"""A network in memory: machines of one virtual host reach each other by host:port, over links that take time and can be cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from fairlead.core.effects import Buffer
from fairlead.core.events import Accepted, Connected, Disconnected, Event, Listening, Received
from fairlead.runtime.handle import Handle

FIRST_FREE_PORT = 49_152
_ANYWHERE = ("", "0.0.0.0", "::")
_LOCAL = ("localhost", "127.0.0.1", "::1")


class VirtualLink:
    """What lies between two machines. Bytes of a connection stay in order whatever the latency becomes."""

    def __init__(self, latency_ms: float) -> None:
        self.latency_ms = latency_ms
        """One way, for everything sent from now on."""
        self._cut = False
        self._held: list[Callable[[], None]] = []
        self._ends: list[End] = []

    def cut(self) -> None:
        """Let nothing through: what is sent waits, as under TCP's retransmissions, and attempts to connect get no answer."""
        self._cut = True

    def heal(self) -> None:
        """Let everything through again, first what has waited."""
        self._cut = False
        held, self._held = self._held, []
        for send in held:
            send()

    def reset(self) -> None:
        """Break every connection on it: both sides see Disconnected, what was under way is lost."""
        ends, self._ends = self._ends, []
        for end in ends:
            end.lose("connection reset by peer")

    def carry(self, send: Callable[[], None]) -> None:
        """Send, or keep until healed."""
        if self._cut:
            self._held.append(send)
        else:
            send()

    def attach(self, end: End) -> None:
        """Remember one side of a connection."""
        self._ends = [each for each in self._ends if each.open]
        self._ends.append(end)


@dataclass(eq=False)
class End:
    """One machine's side of a connection."""

    network: VirtualNetwork
    handle: Handle
    number: int
    link: VirtualLink
    other: End | None = None
    open: bool = True
    early: list[bytes] = field(default_factory=list)
    """Written before the connection stood."""
    held: bool = False
    kept: list[bytes] = field(default_factory=list)
    """Arrived while this side read nothing."""
    arrival_ns: int = 0
    """When the last thing sent to this side arrives: nothing overtakes it."""

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Send a copy."""
        data = b"".join(buffers)
        other = self.other
        if not data:
            return
        if other is None:
            self.early.append(data)
        else:
            self.link.carry(lambda: self.network.arrive(other, lambda: other.receive(data)))

    def close(self) -> None:
        """This machine wants no more of it; the other hears of it after what was sent."""
        self.open = False
        self.handle.links.pop(self.number, None)
        other = self.other
        if other is not None:
            self.link.carry(lambda: self.network.arrive(other, lambda: other.lose("closed by the peer")))

    def receive(self, data: bytes) -> None:
        """Bytes arrive, in the pieces that the host is set to."""
        if self.held:
            self.kept.append(data)
            return
        size_bytes = self.network.chunk_bytes or len(data)
        for start in range(0, len(data), size_bytes):
            if self.open:
                self.network.deliver(self.handle, Received(self.number, data[start : start + size_bytes]))

    def hold(self, held: bool) -> None:
        """Read nothing more, or go on with what has arrived meanwhile."""
        self.held = held
        if not held:
            kept, self.kept = self.kept, []
            for data in kept:
                self.receive(data)

    def lose(self, reason: str) -> None:
        """The connection ends without this machine's doing."""
        if self.open:
            self.hold(False)  # what arrived before the end is not lost with it
            self.open = False
            self.handle.links.pop(self.number, None)
            self.network.deliver(self.handle, Disconnected(self.number, reason))


class VirtualNetwork:
    """Listeners, links and connections of one virtual host."""

    def __init__(
        self,
        latency_ms: float,
        chunk_bytes: int | None,
        now_ns: Callable[[], int],
        call_at: Callable[[int, Callable[[], None]], None],
        deliver: Callable[[Handle, Event], None],
    ) -> None:
        self.latency_ms = latency_ms
        self.chunk_bytes = chunk_bytes
        self.deliver = deliver
        self._now_ns = now_ns
        self._call_at = call_at
        self._listeners: dict[tuple[str, int], tuple[Handle, int]] = {}
        self._links: dict[tuple[Handle, Handle], VirtualLink] = {}
        self._last_port = FIRST_FREE_PORT - 1

    def link(self, one: Handle, other: Handle) -> VirtualLink:
        """What lies between two machines."""
        found = self._links.get((one, other))
        if found is None:
            found = self._links[one, other] = self._links[other, one] = VirtualLink(self.latency_ms)
        return found

    def arrive(self, end: End, function: Callable[[], None]) -> None:
        """Call `function` when something sent to `end` now gets there."""
        end.arrival_ns = max(end.arrival_ns, self._now_ns() + round(end.link.latency_ms * 1_000_000))
        self._call_at(end.arrival_ns, function)

    def listen(self, handle: Handle, listener: int, host: str, port: int) -> None:
        """Take connections to host:port; port 0: the next free one."""
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
        """Take no more connections."""
        self._listeners.pop(handle.listeners.pop(listener, ("", 0)), None)

    def connect(self, handle: Handle, number: int, host: str, port: int) -> None:
        """Reach for whoever listens at host:port when the attempt gets there."""
        target = self._find(host, port)
        link = VirtualLink(self.latency_ms) if target is None else self.link(handle, target[0])
        end = handle.links[number] = End(self, handle, number, link)
        link.attach(end)
        link.carry(lambda: self.arrive(end, lambda: link.carry(lambda: self._answer(end, host, port))))

    def _answer(self, end: End, host: str, port: int) -> None:
        target = self._find(host, port)
        if not end.open:
            return
        if target is None:
            self.arrive(end, lambda: end.lose("connection refused"))
            return
        handle, listener = target
        end.link = self.link(end.handle, handle)
        other = End(self, handle, handle.next_accepted(), end.link, end)
        handle.links[other.number] = other
        end.link.attach(other)
        self.deliver(handle, Accepted(other.number, listener, f"{type(end.handle.machine).__name__}:{end.number}"))
        end.link.carry(lambda: self.arrive(end, lambda: self._established(end, other)))

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
        """Close everything of a machine."""
        for end in list(handle.links.values()):
            end.close()
        for listener in list(handle.listeners):
            self.stop_listening(handle, listener)


def _key(host: str, port: int) -> tuple[str, int]:
    if host in _ANYWHERE:
        return ("", port)
    return ("localhost" if host in _LOCAL else host, port)
