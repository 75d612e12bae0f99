"""Runs the steps against one system: plain blocking connections, one answer after another."""

from __future__ import annotations

import logging
import socket
import struct
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.lab.transcript.steps import Kind, Seen, Step, build
from fairlead_kafka.wire import ApiKey, ApiMessage, Message, decode_response, encode_request
from fairlead_kafka.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

_logger = logging.getLogger("fairlead_kafka.lab")

PATIENCE_S = 30.0
"""Seconds that an answer, or the end of a connection, is waited for."""
AGAIN_S = 60.0
"""Seconds during which a request is sent again while it gets one of its `again_on`."""
PAUSE_S = 0.02
CLIENT_ID = "transcript"
CLOSED = "connection closed"
SILENCE = "no answer"
LATE = "no answer in time"


@dataclass(frozen=True)
class Outcome:
    """Result of one request: a Message, or in words what happened instead."""

    step: Step
    version: int
    answer: Message | str

    @property
    def name(self) -> str:
        """API, version and step, for people to read."""
        return f"{self.step.api.name} {self.version}: {self.step.name}"


def plain_token(user: str, password: str) -> bytes:
    """Bytes with which a client logs in by PLAIN (RFC 4616)."""
    return f"\0{user}\0{password}".encode()


class _Connection:
    """One connection, and the requests on it that are not answered yet."""

    def __init__(self, address: str) -> None:
        host, port = address.rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        self._correlation_id = 0
        self.owed: deque[tuple[int, int]] = deque()

    def send(self, api: ApiKey, version: int, message: ApiMessage) -> None:
        self._correlation_id += 1
        self.owed.append((api, version))
        self.send_bytes(b"".join(encode_request(api, version, self._correlation_id, CLIENT_ID, message)))

    def send_bytes(self, data: bytes) -> None:
        self._socket.sendall(data)

    def receive(self) -> Message | str:
        api, version = self.owed.popleft()
        frame = self.receive_frame()
        return frame if isinstance(frame, str) else decode_response(api, version, memoryview(frame))

    def receive_frame(self) -> bytes | str:
        """The next frame without its size; a text that says why if there is none."""
        try:
            size = self._exactly(4)
            frame = None if size is None else self._exactly(struct.unpack(">i", size)[0])
        except TimeoutError:
            return LATE
        return CLOSED if frame is None else frame

    def log_in(self, user: str, password: str) -> None:
        """Log in by PLAIN. AuthenticationFailed if that is refused."""
        requests: tuple[tuple[ApiKey, int, ApiMessage], ...] = (
            (ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(mechanism="PLAIN")),
            (ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(auth_bytes=plain_token(user, password))),
        )
        for api, version, message in requests:
            self.send(api, version, message)
            answer = self.receive()
            if isinstance(answer, str) or answer.error_code:
                raise AuthenticationFailed(f"{user} could not log in: {answer}")

    def _exactly(self, size_bytes: int) -> bytes | None:
        data = bytearray()
        while len(data) < size_bytes:
            try:
                piece = self._socket.recv(size_bytes - len(data))
            except ConnectionError:
                return None
            if not piece:
                return None
            data += piece
        return bytes(data)

    def close(self) -> None:
        self._socket.close()


class Talk:
    """One run of the transcript against the brokers at `addresses` (host:port, by node id); a
    context manager.

    `kill(node id)` ends a broker. `users`: name → password; a connection that is named as one of
    them logs in.
    """

    def __init__(
        self,
        addresses: str,
        base_ms: int,
        kill: Callable[[int], None] | None = None,
        users: Mapping[str, str] | None = None,
    ) -> None:
        self._addresses = addresses.split(",")
        self._kill = kill
        self._users = users or {}
        self._connections: dict[str, _Connection] = {}
        self.seen = Seen(base_ms)

    def run(self, steps: Iterable[Step]) -> list[Outcome]:
        """Take every step; returns an outcome for each request that was answered, or should have
        been. OSError if the broker is gone."""
        outcomes = []
        for step in steps:
            for version in step.versions:
                started_s = time.monotonic()
                answer = self._take(step, version)
                _logger.debug(
                    "%s: %s %d took %.3f s", step.name, step.api.name, version, time.monotonic() - started_s
                )
                if answer is not None:
                    outcomes.append(Outcome(step, version, answer))
        return outcomes

    def _take(self, step: Step, version: int) -> Message | str | None:
        if step.kind is Kind.KILL:
            assert self._kill is not None
            self._kill(int(step.on))
            return None
        connection = self._connection(step.on)
        self.seen.version = version
        if step.kind is Kind.RAW:
            return self._throw(step)
        if step.kind is Kind.ANSWER:
            return self._remember(step, connection.receive())
        if step.kind is Kind.ASK:
            return self._ask(step, version)
        connection.send(step.api, version, build(step.fields, self.seen))
        if step.kind is Kind.SEND:
            return None
        connection.owed.pop()
        return SILENCE

    def _ask(self, step: Step, version: int) -> Message | str:
        deadline_s = time.monotonic() + AGAIN_S
        while True:
            connection = self._connection(step.on)
            connection.send(step.api, version, build(step.fields, self.seen))
            answer = connection.receive()
            holds = step.until is None or isinstance(answer, str) or step.until(answer)
            if (holds and not _errors_of(answer) & step.again_on) or time.monotonic() > deadline_s:
                break
            time.sleep(PAUSE_S)
        return self._remember(step, answer)

    def _remember(self, step: Step, answer: Message | str) -> Message | str:
        if isinstance(answer, str):
            self._drop(step.on)
            return answer
        self.seen.learn(answer)
        if step.keep is not None:
            self.seen.kept[step.keep] = answer
        return answer

    def _throw(self, step: Step) -> str:
        connection = self._connection(step.on)
        connection.send_bytes(step.raw)
        frame = connection.receive_frame()
        if isinstance(frame, str):
            self._drop(step.on)
            return frame
        return f"answered {frame.hex()}"

    def _connection(self, name: str) -> _Connection:
        if name not in self._connections:
            self._connections[name] = connection = _Connection(
                self._addresses[int(name) if name.isdecimal() else 0]
            )
            if name in self._users:
                connection.log_in(name, self._users[name])
        return self._connections[name]

    def _drop(self, name: str) -> None:
        self._connections.pop(name).close()

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        for name in list(self._connections):
            self._drop(name)


def _errors_of(answer: object) -> set[int]:
    """All error codes in an answer."""
    if isinstance(answer, Message):
        own = {value for name, value in vars(answer).items() if name.endswith("error_code")}
        return own.union(
            *(_errors_of(value) for value in vars(answer).values() if isinstance(value, (Message, list)))
        )
    if isinstance(answer, list):
        return set().union(*map(_errors_of, answer))
    return set()
