"""Ports for servers that are told theirs before they start.

A port that was free a moment ago may be another program's by the time a server in Java has come as
far as to listen. Apache Kafka opens its listeners one after another, and serves on the first ones
until it finds a later one taken; then it ends.
"""

from __future__ import annotations

import socket
import sys
from types import TracebackType


class ReservedPort:
    """A port of 127.0.0.1 that no other program is given until `close`; a context manager.

    A server that sets SO_REUSEADDR, as those in Java and Python do, may listen at it meanwhile, and
    do so again after it ended. Only Linux has both; elsewhere the port is one that was free.
    """

    def __init__(self) -> None:
        self._socket = socket.socket()
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._socket.bind(("127.0.0.1", 0))
        self.number: int = self._socket.getsockname()[1]
        if sys.platform != "linux":
            self.close()

    def close(self) -> None:
        """Give the port back. Safe to call twice."""
        self._socket.close()

    def __enter__(self) -> ReservedPort:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
