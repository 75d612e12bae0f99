"""Messages between the launcher and its processes: JSON objects over a local socket pair, one a
line, sometimes with a socket attached."""

from __future__ import annotations

import contextlib
import json
import select
import socket
from collections.abc import Mapping

from fairlead_kafka.base.errors import ConnectionFailed, TimedOut
from fairlead_kafka.base.json_types import Json, JsonObject, json_object

_PIECE_BYTES = 65_536


class Channel:
    """One end of the channel. The channel ends when the process at the other end ends, in whatever
    way."""

    def __init__(self, end: socket.socket) -> None:
        self.socket = end
        self._held = b""
        self._attached: list[int] = []

    def send(self, message: Mapping[str, Json], attached: socket.socket | None = None) -> None:
        """Send a message, and with it a copy of a socket.

        ConnectionFailed if the other end is gone.
        """
        data = json.dumps(message).encode() + b"\n"
        try:
            if attached is not None:
                sent = socket.send_fds(self.socket, [data], [attached.fileno()])
                data = data[sent:]
            self.socket.sendall(data)
        except OSError as error:
            raise ConnectionFailed(f"the process at the other end is gone ({error.strerror})") from None

    def receive(self, timeout_s: float | None = None) -> JsonObject:
        """Wait for the next message.

        ConnectionFailed when the other end is gone; TimedOut after `timeout_s` seconds (None:
        never).
        """
        while b"\n" not in self._held:
            if not self.ready(timeout_s):
                raise TimedOut(f"the process at the other end did not answer within {timeout_s:g} s")
            piece = b""
            with contextlib.suppress(ConnectionResetError):
                piece, sockets, _flags, _address = socket.recv_fds(self.socket, _PIECE_BYTES, 1)
                self._attached += sockets
            if not piece:
                raise ConnectionFailed("the process at the other end is gone")
            self._held += piece
        line, self._held = self._held.split(b"\n", 1)
        return json_object(line)

    def take_attached(self) -> socket.socket:
        """The socket that came with the last message."""
        return socket.socket(fileno=self._attached.pop(0))

    def ready(self, timeout_s: float | None) -> bool:
        """True if there is a message, or the end, to receive; waits for at most `timeout_s`."""
        if b"\n" in self._held:
            return True
        poll = select.poll()  # `select.select` takes no descriptor above 1,023
        poll.register(self.socket, select.POLLIN)
        return bool(poll.poll(None if timeout_s is None else 1000 * timeout_s))

    def ended(self) -> bool:
        """True if the other end is closed. Does not wait."""
        try:
            return not self.socket.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def close(self) -> None:
        """Close this end. Idempotent."""
        self.socket.close()
