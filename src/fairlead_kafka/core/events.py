"""Events that hosts give to machines. They are plain objects: the simulator prints and compares
them."""

from __future__ import annotations

from typing import Any, NamedTuple


class Connected(NamedTuple):
    """The connection asked for by `effects.Connect` is open."""

    connection: int


class Accepted(NamedTuple):
    """A peer connected to a listener. The host numbers such connections downward from -1; a
    machine's own count upward from 1."""

    connection: int
    listener: int
    peer: str


class Secured(NamedTuple):
    """The TLS handshake on an accepted connection is over. `subject`: whom its certificate names,
    by `ssl.principal.mapping.rules`; None: the peer showed no certificate."""

    connection: int
    subject: str | None


class Disconnected(NamedTuple):
    """A connection ended, or could not be made. Not sent for a connection that the machine closed
    itself.

    `error`: AuthenticationFailed if it was ended because one end does not accept the other.
    """

    connection: int
    reason: str
    error: Exception | None = None


class Authenticated(NamedTuple):
    """The answer to `effects.Authenticate`: `message` is what to send next; None: nothing, the
    log-in is complete at this end.

    `error`: AuthenticationFailed, or ConnectionFailed for a reason that may pass (a token end point
    that is down). On an accepted connection `user` is who logged in, once that is known, and
    `expires_ms` (since 1970) until when the log-in is valid; None: for ever.
    """

    connection: int
    message: bytes | None
    error: Exception | None = None
    user: str | None = None
    expires_ms: int | None = None


class Received(NamedTuple):
    """Bytes from a connection, in any split; a memoryview is one of the room that `effects.Fill`
    gave."""

    connection: int
    data: bytes | memoryview


class Sent(NamedTuple):
    """Event: `position` bytes of all that was written to a connection have left, at least as many
    as `effects.AwaitSent` asked for."""

    connection: int
    position: int


class Listening(NamedTuple):
    """`effects.Listen` succeeded (error is None), on the port given, or failed."""

    listener: int
    host: str
    port: int
    error: str | None = None


class Submitted(NamedTuple):
    """An operation, submitted by a client API or a cluster's launcher. Each kind of machine has its
    own operations."""

    operation: Any


FileValue = int | bytes | list[tuple[str, int]] | None
"""Results of file effects: a position, the bytes read, or names and sizes."""


class FileDone(NamedTuple):
    """A file effect with this token was carried out: `value` is what the effect's docstring says,
    or `error` if it failed."""

    token: int
    value: FileValue
    error: OSError | None = None


ConnectionEvent = Connected | Disconnected | Received | Authenticated
"""The events that a client machine passes on to its `Network`s."""
Event = (
    Connected
    | Accepted
    | Secured
    | Disconnected
    | Authenticated
    | Received
    | Sent
    | Listening
    | Submitted
    | FileDone
)
