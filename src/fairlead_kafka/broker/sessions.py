"""The server side of one connection: frames in, handlers called, answers out in the order of the
requests.

Kafka serves one request of a connection at a time: the next is begun when the one before is
answered, so a fetch that waits for data delays later requests. Here it is the same, except that
handlers marked `pipelined` (Produce) may be begun while others of their kind still wait for the
disk; they still append, and are answered, in order.

    waiting frame --begin--> outstanding --reply--> answered
        --(first in order, fault's service time over)--> written --> sent

The memory of a connection is bounded (`base.limits`). While more than OUTBOUND_MAX_BYTES of its
answers are not sent, because its peer reads too slowly, no request is begun. The memory of requests
that are begun and not answered is bounded too. Requests that cannot be begun wait, and once many
wait no more is read from the connection; nor, with a few exceptions, from any connection
(`clients`) while the requests read and not answered take more than `queued.max.request.bytes`. A
client that has used up a quota is answered at once, and then nothing of its connection is begun or
read for a while (`quotas`).

Two faults (`broker.faults`) act here: `produce_service_time_ms` delays the answer of a Produce and
with it all later answers on this connection (KIP-794's "20 ms sleep injected for each produce
response"); `latency_ms` delays all answers by the same time. Faults of single requests are made by
an `Interceptor`, which is called before the handlers (`testing.request_faults`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Protocol

from fairlead_kafka.base.acls import CLUSTER_NAME, AclOperation, AclResourceType
from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError, UnsupportedVersion
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import (
    BEGUN_REQUESTS_MAX_BYTES,
    OUTBOUND_MAX_BYTES,
    PENDING_REQUESTS_MAX,
    PENDING_REQUESTS_MAX_BYTES,
    REQUEST_ELEMENT_BYTES,
)
from fairlead_kafka.base.principal import ANONYMOUS, Principal
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.answers import Answers, AnswersHost, Outbound
from fairlead_kafka.broker.authorizer import Authorizer, host_of
from fairlead_kafka.broker.dispatch import REGISTRY, Api, Interceptor, api_of, decode_served
from fairlead_kafka.broker.links import CLIENT_ID
from fairlead_kafka.broker.listeners import DEFAULT_LISTENER, Listener
from fairlead_kafka.broker.login import LoginHost, LoginState, ServerLogin
from fairlead_kafka.broker.outstanding import Outstanding
from fairlead_kafka.broker.quotas.muting import Muting
from fairlead_kafka.broker.quotas.quotas import Toll
from fairlead_kafka.broker.services import AnswerRoom, Services
from fairlead_kafka.core.effects import Buffer, Close, Hold
from fairlead_kafka.wire import ApiKey, ApiMessage, FrameReader, RequestHeader, encode_response, peek_request
from fairlead_kafka.wire.messages import ApiVersionsResponse

_logger = GuardedLogger("fairlead_kafka.broker")


class Together(Outbound, AnswerRoom, Protocol):
    """The counts and bounds that all sessions of a broker share (`clients`)."""

    full: bool
    """True once requests take more than `queued.max.request.bytes`, until they take half of it."""

    def count(self, session: Session, difference_bytes: int) -> None:
        """Called when a session holds `difference_bytes` more of requests that were read and not
        answered."""

    def finished_one(self, session: Session) -> None:
        """Called, while the queue of requests is `full`, when a session's request has come
        whole."""

    def hold(self, session: Session) -> None:
        """Have a session's connection read, or not read: while it is blocked, muted, or too much is
        queued."""

    def muting_changed(self, session: Session) -> None:
        """Called when the session is muted, so that nothing is read from it or begun for it, or is
        muted no longer."""

    def forget(self, session: Session) -> None:
        """Called when a session ends, which makes room for another."""


class SessionHost(Services, AnswersHost, LoginHost, Protocol):
    """The parts of a broker that sessions use, beside what handlers need."""

    authorizer: Authorizer | None
    interceptor: Interceptor | None

    @property
    def clients(self) -> Together:
        """All sessions of the broker."""


class Session:
    """One accepted connection of a client: reads its requests, has them served, and answers in
    their order. Once it is `closed`, replies of handlers are dropped."""

    def __init__(
        self, broker: SessionHost, connection: int, peer: str, listener: Listener | None = None
    ) -> None:
        self.broker = broker
        self.connection = connection
        self.peer = peer
        """The other end's address, as the host names it."""
        self.host = host_of(peer)
        """The other end's address without its port, as ACLs name it."""
        self.listener = DEFAULT_LISTENER if listener is None else listener.name
        """The name of the listener it came to."""
        self.principal = ANONYMOUS
        """Principal at the other end."""
        self.login = ServerLogin(self, listener) if listener is not None and listener.logs_in else None
        """The log-in of this session; None: nobody has to log in."""
        self.closed = False
        self.heard = False
        """Something has come from the peer."""
        self.client_id: str | None = None
        """Client id of the session's newest request."""
        self.software: tuple[str, str] | None = None
        """Name and version of the client's software, from its ApiVersions request (KIP-511)."""
        self.active_ns = broker.now_ns
        """Time when something last came, was answered, or left, ns."""
        self.blocked = False
        """True while nothing is begun: the broker has its `max.connections`, and this one waits."""
        self.muting = Muting(self)
        self._frames = FrameReader(
            broker.settings["socket.request.max.bytes"]
            if self.login is None
            else broker.settings["sasl.server.max.receive.size"]
        )
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._much_waits = False
        self._held = False
        self._outstanding: deque[Outstanding] = deque()
        self._begun_bytes = 0
        self.serving: Outstanding | None = None
        self._counted_bytes = 0
        self._answers = Answers(broker, connection, self)
        self._working = False
        self._on_close: dict[Callable[[], None], None] = {}

    def __str__(self) -> str:
        return f"the connection from {self.peer}"

    def failed(self, _error: Exception) -> None:
        """Called when work for the connection, and for none of its requests, raised: the connection
        is closed."""
        self.close("it could not be served")

    def may(self, operation: AclOperation, kind: AclResourceType, name: str, quiet: bool = False) -> bool:
        """True if the session's principal may do `operation` on the resource; `quiet`: a refusal is
        not logged. `api.rights` has functions for several resources."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.allows(
            self.principal, self.host, operation, kind, name, quiet
        )

    @property
    def of_broker(self) -> bool:
        """True if the peer is another broker: its client id says so, at the listener of brokers,
        and it has the rights of one. Any client can use such a client id; but with log-ins it must
        be a user, and with an authorizer one with CLUSTER_ACTION. Without either every client may
        do everything."""
        if (
            self.client_id is None
            or not self.client_id.startswith(CLIENT_ID)
            or self.listener != self.broker.links.listener.name
        ):
            return False
        known = self.login is None or self.login.done
        return known and self.may(
            AclOperation.CLUSTER_ACTION, AclResourceType.CLUSTER, CLUSTER_NAME, quiet=True
        )

    @property
    def logged_in(self) -> bool:
        """True if it is known who is at the other end, and no log-in is being renewed."""
        return self.login is None or self.login.state is LoginState.DONE

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer that decides what the principal may do; None: everything is allowed."""
        return self.broker.authorizer

    @property
    def toll(self) -> Toll | None:
        """Quota charge of the request that is being served; None: it is charged to nobody."""
        return None if self.serving is None else self.serving.toll

    def muting_changed(self) -> None:
        """Called when the session is muted, so that nothing is read from it or begun for it, or is
        muted no longer."""
        self.broker.clients.muting_changed(self)

    @property
    def waits_for_answer(self) -> bool:
        """True if a request was begun and is not answered."""
        return bool(self._outstanding)

    @property
    def unfinished(self) -> bool:
        """True if a part of a request has come, and the rest has not."""
        return self._frames.held_bytes > 0

    @property
    def kept_waiting(self) -> bool:
        """True if what comes is not begun: the session is blocked or muted, or too much waits."""
        return self._much_waits or self.blocked or self.muting.on

    @property
    def _stands_still(self) -> bool:
        """True if nothing is begun for now, or ever again."""
        return self.blocked or self.muting.on or (self.login is not None and self.login.failed)

    @property
    def queued_bytes(self) -> int:
        """Bytes of memory of the connection's requests that have come and are not answered."""
        return self._frames.held_bytes + self._waiting_bytes + self._begun_bytes

    def authenticated(self, principal: Principal) -> None:
        """Called when the log-in is complete: `principal` is at the other end."""
        self.principal = principal
        self._frames.limit_bytes = self.broker.settings["socket.request.max.bytes"]

    def write_raw(self, buffers: list[Buffer]) -> None:
        """Write what is no answer to a request of the protocol, and go on."""
        self._answers.depart(buffers)
        self._work()

    def on_close(self, function: Callable[[], None]) -> None:
        """Have `function` called when the connection ends; for handlers that wait."""
        self._on_close[function] = None

    def forget_on_close(self, function: Callable[[], None]) -> None:
        """Call `function` no more when the connection ends; undoes `on_close`."""
        self._on_close.pop(function, None)

    def received(self, data: bytes) -> None:
        """Take bytes that were read from the connection."""
        if self.closed:
            return
        self.heard, self.active_ns = True, self.broker.now_ns
        try:
            frames = self._frames.feed(data)
        except DecodeError as error:
            self.close(f"not a request: {error}")
            return
        for frame in frames:
            self._waiting.append(frame)
            self._waiting_bytes += len(frame)
        # Small requests that are served at once (acks=0) are no flood, however many come in one
        # piece: what waits is counted after it.
        self._work()
        if frames and self.broker.clients.full and not self.closed:
            self.broker.clients.finished_one(self)

    def sent(self, position: int) -> None:
        """Note that `position` bytes of all answers to this connection were sent by the host."""
        self.active_ns = self.broker.now_ns
        self._answers.sent(position)
        self._work()

    def give_back(self) -> None:
        """Count the served request's frame no longer: its handler needs nothing more of it."""
        if self.serving is not None:
            self._begun_bytes -= self.serving.frame_bytes
            self.serving.frame_bytes = 0

    def serve(self) -> None:
        """Begin the requests that may begin now."""
        self._work()

    def hold(self, others: bool) -> None:
        """Have the connection read, or not: it is not read while many requests wait here, or if
        `others` (the broker's other sessions) say so."""
        held = self._much_waits or others
        if held != self._held and not self.closed:
            self._held = held
            self.broker.emit(Hold(self.connection, held))

    def close(self, reason: str | None = None, drain: bool = False) -> None:
        """End the connection, with a warning in the log if there is a reason."""
        if self.closed:
            return
        if reason is not None:
            _logger.warning(
                "broker %d closes the connection from %s: %s", self.broker.node_id, self.peer, reason
            )
        self.broker.emit(Close(self.connection, drain))
        self.ended()
        self.broker.clients.forget(self)

    def ended(self) -> None:
        """Called when the connection has ended: nothing more is served or sent."""
        self.closed = True
        self._waiting.clear()
        for each in self._outstanding:
            each.buffers = None
        self._outstanding.clear()
        self._answers.ended()
        self.broker.clients.count(self, -self._counted_bytes)
        functions, self._on_close = self._on_close, {}
        for function in functions:
            self.broker.guard.call(None, function)

    def _work(self) -> None:
        """Send the answers that are ready and begin the requests that may begin, until neither is
        possible. A reply from within a handler comes here too."""
        if self._working:
            return
        self._working = True
        try:
            while not self.closed and (self._send_next() or self._begin_next()):
                pass
        finally:
            self._working = False
        if not self.closed:
            self._count_bytes()

    def _count_bytes(self) -> None:
        """Count the bytes that the connection's requests hold now, and stop or go on reading if
        there are too many or few enough."""
        count, waiting_bytes, much = len(self._waiting), self._waiting_bytes, self._much_waits
        if much:
            self._much_waits = (
                count > PENDING_REQUESTS_MAX // 2 or waiting_bytes > PENDING_REQUESTS_MAX_BYTES // 2
            )
        else:
            self._much_waits = count > PENDING_REQUESTS_MAX or waiting_bytes > PENDING_REQUESTS_MAX_BYTES
        difference_bytes = self._frames.held_bytes + waiting_bytes + self._begun_bytes - self._counted_bytes
        if difference_bytes:
            self._counted_bytes += difference_bytes
            self.broker.clients.count(self, difference_bytes)
        if much is not self._much_waits:
            self.broker.clients.hold(self)

    @hook("sessions: no request is begun while answers wait to be sent")
    def _may_send(self) -> bool:
        return self._answers.unsent_bytes <= OUTBOUND_MAX_BYTES

    @hook("sessions: no request is begun beside others that take much memory")
    def _may_begin_more(self) -> bool:
        return self._begun_bytes <= BEGUN_REQUESTS_MAX_BYTES

    def _begin_next(self) -> bool:
        if not self._waiting or self._stands_still or not self._may_send():
            return False
        if self.login is not None and self.login.raw:
            return self._take_raw(self.login)
        try:
            header = peek_request(self._waiting[0])
        except DecodeError as error:
            self.close(f"not a request: {error}")
            return False
        api = api_of(header.api_key)
        if self._outstanding and not self._may_overtake(api):
            return False
        refusal = None if self.login is None else self.login.refuses(header)
        if refusal is not None:
            self.close(refusal)
            return False
        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        if api is None or not api.low <= header.version <= api.high:
            self._refuse(header)
            return True
        self._call(api, header, frame)
        return True

    def _take_raw(self, login: ServerLogin) -> bool:
        """Take a frame that is a token (KIP-43); False if it has to wait."""
        if login.waits or self._outstanding:
            return False
        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        login.raw_token(bytes(frame))
        return True

    def _may_overtake(self, api: Api | None) -> bool:
        if api is None or not api.pipelined or self.broker.faults.produce_service_time_ms > 0:
            return False
        # Nothing else is begun beside others, so where the first may be overtaken all may.
        return self._outstanding[0].api.pipelined and self._may_begin_more()

    def _call(self, api: Api, header: RequestHeader, frame: memoryview) -> None:
        outstanding = self.serving = Outstanding(self, header, api, len(frame))
        self._outstanding.append(outstanding)
        self._begun_bytes += outstanding.frame_bytes + outstanding.cost_bytes
        guard = self.broker.guard
        before, guard.owner = guard.owner, outstanding
        try:  # as `Guard.call` does, which costs every request more
            self._serve(outstanding, frame)
        except Exception as error:
            guard.blame(outstanding, error)
        finally:
            guard.owner = before
            self.serving = None
            if outstanding.toll is not None:
                self.broker.quotas.spent(outstanding.toll)

    def _serve(self, outstanding: Outstanding, frame: memoryview) -> None:
        header = outstanding.header
        if self.broker.quotas.enabled:
            outstanding.toll = self.broker.quotas.begun(self, header, outstanding.frame_bytes)
        try:
            request = decode_served(frame, header)
        except (DecodeError, UnsupportedVersion) as error:
            self.close(f"{header.name} version {header.version}: {error}")
            return
        elements_bytes = request.elements * REQUEST_ELEMENT_BYTES
        outstanding.cost_bytes += elements_bytes
        self._begun_bytes += elements_bytes
        self.client_id = header.client_id
        handler, reply = outstanding.api.handler, partial(self._answer, outstanding)
        interceptor = self.broker.interceptor
        if interceptor is None or not interceptor.active:
            handler(self.broker, request, self, reply)
        else:
            interceptor.serve(handler, self.broker, request, self, reply)

    def _answer(self, outstanding: Outstanding, message: ApiMessage | None) -> None:
        """Answer a request. Called by its handler, or by a callback that it left.

        That can be during the work of another owner, so exceptions are caught here.
        """
        if outstanding.answered or self.closed:
            return
        header = outstanding.header
        outstanding.answered = True
        try:
            if outstanding.toll is not None:
                self.broker.quotas.answered(outstanding.toll, message)
            if message is not None:
                outstanding.buffers = encode_response(
                    header.api_key, header.version, header.correlation_id, message
                )
            self._work()
        except Exception as error:
            self.broker.guard.blame(outstanding, error)

    def _refuse(self, header: RequestHeader) -> None:
        """Answer a request whose API or version is not served, as Kafka does: ApiVersions in
        version 0 (KIP-511), any other by closing the connection."""
        if header.api_key == ApiKey.API_VERSIONS:
            api = REGISTRY[ApiKey.API_VERSIONS]
            key = int(ApiKey.API_VERSIONS)
            row = ApiVersionsResponse.ApiVersion(
                api_key=key, min_version=api.advertised_low, max_version=api.high
            )
            message = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[row])
            self._answers.depart(encode_response(ApiKey.API_VERSIONS, 0, header.correlation_id, message))
            return
        self.close(f"API key {int(header.api_key)} version {header.version} is not served")

    def _send_next(self) -> bool:
        """Write the answer of the first outstanding request if there is one; False if there is
        not."""
        if not self._outstanding or not self._outstanding[0].answered:
            return False
        first, broker = self._outstanding[0], self.broker
        if first.release_ns is None:
            slow = first.header.api_key == ApiKey.PRODUCE and broker.faults.produce_service_time_ms > 0
            first.release_ns = broker.now_ns + (
                ms_to_ns(broker.faults.produce_service_time_ms) if slow else 0
            )
            if slow:
                broker.call_at(first.release_ns, self._work, self)
        if first.release_ns > broker.now_ns:
            return False
        self._outstanding.popleft()
        self._begun_bytes -= first.frame_bytes + first.cost_bytes
        self.active_ns = broker.now_ns
        # The request itself may stay for long: as owner of what a fetch session watches.
        buffers, first.buffers = first.buffers, None
        if buffers is not None:
            self._answers.depart(buffers)
        return True

    # --- Checks

    def check(self) -> None:
        """Raise CheckFailed unless the counts of bytes fit the requests, between two steps."""
        begun_bytes = sum(each.frame_bytes + each.cost_bytes for each in self._outstanding)
        same(f"{self}: bytes of waiting requests", self._waiting_bytes, sum(map(len, self._waiting)))
        same(f"{self}: cost of begun requests", self._begun_bytes, begun_bytes)
        same(f"{self}: what is counted for all", self._counted_bytes, self.queued_bytes)
        self._answers.check()
        last = self._outstanding[-1] if self._outstanding else None
        last_bytes = 0 if last is None else last.frame_bytes + last.cost_bytes
        holds(f"{self}: {begun_bytes} bytes are begun", begun_bytes - last_bytes <= BEGUN_REQUESTS_MAX_BYTES)

    @property
    def awaited_bytes(self) -> int:
        """Bytes that this session adds to `Clients.outbound_bytes`."""
        return self._answers.awaited_bytes
