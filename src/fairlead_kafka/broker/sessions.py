"""The server side of one connection: frames in, handlers called, answers out in the order of the requests.

Kafka serves one request of a connection at a time: the next is begun when the one before is answered, so a fetch that waits for
data holds what comes behind it. Here it is the same, except that handlers marked `pipelined` (Produce) may be begun while others
of their kind still wait for the disk; they still append, and are answered, in order.

    waiting frame --begin--> outstanding --reply--> answered --(first in order, fault's service time over)--> written

Faults live here too: `produce_service_time_ms` keeps the answer of a Produce back and with it everything behind it on this
connection (KIP-794's "20 ms sleep injected for each produce response"); `latency_ms` delays answers on their way, all alike.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError, UnsupportedVersion
from fairlead_kafka.base.limits import PENDING_REQUESTS_MAX, PENDING_REQUESTS_MAX_BYTES
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.dispatch import REGISTRY, Api, api_of
from fairlead_kafka.core.effects import Buffer, Close, Hold, Write
from fairlead_kafka.wire import ApiKey, FrameReader, Message, Request, RequestHeader, decode_request, encode_response, peek_request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker

_logger = logging.getLogger("fairlead_kafka.broker")


@dataclass(slots=True)
class Faults:
    """What a broker does on purpose: answers late, by milliseconds; hears nothing of some others; has a full disk. Zeros: nothing."""

    produce_service_time_ms: float = 0
    latency_ms: float = 0
    cut_from: frozenset[int] = frozenset()
    """Ids of brokers to which it has no link."""
    cut_from_controller: bool = False
    disk_full: bool = False
    """Nothing can be written: ENOSPC."""


class _Outstanding:
    """One request between its beginning and its answer's departure."""

    __slots__ = ("answered", "api", "buffers", "header", "release_ns", "session")

    def __init__(self, session: Session, header: RequestHeader, api: Api) -> None:
        self.session = session
        self.header = header
        self.api = api
        self.answered = False
        self.buffers: list[Buffer] | None = None
        self.release_ns: int | None = None

    def __str__(self) -> str:
        return f"{self.header.name} version {self.header.version} from {self.session.peer}"

    def failed(self, _error: Exception) -> None:
        """What was done for the request raised."""
        self.session.close("the request could not be served")


class Session:
    """One accepted connection. `closed` handlers' replies are dropped."""

    def __init__(self, broker: Broker, connection: int, peer: str) -> None:
        self.broker = broker
        self.connection = connection
        self.peer = peer
        """The other end's address, as the host names it."""
        self.closed = False
        self._frames = FrameReader(broker.settings["socket.request.max.bytes"])
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._held = False
        self._outstanding: deque[_Outstanding] = deque()
        self._departing: deque[tuple[int, list[Buffer]]] = deque()
        self._working = False
        self._on_close: dict[Callable[[], None], None] = {}

    def __str__(self) -> str:
        return f"the connection from {self.peer}"

    def failed(self, _error: Exception) -> None:
        """What was done for the connection, and for no request of it, raised."""
        self.close("it could not be served")

    def on_close(self, function: Callable[[], None]) -> None:
        """Have `function` called when the connection ends; for handlers that wait."""
        self._on_close[function] = None

    def forget_on_close(self, function: Callable[[], None]) -> None:
        """Undo `on_close`."""
        self._on_close.pop(function, None)

    def received(self, data: bytes) -> None:
        """Take bytes from the connection."""
        if self.closed:
            return
        try:
            for frame in self._frames.feed(data):
                self._waiting.append(frame)
                self._waiting_bytes += len(frame)
        except DecodeError as error:
            self.close(f"not a request: {error}")
            return
        self._work()
        # Counted only now: a stream of small requests that are served at once (acks=0) is no flood, however many come in one piece.
        too_many = len(self._waiting) > PENDING_REQUESTS_MAX or self._waiting_bytes > PENDING_REQUESTS_MAX_BYTES
        if too_many and not self._held and not self.closed:
            self._held = True
            self.broker.emit(Hold(self.connection, True))

    def close(self, reason: str | None = None, drain: bool = False) -> None:
        """End the connection, with a warning in the log if there is a reason."""
        if self.closed:
            return
        if reason is not None:
            _logger.warning("broker %d closes the connection from %s: %s", self.broker.node_id, self.peer, reason)
        self.broker.emit(Close(self.connection, drain))
        self.broker.session_ended(self)
        self.ended()

    def ended(self) -> None:
        """The connection is gone: nothing more is served or sent."""
        self.closed = True
        self._waiting.clear()
        self._outstanding.clear()
        self._departing.clear()
        functions, self._on_close = self._on_close, {}
        for function in functions:
            self.broker.guard.call(None, function)

    def _work(self) -> None:
        """Send what is answered, begin what may begin, until neither is possible. A reply from within a handler ends up here too."""
        if self._working:
            return
        self._working = True
        try:
            while not self.closed and (self._send_next() or self._begin_next()):
                pass
        finally:
            self._working = False
        few = len(self._waiting) <= PENDING_REQUESTS_MAX // 2 and self._waiting_bytes <= PENDING_REQUESTS_MAX_BYTES // 2
        if self._held and few and not self.closed:
            self._held = False
            self.broker.emit(Hold(self.connection, False))

    def _begin_next(self) -> bool:
        if not self._waiting:
            return False
        try:
            header = peek_request(self._waiting[0])
        except DecodeError as error:
            self.close(f"not a request: {error}")
            return False
        api = api_of(header.api_key)
        if self._outstanding and not self._may_overtake(api):
            return False
        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        if api is None or not api.low <= header.version <= api.high:
            self._refuse(header)
            return True
        self._call(api, header, frame)
        return True

    def _may_overtake(self, api: Api | None) -> bool:
        if api is None or not api.pipelined or self.broker.faults.produce_service_time_ms > 0:
            return False
        return all(outstanding.api.pipelined for outstanding in self._outstanding)

    def _call(self, api: Api, header: RequestHeader, frame: memoryview) -> None:
        outstanding = _Outstanding(self, header, api)
        self._outstanding.append(outstanding)
        self.broker.guard.call(outstanding, self._serve, outstanding, frame)

    def _serve(self, outstanding: _Outstanding, frame: memoryview) -> None:
        header = outstanding.header
        try:
            request = _decode(frame, header)
        except (DecodeError, UnsupportedVersion) as error:
            self.close(f"{header.name} version {header.version}: {error}")
            return
        outstanding.api.handler(self.broker, request, self, partial(self.broker.guard.call, outstanding, self._answer, outstanding))

    def _answer(self, outstanding: _Outstanding, message: Message | None) -> None:
        if outstanding.answered or self.closed:
            return
        header = outstanding.header
        outstanding.answered = True
        if message is not None:
            outstanding.buffers = encode_response(header.api_key, header.version, header.correlation_id, message)
        self._work()

    def _refuse(self, header: RequestHeader) -> None:
        """Answer what is not served as Kafka does: ApiVersions in version 0 (KIP-511), anything else by hanging up."""
        if header.api_key == ApiKey.API_VERSIONS:
            api = REGISTRY[ApiKey.API_VERSIONS]
            row = Message(api_key=int(ApiKey.API_VERSIONS), min_version=api.advertised_low, max_version=api.high)
            message = Message(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
            self._depart(encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, message))
            return
        self.close(f"API key {int(header.api_key)} version {header.version} is not served")

    def _send_next(self) -> bool:
        """Let the first outstanding request go if it is answered; False if nothing went."""
        if not self._outstanding or not self._outstanding[0].answered:
            return False
        first, broker = self._outstanding[0], self.broker
        if first.release_ns is None:
            slow = first.header.api_key == ApiKey.PRODUCE and broker.faults.produce_service_time_ms > 0
            first.release_ns = broker.now_ns + (ms_to_ns(broker.faults.produce_service_time_ms) if slow else 0)
            if slow:
                broker.call_at(first.release_ns, self._work)
        if first.release_ns > broker.now_ns:
            return False
        self._outstanding.popleft()
        if first.buffers is not None:
            self._depart(first.buffers)
        return True

    def _depart(self, buffers: list[Buffer]) -> None:
        broker = self.broker
        if not self._departing and broker.faults.latency_ms <= 0:
            broker.emit(Write(self.connection, buffers))
            return
        due_ns = broker.now_ns + ms_to_ns(broker.faults.latency_ms)
        if self._departing:
            due_ns = max(due_ns, self._departing[-1][0])
        self._departing.append((due_ns, buffers))
        broker.call_at(due_ns, self._send_departing)

    def _send_departing(self) -> None:
        while self._departing and self._departing[0][0] <= self.broker.now_ns:
            self.broker.emit(Write(self.connection, self._departing.popleft()[1]))


def _decode(frame: memoryview, header: RequestHeader) -> Request:
    """The request in a frame; bytes behind it are let pass, as Kafka's `AbstractRequest.parseRequest` does.

    librdkafka needs that: when it asks for all topics it writes a null array as four bytes where one is due (Metadata 9 and later), and
    three zeros are left over at the end. The error says where the message ended; cut there, only a message that was whole decodes.
    """
    try:
        return decode_request(frame, header)
    except DecodeError as error:
        if not header.size_bytes <= error.offset < len(frame):
            raise
        try:
            return decode_request(frame[: error.offset], header)
        except DecodeError:
            raise error from None
