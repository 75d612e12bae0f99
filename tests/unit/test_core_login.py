"""The log-in on a connection: its order, its refusals, and its renewal, in virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.base.errors import (
    AuthenticationFailed,
    ConfigError,
    ConnectionFailed,
    NoBrokerReached,
    TimedOut,
)
from fairlead_kafka.core import Network
from fairlead_kafka.core.connection import State
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.wire import ApiKey, Message, Request
from tests.support.fake_broker import (
    OFFERED,
    Client,
    FakeBroker,
    Scene,
    list_offsets_request,
    versions_message,
)

WITH_SASL = {**OFFERED, ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}
PASSWORDS = (b"first", b"second")


class Script:
    """An authenticator that sends PASSWORDS, and wants to hear b"good" last."""

    blocking = True

    def __init__(self, heard: list[bytes | None], error: Exception | None) -> None:
        self._heard, self._error = heard, error
        self._left = list(PASSWORDS)

    def next(self, challenge: bytes | None) -> bytes | None:
        self._heard.append(challenge)
        if self._error is not None:
            raise self._error
        return self._left.pop(0) if self._left else None


class Scripted:
    """A transport of such authenticators."""

    tls = None

    def __init__(self, error: Exception | None = None) -> None:
        self.heard: list[bytes | None] = []
        self.hosts: list[str] = []
        self.error = error

    def authenticator(self, host: str) -> Script:
        self.hosts.append(host)
        return Script(self.heard, self.error)


def secured_broker(lifetime_ms: int = 0, last: Callable[[Request], Message] | None = None) -> FakeBroker:
    broker = FakeBroker()

    def authenticate(request: Request) -> Message:
        message = request.message.auth_bytes
        if message == PASSWORDS[-1] and last is not None:
            return last(request)
        answer = b"good" if message == PASSWORDS[-1] else b"go on"
        lifetime = lifetime_ms if message == PASSWORDS[-1] else 0
        return Message(error_code=0, error_message=None, auth_bytes=answer, session_lifetime_ms=lifetime)

    broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message(WITH_SASL)
    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda request: Message(error_code=0, mechanisms=["PLAIN"])
    broker.answers[ApiKey.SASL_AUTHENTICATE] = authenticate
    return broker


def secured_scene(broker: FakeBroker, transport: Scripted | None = None, **configs: Any) -> Scene:
    client = Client(security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN", **configs)
    return Scene(client, broker, transport=transport or Scripted(), latency_ms=1)


def refusal_of(scene: Scene) -> Exception:
    """What a request fails with, at once."""
    before_ms = scene.now_ms()
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=2**62
        )
    )
    error = scene.until_answers(1 + len(scene.client.answers))[-1][1]
    assert error is not None
    assert scene.now_ms() - before_ms < 100, "not after a time-out"
    return error


def test_nothing_but_the_log_in_is_asked_before_it_is_complete() -> None:
    broker, transport = secured_broker(), Scripted()
    scene = secured_scene(broker, transport)
    scene.until_ready()
    asked = [request.api_key for request in broker.requests]
    assert asked == [
        ApiKey.API_VERSIONS,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.METADATA,
    ]
    assert [request.message.auth_bytes for request in broker.asked(ApiKey.SASL_AUTHENTICATE)] == list(
        PASSWORDS
    )
    assert broker.asked(ApiKey.SASL_HANDSHAKE)[0].message.mechanism == "PLAIN"
    assert transport.heard == [None, b"go on", b"good"]
    assert transport.hosts == ["broker"]


def test_amazons_mechanism_is_oauthbearer_on_the_wire() -> None:
    broker = secured_broker()
    client = Client(security_protocol="SASL_PLAINTEXT", sasl_mechanism="AWS_MSK_IAM")
    scene = Scene(client, broker, transport=Scripted(), latency_ms=1)
    scene.until_ready()
    assert broker.asked(ApiKey.SASL_HANDSHAKE)[0].message.mechanism == "OAUTHBEARER"


@pytest.mark.parametrize(
    ("handshake", "said"),
    [
        (
            Message(error_code=33, mechanisms=["SCRAM-SHA-256", "GSSAPI"]),
            "has no log-in by PLAIN; it has SCRAM-SHA-256, GSSAPI",
        ),
        (Message(error_code=33, mechanisms=[]), "it has none"),
        (
            Message(error_code=34, mechanisms=[]),
            "asks for no log-in at this port: set security.protocol to PLAINTEXT or SSL",
        ),
        (Message(error_code=-1, mechanisms=[]), "refused the log-in by PLAIN (error code -1)"),
    ],
)
def test_a_refused_mechanism_fails_the_caller_at_once(handshake: Message, said: str) -> None:
    broker = secured_broker()
    broker.answers[ApiKey.SASL_HANDSHAKE] = lambda request: handshake
    error = refusal_of(secured_scene(broker))
    assert isinstance(error, AuthenticationFailed)
    assert said in str(error)


def test_a_refused_password_fails_the_caller_at_once_and_is_tried_again() -> None:
    refused = Message(error_code=58, error_message="wrong password", auth_bytes=b"", session_lifetime_ms=0)
    broker = secured_broker(last=lambda request: refused)
    scene = secured_scene(broker)
    error = refusal_of(scene)
    assert isinstance(error, AuthenticationFailed)
    assert str(error) == "broker:9092 refused the log-in by PLAIN: wrong password"
    good = secured_broker()
    broker.answers[ApiKey.SASL_AUTHENTICATE] = good.answers[ApiKey.SASL_AUTHENTICATE]
    scene.until_ready()  # somebody has mended it: no restart is needed


def test_who_waits_for_a_first_connection_is_told_too() -> None:
    scene = secured_scene(secured_broker(), Scripted(AuthenticationFailed("no such user")))
    told: list[Exception | None] = []
    scene.do(lambda network: network.await_connection(2**62, lambda _none, error: told.append(error)))
    scene.do(lambda network: network.metadata.request_update())
    scene.host.run_until(lambda: told)
    assert isinstance(told[0], AuthenticationFailed)


@pytest.mark.parametrize(
    ("raised", "shown"),
    [
        (ConfigError("sasl.password: ${env:X}: not set"), "sasl.password: ${env:X}: not set"),
        (ZeroDivisionError("division"), "the log-in failed: ZeroDivisionError: division"),
        (AuthenticationFailed("the token is refused"), "the token is refused"),
    ],
)
def test_what_the_hosts_end_raises_is_the_callers_error(raised: Exception, shown: str) -> None:
    error = refusal_of(secured_scene(secured_broker(), Scripted(raised)))
    assert isinstance(error, AuthenticationFailed)
    assert str(error) == shown


def test_what_may_pass_is_waited_for() -> None:
    transport = Scripted(ConnectionFailed("the token end point is down"))
    scene = secured_scene(secured_broker(), transport)
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=2**62
        )
    )
    scene.host.advance(3000)
    assert scene.client.answers == []
    assert "the token end point is down" in scene.network.trouble()
    transport.error = None
    assert scene.until_answers()[0][1] is None


def test_a_broker_without_sasl_is_named() -> None:
    broker = secured_broker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: versions_message()
    error = refusal_of(secured_scene(broker))
    assert "broker:9092 cannot take a log-in: the broker does not serve SASL_HANDSHAKE" in str(error)


def connection_of(network: Network) -> Any:
    return network._peers_by_id[0].connection  # what is looked at has no other window


def test_a_session_is_renewed_while_requests_are_under_way_and_nothing_is_lost() -> None:
    broker, transport = secured_broker(lifetime_ms=10_000), Scripted()
    scene = secured_scene(broker, transport)
    scene.until_ready()
    for _ in range(95):
        scene.host.advance(100)
        scene.host.run_until(lambda: scene.network.ready(0))
        scene.send()
        scene.host.advance(0)
    scene.until_answers(95)
    assert [error for _response, error in scene.client.answers] == [None] * 95
    assert len(broker.asked(ApiKey.SASL_HANDSHAKE)) == 2
    assert len(broker.connections) == 1
    assert connection_of(scene.network).state is State.READY


def test_nothing_is_sent_while_a_session_is_renewed_and_earlier_answers_come() -> None:
    broker = secured_broker(lifetime_ms=10_000)
    scene = secured_scene(broker)
    scene.until_ready()
    scene.send()
    scene.until_answers()
    scene.host.run_until(lambda: connection_of(scene.network).state is State.REAUTHENTICATING)
    assert not scene.network.ready(0)
    assert scene.network.open_connections() == 1
    scene.host.run_until(lambda: scene.network.ready(0))


def test_a_session_that_nobody_used_ends() -> None:
    broker = secured_broker(lifetime_ms=10_000)
    scene = secured_scene(broker)
    scene.until_ready()
    scene.host.advance(60_000)
    assert broker.closed == broker.connections
    assert len(broker.asked(ApiKey.SASL_HANDSHAKE)) <= 2
    assert scene.client.errors() == []


def test_a_renewal_that_is_refused_ends_the_connection() -> None:
    broker = secured_broker(lifetime_ms=10_000)
    scene = secured_scene(broker)
    scene.until_ready()
    refused = Message(error_code=58, error_message="gone", auth_bytes=b"", session_lifetime_ms=0)
    broker.answers[ApiKey.SASL_AUTHENTICATE] = lambda request: refused
    scene.send()
    scene.until_answers()
    scene.host.run_until(lambda: broker.closed)
    assert str(refusal_of(scene)).endswith("refused the log-in by PLAIN: gone")


def test_a_port_that_wants_a_log_in_is_recognized_if_it_never_answered() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.METADATA] = lambda request: None
    scene = Scene(Client(), broker, latency_ms=1)
    told: list[Exception | None] = []
    until_ns = scene.host.now_ns() + 4 * 10**9
    scene.do(lambda network: network.await_connection(until_ns, lambda _none, error: told.append(error)))
    for attempt in (1, 2, 3):
        scene.host.run_until(lambda attempt=attempt: len(broker.asked(ApiKey.METADATA)) == attempt)
        scene.host.submit(scene.brokers[0][1], broker.hang_up())
        broker.closed += broker.connections
    assert scene.network.take_refusals() == [], "a broker that dies says no more"
    scene.host.run_until(lambda: told)
    assert isinstance(told[0], NoBrokerReached)
    assert "closed by the peer at the first request: does this port want a log-in" in str(told[0])


def test_a_port_that_speaks_tls_is_recognized() -> None:
    broker = FakeBroker()
    broker.answers[ApiKey.API_VERSIONS] = lambda request: b"\x15\x03\x03\x00\x02\x02\x50"
    error = refusal_of(Scene(Client(), broker, latency_ms=1))
    assert isinstance(error, AuthenticationFailed)
    assert str(error) == "broker:9092 speaks TLS at this port: set security.protocol to SSL or SASL_SSL"


def test_a_log_in_that_this_end_does_not_go_on_with_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when a token provider hangs."""
    hung = list[object]()
    monkeypatch.setattr(VirtualHost, "_authenticate", lambda _host, _handle, effect: hung.append(effect))
    broker = secured_broker()
    scene = secured_scene(broker, request_timeout_ms=5_000)
    deadline_ns = scene.host.now_ns() + 20 * 10**9
    scene.do(
        lambda network: network.request(
            ApiKey.LIST_OFFSETS, list_offsets_request(), scene.client.on_done, deadline_ns=deadline_ns
        )
    )
    error = scene.until_answers()[-1][1]
    assert isinstance(error, TimedOut)
    assert len(hung) >= 3, "it is tried again and again"
    assert len(broker.closed) >= 2
