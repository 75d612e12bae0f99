"""The server's ends of PLAIN and SCRAM, against our own client's ends, `scramp`'s, and clients that
are none."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scramp import ScramClient

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.mechanisms import SCRAM_HASHES, Plain, Scram
from fairlead_kafka.security.server_mechanisms import (
    Answer,
    Bounded,
    PlainServer,
    PlainUsers,
    ServerAuthenticator,
)
from fairlead_kafka.security.server_scram import MESSAGE_MAX_BYTES, ScramServer, scram_credential

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
REFUSED = "Authentication failed during authentication due to invalid credentials with SASL mechanism"


def plain_server(users: str = 'user_alice="hunter2" user_bob="böb,=" user_carol="c"') -> PlainServer:
    return PlainServer(PlainUsers(Secret(f'a.PlainLoginModule required username="x" password="y" {users};')))


def refusal(server: ServerAuthenticator, message: bytes) -> str:
    with pytest.raises(AuthenticationFailed) as raised:
        server.next(message)
    return str(raised.value)


# --- PLAIN


def test_plain_lets_in_who_gives_the_password() -> None:
    for user, password in (("alice", "hunter2"), ("bob", "böb,=")):
        said = Plain(lambda user=user, password=password: (user, Secret(password))).next(None) or b""  # type: ignore[misc]
        assert plain_server().next(said) == Answer(b"", user, None)
    assert plain_server().next(b"alice\0alice\0hunter2").user == "alice"
    assert not plain_server().blocking


@pytest.mark.parametrize(
    ("message", "said"),
    [
        (b"\0alice\0hunter3", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0hunter2", "Authentication failed: Invalid username or password"),
        (b"\0mallory\0 ", "Authentication failed: Invalid username or password"),
        (b"\0\xff\0 ", "Authentication failed: Invalid username or password"),
        (b"\0Alice\0hunter2", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0hunter2",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0\0hunter2", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0hunter2", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0hunter2\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0" * 100_000, "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
    ],
)
def test_plain_refuses_in_kafka_s_words(message: bytes, said: str) -> None:
    assert refusal(plain_server(), message) == said


def test_plain_s_passwords_are_read_again_where_they_are_kept(
    tmp_path: Any, caplog: pytest.LogCaptureFixture
) -> None:
    secret = tmp_path / "password"
    secret.write_text("first\n")
    users = PlainUsers(Secret(f'a.PlainLoginModule required user_alice="${{file:{secret}}}";'))
    server = PlainServer(users)
    assert server.blocking
    assert server.next(b"\0alice\0first").user == "alice"
    secret.write_text("second")
    assert PlainServer(users).next(b"\0alice\0second").user == "alice"
    assert (
        refusal(PlainServer(users), b"\0alice\0first")
        == "Authentication failed: Invalid username or password"
    )
    secret.unlink()
    with caplog.at_level(logging.WARNING, logger="fairlead_kafka.security"):
        said = refusal(PlainServer(users), b"\0alice\0second")
    assert said == "Authentication failed: credentials for user could not be verified"
    assert "cannot be read" in caplog.text


@given(st.binary(max_size=60))
def test_plain_lets_nobody_in_by_chance(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        plain_server('user_a="1234567890"').next(message)


# --- SCRAM


class Stored(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


STORED = {mechanism: Stored(*scram_credential(mechanism, Secret("hunter2"))) for mechanism in MECHANISMS}


def scram_server(
    mechanism: str = "SCRAM-SHA-256", users: tuple[str, ...] = ("alice", "a,b=c", "zoë")
) -> ScramServer:
    return ScramServer(mechanism, lambda user: STORED[mechanism] if user in users else None)


def logged_in(client: Scram, server: ScramServer) -> str | None:
    first = server.next(client.next(None) or b"")
    assert first.user is None
    last = server.next(client.next(first.message) or b"")
    assert client.next(last.message) is None
    return last.user


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("user", ["alice", "a,b=c", "zoë"])
def test_scram_lets_in_who_knows_the_password(mechanism: str, user: str) -> None:
    assert logged_in(Scram(mechanism, lambda: (user, Secret("hunter2"))), scram_server(mechanism)) == user
    server, client = scram_server(mechanism), ScramClient([mechanism], user, "hunter2")
    client.set_server_first(server.next(client.get_client_first().encode()).message.decode())
    done = server.next(client.get_client_final().encode())
    client.set_server_final(done.message.decode())
    assert (done.user, done.expires_ms, server.blocking) == (user, None, False)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "password", ["no\u00a0break", "soft\u00adhyphen", "\u2168 \ufb01n", "a\x07", "e\u0301"]
)
def test_names_and_passwords_are_taken_as_they_are(mechanism: str, password: str) -> None:
    """What Kafka's tools store is the hash of the password's UTF-8; the salt may be short."""
    name = SCRAM_HASHES[mechanism]
    salted = hashlib.pbkdf2_hmac(name, password.encode(), b"salt", 4096)
    stored_key = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    by_kafka = Stored(b"salt", stored_key, hmac.digest(salted, b"Server Key", name), 4096)
    for stored in (by_kafka, Stored(*scram_credential(mechanism, Secret(password)))):
        client = Scram(mechanism, lambda: (password, Secret(password)))
        assert logged_in(client, ScramServer(mechanism, {password: stored}.get)) == password
    plain = Plain(lambda: (password, Secret(password))).next(None)
    assert plain == b"\0%b\0%b" % (password.encode(), password.encode())


def test_half_a_character_is_told_and_not_shown() -> None:
    for mechanism in (Plain, lambda reveal: Scram("SCRAM-SHA-256", reveal)):
        with pytest.raises(ConfigError, match="UTF-8 can write") as told:
            mechanism(lambda: ("alice", Secret("secret\ud800"))).next(None)
        assert "secret" not in repr(told.value)
        assert told.value.__cause__ is None


def test_scram_is_that_of_the_rfc() -> None:
    """RFC 7677, 3: its password and salt; its own client nonce."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    server_key = hmac.digest(salted, b"Server Key", "sha256")
    stored = Stored(salt, hashlib.sha256(client_key).digest(), server_key, 4096)
    server = ScramServer("SCRAM-SHA-256", {"user": stored}.get)
    first = server.next(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").message
    nonce = first.split(b",")[0][2:]
    assert first == b"r=" + nonce + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
    assert nonce.startswith(b"rOprNGfwEbeRWgbNEkqO")
    assert len(nonce) >= 20 + 32
    signed = b"n=user,r=rOprNGfwEbeRWgbNEkqO," + first + b",c=biws,r=" + nonce
    signature = hmac.digest(stored.stored_key, signed, "sha256")
    proof = base64.b64encode(bytes(one ^ other for one, other in zip(client_key, signature, strict=True)))
    assert server.next(b"c=biws,r=" + nonce + b",p=" + proof) == Answer(
        b"v=" + base64.b64encode(hmac.digest(server_key, signed, "sha256")), "user"
    )


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_who_is_not_there_is_refused_like_a_wrong_password(mechanism: str) -> None:
    said = []
    salts: set[bytes] = set()
    for user, password in (("alice", "wrong"), ("mallory", "hunter2"), ("mallory", "x"), ("mallory2", "x")):
        server, client = (
            scram_server(mechanism),
            Scram(mechanism, lambda user=user, password=password: (user, Secret(password))),
        )  # type: ignore[misc]
        first = server.next(client.next(None) or b"").message
        salts.add(first.split(b",")[1])
        assert first.endswith(b",i=4096")
        said.append(refusal(server, client.next(first) or b""))
    assert said == [f"{REFUSED} {mechanism}"] * 4
    assert len(salts) == 3, "a user who is not there has the same salt each time"
    assert len({len(salt) for salt in salts}) == 1


def test_a_weak_or_foreign_credential_is_none() -> None:
    for stored in (Stored(b"x" * 12, b"y" * 32, b"z" * 32, 4095), Stored(b"x" * 12, b"", b"", 4096)):
        server = ScramServer("SCRAM-SHA-256", lambda _user, stored=stored: stored)  # type: ignore[misc]
        assert b"s=" + base64.b64encode(b"x" * 12) not in server.next(b"n,,n=alice,r=abc").message


def test_a_password_that_cannot_be_stored_is_told() -> None:
    for password, iterations in (("", 4096), ("\ud800", 4096), ("good", 4095)):
        with pytest.raises(ConfigError, match="a text that UTF-8 can write"):
            scram_credential("SCRAM-SHA-256", Secret(password), iterations)


FIRSTS = [
    b"", b"n", b"n,,", b"n,,n=alice", b"n,,n=,r=abc", b"n,,n=alice,r=", b"y,,n=alice,r=abc",
    b"p=tls-unique,,n=alice,r=abc",
    b"p=tls-server-end-point,,n=alice,r=abc", b"n,,m=x,n=alice,r=abc", b"n,,n=alice,r=a\x01",
    b"n,,n=al=20ce,r=abc", b"n,,n=al\0ce,r=abc",
    b"n,,n=alice,r=abc,tokenauth=true", b"n,,n=alice,r=abc,x=y,tokenauth=TRUE,z=1", b"n,,n=\xff,r=abc",
    b"n,,r=abc,n=alice",
    b"n,,n=alice,r=abc,", b"n,,n=alice,r=abc,1=2", b"n,a=,n=alice,r=abc", b" n,,n=alice,r=abc",
    b"n,,n=alice,r=abc\n", b"N,,n=alice,r=abc",
    b"n,,n=" + b"a" * MESSAGE_MAX_BYTES + b",r=abc",
]  # fmt: skip


@pytest.mark.parametrize("message", FIRSTS, ids=range(len(FIRSTS)))
def test_a_first_message_that_is_none_is_refused(message: bytes) -> None:
    server = scram_server()
    assert refusal(server, message) == f"{REFUSED} SCRAM-SHA-256"
    assert refusal(server, b"n,,n=alice,r=abc") == f"{REFUSED} SCRAM-SHA-256", "there is no second try"


def test_extensions_and_the_user_s_own_name_may_be_given() -> None:
    assert scram_server().next(b"n,,n=alice,r=abc,tokenauth=false,x=y=z").message
    assert scram_server().next(b"n,a=a=2Cb=3Dc,n=a=2Cb=3Dc,r=abc").message
    said = refusal(scram_server(), b"n,a=bob,n=alice,r=abc")
    assert (
        said == "Authentication failed: Client requested an authorization id that is different from username"
    )


def second(change: Callable[[bytes, bytes], bytes], gs2: bytes = b"n,,") -> bytes | str:
    """What comes of a final message of a client that knows the password, changed: given the message
    and the nonce."""
    server = scram_server()
    bare = b"n=alice,r=abcdef"
    first = server.next(gs2 + bare).message
    nonce = first.split(b",")[0][2:]
    message = change(final(bare, first, b"c=" + base64.b64encode(gs2) + b",r=" + nonce), nonce)
    try:
        done = server.next(message)
    except AuthenticationFailed as error:
        assert refusal(server, message) == f"{REFUSED} SCRAM-SHA-256"
        return str(error)
    assert done.user == "alice"
    return done.message


def final(bare: bytes, first: bytes, without_proof: bytes) -> bytes:
    stored = STORED["SCRAM-SHA-256"]
    salted = hashlib.pbkdf2_hmac("sha256", b"hunter2", stored.salt, stored.iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    signature = hmac.digest(stored.stored_key, bare + b"," + first + b"," + without_proof, "sha256")
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    return without_proof + b",p=" + base64.b64encode(proof)


def test_the_final_message_is_bound_to_the_first() -> None:
    assert second(lambda message, _nonce: message).__class__ is bytes
    assert second(lambda message, _nonce: message, gs2=b"n,a=alice,").__class__ is bytes
    refused = f"{REFUSED} SCRAM-SHA-256"
    changes: list[Callable[[bytes, bytes], bytes]] = [
        lambda message, nonce: message.replace(nonce, nonce[:-1]),
        lambda message, nonce: message.replace(nonce, b"x" + nonce),
        lambda message, nonce: message.replace(nonce, b"abcdef"),
        lambda message, nonce: message.replace(nonce, nonce + b"x"),
        lambda message, _nonce: message.replace(b"c=biws", b"c=eSws"),
        lambda message, _nonce: message.replace(b"c=biws", b"c=biwsbiws"),
        lambda message, _nonce: message[:-1],
        lambda message, _nonce: message[:-4],
        lambda message, _nonce: message[: message.index(b",p=")],
        lambda message, _nonce: message[: message.index(b",p=")] + b",p=" + base64.b64encode(bytes(32)),
        lambda message, _nonce: message[: message.index(b",p=")] + b",p====",
        lambda message, _nonce: message + b",x=y",
        lambda message, _nonce: message.replace(b",p=", b",x=y,p="),
        lambda message, _nonce: message + b"\n",
        lambda message, _nonce: b"",
        lambda message, _nonce: b"\xff" * 100,
        lambda message, _nonce: message + b"A" * MESSAGE_MAX_BYTES,
    ]
    for nth, change in enumerate(changes):
        assert second(change) == refused, nth


def test_a_proof_for_another_flag_is_refused() -> None:
    """The flag is signed: a client that said "y", and a man in the middle who made "n" of it, do
    not get on."""
    server = scram_server()
    first = server.next(b"n,,n=alice,r=abcdef").message
    nonce = first.split(b",")[0][2:]
    message = final(b"n=alice,r=abcdef", first, b"c=" + base64.b64encode(b"y,,") + b",r=" + nonce)
    assert refusal(server, message) == f"{REFUSED} SCRAM-SHA-256"


def test_an_exchange_that_was_overheard_is_of_no_use() -> None:
    server = scram_server()
    first = server.next(b"n,,n=alice,r=abcdef").message
    overheard = final(b"n=alice,r=abcdef", first, b"c=biws,r=" + first.split(b",")[0][2:])
    assert server.next(overheard).user == "alice"
    again = scram_server()
    assert again.next(b"n,,n=alice,r=abcdef").message != first
    assert refusal(again, overheard) == f"{REFUSED} SCRAM-SHA-256"
    assert refusal(server, overheard) == f"{REFUSED} SCRAM-SHA-256"


@given(
    st.lists(
        st.binary(max_size=40) | st.sampled_from([b"n,,n=alice,r=abc", b"c=biws,r=abc,p=AAAA"]),
        min_size=1,
        max_size=3,
    )
)
def test_scram_lets_nobody_in_by_chance(messages: list[bytes]) -> None:
    server = scram_server()
    for message in messages:
        try:
            assert server.next(message).user is None
        except AuthenticationFailed:
            continue


# --- What all have in common


def test_a_message_that_is_too_large_is_not_looked_at() -> None:
    server = Bounded(plain_server(), 16)
    assert refusal(server, b"\0alice\0hunter2  ") == "Authentication failed: Invalid username or password"
    assert (
        refusal(Bounded(plain_server(), 13), b"\0alice\0hunter2")
        == "Failing SASL authentication due to invalid receive size"
    )


def test_after_the_end_nothing_is_heard() -> None:
    server = Bounded(plain_server(), 100)
    assert server.next(b"\0alice\0hunter2").user == "alice"
    assert "the log-in is over" in refusal(server, b"\0bob\0b")
    server = Bounded(plain_server(), 100)
    refusal(server, b"\0alice\0wrong")
    assert "the log-in is over" in refusal(server, b"\0alice\0hunter2"), "one try for each log-in"
