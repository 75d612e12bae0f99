"""Ports for servers that are told theirs before they start, or start there again.

A port that was free a moment ago may be another program's by the time a server listens: the system
gives it to the next program that asks for any port, or connects. Apache Kafka opens its listeners
one after another, and serves on the first ones until it finds a later one taken; then it ends.
"""

from __future__ import annotations

import socket
import sys
from types import TracebackType

from fairlead_kafka.runtime.resolver import look_up


class ReservedPort:
    """A port of `host` that no other program is given until `close`; a context manager. `port` 0:
    any free one. OSError if it is taken.

    A server that sets SO_REUSEADDR, as those in Java and Python do, may listen at it meanwhile, and
    do so again after it ended. Only Linux has both; elsewhere the port is one that was free.
    """

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        addresses = look_up(host, port, socket.AI_PASSIVE)
        family, name = min(addresses, key=lambda address: address[0] != socket.AF_INET)  # as a listener
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._socket.bind(name)
        except OSError:
            self._socket.close()
            raise
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
