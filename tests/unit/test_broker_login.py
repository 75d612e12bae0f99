"""The broker's end of a log-in: which request is taken when, and what a refusal does. The driver
plays the host, which judges tokens."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import AuthenticationFailed
from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.base.principal import ANONYMOUS, Principal
from fairlead_kafka.broker.login import session_lifetime_ms
from fairlead_kafka.core import effects as fx
from fairlead_kafka.core import events as ev
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import WALL_MS, Client, Driver

CONFIG: dict[str, Any] = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:9092",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,PLAIN",
}


def authenticate(effect: fx.Authenticate) -> ev.Authenticated:
    """PLAIN: a token names its user. SCRAM: one more message is wanted. Some are refused, some
    expire."""
    token = bytes(effect.challenge or b"")
    if token.startswith(b"wrong"):
        return ev.Authenticated(effect.connection, None, AuthenticationFailed("Authentication failed"))
    if token == b"first":
        return ev.Authenticated(effect.connection, b"go on")
    expires_ms = WALL_MS + 5_000 if token == b"soon" else None
    return ev.Authenticated(effect.connection, b"welcome", None, token.decode(), expires_ms)


def driven(**config: Any) -> Driver:
    driver = Driver(CONFIG | {key.replace("__", "."): value for key, value in config.items()})
    driver.authenticate = authenticate
    return driver


def shake(client: Client, mechanism: str = "PLAIN", version: int = 1) -> Message:
    return client.ask(ApiKey.SASL_HANDSHAKE, version, mechanism=mechanism)


def show(client: Client, token: bytes) -> Message:
    return client.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token)


def refused(driver: Driver, client: Client, token: bytes, after_ms: float = 100) -> Message:
    """The answer to a token that is not believed."""
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=token)
    driver.advance(after_ms)
    answer = client.arrived[-1]
    assert answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
    return answer


def works(client: Client) -> bool:
    return bool(client.ask(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=True).brokers)


def session(driver: Driver, client: Client) -> Any:
    return driver.broker.clients.sessions[client.connection]


def test_who_has_logged_in_is_known_and_served() -> None:
    driver = driven()
    client = driver.connect()
    assert (
        client.ask(ApiKey.API_VERSIONS, 3, client_software_name="x", client_software_version="1").error_code
        == 0
    )
    assert shake(client, "SCRAM-SHA-256").mechanisms == ["SCRAM-SHA-256", "PLAIN"]
    assert show(client, b"first").auth_bytes == b"go on"
    assert session(driver, client).principal == ANONYMOUS
    answer = show(client, b"alice")
    assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"welcome", 0)
    assert session(driver, client).principal == Principal("User", "alice")
    assert works(client)


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_nothing_is_served_before(before: int) -> None:
    driver = driven()
    client = driver.connect()
    if before > 0:
        client.ask(ApiKey.API_VERSIONS, 0)
    if before > 1:
        shake(client, "SCRAM-SHA-256")
    if before > 2:
        show(client, b"first")
    client.send(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=True)
    assert client.closed


def test_versions_are_told_once_and_again_after_one_that_is_not_served() -> None:
    driver = driven()
    client = driver.connect()
    client.send_bytes(struct.pack(">ihhih", 10, int(ApiKey.API_VERSIONS), 99, 7, -1))
    assert not client.closed
    client.ask(ApiKey.API_VERSIONS, 3, client_software_name="x", client_software_version="1")
    client.send(ApiKey.API_VERSIONS, 0)
    assert client.closed


def test_an_unknown_mechanism_is_told_what_there_is() -> None:
    driver = driven()
    client = driver.connect()
    client.send(ApiKey.SASL_HANDSHAKE, 1, mechanism="GSSAPI")
    assert not client.arrived
    driver.advance(100)
    answer = client.arrived[-1]
    assert (answer.error_code, answer.mechanisms) == (
        ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        ["SCRAM-SHA-256", "PLAIN"],
    )
    assert client.closed


def test_a_refusal_is_told_and_ends_the_connection_after_a_while() -> None:
    driver = driven()
    client = driver.connect()
    shake(client)
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"wrong")
    driver.advance(99)
    assert len(client.arrived) == 1, "told at once, a guesser would not wait for the end"
    assert not client.closed
    driver.advance(1)
    answer = client.arrived[-1]
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.SASL_AUTHENTICATION_FAILED,
        "Authentication failed",
    )
    assert client.closed


def test_a_refusal_on_a_slow_line_still_arrives() -> None:
    driver = driven()
    driver.broker.faults.latency_ms = 50
    client = driver.connect()
    client.send(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
    driver.advance(50)
    refused(driver, client, b"wrong", after_ms=150)


@pytest.mark.parametrize("version", [0, 1])
def test_nothing_is_taken_after_a_refusal(version: int) -> None:
    """Whatever is sent behind a refused token neither is served nor has the refusal told any
    sooner."""
    driver = driven()
    client = driver.connect()
    shake(client, version=version)
    arrived = len(client.arrived)
    if version:
        client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"wrong")
        client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"alice")
    else:
        client.send_bytes(struct.pack(">i", 5) + b"wrong" + struct.pack(">i", 5) + b"alice")
    client.send(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=True)
    driver.advance(99)
    assert (len(client.arrived), client.closed) == (arrived, False)
    driver.advance(1)
    assert (len(client.arrived), client.closed) == (arrived + version, True)


def test_one_token_at_a_time_is_looked_at() -> None:
    driver = driven()
    asked: list[fx.Authenticate] = []
    driver.authenticate = None
    client = driver.connect()
    shake(client)
    driver.authenticate = lambda effect: asked.append(effect) or ev.Authenticated(0, b"")  # type: ignore[func-returns-value]
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"alice")
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"bob")
    assert [effect.challenge for effect in asked] == [b"alice"]
    driver.broker.receive(authenticate(asked[0]))
    driver.run()
    assert session(driver, client).principal.name == "alice"
    assert (
        client.arrived[-1].error_code == ErrorCode.ILLEGAL_SASL_STATE
    )  # bob's, after the log-in was complete


def test_large_requests_wait_for_the_log_in() -> None:
    driver = driven(sasl__server__max__receive__size=1_000)
    client, other = driver.connect(), driver.connect()
    shake(client)
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"x" * 2_000)
    assert client.closed
    shake(other)
    show(other, b"bob")
    names = [Message(name="t" * 200, topic_id=None) for _ in range(10)]
    assert other.ask(ApiKey.METADATA, 9, topics=names, allow_auto_topic_creation=False).brokers


def test_tokens_of_the_oldest_form_are_bare() -> None:
    driver = driven()
    client = driver.connect()
    shake(client, "SCRAM-SHA-256", version=0)
    taken: list[bytes] = []
    client.take = taken.extend  # type: ignore[method-assign]  # tokens are no answers
    for token in (b"first", b"alice"):
        client.send_bytes(struct.pack(">i", len(token)) + token)
    assert b"".join(taken) == b"\0\0\0\5go on\0\0\0\7welcome"
    assert session(driver, client).principal.name == "alice"


def test_a_bare_token_that_is_refused_ends_the_connection() -> None:
    driver = driven()
    client = driver.connect()
    shake(client, version=0)
    client.raw.clear()
    client.send_bytes(struct.pack(">i", 5) + b"wrong")
    assert not client.raw
    driver.advance(100)
    assert client.closed


# --- Sessions that end (KIP-368)


def test_a_session_that_is_not_renewed_ends_with_the_next_request() -> None:
    driver = driven(connections__max__reauth__ms=10_000)
    client = driver.connect()
    shake(client)
    assert show(client, b"alice").session_lifetime_ms == 10_000
    driver.advance(9_999)
    assert works(client)
    driver.advance(1)
    client.send(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=True)
    assert client.closed


def test_a_session_is_renewed() -> None:
    driver = driven(connections__max__reauth__ms=10_000)
    client = driver.connect()
    shake(client)
    show(client, b"alice")
    for _ in range(3):
        driver.advance(9_000)
        assert works(client)
        assert shake(client).error_code == 0
        assert show(client, b"alice").session_lifetime_ms == 10_000
    assert works(client)


def test_a_token_ends_a_session_sooner() -> None:
    driver = driven(connections__max__reauth__ms=10_000)
    client = driver.connect()
    shake(client)
    assert show(client, b"soon").session_lifetime_ms == 5_000


def renewing() -> tuple[Driver, Client]:
    """Alice's session, old enough to be renewed."""
    driver = driven(connections__max__reauth__ms=60_000)
    client = driver.connect()
    shake(client)
    show(client, b"alice")
    driver.advance(5_000)
    return driver, client


def test_nobody_becomes_somebody_else_by_renewing() -> None:
    driver, client = renewing()
    shake(client)
    answer = refused(driver, client, b"bob")
    assert (
        "Cannot change principals during re-authentication from User:alice to User:bob"
        in answer.error_message
    )
    assert client.closed


def test_a_refusal_fits_its_answer_however_long_a_name_is() -> None:
    driver, client = renewing()
    shake(client)
    answer = refused(driver, client, b"b" * STRING_MAX_BYTES)
    assert answer.error_message.endswith("b ...")
    assert driver.broker.guard.errors == 0


def test_a_session_is_renewed_by_its_own_mechanism() -> None:
    driver, client = renewing()
    assert shake(client, "SCRAM-SHA-256").error_code == 0
    assert "not supported for re-authentication" in refused(driver, client, b"alice").error_message


def test_a_session_is_not_renewed_all_the_time() -> None:
    driver = driven(connections__max__reauth__ms=60_000)
    client = driver.connect()
    shake(client)
    show(client, b"alice")
    shake(client)
    show(client, b"alice")
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert works(client)
    driver.advance(1_000)
    assert shake(client).error_code == 0


def test_while_a_session_is_renewed_nothing_else_is_taken() -> None:
    driver = driven(connections__max__reauth__ms=60_000)
    client = driver.connect()
    shake(client)
    show(client, b"alice")
    shake(client)
    client.send(ApiKey.METADATA, 12, topics=[], allow_auto_topic_creation=True)
    assert client.closed


def test_without_log_ins_there_is_nothing_to_log_in_to() -> None:
    client = Driver().connect()
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert show(client, b"alice").error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert works(client)


def test_a_certificate_names_its_client() -> None:
    driver = Driver({"listeners": "SSL://127.0.0.1:9092"})
    client, nameless = driver.connect(), driver.connect()
    driver.broker.receive(ev.Secured(client.connection, "CN=alice"))
    driver.broker.receive(ev.Secured(nameless.connection, None))
    driver.run()
    assert str(session(driver, client).principal) == "User:CN=alice"
    assert session(driver, nameless).principal == ANONYMOUS


def test_what_the_host_says_of_a_connection_that_is_gone_is_let_pass() -> None:
    driver = driven()
    driver.authenticate = None
    client = driver.connect()
    shake(client)
    client.send(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=b"alice")
    driver.broker.receive(ev.Disconnected(client.connection, "closed"))
    driver.broker.receive(ev.Authenticated(client.connection, b"", None, "alice"))
    driver.run()
    assert not driver.broker.clients.sessions


@pytest.mark.parametrize(
    ("most_ms", "expires_ms", "lifetime_ms"),
    [(0, None, 0), (10, None, 10), (0, 1_005, 5), (10, 1_005, 5), (3, 1_005, 3), (0, 999, 1), (10, 1_000, 1)],
)
def test_a_session_lasts_as_long_as_the_shorter_of_both(
    most_ms: int, expires_ms: int | None, lifetime_ms: int
) -> None:
    assert session_lifetime_ms(most_ms, expires_ms, 1_000) == lifetime_ms


def test_a_session_that_does_not_end_needs_no_renewal() -> None:
    driver = driven()
    client = driver.connect()
    shake(client)
    show(client, b"alice")
    driver.advance(5_000)
    assert shake(client).error_code == ErrorCode.ILLEGAL_SASL_STATE
    assert works(client)
