"""Look-up of host names, without keeping a loop waiting."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable

from fairlead_kafka.base.ids import SocketAddress

Address = tuple[socket.AddressFamily, SocketAddress]
Found = Callable[[list[Address], str], None]
"""Called with the addresses, best first, or none and the reason."""


ADDRESS_ERRORS = (OSError, ValueError, OverflowError)
"""Exceptions of the socket module for an address: brokers may name hosts with a null byte, and
ports beyond 65535."""


def describe(error: Exception) -> str:
    """An error of connecting or looking a name up (ADDRESS_ERRORS) in words: "connection
    refused"."""
    if isinstance(error, socket.gaierror):
        return f"name not resolved: {error.strerror or error}".lower()
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno).lower()
    return f"not an address: {error}" if isinstance(error, ValueError | OverflowError) else str(error).lower()


def look_up(host: str, port: int, flags: int = 0) -> list[Address]:
    """The TCP addresses of host:port. One of ADDRESS_ERRORS if there are none. ValueError for a
    port out of range."""
    if not 0 <= port <= 65535:
        raise ValueError(f"port {port}")  # getaddrinfo would take it modulo 65536
    # Of a text, Python would encode even plain names by IDNA, and load that codec, for 1 ms.
    name = host.encode("ascii") if host.isascii() else host
    found = socket.getaddrinfo(name or None, port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _type, _protocol, _name, address in found]


class Resolver:
    """Looks up IP addresses and localhost at once, other names on a thread each; one thread per
    name at a time."""

    def __init__(self, post: Callable[[Callable[[], None]], None]) -> None:
        self._post = post
        self._waiting: dict[tuple[str, int], list[Found]] = {}

    def resolve(self, host: str, port: int, found: Found) -> None:
        """Call `found` with the addresses of host:port, now or later, on the host's thread."""
        try:
            addresses = look_up(host, port, 0 if host == "localhost" else socket.AI_NUMERICHOST)
        except ADDRESS_ERRORS:
            waiting = self._waiting.setdefault((host, port), [])
            waiting.append(found)
            if len(waiting) == 1:
                try:
                    threading.Thread(
                        target=self._work, args=(host, port), name="fairlead-resolver", daemon=True
                    ).start()
                except RuntimeError as error:  # the system has no room for one
                    self._done(host, port, [], f"name not resolved: {error}")
            return
        found(addresses, "")

    def _work(self, host: str, port: int) -> None:
        addresses: list[Address] = []
        reason = ""
        try:
            addresses = look_up(host, port)
        except ADDRESS_ERRORS as error:
            reason = describe(error)
        self._post(lambda: self._done(host, port, addresses, reason))

    def _done(self, host: str, port: int, addresses: list[Address], reason: str) -> None:
        for found in self._waiting.pop((host, port), ()):
            found(addresses, reason)
