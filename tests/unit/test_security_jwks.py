"""The keys that tokens are signed with: what is one, when they are read again, and what becomes of
them when they cannot be."""

from __future__ import annotations

import json
import logging
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import ConfigError, ConnectionFailed
from fairlead_kafka.security.jwks import ASK_AGAIN_S, KEYS_MAX_BYTES, Jwks, Stamp, parse_jwks, source_of
from fairlead_kafka.security.jwt import taken_apart
from fairlead_kafka.security.server_transport import ServerTransport
from fairlead_kafka.testing.tokens import TokenIssuer


@pytest.fixture(scope="module")
def issuer(tmp_path_factory: pytest.TempPathFactory) -> TokenIssuer:
    return TokenIssuer(tmp_path_factory.mktemp("issuer"), "ES256")


class Provider:
    """A source of keys in memory, and a clock. `data` None: it is down."""

    where = "https://idp/jwks"

    def __init__(self, data: bytes | None) -> None:
        self.data = data
        self.reads = 0
        self.now_s = 1000.0
        self.jwks = Jwks(self, 3600, lambda: self.now_s)

    def read(self) -> bytes:
        self.reads += 1
        if self.data is None:
            raise ConnectionRefusedError(111, "Connection refused")
        return self.data

    def stamp(self) -> Stamp:
        return None


def keys_of(issuer: TokenIssuer) -> bytes:
    return Path(issuer.jwks_path).read_bytes()


def test_keys_are_read_once_and_again_when_they_are_old(issuer: TokenIssuer) -> None:
    provider, token = Provider(keys_of(issuer)), taken_apart(issuer.issue("alice"))
    assert provider.reads == 0
    for _ in range(3):
        assert provider.jwks.key(token) is not None
    assert provider.reads == 1
    provider.now_s += 3599
    provider.jwks.key(token)
    assert provider.reads == 1
    provider.now_s += 1
    provider.jwks.key(token)
    assert provider.reads == 2


def test_an_unknown_key_is_asked_for_but_not_often(tmp_path: Path) -> None:
    issuer = TokenIssuer(tmp_path, "ES256")
    provider = Provider(keys_of(issuer))
    assert provider.jwks.key(taken_apart(issuer.issue("alice"))) is not None
    issuer.rotate()
    provider.data, token = keys_of(issuer), taken_apart(issuer.issue("alice"))
    assert provider.jwks.key(token) is None, "it was asked for just now"
    provider.now_s += ASK_AGAIN_S
    assert provider.jwks.key(token) is not None
    for _ in range(50):
        assert provider.jwks.key(token._replace(key_id="made up")) is None
    assert provider.reads == 2
    provider.now_s += ASK_AGAIN_S
    assert provider.jwks.key(token._replace(key_id="made up")) is None
    assert provider.reads == 3


def test_old_keys_serve_while_the_end_point_is_down(
    issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    provider, token = Provider(keys_of(issuer)), taken_apart(issuer.issue("alice"))
    assert provider.jwks.key(token) is not None
    sound, provider.data = provider.data, None
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        for wait_s in (10_000, 1, ASK_AGAIN_S, 10_000):
            provider.now_s += wait_s
            assert provider.jwks.key(token) is not None
    assert provider.reads == 4, "it is not asked at each log-in"
    assert caplog.text.count("https://idp/jwks: Connection refused") == 1
    provider.data = b"<html>"
    provider.now_s += ASK_AGAIN_S
    assert provider.jwks.key(token) is not None
    provider.data = sound
    provider.now_s += ASK_AGAIN_S
    assert provider.jwks.key(token) is not None
    assert provider.reads == 6


def test_without_any_keys_a_log_in_may_be_tried_again(
    issuer: TokenIssuer, caplog: pytest.LogCaptureFixture
) -> None:
    provider, token = Provider(None), taken_apart(issuer.issue("alice"))
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        for _ in range(3):
            with pytest.raises(
                ConnectionFailed, match=r"^the keys that tokens are verified with cannot be had now$"
            ):
                provider.jwks.key(token)
    assert caplog.text.count("there are none yet: https://idp/jwks: Connection refused") == 1
    assert provider.reads == 1
    provider.data = keys_of(issuer)
    provider.now_s += ASK_AGAIN_S
    assert provider.jwks.key(token) is not None


def test_one_thread_reads_and_the_others_do_not_wait_for_what_they_have(issuer: TokenIssuer) -> None:
    token = taken_apart(issuer.issue("alice"))
    begun, go_on = threading.Event(), threading.Event()

    class Slow(Provider):
        def read(self) -> bytes:
            if self.reads:
                begun.set()
                assert go_on.wait(60)
            return super().read()

    provider = Slow(keys_of(issuer))
    assert provider.jwks.key(token) is not None
    provider.now_s += 3600
    thread = threading.Thread(target=provider.jwks.key, args=(token,))
    thread.start()
    assert begun.wait(60)
    assert provider.jwks.key(token) is not None, "with the old keys, at once"
    go_on.set()
    thread.join()
    assert provider.reads == 2


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    issuer = TokenIssuer(tmp_path, "ES256")
    keys = Jwks(source_of(issuer.jwks_url), 3600)
    old = taken_apart(issuer.issue("alice"))
    assert keys.key(old) is not None
    issuer.rotate(keep=1)
    assert keys.key(old) is not None
    assert keys.key(taken_apart(issuer.issue("alice"))) is not None
    issuer.rotate()
    assert keys.key(old) is None, "a key that was taken out is not believed any more"
    last = taken_apart(issuer.issue("alice"))
    issuer.jwks_path.unlink()
    assert keys.key(last) is not None


RSA = {"kty": "RSA", "n": "x" * 342 + "w", "e": "AQAB"}


def test_keys_of_no_use_are_left_out(issuer: TokenIssuer) -> None:
    (sound,) = json.loads(keys_of(issuer))["keys"]
    useless: list[Any] = [
        7, {}, {"kty": "oct", "k": "c2VjcmV0"}, {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {**sound, "use": "enc"}, {**sound, "key_ops": ["sign"]},
        {**sound, "x": sound["y"]}, {**sound, "crv": "P-384"}, {**sound, "crv": "secp256k1"},
        {**sound, "crv": ["P-256"]}, {**sound, "x": 7},
        {**sound, "x": "é"}, {**RSA, "n": "AQAB"}, {**RSA, "e": "AQ"}, {**RSA, "e": ""}, {"kty": "RSA"},
        {**RSA, "n": "x" * 255},
    ]  # fmt: skip
    assert len(parse_jwks(json.dumps({"keys": [*useless, {**sound, "key_ops": ["verify"]}]}).encode())) == 1
    for each in useless:
        with pytest.raises(ValueError, match="has no key for RS256"):
            parse_jwks(json.dumps({"keys": [each]}).encode())
    for data in (b"", b"[]", b"{}", b'{"keys":{}}', b"\xff", b"[" * 100_000):
        with pytest.raises(ValueError, match="is no"):
            parse_jwks(data)


def test_the_key_that_says_which_algorithm_is_for_no_other(issuer: TokenIssuer) -> None:
    (sound,) = json.loads(keys_of(issuer))["keys"]
    token = taken_apart(issuer.issue("alice"))
    for algorithm, found in (("ES256", True), ("ES384", False)):
        provider = Provider(json.dumps({"keys": [{**sound, "alg": algorithm}]}).encode())
        assert (provider.jwks.key(token) is not None) == found
    assert Provider(keys_of(issuer)).jwks.key(token._replace(algorithm="RS256")) is None


# --- Where they come from


@contextmanager
def web_server(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: Any) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/jwks?tenant=secret"
        finally:
            server.shutdown()
    thread.join()


def answering(status: int, body: bytes, **headers: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def test_keys_come_from_the_web(issuer: TokenIssuer) -> None:
    token = taken_apart(issuer.issue("alice"))
    with web_server(answering(200, keys_of(issuer))) as url:
        assert Jwks(source_of(url), 3600).key(token) is not None


@pytest.mark.parametrize(
    ("status", "body", "headers", "said"),
    [
        (503, b"", {}, "answers with status 503"),
        (302, b"", {"Location": "http://elsewhere/"}, "answers with status 302"),
        (200, b"<html>", {}, "is no JSON"),
        (200, b"x" * (KEYS_MAX_BYTES + 1), {}, f"answers with more than {KEYS_MAX_BYTES} bytes"),
        (200, b"{}", {"Content-Length": "100"}, "its answer broke off"),
    ],
)
def test_what_is_no_set_of_keys_is_told(
    issuer: TokenIssuer,
    caplog: pytest.LogCaptureFixture,
    status: int,
    body: bytes,
    headers: dict[str, str],
    said: str,
) -> None:
    caplog.set_level(logging.WARNING, logger="fairlead_kafka.security")
    with web_server(answering(status, body, **headers)) as url, pytest.raises(ConnectionFailed):
        Jwks(source_of(url), 3600).key(taken_apart(issuer.issue("alice")))
    assert f"/jwks: {said}" in caplog.text
    assert "secret" not in caplog.text


def test_nobody_is_there(issuer: TokenIssuer, caplog: pytest.LogCaptureFixture) -> None:
    with web_server(answering(200, b"")) as url:
        pass
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"), pytest.raises(ConnectionFailed):
        Jwks(source_of(url), 3600).key(taken_apart(issuer.issue("alice")))
    assert "refused" in caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "",
        "x",
        "ftp://x/y",
        "https://",
        "https://u:p@x/y",
        "https://x y/",
        "file:",
        "file://elsewhere/x",
        "https://[x/",
        "https://x:y/",
    ],
)
def test_a_url_that_leads_nowhere_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match=re.escape("sasl.oauthbearer.jwks.endpoint.url: ")):
        source_of(url)


def test_http_to_another_machine_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        for url in ("http://localhost/x", "http://127.0.0.1:1/x", "https://idp/x"):
            source_of(url)
        assert not caplog.text
        source_of("http://idp/x")
    assert "use https" in caplog.text


# --- A listener's


def transport(**more: Any) -> ServerTransport:
    given = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        **{f"sasl.oauthbearer.{key.replace('_', '.')}": value for key, value in more.items()},
    }
    return ServerTransport(
        BROKER_CONFIGS.parse("broker", given), {0: ("X", "SASL_PLAINTEXT")}, lambda *_: None, None
    )


def test_a_listener_believes_tokens_by_its_settings(issuer: TokenIssuer) -> None:
    made = transport(
        jwks_endpoint_url=issuer.jwks_url,
        expected_audience="kafka",
        expected_issuer="me",
        sub_claim_name="upn",
    )

    def user(**claims: Any) -> str | None:
        message = b"n,,\x01auth=Bearer " + issuer.issue("alice", **claims).encode() + b"\x01\x01"
        return made.server_authenticator(0, "OAUTHBEARER").next(message).user

    assert user(aud=["kafka"], iss="me", upn="bob") == "bob"
    assert user(aud=["kafka"], iss="me") is None
    assert user(aud=["kafka"], upn="bob") is None
    assert user(iss="me", upn="bob") is None
    assert made.server_authenticator(0, "OAUTHBEARER").blocking


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "listener X: sasl.oauthbearer.jwks.endpoint.url: is needed for OAUTHBEARER"),
        (
            {"jwks_endpoint_url": "file:///nowhere/x"},
            "listener X: sasl.oauthbearer.jwks.endpoint.url: /nowhere/x: No such file or directory",
        ),
        (
            {"jwks_endpoint_url": "https://x/", "sub_claim_name": ""},
            "listener X: sasl.oauthbearer.sub.claim.name: must not be empty",
        ),
        (
            {"jwks_endpoint_url": "nonsense"},
            "listener X: sasl.oauthbearer.jwks.endpoint.url: a URL of https is needed",
        ),
    ],
)
def test_what_cannot_work_is_told_at_once(more: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        transport(**more)


def test_a_broker_starts_while_its_identity_provider_is_down() -> None:
    assert (
        transport(jwks_endpoint_url="https://127.0.0.1:1/jwks")
        .server_authenticator(0, "OAUTHBEARER")
        .blocking
    )


def test_an_issuer_of_no_algorithm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="HS256 is not one of RS256"):
        TokenIssuer(tmp_path, "HS256")
