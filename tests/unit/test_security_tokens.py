"""Tokens: what a user's callable and Amazon's package give, when tokens are replaced, and that one
thread at a time fetches."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed, FairleadError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.token_providers import CallableSource, MskSource, msk_region
from fairlead_kafka.security.tokens import (
    RETRY_AFTER_S,
    TOKEN_MAX_CHARACTERS,
    Refresh,
    Token,
    Tokens,
    refresh_at_s,
)

NOW_S = 1_700_000_000.0
SIGNER = "aws_msk_iam_sasl_signer"
MSK_HOST = "b-1.orders.x1y2.c2.kafka.eu-west-1.amazonaws.com:9098"


def jwt(**claims: Any) -> str:
    parts = (json.dumps({"alg": "none"}), json.dumps(claims), "signature")
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


class Provider:
    """A provider by its dotted path."""

    def __call__(self) -> str:
        return "of-a-class"


async def a_coroutine_function(text: str) -> tuple[str, float]:
    await asyncio.sleep(0)
    return f"token-for-{text}", NOW_S + 60


@pytest.mark.parametrize(
    ("provider", "argument", "expected"),
    [
        (lambda: "opaque", None, ("opaque", None, None, {})),
        (lambda: b"opaque", None, ("opaque", None, None, {})),
        (lambda: jwt(exp=NOW_S + 5, sub="me"), None, (jwt(exp=NOW_S + 5, sub="me"), NOW_S + 5, "me", {})),
        (lambda text: (text, NOW_S + 60), "config", ("config", NOW_S + 60, None, {})),
        (lambda text: (text + "x", NOW_S + 60), "", ("x", NOW_S + 60, None, {})),
        (
            lambda: ["opaque", None, "me", {"logicalCluster": "lkc-1"}],
            None,
            ("opaque", None, "me", {"logicalCluster": "lkc-1"}),
        ),
        (a_coroutine_function, "x", ("token-for-x", NOW_S + 60, None, {})),
        (f"{__name__}.a_coroutine_function", "x", ("token-for-x", NOW_S + 60, None, {})),
        (f"{__name__}:Provider", None, ("of-a-class", None, None, {})),
    ],
)
def test_a_callable_gives_tokens(provider: Any, argument: str | None, expected: tuple[Any, ...]) -> None:
    token = CallableSource(provider, argument=argument).fetch(NOW_S)
    assert (token.text.reveal(), token.expires_s, token.principal, token.extensions) == expected
    assert repr(token) == f"Token(expires_s={token.expires_s}, obtained_s={NOW_S})"


async def a_cancelled_coroutine_function() -> str:
    raise asyncio.CancelledError


def raising(error: BaseException) -> Callable[[], str]:
    def provider() -> str:
        raise error

    return provider


@pytest.mark.parametrize(
    ("provider", "error", "message"),
    [
        (raising(KeyError("TOKEN_FILE")), AuthenticationFailed, "raised KeyError: 'TOKEN_FILE'"),
        (raising(ConnectionResetError("gone")), ConnectionFailed, "raised ConnectionResetError: gone"),
        (raising(TimeoutError()), ConnectionFailed, "raised TimeoutError"),
        (raising(ConnectionFailed("as it is")), ConnectionFailed, "as it is"),
        (a_cancelled_coroutine_function, AuthenticationFailed, "raised CancelledError"),
        (lambda: None, AuthenticationFailed, "gave a token of type NoneType"),
        (lambda: {"access_token": "sesame"}, AuthenticationFailed, "gave a token of type dict"),
        (lambda: ("sesame",), AuthenticationFailed, "returned 1 items"),
        (
            lambda: ("sesame", NOW_S * 1000),
            AuthenticationFailed,
            "expiry 1700000000000: give seconds since 1970",
        ),
        (lambda: ("sesame", 300), AuthenticationFailed, "expiry 300: give seconds since 1970"),
        (lambda: ("sesame", "soon"), AuthenticationFailed, "expiry of type str"),
        (lambda: ("sesame", None, 5), AuthenticationFailed, "a principal of type int"),
        (lambda: ("sesame", None, None, ["sesame"]), AuthenticationFailed, "extensions of type list"),
        (lambda: ("sesame", None, None, {"auth": "x"}), AuthenticationFailed, "an extension named 'auth'"),
        (
            lambda: ("sesame", None, None, {"trace": "a\x01b"}),
            AuthenticationFailed,
            "extension trace a value",
        ),
        (lambda: "sesame\nsesame", AuthenticationFailed, "control characters"),
        (lambda: b"sesame\xff", AuthenticationFailed, "control characters"),
        (lambda: "s" * (TOKEN_MAX_CHARACTERS + 1), AuthenticationFailed, "65537 characters"),
        ("no.such.module", ConfigError, "sasl.oauthbearer.token.provider: cannot import 'no.such.module'"),
        (f"{__name__}:nothing", ConfigError, "cannot import"),
        ("nothing", ConfigError, "cannot import"),
        (f"{__name__}.NOW_S", ConfigError, "is a float, which cannot be called"),
    ],
)
def test_what_is_no_token_is_refused(provider: Any, error: type[FairleadError], message: str) -> None:
    with pytest.raises(error) as raised:
        CallableSource(provider).fetch(NOW_S)
    assert message in str(raised.value)
    assert "sesame" not in str(raised.value)


class Signer(ModuleType):
    """Amazon's package, as far as it is used; notes what it is asked."""

    def __init__(self) -> None:
        super().__init__(SIGNER)
        self.asked: list[Any] = []
        self.given: Any = ("c2lnbmVk", int((NOW_S + 900) * 1000))

    def generate_auth_token(self, region: str) -> Any:
        self.asked.append(region)
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def generate_auth_token_from_profile(self, region: str, profile: str) -> Any:
        return self.generate_auth_token(f"{region} profile {profile}")

    def generate_auth_token_from_role_arn(self, region: str, role_arn: str, session: str) -> Any:
        return self.generate_auth_token(f"{region} role {role_arn} {session}")

    def generate_auth_token_from_credentials_provider(self, region: str, provider: Any) -> Any:
        return self.generate_auth_token(f"{region} {provider.load()}")


@pytest.fixture
def signer(monkeypatch: pytest.MonkeyPatch) -> Signer:
    fake = Signer()
    monkeypatch.setitem(sys.modules, SIGNER, fake)
    monkeypatch.setitem(sys.modules, f"{SIGNER}.MSKAuthTokenProvider", fake)
    return fake


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({}, "eu-west-1"),
        ({"profile": "dev", "role_arn": "arn:1"}, "eu-west-1 profile dev"),
        ({"role_arn": "arn:1"}, "eu-west-1 role arn:1 aws-msk-iam-auth"),
        ({"role_arn": "arn:1", "role_session_name": "me"}, "eu-west-1 role arn:1 me"),
        (
            {"role_arn": "arn:1", "sts_region": "us-east-1"},
            "eu-west-1 us-east-1/arn:1/aws-msk-iam-auth key secret session",
        ),
    ],
)
def test_msk_tokens_are_signed_by_amazon_s_package(
    signer: Signer, monkeypatch: pytest.MonkeyPatch, options: dict[str, str], asked: str
) -> None:
    def client(_service: str, region_name: str) -> Any:
        def assume_role(**asked: str) -> Any:
            key = f"{region_name}/{asked['RoleArn']}/{asked['RoleSessionName']} key"
            return {
                "Credentials": {"AccessKeyId": key, "SecretAccessKey": "secret", "SessionToken": "session"}
            }

        return SimpleNamespace(assume_role=assume_role)

    credentials = SimpleNamespace(CredentialProvider=object, Credentials=lambda *parts: " ".join(parts))
    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=client))
    monkeypatch.setitem(sys.modules, "botocore", SimpleNamespace(credentials=credentials))
    monkeypatch.setitem(sys.modules, "botocore.credentials", credentials)
    token = MskSource([MSK_HOST], environment={}, **options).fetch(NOW_S)
    assert (token.text.reveal(), token.expires_s, token.obtained_s) == ("c2lnbmVk", NOW_S + 900, NOW_S)
    assert signer.asked == [asked]


def test_msk_failures_say_what_is_missing(signer: Signer, monkeypatch: pytest.MonkeyPatch) -> None:
    source = MskSource([MSK_HOST], environment={})
    signer.given = "a token of a release that tells no expiry"
    with pytest.raises(AuthenticationFailed, match="update aws-msk-iam-sasl-signer-python"):
        source.fetch(NOW_S)
    signer.given = ValueError("AWS Credentials can not be empty")
    with pytest.raises(
        AuthenticationFailed,
        match=r"AWS_MSK_IAM in eu-west-1, with AWS credentials of this process.*can not be empty",
    ):
        source.fetch(NOW_S)
    signer.given = type("EndpointConnectionError", (type("ConnectionError", (Exception,), {}),), {})(
        "no way to sts"
    )
    with pytest.raises(ConnectionFailed, match="no way to sts"):
        source.fetch(NOW_S)
    monkeypatch.setitem(sys.modules, SIGNER, None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r'pip install "fairlead-kafka\[msk\]"$'):
        MskSource([MSK_HOST], environment={})


@pytest.mark.parametrize(
    ("hosts", "environment", "region"),
    [
        ([MSK_HOST], {"AWS_REGION": "mars-1"}, "eu-west-1"),
        (["10.0.0.1:9098", "boot-x.c1.kafka-serverless.us-east-1.amazonaws.com:9098"], {}, "us-east-1"),
        (["B-2.x.kafka.cn-north-1.AmazonAWS.com.cn."], {}, "cn-north-1"),
        (["kafka.eu-west-1.example.com:9098"], {"AWS_DEFAULT_REGION": "eu-north-1"}, "eu-north-1"),
        (["broker"], {"AWS_REGION": "mars-1", "AWS_DEFAULT_REGION": "eu-north-1"}, "mars-1"),
    ],
)
def test_the_region_of_msk_is_found(hosts: list[str], environment: dict[str, str], region: str) -> None:
    assert msk_region(hosts, environment) == region
    with pytest.raises(ConfigError, match="set AWS_REGION in the environment"):
        msk_region(["kafka.eu-west-1.amazonaws.com.example.com"], {})


@pytest.mark.parametrize(
    ("life_s", "factor", "jitter_share", "min_period_s", "buffer_s", "after_s"),
    [
        (3600, 0.8, 0.0, 60, 300, 2880),
        (3600, 0.8, 0.05, 60, 300, 3060),
        (3600, 0.8, 0.2, 60, 300, 3300),  # not later than the buffer
        (400, 0.5, 0.0, 60, 300, 100),  # the buffer again
        (400, 0.5, 0.0, 250, 50, 250),  # not sooner than the shortest period
        (360, 0.5, 0.0, 60, 300, 60),  # both at once, just fitting
        (359, 0.5, 0.0, 60, 300, 179.5),  # they do not fit, and are ignored
        (100, 1.0, 0.25, 60, 300, 100),  # never after it expired
        (100, 0.8, 0.0, 0, 0, 80),
        (0, 0.8, 0.0, 60, 300, RETRY_AFTER_S),
        (-500, 0.8, 0.0, 60, 300, RETRY_AFTER_S),
        (None, 0.8, 0.05, 60, 300, 60),
    ],
)
def test_tokens_are_replaced_when_kafka_would(
    life_s: float | None,
    factor: float,
    jitter_share: float,
    min_period_s: float,
    buffer_s: float,
    after_s: float,
) -> None:
    expires_s = None if life_s is None else NOW_S + life_s
    assert refresh_at_s(NOW_S, expires_s, factor, jitter_share, min_period_s, buffer_s) == pytest.approx(
        NOW_S + after_s, abs=1e-3
    )


class Source:
    """Gives tokens that live for an hour, or what it is told to."""

    def __init__(self) -> None:
        self.fetched = 0
        self.life_s: float | None = 3600
        self.error: BaseException | None = None
        self.gate = threading.Event()
        self.gate.set()

    def fetch(self, now_s: float) -> Token:
        self.fetched += 1
        number, error = self.fetched, self.error
        assert self.gate.wait(10)
        if error is not None:
            raise error
        return Token(Secret(f"sesame-{number}"), None if self.life_s is None else now_s + self.life_s, now_s)


def sharing(source: Source, **options: Any) -> Tokens:
    return Tokens(source, random=lambda: 0.5, refresh=Refresh(jitter=0.1, **options), monotonic_s=lambda: 0.0)


def text(tokens: Tokens, at_s: float) -> str:
    return tokens.get(NOW_S + at_s).text.reveal()


def test_a_token_serves_until_it_is_time_for_the_next() -> None:
    tokens = sharing(Source())
    assert [text(tokens, at_s) for at_s in (0, 1, 3059, 3060, 3061)] == ["sesame-1"] * 3 + ["sesame-2"] * 2
    source = Source()
    source.life_s = None
    tokens = sharing(source)
    assert [text(tokens, at_s) for at_s in (0, 59, 60)] == ["sesame-1", "sesame-1", "sesame-2"]
    source.error = ConnectionFailed("away")
    with pytest.raises(ConnectionFailed):  # nobody knows whether the old one is still valid
        text(tokens, 121)


def test_the_old_token_serves_while_there_is_no_other_and_it_is_valid(
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = Source()
    tokens = sharing(source)
    text(tokens, 0)
    source.error = AuthenticationFailed("https://idp/token refused client 'orders'")
    assert [text(tokens, at_s) for at_s in (3100, 3109, 3110, 3597)] == ["sesame-1"] * 4
    assert source.fetched == 4  # not sooner than RETRY_AFTER_S after one another
    with pytest.raises(AuthenticationFailed):
        text(tokens, 3598)
    source.error = None
    assert text(tokens, 3601) == "sesame-6"
    assert [(record.name, record.levelno, record.getMessage()) for record in caplog.records] == [
        (
            "fairlead_kafka.security",
            logging.WARNING,
            "the token could not be replaced, and serves for another 500 s at most: https://idp/token "
            "refused client 'orders'",
        )
    ]
    source.life_s = -20
    assert [text(tokens, at_s) for at_s in (9000, 9009, 9010)] == ["sesame-7", "sesame-7", "sesame-8"]
    assert "expired 20 s ago: check that the clocks" in caplog.text
    assert "sesame" not in caplog.text


def until(condition: Callable[[], Any]) -> None:
    while not condition():
        time.sleep(0.001)


def test_twenty_threads_share_one_fetch() -> None:
    source = Source()
    tokens = sharing(source)
    source.gate.clear()
    with ThreadPoolExecutor(20) as threads:
        asked = [threads.submit(text, tokens, 0) for _thread in range(20)]
        until(lambda: source.fetched)
        source.gate.set()
        assert [each.result() for each in asked] == ["sesame-1"] * 20
    assert source.fetched == 1


def test_nobody_waits_for_a_new_token_while_the_old_one_is_valid() -> None:
    source = Source()
    tokens = sharing(source)
    text(tokens, 0)
    source.gate.clear()
    with ThreadPoolExecutor(1) as thread:
        fetching = thread.submit(text, tokens, 3100)
        until(lambda: source.fetched == 2)
        assert text(tokens, 3100) == "sesame-1"
        source.gate.set()
        assert fetching.result() == "sesame-2"


@pytest.mark.parametrize(
    "error", [ConnectionFailed("away"), KeyboardInterrupt()], ids=lambda error: type(error).__name__
)
def test_those_who_wait_get_the_error_of_the_fetch_or_fetch_themselves(error: BaseException) -> None:
    source = Source()
    tokens = sharing(source)
    source.error = error
    source.gate.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(text, tokens, 0)
        until(lambda: source.fetched)
        source.error = None
        fetch: Any = tokens._fetch
        waiting = threads.submit(text, tokens, 0)
        until(lambda: fetch.done._cond._waiters)
        source.gate.set()
        with pytest.raises(type(error)):
            first.result()
        if isinstance(error, KeyboardInterrupt):
            assert waiting.result() == "sesame-2"
        else:
            with pytest.raises(ConnectionFailed, match="away") as raised:
                waiting.result()
            assert raised.value is not error
