"""Tokens from an identity provider: what it is asked, what its answers mean, what is tried again,
and that no secret is ever shown."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed, FairleadError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security import oidc
from fairlead_kafka.security.oidc import ANSWER_MAX_BYTES, OidcSource, Patience, TokenRequest
from fairlead_kafka.security.tokens import shown

NOW_S = 1_700_000_000.0
SECRET = "pa/ss wörd+1"
Answer = tuple[int, dict[str, str], bytes]


def jwt(**claims: Any) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps(claims), "signature")
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


def answer(status: int = 200, headers: dict[str, str] | None = None, **fields: Any) -> Answer:
    return status, headers or {}, json.dumps(fields).encode()


def source_of(url: str, client_id: str, secret: Secret, **options: Any) -> OidcSource:
    """A source by the names of all its options."""
    asked = {name: options.pop(name) for name in TokenRequest._fields if name in options}
    patience = {name: options.pop(name) for name in Patience._fields if name in options}
    return OidcSource(TokenRequest(url, client_id, secret, **asked), Patience(**patience), **options)


class Endpoint:
    """A token endpoint on this machine that gives the answers it was told, the last one for
    ever."""

    def __init__(self) -> None:
        self.answers: list[Answer | None] = []
        self.asked: list[tuple[Mapping[str, str], bytes]] = []
        self.closing = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                endpoint.asked.append((self.headers, self.rfile.read(int(self.headers["Content-Length"]))))
                given = endpoint.answers.pop(0) if len(endpoint.answers) > 1 else endpoint.answers[0]
                if given is None:  # never
                    endpoint.closing.wait(10)
                    return
                status, headers, body = given
                self.send_response(status)
                for name, value in ({"Content-Length": str(len(body))} | headers).items():
                    self.send_header(name, value)
                self.end_headers()
                with suppress(OSError):  # who asked had enough
                    self.wfile.write(body)

            def log_message(self, *_args: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token"
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        self.thread.start()

    def close(self) -> None:
        self.closing.set()
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def source(self, **options: Any) -> OidcSource:
        clock = Clock()
        return source_of(
            self.url, "orders", Secret(SECRET), monotonic_s=clock.now_s, sleep_s=clock.sleep_s, **options
        )

    def refuses(self, given: Answer | None, error: type[FairleadError], **options: Any) -> str:
        self.answers = [given]
        with pytest.raises(error) as raised:
            self.source(**options).fetch(NOW_S)
        return str(raised.value).replace(self.url, "URL")


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now_s(self) -> float:
        return sum(self.slept)

    def sleep_s(self, seconds: float) -> None:
        self.slept.append(seconds)


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    started = Endpoint()
    yield started
    started.close()


def test_a_client_s_credentials_get_a_token(endpoint: Endpoint) -> None:
    text = jwt(exp=NOW_S + 900, sub="service-orders")
    endpoint.answers = [answer(access_token=f" {text}\n", expires_in="3600", token_type="Bearer")]
    token = endpoint.source(scope=" read write ").fetch(NOW_S)
    assert (token.text.reveal(), token.expires_s, token.obtained_s, token.principal) == (
        text,
        NOW_S + 900,
        NOW_S,
        "service-orders",
    )
    assert repr(token) == f"Token(expires_s={NOW_S + 900}, obtained_s={NOW_S})"
    headers, body = endpoint.asked[0]
    assert body == b"grant_type=client_credentials&scope=read+write"
    assert headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert base64.b64decode(headers["Authorization"].removeprefix("Basic ")).decode() == f"orders:{SECRET}"


def test_id_and_secret_are_encoded_for_urls_if_asked_for(endpoint: Endpoint) -> None:
    endpoint.answers = [answer(id_token="opaque")]
    token = endpoint.source(header_urlencode=True).fetch(NOW_S)
    assert (token.text.reveal(), token.expires_s, token.principal) == ("opaque", None, None)
    headers, body = endpoint.asked[0]
    assert (
        base64.b64decode(headers["Authorization"].removeprefix("Basic ")) == b"orders:pa%2Fss+w%C3%B6rd%2B1"
    )
    assert body == b"grant_type=client_credentials"


@pytest.mark.parametrize(
    ("expires_in", "exp_s", "expires_s"),
    [
        (3600, None, NOW_S + 3600),
        ("3600", None, NOW_S + 3600),
        (60, NOW_S + 900, NOW_S + 60),
        (3600, NOW_S - 900, NOW_S + 3600),
        (None, NOW_S - 900, NOW_S - 900),
        *(
            (nonsense, NOW_S + 900, NOW_S + 900)
            for nonsense in ("soon", True, 0, -1, 1e300, float("nan"), [], 10**400)
        ),
        (None, "never", None),
        (None, NOW_S * 1000, None),
    ],
)
def test_a_token_expires_as_the_answer_and_the_token_say(
    endpoint: Endpoint, expires_in: Any, exp_s: Any, expires_s: float | None
) -> None:
    endpoint.answers = [answer(access_token=jwt(exp=exp_s), expires_in=expires_in)]
    assert endpoint.source().fetch(NOW_S).expires_s == expires_s


def test_a_refusal_says_what_to_check_and_hides_the_secret(endpoint: Endpoint) -> None:
    credentials = "b3JkZXJzOnBhL3NzIHfDtnJkKzE="
    said = f"no client orders with {SECRET}, pa%2fss%20w%c3%b6rd%2B1, {credentials}\r\n or {jwt(sub='x')}"
    assert endpoint.refuses(
        answer(401, error="invalid_client", error_description=said), AuthenticationFailed
    ) == (
        "URL refused client 'orders' (401 invalid_client: no client orders with [hidden], [hidden], [hidden] "
        "or [hidden]): "
        "check sasl.oauthbearer.client.credentials.client.id and .client.secret"
    )
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            answer(400, error="invalid_scope"),
            AuthenticationFailed,
            "(400 invalid_scope): check sasl.oauthbearer.scope",
        ),
        (
            answer(403, errorCode="E1", errorSummary="no"),
            AuthenticationFailed,
            "(403 E1: no): check sasl.oauthbearer.client",
        ),
        (
            answer(404, error={"code": 1}),
            AuthenticationFailed,
            "(404 Not Found): check sasl.oauthbearer.token.endpoint.url",
        ),
        (answer(407), AuthenticationFailed, "check https_proxy"),
        (answer(501), AuthenticationFailed, "(501 Not Implemented)"),
        (
            answer(200, error="invalid_client"),
            AuthenticationFailed,
            "refused client 'orders' (200 invalid_client)",
        ),
        (answer(503), ConnectionFailed, "URL gave no token (503 Service Unavailable); asked 8 times"),
        (answer(429), ConnectionFailed, "(429 Too Many Requests)"),
        ((200, {}, b"<html>"), AuthenticationFailed, "something else than a JSON object"),
        ((200, {}, b"[" * 100_000), AuthenticationFailed, "something else than a JSON object"),
        ((200, {}, b"\xff\xfe{"), AuthenticationFailed, "something else than a JSON object"),
        ((200, {"Content-Length": "20"}, b'{"access_token"'), ConnectionFailed, "its answer broke off"),
        ((200, {}, b" " * (ANSWER_MAX_BYTES + 1)), AuthenticationFailed, "more than 1048576 bytes"),
        ((502, {}, b" " * (ANSWER_MAX_BYTES + 1)), ConnectionFailed, "(502 Bad Gateway)"),
        (
            answer(token="sesame", expires_in=3),
            AuthenticationFailed,
            "without an access_token (what is there: token, expires_in)",
        ),
        (answer(), AuthenticationFailed, "without an access_token (what is there: nothing)"),
        (answer(access_token={"sesame": 1}), AuthenticationFailed, "URL gave a token of type dict"),
        (answer(access_token="sesa\x01me"), AuthenticationFailed, "URL gave a token with control characters"),
        (
            answer(307, {"Location": "https://me:sesame@evil/?sesame"}),
            AuthenticationFailed,
            "URL redirects to https://evil/ (307)",
        ),
        (answer(302), AuthenticationFailed, "URL redirects to nowhere (302)"),
        (
            answer(302, {"Location": "http://[/sesame"}),
            AuthenticationFailed,
            "URL redirects to nowhere (302)",
        ),
    ],
)
def test_other_answers_are_told_apart(
    endpoint: Endpoint, given: Answer, error: type[FairleadError], message: str
) -> None:
    said = endpoint.refuses(given, error)
    assert message in said
    assert "sesame" not in said
    assert len(endpoint.asked) == (8 if error is ConnectionFailed else 1)


def test_a_failure_is_retried_with_exponential_back_off(endpoint: Endpoint) -> None:
    endpoint.answers = [answer(500), answer(500), answer(access_token="opaque", expires_in=60)]
    clock = Clock()
    source = source_of(endpoint.url, "orders", Secret(SECRET), monotonic_s=clock.now_s, sleep_s=clock.sleep_s)
    token = source.fetch(NOW_S)
    assert (clock.slept, token.obtained_s, token.expires_s) == (
        [0.1, 0.2],
        NOW_S + clock.now_s(),
        NOW_S + clock.now_s() + 60,
    )
    endpoint.answers = [answer(500)]
    clock.slept.clear()
    with pytest.raises(ConnectionFailed):
        source.fetch(NOW_S)
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 3.7])


def test_an_endpoint_that_is_slow_or_away_is_told(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    once: dict[str, Any] = {"retry_backoff_max_ms": 0}
    assert endpoint.refuses(None, ConnectionFailed, read_timeout_ms=20, **once) == (
        "URL could not be asked for a token: no answer within 0.02 s (sasl.login.read.timeout.ms); asked 1 "
        "time"
    )
    trickling = SimpleNamespace(length=None, read1=lambda _size: b" ")
    ticks = iter(range(100))
    source = source_of(endpoint.url, "orders", Secret(SECRET), monotonic_s=lambda: next(ticks))
    with pytest.raises(TimeoutError):
        source._body(trickling)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        source = source_of(
            f"https://127.0.0.1:{silent.getsockname()[1]}/t",
            "orders",
            Secret(SECRET),
            connect_timeout_ms=20,
            **once,
        )
        with pytest.raises(
            ConnectionFailed, match=r"no connection within 0.02 s \(sasl.login.connect.timeout.ms\)"
        ):
            source.fetch(NOW_S)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        where = f"127.0.0.1:{nobody.getsockname()[1]}"
        with pytest.raises(
            ConnectionFailed,
            match=f"^http://{where}/t could not be asked for a token: .*refused; asked 1 time$",
        ):
            source_of(f"http://{where}/t", "orders", Secret(SECRET), **once).fetch(NOW_S)
        monkeypatch.setenv("http_proxy", f"http://me:sesame@{where}")
        monkeypatch.setenv("no_proxy", "")
        assert "sesame" not in endpoint.refuses(answer(access_token="opaque"), ConnectionFailed, **once)


def test_a_certificate_that_is_not_trusted_is_final(monkeypatch: pytest.MonkeyPatch) -> None:
    import ssl
    from urllib.error import URLError

    def refuse(*_args: object, **_options: object) -> None:
        raise URLError(ssl.SSLCertVerificationError(1, "self-signed certificate"))

    monkeypatch.setattr(oidc, "opener", lambda *_: SimpleNamespace(open=refuse))
    source = source_of("https://idp:8443/token?tenant=1", "orders", Secret(SECRET))
    with pytest.raises(
        AuthenticationFailed,
        match=r"^https://idp:8443/token has a certificate that is not trusted \(.*self-signed",
    ):
        source.fetch(NOW_S)


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("idp.example.com/token", "a URL of https is needed"),
        ("file:///etc/passwd", "a URL of https is needed"),
        ("https:///token", "a URL of https is needed"),
        ("https://me:sesame@idp/token?sesame", "https://idp/token has user info"),
        ("https://idp:port/token", "this is not a URL"),
        ("https://a..b/token", "this is not a URL"),
        ("https://idp/to ken", "characters that a URL may not have"),
    ],
)
def test_a_url_that_cannot_be_asked_is_refused_at_once(url: str, message: str) -> None:
    with pytest.raises(ConfigError) as raised:
        source_of(url, "orders", Secret(SECRET))
    assert message in str(raised.value)
    assert str(raised.value).startswith("sasl.oauthbearer.token.endpoint.url: ")
    assert "sesame" not in str(raised.value)


def test_http_is_warned_of_unless_it_stays_on_this_machine(caplog: pytest.LogCaptureFixture) -> None:
    for url in ("http://localhost/t", "http://127.1.2.3/t", "http://[::1]:80/t", "https://idp/t"):
        source_of(url, "orders", Secret(SECRET))
    assert not caplog.records
    source_of("http://idp/t?key", "orders", Secret(SECRET))
    assert [record.getMessage() for record in caplog.records] == [
        "http://idp/t: the client's secret is sent to it unencrypted; use https in "
        "sasl.oauthbearer.token.endpoint.url"
    ]
    with pytest.raises(ConfigError, match="both are needed"):
        source_of("https://idp/t", "orders", Secret(""))
    with pytest.raises(ConfigError, match="one of them is not valid UTF-8"):
        source_of("https://idp/t", "orders", Secret("\udcff"))


def test_a_foreign_text_is_shown_on_one_short_line() -> None:
    assert shown("a\r\n\x00 b") == "a b"
    assert len(shown("x" * 1000)) == 201
