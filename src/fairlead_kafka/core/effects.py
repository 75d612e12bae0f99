"""Effects: all requests that a machine can make of its host.

Effects of one step are carried out in order. File effects on one file are carried out in order;
`FileSync` may be done on another thread, and its `FileDone` then comes later than those of effects
asked for after it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from fairlead_kafka.core.completion import Completion

T = TypeVar("T")
Buffer = bytes | bytearray | memoryview


class Connect(NamedTuple):
    """Open a TCP connection. The machine chooses the number: positive, never used twice.

    `plain`: without TLS, whatever the machine's transport has (between a broker and the controller
    of its cluster).
    """

    connection: int
    host: str
    port: int
    plain: bool = False


class Write(NamedTuple):
    """Send buffers on a connection, in order, without copying them: the buffers may not change
    until they are sent."""

    connection: int
    buffers: Sequence[Buffer]


class Close(NamedTuple):
    """Close a connection, after what is queued for it was sent if `drain`."""

    connection: int
    drain: bool = False


class Hold(NamedTuple):
    """Read nothing more from a connection (`held`), or go on reading; what the peer sends meanwhile
    waits in the network.

    Bytes that were read before may still be reported.
    """

    connection: int
    held: bool


class Fill(NamedTuple):
    """Read the next bytes of a connection into `room`, in order, and report them by
    `events.Received` as views of it. `room` follows the bytes that were reported up to this step. A
    host may also report bytes of its own; the machine then copies them."""

    connection: int
    room: memoryview


class AwaitSent(NamedTuple):
    """Report by `events.Sent` once `position` bytes, of all that were ever written to a connection,
    have left into the operating system's buffers. A later request for the same connection replaces
    an earlier one. If the connection is lost first, only `events.Disconnected` comes."""

    connection: int
    position: int


class Authenticate(NamedTuple):
    """Ask for the next message of the log-in on a connection (SASL). `challenge` is what the peer
    said; None: begin.

    The host answers by `events.Authenticated`. The host has the passwords and keys, and may ask
    other servers (a token end point, Kerberos). For an accepted connection the host checks the
    peer's message instead; `mechanism` is the one that the peer chose.
    """

    connection: int
    challenge: bytes | None = None
    mechanism: str | None = None


class Listen(NamedTuple):
    """Accept connections at host:port; port 0 takes any free one. Answered by `events.Listening`.

    The machine's transport says whether connections of this `listener` use TLS; `events.Secured`
    then follows `events.Accepted`.
    """

    listener: int
    host: str
    port: int


class StopListening(NamedTuple):
    """Close a listener; accepted connections stay open."""

    listener: int


class HoldListener(NamedTuple):
    """Accept no connections at a listener (`held`), or go on accepting.

    Connections that come meanwhile wait in the network. A few may be accepted all the same.
    """

    listener: int
    held: bool


class Resolve(NamedTuple, Generic[T]):
    """Complete an operation with `value` or `error`. `completion` came with the operation, and is
    opaque to the machine."""

    completion: Completion[T]
    value: T | None = None
    error: Exception | None = None


class Call(NamedTuple):
    """Run a user's callback (delivery reports) outside the machine's step. An exception in it is
    logged, not propagated."""

    function: Callable[..., object]
    arguments: tuple[object, ...]


class FileAppend(NamedTuple):
    """Append buffers to the file at `path` (made, with its folders, if missing); FileDone.value:
    the position, in bytes from the file's start, at which they begin."""

    token: int
    path: str
    buffers: Sequence[Buffer]


class FileReplace(NamedTuple):
    """Write the whole file at `path` durably under another name and move it into place;
    FileDone.value: None."""

    token: int
    path: str
    buffers: Sequence[Buffer]


class FileRead(NamedTuple):
    """Read `size_bytes` at `position` (fewer at the file's end; size -1: all); FileDone.value:
    bytes."""

    token: int
    path: str
    position: int
    size_bytes: int


class FileSync(NamedTuple):
    """`fdatasync` the file; FileDone.value: None."""

    token: int
    path: str


class FileTruncate(NamedTuple):
    """Cut the file to `size_bytes`; FileDone.value: None."""

    token: int
    path: str
    size_bytes: int


class FileDelete(NamedTuple):
    """Delete the file, or the folder with all below it; a path that does not exist is no error;
    FileDone.value: None."""

    token: int
    path: str


class FileList(NamedTuple):
    """List names and sizes of a folder's files; FileDone.value: list[tuple[str, int]], sorted.

    It is empty if the folder is missing.
    """

    token: int
    path: str


FileEffect = FileAppend | FileReplace | FileRead | FileSync | FileTruncate | FileDelete | FileList
ConnectionEffect = Connect | Write | Close | Hold | Fill | AwaitSent | Authenticate
Effect = ConnectionEffect | Listen | StopListening | HoldListener | Resolve[Any] | Call | FileEffect
