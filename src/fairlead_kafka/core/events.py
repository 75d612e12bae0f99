"""Everything that can happen to a machine. Plain objects: the simulator prints and compares them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(slots=True)
class Connected:
    """The connection asked for by `effects.Connect` stands."""

    connection: int


@dataclass(slots=True)
class Accepted:
    """A peer connected to a listener. The host numbers such connections downward from -1; a machine's own count upward from 1."""

    connection: int
    listener: int
    peer: str


@dataclass(slots=True)
class Disconnected:
    """A connection ended, or could not be made. Not sent for a connection that the machine closed itself."""

    connection: int
    reason: str


@dataclass(slots=True)
class Received:
    """Bytes from a connection, in any split."""

    connection: int
    data: bytes


@dataclass(slots=True)
class Sent:
    """`position` bytes of all that was written to a connection have left: at least as many as `effects.AwaitSent` asked for."""

    connection: int
    position: int


@dataclass(slots=True)
class Listening:
    """`effects.Listen` succeeded (error is None), on the port given, or failed."""

    listener: int
    host: str
    port: int
    error: str | None = None


@dataclass(slots=True)
class Submitted:
    """An operation handed over by a face or by the cluster's launcher; what it may be is each machine's own affair."""

    operation: Any


@dataclass(slots=True)
class FileDone:
    """A file effect with this token was carried out: `value` by the effect's docstring, or `error` if it failed."""

    token: int
    value: Any
    error: OSError | None = None


Event = Connected | Accepted | Disconnected | Received | Sent | Listening | Submitted | FileDone
