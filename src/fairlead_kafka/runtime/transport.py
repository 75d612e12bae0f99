"""What a host needs to secure the connections of a machine; `fairlead_kafka.security` makes it. Machines never hear of it but by events."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.runtime.resolver import Address


class Authenticator(Protocol):
    """One end of one log-in (SASL). Keeps what is secret."""

    blocking: bool
    """`next` may take long: it is called on a thread of its own."""

    def next(self, challenge: bytes | None) -> bytes | None:
        """The next message, given what the peer said (None: begin); None: this end is satisfied.

        Raises AuthenticationFailed, ConnectionFailed for what may pass, or ConfigError.
        """


class Tls(Protocol):
    """One end of TLS connections."""

    def wrap(self, host: str) -> tuple[ssl.SSLContext, str | None]:
        """The context for a connection to `host`, and the name to ask for in it (SNI). ConfigError if a file cannot be read any more."""

    def explain(self, host: str, address: Address | None, error: OSError | None) -> tuple[str, Exception | None]:
        """Why a handshake with `host` failed, in words, and AuthenticationFailed if trying again does not help.

        `error` None: the peer closed. May ask the peer at `address` once more, so it is called on a thread of its own.
        """


class Transport(Protocol):
    """How the connections of one machine are secured."""

    @property
    def tls(self) -> Tls | None:
        """None: no TLS."""

    def authenticator(self, host: str) -> Authenticator:
        """One for a connection to `host`."""


Aside = Callable[[Callable[[], None], Callable[[], None]], None]
"""aside(work, done): call `work` on a thread of its own, then `done` on the host's."""
