"""Protocols by which a host secures a machine's connections; `fairlead_kafka.security` has them."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

from fairlead_kafka.runtime.resolver import Address


class Authenticator(Protocol):
    """The client's end of one log-in (SASL). It keeps the passwords and keys."""

    blocking: bool
    """`next` may take long: it is called on a thread of its own."""

    def next(self, challenge: bytes | None) -> bytes | None:
        """The next message, given what the peer said (None: begin); None: the log-in is complete at
        this end. Raises AuthenticationFailed, ConnectionFailed for a reason that may pass, or
        ConfigError."""


class Tls(Protocol):
    """The client's end of TLS connections."""

    def wrap(self, host: str) -> tuple[ssl.SSLContext, str | None]:
        """The context for a connection to `host`, and the name to ask for in it (SNI). ConfigError
        if a file cannot be read any more."""

    def explain(
        self, host: str, address: Address | None, error: OSError | None
    ) -> tuple[str, Exception | None]:
        """Why a handshake with `host` failed, in words, and AuthenticationFailed if trying again
        does not help.

        `error` None: the peer closed the connection. May ask the peer at `address` once more, so it
        is called on a thread of its own.
        """


class Answer(NamedTuple):
    """A broker's answer in a log-in. `user`: who has logged in; None: the log-in goes on.

    The user is valid until `expires_ms` since 1970; None: for ever.
    """

    message: bytes
    user: str | None = None
    expires_ms: int | None = None


class ServerAuthenticator(Protocol):
    """A broker's end of one log-in (SASL)."""

    blocking: bool
    """`next` may take long: it is called on a thread of its own."""

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. Raises AuthenticationFailed, whose text the client is
        told, or ConnectionFailed."""


class ServerTls(Protocol):
    """A broker's end of the TLS connections of one listener."""

    def context(self) -> ssl.SSLContext:
        """The context for the next connection. ConfigError if a file cannot be read any more."""

    def subject(self, certificate: bytes | None) -> str | None:
        """The user that a client's certificate (DER) names; None: the client showed no certificate.

        AuthenticationFailed if the certificate is not accepted.
        """


class Transport(Protocol):
    """How the connections that one machine makes are secured."""

    @property
    def tls(self) -> Tls | None:
        """TLS for the machine's connections; None: they have none."""

    def authenticator(self, host: str) -> Authenticator:
        """A new authenticator for a connection to `host`."""


@runtime_checkable
class ServingTransport(Transport, Protocol):
    """How the connections of a machine that listens are secured: also those that it accepts."""

    def listener_tls(self, listener: int) -> ServerTls | None:
        """TLS for the connections that a listener accepts; None: they have none."""

    def server_authenticator(self, listener: int, mechanism: str) -> ServerAuthenticator:
        """A new authenticator for a client's `mechanism`. AuthenticationFailed if there is none."""


Aside = Callable[[Callable[[], None], Callable[[], None]], None]
"""aside(work, done): call `work` on a thread of its own, then `done` on the host's."""
