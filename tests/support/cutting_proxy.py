"""A proxy between a client and its cluster that spoils chosen requests: cut, refused, misreported
or swallowed. It can also hold what a broker answers until the test lets it go.

It knows just enough of the protocol for that: where frames begin and end, which request an answer
belongs to, and in which answers brokers name their addresses (the client must find every broker
through the proxy). One thread serves all connections.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.wire import (
    ApiKey,
    FrameReader,
    Message,
    RequestHeader,
    decode_request,
    decode_response,
    encode_response,
    peek_request,
)
from tests.support.waiting import PATIENCE_S

_SIZE = struct.Struct(">i")
_NAMING = frozenset(
    {ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR, ApiKey.PRODUCE, ApiKey.FETCH}
)


class Fault(Enum):
    """What happens to one request."""

    BEFORE = "the connection is cut and the request never arrives"
    MIDDLE_OF_REQUEST = "the connection is cut when half of the request has arrived"
    AFTER = "the request is served, the connection is cut, the answer never arrives"
    MIDDLE_OF_ANSWER = "the request is served, the connection is cut when half of the answer has arrived"
    REFUSED = "the request never arrives and is answered NOT_LEADER_OR_FOLLOWER; those behind it arrive"
    MISREPORTED = (
        "the request is served and answered NOT_ENOUGH_REPLICAS_AFTER_APPEND, which asks for a retry"
    )
    SWALLOWED = "the request never arrives and is never answered; the connection stays"


CUTS = (Fault.AFTER, Fault.BEFORE, Fault.MIDDLE_OF_REQUEST, Fault.MIDDLE_OF_ANSWER)
LIES = (Fault.REFUSED, Fault.MISREPORTED)
Plan = Callable[[int], "Fault | None"]


def every(step: int, faults: Iterable[Fault], start: int = 1) -> Plan:
    """A plan: the request numbered `start`, and each `step`-th after it, meets the next of
    `faults`, each once."""
    spoiled = {start + step * place: fault for place, fault in enumerate(faults)}
    return spoiled.get


@dataclass(slots=True)
class _Pending:
    """A request whose answer has not gone to the client yet."""

    header: RequestHeader
    fault: Fault | None
    answer: bytes | None = None
    forwarded: bool = True


class _Session:
    def __init__(self, proxy: CuttingProxy, client: socket.socket, address: tuple[str, int]) -> None:
        self.proxy = proxy
        self.client = client
        self.address = address
        self.server = socket.create_connection(address, timeout=PATIENCE_S)
        for end in (client, self.server):
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.requests, self.answers = FrameReader(), FrameReader()
        self.pending: deque[_Pending] = deque()
        self.open = True

    def cut(self) -> None:
        if self.open:
            self.open = False
            for end in (self.client, self.server):
                self.proxy.forget(end)
                end.close()

    def from_client(self) -> None:
        for frame in self.requests.feed(self.client.recv(1 << 18) or _end()):
            if self.open:
                self._request(bytes(frame))

    def from_server(self) -> None:
        for frame in self.answers.feed(self.server.recv(1 << 18) or _end()):
            entry = next(entry for entry in self.pending if entry.forwarded and entry.answer is None)
            entry.answer = self.proxy.translate(entry.header, frame)
        self.flush()

    def _request(self, frame: bytes) -> None:
        header = peek_request(memoryview(frame))
        fault = self.proxy.next_fault(header)
        if fault is Fault.BEFORE:
            self.cut()
        elif fault is Fault.MIDDLE_OF_REQUEST:
            self.server.sendall(_SIZE.pack(len(frame)) + frame[: len(frame) // 2])
            self.cut()
        elif fault is Fault.REFUSED:
            refusal = _with_errors(header, decode_request(memoryview(frame)).message)
            self.pending.append(_Pending(header, fault, refusal, forwarded=False))
            self.flush()
        elif fault is Fault.SWALLOWED:
            self.pending.append(_Pending(header, fault, forwarded=False))
        else:
            self.pending.append(_Pending(header, fault))
            self.server.sendall(_SIZE.pack(len(frame)) + frame)

    def flush(self) -> None:
        """Pass on the answers that are here, in the order of their requests, unless they are
        held."""
        while (
            self.open
            and self.pending
            and self.pending[0].answer is not None
            and not self.proxy.holds(self.address)
        ):
            entry = self.pending.popleft()
            answer = entry.answer or b""
            if entry.fault is Fault.AFTER:
                self.cut()
            elif entry.fault is Fault.MIDDLE_OF_ANSWER:
                self.client.sendall(answer[: len(answer) // 2])
                self.cut()
            else:
                if entry.fault is Fault.MISREPORTED:
                    answer = _misreported(entry.header, answer)
                self.client.sendall(answer)


class CuttingProxy:
    """Listens for each broker of `bootstrap_servers`, and for those it hears of. `plan(n)`: what
    the n-th Produce (from 0) meets.

    `api_key`: spoil requests of this API instead. A context manager; `spoiled` counts what
    happened, `bootstrap_servers` is for the client.
    """

    def __init__(self, bootstrap_servers: str, plan: Plan, api_key: ApiKey = ApiKey.PRODUCE) -> None:
        self._plan = plan
        self._api_key = api_key
        self._selector = selectors.DefaultSelector()
        self._doors: dict[tuple[str, int], int] = {}
        self._sessions: list[_Session] = []
        self._listeners: list[socket.socket] = []
        self._stopping = False
        self._held: frozenset[tuple[str, int]] = frozenset()
        self.requests = 0
        """Requests of the API seen so far."""
        self.spoiled: dict[Fault, int] = {}
        servers = [self._door(_address(server)) for server in bootstrap_servers.split(",")]
        self.bootstrap_servers = ",".join(f"127.0.0.1:{port}" for port in servers)
        self._thread = threading.Thread(target=self._run, name="cutting-proxy", daemon=True)
        self._thread.start()

    def next_fault(self, header: RequestHeader) -> Fault | None:
        """What the request at hand meets."""
        if header.api_key != self._api_key:
            return None
        fault = self._plan(self.requests)
        self.requests += 1
        if fault is not None:
            self.spoiled[fault] = self.spoiled.get(fault, 0) + 1
        return fault

    def translate(self, header: RequestHeader, frame: memoryview) -> bytes:
        """The answer with the proxy's addresses in place of the brokers', size prefix included."""
        plain = _SIZE.pack(len(frame)) + bytes(frame)
        if header.api_key not in _NAMING:
            return plain
        message = decode_response(header.api_key, header.version, frame)
        named = [*self._named(message)]
        if not named:
            return plain
        for entry in named:
            entry.host, entry.port = "127.0.0.1", self._door((entry.host, entry.port))
        return b"".join(encode_response(header.api_key, header.version, header.correlation_id, message))

    def hold(self, server: str) -> None:
        """Keep back what a broker ("host:port") answers from now on, until `release`: it seems slow
        for as long as a test wants."""
        self._held |= {_address(server)}

    def release(self) -> None:
        """Let the answers go that were kept back."""
        self._held = frozenset()

    def holds(self, address: tuple[str, int]) -> bool:
        """True while a broker's answers are kept back."""
        return address in self._held

    def forget(self, sock: socket.socket) -> None:
        """Stop watching a socket."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(sock)

    @staticmethod
    def _named(message: Any) -> list[Any]:
        found: list[Any] = []
        for field in ("brokers", "node_endpoints", "coordinators"):
            with contextlib.suppress(AttributeError):
                found += getattr(message, field) or []
        return [entry for entry in found if entry.port > 0]

    def _door(self, address: tuple[str, int]) -> int:
        port = self._doors.get(address)
        if port is None:
            listener = socket.create_server(("127.0.0.1", 0))
            port = self._doors[address] = listener.getsockname()[1]
            self._listeners.append(listener)
            self._selector.register(listener, selectors.EVENT_READ, lambda: self._accept(listener, address))
        return port

    def _accept(self, listener: socket.socket, address: tuple[str, int]) -> None:
        client, _ = listener.accept()
        try:
            session = _Session(self, client, address)
        except OSError:
            client.close()
            return
        self._sessions.append(session)
        for end, ready in ((client, session.from_client), (session.server, session.from_server)):
            self._selector.register(
                end, selectors.EVENT_READ, lambda session=session, ready=ready: _guarded(session, ready)
            )

    def _run(self) -> None:
        while not self._stopping:
            for key, _ in self._selector.select(0.05):
                key.data()
            for session in self._sessions:
                _guarded(session, session.flush)  # what was held, and is not any more

    def close(self) -> None:
        """Cut every connection and stop."""
        self._stopping = True
        self._thread.join()
        for session in self._sessions:
            session.cut()
        for listener in self._listeners:
            listener.close()
        self._selector.close()

    def __enter__(self) -> CuttingProxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _guarded(session: _Session, ready: Callable[[], None]) -> None:
    if session.open:
        try:
            ready()
        except OSError:
            session.cut()


def _end() -> bytes:
    raise ConnectionError("the other end closed")


def _address(server: str) -> tuple[str, int]:
    host, _, port = server.rpartition(":")
    return host, int(port)


def _row(index: int, error_code: int) -> Message:
    return Message(
        index=index, error_code=error_code, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1
    )


def _with_errors(header: RequestHeader, request: Message) -> bytes:
    """A Produce answer that refuses every partition of `request`."""
    responses = [
        Message(
            name=topic.name,
            topic_id=topic.topic_id,
            partition_responses=[
                _row(data.index, ErrorCode.NOT_LEADER_OR_FOLLOWER) for data in topic.partition_data
            ],
        )
        for topic in request.topic_data
    ]
    return b"".join(
        encode_response(header.api_key, header.version, header.correlation_id, Message(responses=responses))
    )


def _misreported(header: RequestHeader, answer: bytes) -> bytes:
    """A Produce answer in which what was written is said to lack replicas."""
    message = decode_response(header.api_key, header.version, memoryview(answer)[4:])
    for topic in message.responses:
        topic.partition_responses = [
            _row(row.index, row.error_code or ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
            for row in topic.partition_responses
        ]
    return b"".join(encode_response(header.api_key, header.version, header.correlation_id, message))
