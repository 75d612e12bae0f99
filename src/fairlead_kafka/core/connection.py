"""One connection to a broker: its states as a table, its negotiated versions, its requests in
flight.

A broker answers the requests of one connection in the order they came in (Kafka's protocol guide,
"Network"), so the requests in flight are a queue and a response belongs to its head. A response
with any other correlation id means that one side has lost count, and nothing on the connection can
be trusted any more.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import TypeAlias, TypeVar

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError, UsageError
from fairlead_kafka.base.limits import FRAME_SIZE_MAX_BYTES
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.core.login import Login
from fairlead_kafka.core.throttling import wait_ms
from fairlead_kafka.wire import (
    ApiKey,
    ApiMessage,
    FrameReader,
    PrivateApi,
    ceiling,
    decode_response,
    encode_request,
    negotiate,
    response_correlation_id,
)
from fairlead_kafka.wire.messages import ApiVersionsRequest, ApiVersionsResponse

API_VERSIONS_FIRST = 3
"""The version of ApiVersions that negotiation starts with; a broker that lacks it answers in
version 0 (KIP-511)."""
CORRELATION_ID_MAX = 2**31 - 1
NEVER_NS = 2**63 - 1

R = TypeVar("R", bound=ApiMessage)
OnDone: TypeAlias = Callable[[R | None, Exception | None], None]
"""Takes a request's response, or its error."""
Callback: TypeAlias = Callable[..., object]
"""An `OnDone` of requests of any kind: it was checked against its request where both were given."""


class State(Enum):
    """States of a connection; see TRANSITIONS."""

    CONNECTING = "connecting"
    NEGOTIATING = "negotiating"
    AUTHENTICATING = "authenticating"
    READY = "ready"
    REAUTHENTICATING = "reauthenticating"
    """The session is about to end, and a new one is being asked for; what was asked before is still
    answered (KIP-368)."""
    CLOSED = "closed"


class Trigger(Enum):
    """Events that change the state of a connection; see TRANSITIONS."""

    CONNECTED = "connected"
    FALLBACK = "fallback"
    NEGOTIATED = "negotiated"
    LOGIN = "login"
    AUTHENTICATED = "authenticated"
    LOST = "lost"
    """The peer closed the connection, or it could not be made."""
    EXPIRED = "expired"
    """Set-up or a request took too long."""
    BROKEN = "broken"
    """The peer sent what the protocol does not allow."""
    REFUSED = "refused"
    """One end does not accept the other."""
    ENDED = "ended"
    """We have no more use for it: idle, address changed, client closed."""


_ENDS = (Trigger.LOST, Trigger.EXPIRED, Trigger.BROKEN, Trigger.REFUSED, Trigger.ENDED)
_LIVING = (State.CONNECTING, State.NEGOTIATING, State.AUTHENTICATING, State.READY, State.REAUTHENTICATING)
TRANSITIONS: dict[tuple[State, Trigger], State] = {
    (State.CONNECTING, Trigger.CONNECTED): State.NEGOTIATING,
    (State.NEGOTIATING, Trigger.FALLBACK): State.NEGOTIATING,
    (State.NEGOTIATING, Trigger.NEGOTIATED): State.READY,
    (State.NEGOTIATING, Trigger.LOGIN): State.AUTHENTICATING,
    (State.AUTHENTICATING, Trigger.AUTHENTICATED): State.READY,
    (State.READY, Trigger.LOGIN): State.REAUTHENTICATING,
    (State.REAUTHENTICATING, Trigger.AUTHENTICATED): State.READY,
    **{
        (state, end): State.CLOSED
        for state in _LIVING
        for end in _ENDS
        if (state, end) != (State.CONNECTING, Trigger.BROKEN)
    },
}
"""All transitions between states of a connection; a pair that is not here is a defect of this
client."""


@dataclass(slots=True, eq=False)
class InFlight:
    """One request that was written and whose answer is awaited."""

    correlation_id: int
    api_key: ApiKey | PrivateApi
    version: int
    on_done: Callback
    timeout_ns: int
    deadline_ns: int
    sent_ns: int = 0
    """Monotonic time when the request was written, ns."""


@dataclass(slots=True, eq=False)
class Connection:
    """One connection to one broker. Holds no clock and no socket: callers pass both in and out."""

    number: int
    peer: str
    """Who is at the other end, for messages: "broker 1 at 127.0.0.1:9092"."""
    client_id: str
    setup_deadline_ns: int
    used_ns: int
    """When something was last sent or received."""
    heard_ns: int = field(default=0, kw_only=True)
    """When something was last received; 0: nothing yet."""
    state: State = State.CONNECTING
    login: Login | None = None
    """The log-in under way, or the last one; None on connections without."""
    in_flight: deque[InFlight] = field(default_factory=deque)
    offered: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The APIs that the broker serves: API key → lowest and highest version."""
    finalized: dict[str, int] = field(default_factory=dict)
    """The feature levels that the cluster has finalized, as this broker said when the connection
    was opened (KIP-584)."""
    expiry_ns: int | None = None
    """A lower bound of the deadlines in flight: looked at when it is reached, not kept exact at
    every answer."""
    negotiation_wait_ms: int = 0
    """Throttle time in the broker's ApiVersions answer, ms (KIP-219)."""
    _versions: dict[int, int] = field(default_factory=dict)
    _reader: FrameReader = field(default_factory=lambda: FrameReader(FRAME_SIZE_MAX_BYTES))
    _correlation_id: int = 0
    _negotiating_version: int = API_VERSIONS_FIRST

    def fire(self, trigger: Trigger) -> None:
        """Change the state by TRANSITIONS. UsageError if the table has no row for the present state
        and `trigger`."""
        target = TRANSITIONS.get((self.state, trigger))
        if target is None:
            raise UsageError(
                f"connection {self.number} to {self.peer}: {trigger.value} cannot happen while "
                f"{self.state.value}"
            )
        self.state = target

    def version(self, api_key: ApiKey | PrivateApi, version_max: int | None = None) -> int:
        """The version of an API to use on this connection, not above `version_max`.
        UnsupportedVersion if client and broker have none in common."""
        version = self._versions.get(api_key)
        if version is None:
            limit = ceiling(api_key, self.finalized)
            version = self._versions[api_key] = negotiate(api_key, self.offered, limit)
        if version_max is not None and version > version_max:
            return negotiate(api_key, self.offered, version_max)
        return version

    def encode(self, request: InFlight, message: ApiMessage, expects_response: bool = True) -> list[Buffer]:
        """Number `request`, queue it if an answer is due, and give the bytes to write."""
        correlation_id = self._correlation_id
        buffers = encode_request(request.api_key, request.version, correlation_id, self.client_id, message)
        self._correlation_id = 0 if correlation_id == CORRELATION_ID_MAX else correlation_id + 1
        request.correlation_id = correlation_id
        if expects_response:
            self.in_flight.append(request)
            if self.expiry_ns is None or request.deadline_ns < self.expiry_ns:
                self.expiry_ns = request.deadline_ns
        return buffers

    def frames(self, data: bytes | memoryview) -> list[memoryview]:
        """The frames that `data` completes. DecodeError if a size is impossible."""
        return self._reader.feed(data)

    def room(self) -> memoryview | None:
        """Memory for the rest of a long answer that has begun, given once (`FrameReader.room`)."""
        return self._reader.room()

    def answer(self, frame: memoryview) -> tuple[InFlight, ApiMessage]:
        """The request that `frame` answers, taken off the queue, and the decoded response.

        DecodeError if nothing was asked, if the correlation id is not the one due, or if the body
        does not decode; the request then stays at the head of the queue.
        """
        request = self._due(frame)
        response = decode_response(request.api_key, request.version, frame)
        self.in_flight.popleft()
        if not self.in_flight:
            self.expiry_ns = None
        return request, response

    def ask_versions(self, deadline_ns: int) -> list[Buffer]:
        """The bytes of the ApiVersions request that opens every connection (KIP-35)."""
        version = self._negotiating_version
        request = InFlight(0, ApiKey.API_VERSIONS, version, _nobody, 0, deadline_ns)
        # Looked up by name at run time: a room must not import the package, which is above it.
        software = str(import_module("fairlead_kafka").__version__)
        message = ApiVersionsRequest(client_software_name="fairlead", client_software_version=software)
        return self.encode(request, message)

    def hear_versions(self, frame: memoryview) -> bool:
        """Take the answer of `ask_versions`. True: versions are known. False: ask again, now with a
        version the broker has.

        DecodeError as in `answer`; BrokerError if the broker refuses.
        """
        request = self._due(frame)
        # Correlation id, then in every version the error code: a refusal has a body of version 0
        # whatever was asked (KIP-511).
        refused = int.from_bytes(frame[4:6], "big", signed=True) == ErrorCode.UNSUPPORTED_VERSION
        version = 0 if refused else request.version
        response = decode_response(ApiKey.API_VERSIONS, version, frame, ApiVersionsResponse)
        self.in_flight.clear()
        self.expiry_ns = None
        if refused and request.version > 0:
            own = [entry for entry in response.api_keys if entry.api_key == ApiKey.API_VERSIONS]
            self._negotiating_version = min(own[0].max_version, request.version - 1) if own else 0
            self.fire(Trigger.FALLBACK)
            return False
        if response.error_code != ErrorCode.NONE:
            raise BrokerError(
                response.error_code, f"{self.peer} refused ApiVersions version {request.version}"
            )
        self.offered = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        self.finalized = {one.name: one.max_version_level for one in response.finalized_features}
        self.negotiation_wait_ms = wait_ms(ApiKey.API_VERSIONS, request.version, response)
        return True

    def put_off(self, wait_ns: int) -> None:
        """Move the deadlines of requests in flight by `wait_ns` nanoseconds: the broker reads
        nothing meanwhile."""
        for request in self.in_flight:
            request.deadline_ns += wait_ns

    def expired(self, now_ns: int) -> InFlight | None:
        """The first request in flight whose deadline has passed at `now_ns`; None if there is none.
        Sets `expiry_ns`, the next deadline, on the way."""
        if self.expiry_ns is None or now_ns < self.expiry_ns:
            return None
        for request in self.in_flight:
            if request.deadline_ns <= now_ns:
                return request
        self.expiry_ns = min((request.deadline_ns for request in self.in_flight), default=None)
        return None

    def _due(self, frame: memoryview) -> InFlight:
        if not self.in_flight:
            raise DecodeError(
                f"{self.peer} sent a response of {len(frame)} bytes to nothing that was asked", 0
            )
        request = self.in_flight[0]
        correlation_id = response_correlation_id(frame)
        if correlation_id != request.correlation_id:
            raise DecodeError(
                f"{self.peer} answered with correlation id {correlation_id} where {request.correlation_id} "
                f"({request.api_key.name}) was due",
                0,
            )
        return request


def _nobody(_response: ApiMessage | None, _error: Exception | None) -> None:
    """Do nothing: the connection itself takes the answer to ApiVersions (`hear_versions`)."""
