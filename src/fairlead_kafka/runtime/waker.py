"""Waking of a loop that sleeps in its selector, by other threads."""

from __future__ import annotations

import contextlib
import selectors
import socket


class Waker:
    """Wakes a loop that sleeps in its selector: a pair of sockets, of which the loop watches one; a
    byte into the other makes it readable."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._sender, self._receiver = socket.socketpair()
        for end in (self._sender, self._receiver):
            end.setblocking(False)
        selector.register(self._receiver, selectors.EVENT_READ, self._drain)

    def wake(self) -> None:
        """Wake the loop; OSError if it will wake anyway, or is closed. From any thread."""
        self._sender.send(b"\0")

    def close(self) -> None:
        """Close both sockets."""
        self._sender.close()
        self._receiver.close()

    def _drain(self, _mask: int) -> None:
        with contextlib.suppress(BlockingIOError):
            while len(self._receiver.recv(4096)) == 4096:
                pass
