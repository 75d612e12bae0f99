"""One TCP connection of a selector host: non-blocking, written by views, read in bounded turns."""

from __future__ import annotations

import contextlib
import errno
import os
import selectors
import socket
from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from fairlead_kafka.base.limits import RECEIVE_CHUNK_BYTES
from fairlead_kafka.base.units import MIB, NS_PER_S
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.core.events import Connected, Disconnected, Event, Received, Sent
from fairlead_kafka.runtime.handle import Handle
from fairlead_kafka.runtime.resolver import ADDRESS_ERRORS, Address, describe

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Authenticator, ServerAuthenticator

READ, WRITE = selectors.EVENT_READ, selectors.EVENT_WRITE
IOV_MAX = max(16, min(os.sysconf("SC_IOV_MAX"), 1024))
"""Buffers that one `sendmsg` takes."""
RECEIVE_SMALL_BYTES = 64 * 1024
"""Bytes asked of a quiet connection in one call. They come by way of the loop's `scratch`, and what
is kept of them is as large as what came: a buffer of this size that is made for each call, and then
shortened, leaves what came of each in the heap, far apart from the next, and the process grows by
the holes."""
FILL_BYTES = MIB
"""Bytes read into a machine's own memory (`effects.Fill`) by one call."""
READS_PER_ITERATION = 8
"""Reads of one connection after which the other connections have their turn."""
DRAIN_NS = 30 * NS_PER_S
"""How long what is queued on a connection that its machine has closed may take to leave: a peer may
never read it."""
LINGER_NS = NS_PER_S
"""How long a closed connection with everything sent waits for the peer to close, so that its last
bytes are not reset away."""
CLOSED_BY_PEER = "closed by the peer"


class Loop(Protocol):
    """The part of a host that its links and listeners need."""

    readable_bytes: int
    """Bytes that may still be read in this turn, from all connections."""
    scratch: memoryview
    """Memory that links receive into, one after another, before they copy what came; a link that
    asks for more makes it larger."""

    def deliver(self, handle: Handle, event: Event) -> None:
        """Give an event to a machine, which is stepped in this iteration of the loop."""

    def watch(self, sock: socket.socket, mask: int, watched: int, ready: Callable[[int], None]) -> None:
        """Have `ready` called when `sock` is ready for `mask` (0: never); `watched` is the mask so
        far."""

    def call_at(self, when_ns: int, function: Callable[[], None]) -> None:
        """Call `function` once, at `when_ns` on the monotonic clock."""

    def parted(self, link: Link) -> None:
        """Forget a link that was closed and drained."""

    def now_ns(self) -> int:
        """The time, ns, on the monotonic clock."""


class Link:
    """One connection, from the attempt to the end. Its handle forgets it as soon as the machine
    gets no more events of it."""

    def __init__(self, loop: Loop, handle: Handle, number: int, host: str = "") -> None:
        self.host = host
        """The host that it leads to, as was asked for."""
        self.listener: int | None = None
        """The listener that accepted it; None: it was made here."""
        self.authenticator: Authenticator | ServerAuthenticator | None = None
        """The log-in under way."""
        self._loop = loop
        self._handle = handle
        self._number = number
        self._socket: socket.socket | None = None
        self._addresses: list[Address] = []
        self._address: Address | None = None  # the one tried last
        self._outbound: deque[Buffer] = deque()
        self._outbound_bytes = 0
        self._watched = 0
        self._room = memoryview(b"")  # the machine's own, where what comes next goes
        self._chunk_bytes = RECEIVE_SMALL_BYTES
        self._connecting = False
        self._sent_bytes = 0  # since the connection is open
        self._awaited_bytes: int | None = None  # the machine is told once so many are sent
        self._held = False
        self._draining = False
        self._lingering = False

    # Beginning

    def connect(self, addresses: Sequence[Address], reason: str) -> None:
        """Connect to the addresses, in order, until one succeeds. If there are none, `reason` says
        why."""
        if self._handle.links.get(self._number) is not self:
            return  # closed while its name was looked up
        self._addresses = list(addresses)
        self._connecting = True
        self._try_next(reason)

    def accepted(self, sock: socket.socket) -> None:
        """Take an accepted socket."""
        self._open(sock)
        self._watch(READ)

    def _open(self, sock: socket.socket) -> None:
        self._socket = sock
        sock.setblocking(False)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    def _try_next(self, reason: str) -> None:
        while self._addresses:
            family, address = self._address = self._addresses.pop(0)
            try:
                self._open(socket.socket(family, socket.SOCK_STREAM))
                assert self._socket is not None
                self._socket.connect(address)
            except BlockingIOError:
                self._watch(WRITE)
                return
            except ADDRESS_ERRORS as error:
                reason = describe(error)
                self._shut()
                continue
            self._established()
            return
        self._lose(reason or "no address")

    def _established(self) -> None:
        sock = self._socket
        assert sock is not None
        code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        # A connection to a free port of this host can meet itself (TCP's simultaneous open): nobody
        # is listening there.
        if code == 0 and _is_itself(sock):
            code = errno.ECONNREFUSED
        if code:
            self._shut()
            self._try_next(os.strerror(code).lower())
            return
        self._stand()

    def _stand(self) -> None:
        """Report to the machine that the connection is open, and begin to read from it."""
        self._connecting = False
        self._watch(READ)
        self._loop.deliver(self._handle, Connected(self._number))
        self.flush()

    # Sending

    def write(self, buffers: Sequence[Buffer]) -> None:
        """Queue buffers; `flush` sends them."""
        for buffer in buffers:
            size_bytes = buffer.nbytes if type(buffer) is memoryview else len(buffer)
            if size_bytes:
                self._outbound.append(buffer)
                self._outbound_bytes += size_bytes

    def flush(self) -> None:
        """Send as much as the socket takes."""
        sock = self._socket
        if sock is None or self._connecting:
            return
        outbound = self._outbound
        try:
            while outbound:
                self._consume(self._transmit(sock, outbound))
        except BlockingIOError:
            pass
        except OSError as error:
            self._fail(error)
            return
        if self._awaited_bytes is not None and self._awaited_bytes <= self._sent_bytes:
            self._awaited_bytes = None
            self._loop.deliver(self._handle, Sent(self._number, self._sent_bytes))
        if self._draining and not outbound:
            self._linger()
            return
        mask = (0 if self._held or self._draining else READ) | (WRITE if outbound else 0)
        if mask != self._watched:
            self._watch(mask)

    def _transmit(self, sock: socket.socket, outbound: deque[Buffer]) -> int:
        """Send bytes from the front of `outbound`, as many as one call takes; returns how many."""
        if len(outbound) == 1:
            return sock.send(outbound[0])
        return sock.sendmsg(outbound if len(outbound) <= IOV_MAX else list(islice(outbound, IOV_MAX)))

    def hold(self, held: bool) -> None:
        """Stop reading from the connection, or go on, from the next `flush` on."""
        self._held = held

    def fill(self, room: memoryview) -> None:
        """Read the next bytes into `room`, in place of bytes of the host's own, until it is
        full."""
        self._room = room

    def await_sent(self, position: int) -> None:
        """Report to the machine, by `events.Sent`, once `position` bytes in all were sent; `flush`
        checks it."""
        self._awaited_bytes = position

    def _consume(self, sent: int) -> None:
        outbound = self._outbound
        self._outbound_bytes -= sent
        self._sent_bytes += sent
        if not self._outbound_bytes:
            outbound.clear()
            return
        while sent:
            buffer = outbound[0]
            size_bytes = buffer.nbytes if type(buffer) is memoryview else len(buffer)
            if sent < size_bytes:
                outbound[0] = memoryview(buffer).cast("B")[sent:]
                return
            outbound.popleft()
            sent -= size_bytes

    # Readiness

    def _ready(self, mask: int) -> None:
        if self._socket is None:
            return  # closed earlier in this turn
        if self._connecting:
            self._established()
            return
        if mask & WRITE:
            self.flush()
        if mask & READ and self._socket is not None:
            self._read(self._socket)

    def _read(self, sock: socket.socket) -> None:
        loop = self._loop
        for _ in range(READS_PER_ITERATION):
            if loop.readable_bytes <= 0:
                return
            asked_bytes = self._chunk_bytes
            try:
                if self._room:
                    room = self._room[:FILL_BYTES]
                    asked_bytes = len(room)
                    data: bytes | memoryview = room[: self._receive_into(sock, room)]
                    self._room = self._room[len(data) :]
                else:
                    data = self._receive(sock, asked_bytes)
            except BlockingIOError:
                return
            except OSError as error:
                self._fail(error)
                return
            if not data:
                self._lose(CLOSED_BY_PEER)
                return
            loop.readable_bytes -= len(data)
            if self._lingering:
                continue
            loop.deliver(self._handle, Received(self._number, data))
            if len(data) < asked_bytes:
                self._chunk_bytes = RECEIVE_SMALL_BYTES
                return
            self._chunk_bytes = RECEIVE_CHUNK_BYTES

    def _receive(self, sock: socket.socket, limit_bytes: int) -> bytes:
        """Receive up to `limit_bytes`; empty: the peer has closed. BlockingIOError: nothing yet."""
        if limit_bytes > RECEIVE_SMALL_BYTES:
            return sock.recv(limit_bytes)
        scratch = self._loop.scratch
        return scratch[: sock.recv_into(scratch, limit_bytes)].tobytes()

    def _receive_into(self, sock: socket.socket, room: memoryview) -> int:
        """Receive bytes into `room`; returns how many. 0: the peer has closed. BlockingIOError:
        nothing yet."""
        return sock.recv_into(room)

    def _watch(self, mask: int) -> None:
        if self._socket is not None:
            self._loop.watch(self._socket, mask, self._watched, self._ready)
            self._watched = mask

    # Ending

    def close(self, drain: bool) -> None:
        """Close the connection, as the machine asked: once all queued bytes are sent (`drain`), or
        now. Bytes that the socket takes at once are sent in any case."""
        self._handle.links.pop(self._number, None)
        self._room = memoryview(b"")
        self._draining = drain and not self._connecting and self._socket is not None
        if self._draining and self._outbound:
            self._loop.call_at(self._loop.now_ns() + DRAIN_NS, self._shut)
        if self._draining or self._outbound:
            self.flush()
        if not self._draining:
            self._shut()

    @property
    def parting(self) -> bool:
        """True while the socket is still open although the machine has closed the connection."""
        return self._draining and self._socket is not None

    @property
    def sending(self) -> bool:
        """True while bytes are queued."""
        return bool(self._outbound)

    def abandon(self) -> None:
        """Close at once, because the host ends."""
        self._shut()

    def _linger(self) -> None:
        sock = self._socket
        if sock is None or self._lingering:
            return
        self._lingering = True
        try:
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            self._shut()
            return
        self._watch(READ)
        self._loop.call_at(self._loop.now_ns() + LINGER_NS, self._shut)

    def _fail(self, error: OSError) -> None:
        """End the connection: sending or receiving failed."""
        self._lose(describe(error))

    def _lose(self, reason: str, refusal: Exception | None = None) -> None:
        self._shut()
        if self._handle.links.pop(self._number, None) is not None:
            self._loop.deliver(self._handle, Disconnected(self._number, reason, refusal))

    def _shut(self) -> None:
        sock, self._socket = self._socket, None
        if sock is not None:
            self._loop.watch(sock, 0, self._watched, self._ready)
            self._watched = 0
            sock.close()
            self._loop.parted(self)
        self._outbound.clear()
        self._outbound_bytes = 0


def _is_itself(sock: socket.socket) -> bool:
    try:
        return bool(sock.getsockname() == sock.getpeername())
    except OSError:
        return False
