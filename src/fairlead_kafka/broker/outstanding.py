"""One request of a session that is being served."""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.limits import BEGUN_REQUEST_BYTES
from fairlead_kafka.broker.dispatch import Api
from fairlead_kafka.broker.quotas.quotas import Toll
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.wire import RequestHeader


class Asker(Protocol):
    """The session of a request, as the request needs it."""

    peer: str

    def close(self, reason: str | None = None) -> None:
        """End the connection, with a warning in the log if there is a reason."""


class Outstanding:
    """One request of a session, from its beginning until its answer is written."""

    __slots__ = (
        "answered",
        "api",
        "buffers",
        "cost_bytes",
        "frame_bytes",
        "header",
        "release_ns",
        "session",
        "toll",
    )

    def __init__(self, session: Asker, header: RequestHeader, api: Api, frame_bytes: int) -> None:
        self.session = session
        self.header = header
        self.api = api
        self.frame_bytes = frame_bytes
        """Size of the request's frame, as long as its handler needs it."""
        self.cost_bytes = BEGUN_REQUEST_BYTES
        """Bytes of memory that the request takes beside the frame."""
        self.answered = False
        self.buffers: list[Buffer] | None = None
        self.release_ns: int | None = None
        self.toll: Toll | None = None

    def __str__(self) -> str:
        return f"{self.header.name} version {self.header.version} from {self.session.peer}"

    def failed(self, _error: Exception) -> None:
        """Called when work for the request raised: its connection is closed."""
        self.session.close("the request could not be served")
