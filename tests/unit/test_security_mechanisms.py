"""The client's end of log-ins, against the other end of the same library and texts of the RFCs."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from scramp import ScramMechanism

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.mechanisms import Gssapi, OAuthBearer, Plain, Scram
from fairlead_kafka.security.tokens import Token


def user(name: str = "alice", password: str = "hunter2") -> Callable[[], tuple[str, Secret]]:
    return lambda: (name, Secret(password))


def test_plain_is_one_message() -> None:
    plain = Plain(user("alicé"))
    assert plain.next(None) == "\0alicé\0hunter2".encode()
    assert plain.next(b"") is None
    with pytest.raises(ConfigError, match="null character"):
        Plain(user(password="a\0b")).next(None)


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_proves_both_ends(mechanism: str) -> None:
    server_side = ScramMechanism(mechanism)
    info = server_side.make_auth_info("hunter2", iteration_count=4096)
    server = server_side.make_server(lambda _name: info)
    client = Scram(mechanism, user())
    server.set_client_first((client.next(None) or b"").decode())
    server.set_client_final((client.next(server.get_server_first().encode()) or b"").decode())
    assert client.next(server.get_server_final().encode()) is None


@pytest.mark.parametrize(
    "challenge",
    [
        b"",
        b"\xff",
        b"r=short",
        b"r=elsewhere,s=QSXCR+Q6sek8bf92,i=4096",
        b"e=unknown-user",
        b"r=,s=,i=",
        b"r=x,s=%%%,i=-1",
        b"," * 4096,
    ],
)
def test_a_server_that_is_not_one_is_refused(challenge: bytes) -> None:
    client = Scram("SCRAM-SHA-256", user())
    client.next(None)
    with pytest.raises(
        AuthenticationFailed, match="the broker's part of the log-in by SCRAM-SHA-256 does not fit"
    ):
        client.next(challenge)


def test_a_server_that_does_not_know_the_password_is_refused() -> None:
    server_side = ScramMechanism("SCRAM-SHA-256")
    info = server_side.make_auth_info("hunter2", iteration_count=4096)
    server = server_side.make_server(lambda _name: info)
    client = Scram("SCRAM-SHA-256", user())
    server.set_client_first((client.next(None) or b"").decode())
    client.next(server.get_server_first().encode())
    with pytest.raises(AuthenticationFailed):
        client.next(b"v=cnVibWlzaA==")


def test_oauthbearer_shows_its_token_and_says_goodbye_when_refused() -> None:
    token = Token(Secret("abc.def.ghi"), 2e9, 0.0, extensions={"pool": "p"})
    bearer = OAuthBearer(lambda: token, {"cluster": "lkc-1"})
    assert bearer.next(None) == b"n,,\x01auth=Bearer abc.def.ghi\x01cluster=lkc-1\x01pool=p\x01\x01"
    assert bearer.next(b"") is None
    refused = OAuthBearer(lambda: token, {})
    refused.next(None)
    assert refused.next(b'{"status":"invalid_token"}') == b"\x01"
    assert refused.next(b"") is None


@pytest.mark.parametrize("extensions", [{"": "x"}, {"auth": "x"}, {"a1": "x"}, {"a": "\x01"}])
def test_extensions_that_would_break_the_message_are_refused(extensions: dict[str, str]) -> None:
    token = Token(Secret("abc"), None, 0.0)
    with pytest.raises(ConfigError, match=r"sasl\.oauthbearer\.extensions"):
        OAuthBearer(lambda: token, extensions).next(None)


def test_kerberos_without_its_package_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "gssapi", None)
    with pytest.raises(ConfigError, match=r"pip install \"fairlead-kafka\[kerberos\]\""):
        Gssapi("kafka", "broker", None, None).next(None)
