"""Listeners of a selector host, and the effects that open, hold and close them."""

from __future__ import annotations

import socket
from collections.abc import Callable

from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.effects import HoldListener, Listen, StopListening
from fairlead_kafka.core.events import Listening
from fairlead_kafka.runtime.descriptors import too_near_the_limit
from fairlead_kafka.runtime.handle import Handle
from fairlead_kafka.runtime.resolver import ADDRESS_ERRORS, describe, look_up
from fairlead_kafka.runtime.sockets import READ, Loop

_log = GuardedLogger("fairlead_kafka.runtime")
ACCEPTS_PER_ITERATION = 64
WARNINGS_APART_NS = 10 * NS_PER_S


class Listener:
    """One listening socket. `on_accept(socket, peer)` is called for each connection."""

    PAUSE_NS = NS_PER_S // 10
    """How long to leave the queue of connections alone after the process ran out of file
    descriptors."""

    def __init__(
        self, loop: Loop, host: str, port: int, on_accept: Callable[[socket.socket, str], None]
    ) -> None:
        self._loop = loop
        self._on_accept = on_accept
        addresses = look_up(host, port, socket.AI_PASSIVE)
        # localhost has two addresses and clients may be told either; the older is the one that all
        # of them try.
        family, name = min(addresses, key=lambda address: address[0] != socket.AF_INET)
        self._socket: socket.socket | None = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.setblocking(False)
            self._socket.bind(name)
            self._socket.listen(1024)
        except OSError:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]
        self._held = False
        self._warn_again_ns = 0
        loop.watch(self._socket, READ, 0, self._ready)
        self._watched = READ

    def _ready(self, _mask: int) -> None:
        for _ in range(ACCEPTS_PER_ITERATION):
            if self._socket is None:
                return
            try:
                sock, peer = self._socket.accept()
            except BlockingIOError:
                return
            except ConnectionError:
                continue
            except OSError:  # no descriptor, or no memory
                self._set_watched(0)
                self._loop.call_at(self._loop.now_ns() + self.PAUSE_NS, lambda: self.hold(self._held))
                return
            if too_near_the_limit(sock.fileno()):
                self._refuse(sock)
            else:
                self._on_accept(sock, f"{peer[0]}:{peer[1]}")

    def _refuse(self, sock: socket.socket) -> None:
        sock.close()
        now_ns = self._loop.now_ns()
        if now_ns >= self._warn_again_ns:
            self._warn_again_ns = now_ns + WARNINGS_APART_NS
            _log.warning(
                "connections to port %d are closed: the process has hardly a descriptor left (ulimit -n)",
                self.port,
            )

    def hold(self, held: bool) -> None:
        """Accept no connections, or go on accepting."""
        self._held = held
        self._set_watched(0 if held else READ)

    def _set_watched(self, mask: int) -> None:
        if self._socket is not None and mask != self._watched:
            self._loop.watch(self._socket, mask, self._watched, self._ready)
            self._watched = mask

    def close(self) -> None:
        """Stop listening."""
        if self._socket is not None:
            self._set_watched(0)
            self._socket.close()
            self._socket = None


def listen(
    loop: Loop, handle: Handle, effect: Listen, on_accept: Callable[[socket.socket, str], None]
) -> None:
    """Open the listener that `effect` asks for, and report that to its machine by
    `events.Listening`."""
    try:
        listener = Listener(loop, effect.host, effect.port, on_accept)
    except ADDRESS_ERRORS as error:
        loop.deliver(handle, Listening(effect.listener, effect.host, effect.port, describe(error)))
        return
    handle.listeners[effect.listener] = listener
    loop.deliver(handle, Listening(effect.listener, effect.host, listener.port))


def stop_listening(handle: Handle, effect: StopListening) -> None:
    """Close a listener, if it is open."""
    listener = handle.listeners.pop(effect.listener, None)
    if listener is not None:
        listener.close()


def hold_listener(handle: Handle, effect: HoldListener) -> None:
    """Accept no connections at a listener, or go on accepting, if it is open."""
    listener = handle.listeners.get(effect.listener)
    if listener is not None:
        listener.hold(effect.held)
