"""What a host needs to secure the connections of a machine; `fairlead_kafka.security` makes it. Machines never hear of it but by events."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

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


class Answer(NamedTuple):
    """What a broker's end of a log-in says. `user`: who has logged in, until `expires_ms` (since 1970; None: for ever); None: go on."""

    message: bytes
    user: str | None = None
    expires_ms: int | None = None


class ServerAuthenticator(Protocol):
    """A broker's end of one log-in (SASL)."""

    blocking: bool
    """`next` may take long: it is called on a thread of its own."""

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. Raises AuthenticationFailed, whose text the client is told, or ConnectionFailed."""


class ServerTls(Protocol):
    """A broker's end of the TLS connections of one listener."""

    def context(self) -> ssl.SSLContext:
        """For the next connection. ConfigError if a file cannot be read any more."""

    def subject(self, certificate: bytes | None) -> str | None:
        """Whom a client's certificate (DER) names; None: it showed none. AuthenticationFailed if it may not come in by that."""


class Transport(Protocol):
    """How the connections of one machine are secured: those it makes."""

    @property
    def tls(self) -> Tls | None:
        """None: no TLS."""

    def authenticator(self, host: str) -> Authenticator:
        """One for a connection to `host`."""


@runtime_checkable
class ServingTransport(Transport, Protocol):
    """Likewise of a machine that listens: those it accepts, too, by the number of the listener."""

    def listener_tls(self, listener: int) -> ServerTls | None:
        """None: no TLS."""

    def server_authenticator(self, listener: int, mechanism: str) -> ServerAuthenticator:
        """One for a client that logs in by `mechanism`. AuthenticationFailed if the listener has no such."""


Aside = Callable[[Callable[[], None], Callable[[], None]], None]
"""aside(work, done): call `work` on a thread of its own, then `done` on the host's."""
