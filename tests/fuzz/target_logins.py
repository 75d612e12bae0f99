"""Log-ins at a broker by clients that lie: nobody gets in without the password or a token, and only
our errors are raised."""

from __future__ import annotations

import atexit
import base64
import hashlib
import hmac
import json
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.jwks import parse_jwks
from fairlead_kafka.security.jwt import Jws, taken_apart
from fairlead_kafka.security.principal_names import PrincipalNames, subject_name
from fairlead_kafka.security.server_mechanisms import Answer, PlainUsers, ServerAuthenticator
from fairlead_kafka.security.server_scram import scram_credential
from fairlead_kafka.security.server_transport import ServerTransport
from fairlead_kafka.testing.tokens import TokenIssuer
from tests.fuzz.messages import garbled
from tests.fuzz.tape import Tape
from tests.fuzz.target_security import certificate

REFUSALS = (AuthenticationFailed, ConnectionFailed)
PASSWORD = "hunter2-of-nobody-else"
PASSWORDS = {b"alice": PASSWORD.encode(), b"a,b=c": "pässwörd,=".encode(), b"c": b"c"}
JAAS = 'a.PlainLoginModule required user_alice="' + PASSWORD + '" user_c=c username="x" password="y";'
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")
SCRAM_NAMES = (
    b"alice",
    b"a=2Cb=3Dc",
    b"alice",
    b"alice",
    b"a=2Cb=3Dc",
    b"alice",
    b"mallory",
    b"Alice",
    b"alice=2C",
    b"\xff",
    b"",
)
NEVER_S = 4_000_000_000
VARIANTS = 16


class Stored(NamedTuple):
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class World(NamedTuple):
    """A broker's ends of log-ins, and who may log in."""

    transport: ServerTransport
    stored: dict[str, Stored]
    client_keys: dict[str, bytes]
    issuers: tuple[TokenIssuer, TokenIssuer]
    strangers: tuple[TokenIssuer, TokenIssuer]
    tokens: tuple[str, ...]
    good: frozenset[Jws]


def prepare() -> None:
    """Keys and hashes, made once."""
    world()


@cache
def world() -> World:
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    (folder / "x").mkdir()
    issuers = (TokenIssuer(folder), TokenIssuer(folder, "ES256"))
    strangers = (TokenIssuer(folder / "x"), TokenIssuer(folder / "x", "ES256"))
    jwks = {"keys": [key for issuer in issuers for key in json.loads(issuer.jwks_path.read_text())["keys"]]}
    (folder / "jwks.json").write_text(json.dumps(jwks))
    for stranger, issuer in zip(strangers, issuers, strict=True):
        stranger.key_id = issuer.key_id
    stored = {mechanism: Stored(*scram_credential(mechanism, Secret(PASSWORD))) for mechanism in SCRAM}
    given = {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER," + ",".join(SCRAM),
        "sasl.jaas.config": JAAS.replace("user_c=c", 'user_c=c "user_a,b=c"="pässwörd,="'),
        "sasl.oauthbearer.jwks.endpoint.url": (folder / "jwks.json").as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "me",
    }
    transport = ServerTransport(
        BROKER_CONFIGS.parse("broker", given),
        {1: ("X", "SASL_PLAINTEXT")},
        lambda mechanism, user: stored[mechanism] if user in ("alice", "a,b=c") else None,
        None,
    )
    claims = {"aud": "kafka", "iss": "me", "iat": 1_000_000_000, "exp": NEVER_S}
    sound = [issuer.issue(user, **claims) for issuer in issuers for user in ("alice", "bob")]
    wrong = [
        {"aud": "x"},
        {"iss": "you"},
        {"exp": 1_000_000_001},
        {"nbf": NEVER_S},
        {"iat": NEVER_S},
        {"sub": None},
        {"aud": None},
        {"exp": None},
    ]
    unsound = [issuer.issue("alice", **{**claims, **more}) for issuer in issuers for more in wrong]
    forged = [stranger.issue("alice", **claims) for stranger in strangers]
    client_keys = {mechanism: _client_key(mechanism, each) for mechanism, each in stored.items()}
    good = frozenset(taken_apart(token) for token in sound)
    return World(transport, stored, client_keys, issuers, strangers, (*sound, *forged, *unsound), good)


def _client_key(mechanism: str, stored: Stored) -> bytes:
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    return hmac.digest(
        hashlib.pbkdf2_hmac(digest, PASSWORD.encode(), stored.salt, stored.iterations), b"Client Key", digest
    )


def _sent(end: ServerAuthenticator, message: bytes) -> Answer | None:
    """The answer; None: refused, without the secret in the refusal."""
    try:
        return end.next(message)
    except REFUSALS as error:
        if PASSWORD in str(error):
            raise AssertionError("an error shows the secret") from error
        return None


def plain(tape: Tape) -> None:
    """PLAIN, with what is right here and there."""
    names, words = (b"", *PASSWORDS, b"mallory"), (*PASSWORDS.values(), b"", b"x", b"\xff")
    user, password = (
        tape.pick(tuple(PASSWORDS.items())) if tape.chance(128) else (tape.pick(names), tape.pick(words))
    )
    message = b"\0".join((tape.pick((b"", user, b"", tape.pick(names))), user, password)) + tape.pick(
        (b"", b"", b"", b"\0x")
    )
    if tape.chance(100):
        message = garbled(message, tape)
    answer = _sent(world().transport.server_authenticator(1, "PLAIN"), message)
    if answer is not None:
        user = (answer.user or "").encode()
        assert user in PASSWORDS, "somebody got in whom there is not"
        assert message in (
            b"\0%b\0%b" % (user, PASSWORDS[user]),
            b"%b\0%b\0%b" % (user, user, PASSWORDS[user]),
        ), "a wrong password was taken"
    elif message in [b"\0%b\0%b" % pair for pair in PASSWORDS.items()]:
        raise AssertionError("the right password was refused")


def scram(tape: Tape) -> None:
    """SCRAM by a client that knows the password or does not, on a line where things change."""
    here, mechanism = world(), tape.pick(SCRAM)
    end = here.transport.server_authenticator(1, mechanism)
    name, knows = tape.pick(SCRAM_NAMES), not tape.chance(60)
    gs2 = tape.pick((b"n,,", b"n,,", b"n,a=" + name + b",", b"n,,", b"y,,", b"p=tls-unique,,", b"n,a=bob,"))
    bare = b"n=%b,r=%b" % (
        name,
        tape.pick((b"abc", b"fyko+d2lbbFgONRv9qkxdawL", b"abc", b"x" * 5000, b"", b"a,b")),
    )
    bare += tape.pick((b"", b"", b"", b",x=y", b",tokenauth=true", b",tokenauth=false"))
    first = gs2 + bare
    received = garbled(first, tape) if tape.chance(80) else first
    answer = _sent(end, received)
    if answer is None:
        return
    assert answer.user is None, "logged in without a proof"
    heard = garbled(answer.message, tape) if tape.chance(40) else answer.message
    without = (
        b"c="
        + base64.b64encode(tape.pick((gs2, gs2, gs2, b"y,,", gs2, gs2)))
        + b",r="
        + heard.split(b",")[0][2:]
    )
    if tape.chance(40):
        without = garbled(without, tape)
    client_key = here.client_keys[mechanism] if knows else tape.raw(len(here.client_keys[mechanism]))
    final = (
        without
        + b",p="
        + base64.b64encode(_proof(mechanism, client_key, bare + b"," + heard + b"," + without))
    )
    last = garbled(final, tape) if tape.chance(60) else final
    done = _sent(end, last)
    meant = b"c=%b,r=%b" % (base64.b64encode(gs2), answer.message.split(b",")[0][2:])
    straight = (received, heard, last) == (first, answer.message, final) and without == meant
    if done is not None:
        assert done.user in ("alice", "a,b=c"), "somebody got in whom there is not"
        assert knows, "somebody got in without the password"
        assert name.replace(b"=2C", b",").replace(b"=3D", b"=") == done.user.encode(), (
            "somebody got in as another one"
        )
        assert (received, heard) == (first, answer.message), (
            "messages were changed on the way, and nobody noticed"
        )
        assert gs2 in (b"n,,", b"n,a=" + name + b","), "a flag or another name was let through"
        assert (without + b",").startswith(meant + b","), "the last message is not bound to the first"
        assert last.rpartition(b",p=")[0] == without, "the last message was changed on the way"
        assert _sent(world().transport.server_authenticator(1, mechanism), last) is None
        again = world().transport.server_authenticator(1, mechanism)
        assert _sent(again, first) is not None
        assert _sent(again, last) is None, "an exchange that was overheard let somebody in"
    elif straight and knows and name in SCRAM_NAMES[:2]:
        raise AssertionError("the right password was refused")


def _proof(mechanism: str, client_key: bytes, said: bytes) -> bytes:
    digest = mechanism.removeprefix("SCRAM-").replace("-", "").lower()
    signature = hmac.digest(hashlib.new(digest, client_key).digest(), said, digest)
    return bytes(one ^ other for one, other in zip(client_key, signature, strict=True))


def bearer(tape: Tape) -> None:
    """Tokens: right ones, those of others, and changed ones."""
    here = world()
    token = tape.pick(here.tokens)
    if tape.chance(110):
        token = _forged(token, tape)
    token_bytes = garbled(token.encode(), tape) if tape.chance(60) else token.encode()
    gs2 = tape.pick((b"n,,", b"n,,", b"n,a=alice,", b"y,,", b"n,a=bob,"))
    more = tape.pick((b"", b"", b"pool=p\x01", b"auth=Bearer x\x01", b"a=" + b"x" * 3000 + b"\x01"))
    message = gs2 + b"\x01auth=Bearer " + token_bytes + b"\x01" + more + b"\x01"
    if tape.chance(60):
        message = garbled(message, tape)
    end = here.transport.server_authenticator(1, "OAUTHBEARER")
    answer = _sent(end, message)
    if answer is not None and answer.user is None:
        assert answer.message == b'{"status":"invalid_token"}'
        assert (
            _sent(
                end, tape.pick((b"\x01", b"", b"n,,\x01auth=Bearer " + here.tokens[0].encode() + b"\x01\x01"))
            )
            is None
        )
    if answer is not None and answer.user is not None:
        shown = [part.split(b" ")[-1] for part in message.split(b"\x01") if part.startswith(b"auth=")]
        assert len(shown) == 1, "which of two tokens is meant?"
        assert taken_apart(shown[0].decode()) in here.good, "a token was believed that nobody issued"
        assert answer.expires_ms == NEVER_S * 1000
        assert gs2 in (b"n,,", b"n,a=" + answer.user.encode() + b",") or message[:3] != gs2[:3]
    elif message == b"n,,\x01auth=Bearer " + here.tokens[0].encode() + b"\x01\x01":
        raise AssertionError("a good token was refused")


HEADERS: tuple[dict[str, Any], ...] = (
    {"alg": "none"}, {"alg": "HS256"}, {"alg": "RS256"}, {"alg": "ES256"}, {"alg": "PS256"}, {"alg": "RS512"},
    {"alg": "ES512"},
    {"alg": None}, {"kid": "x"}, {"kid": None}, {"kid": 7}, {"crit": ["exp"]}, {"b64": False}, {"cty": "JWT"},
    {"jwk": {}},
    {"alg": ["RS256"]}, {"alg": "NONE"},
)  # fmt: skip
CLAIMS: tuple[dict[str, Any], ...] = (
    {"sub": "admin"}, {"sub": ""}, {"sub": ["a"]}, {"exp": 1e308}, {"exp": "9"}, {"exp": 0}, {"iat": -1},
    {"nbf": True}, {"aud": ["kafka"]},
    {"aud": {}}, {"iss": ["me"]}, {"scope": ["a", "a"]}, {"scope": [None]}, {"sub": "\udcff"},
    {"x": "y" * 3000}, {"jti": 7},
)  # fmt: skip


def _forged(token: str, tape: Tape) -> str:
    """A token with another header or payload: with the old signature, a stranger's, none, or one by
    the public key as a secret."""
    here = world()
    parts = token.split(".")
    header, payload = (
        json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) for part in parts[:2]
    )
    if tape.chance(170):
        header |= tape.pick(HEADERS)
    if tape.chance(128):
        payload |= tape.pick(CLAIMS)
    texts = [json.dumps(part).encode() for part in (header, payload)]
    if tape.chance(50):
        texts[tape.below(2)] = garbled(texts[0], tape)
    signed = ".".join(base64.urlsafe_b64encode(text).decode().rstrip("=") for text in texts)
    how = tape.below(5)
    if how == 0:
        signature = parts[2]
    elif how == 1:
        signature = ""
    else:
        secret = here.issuers[0].jwks_path.read_bytes()
        made = (
            hmac.digest(secret, signed.encode(), "sha256")
            if how == 2
            else here.strangers[how - 3].sign(signed.encode())
        )
        signature = base64.urlsafe_b64encode(made).decode().rstrip("=")
    return f"{signed}.{signature}"


def subject(tape: Tape) -> None:
    """The certificate that a client shows."""
    rules = PrincipalNames(
        tape.pick(("DEFAULT", "RULE:^.*OU=([^,]*).*$/$1/L,DEFAULT", "RULE:^CN=(\\w+)$/$1@$2/U"))
    )
    with suppress(ValueError):
        rules.name(subject_name(garbled(certificate(), tape)))


def jwks(tape: Tape) -> None:
    """What an end point answers instead of keys."""
    with suppress(ValueError):
        assert parse_jwks(garbled(world().issuers[tape.below(2)].jwks_path.read_bytes(), tape))


def users(tape: Tape) -> None:
    """The users of PLAIN, as somebody wrote them."""
    with suppress(ConfigError):
        found = PlainUsers(Secret(garbled(JAAS.encode(), tape).decode("utf-8", "replace"))).now()
        assert all(found.items()), "a user without a password"


INPUTS: tuple[Callable[[Tape], None], ...] = (
    scram,
    plain,
    bearer,
    scram,
    bearer,
    subject,
    scram,
    bearer,
    plain,
    scram,
    bearer,
    jwks,
    users,
)


def run(tape: Tape) -> int:
    """Some inputs, each of any kind."""
    for nth in range(VARIANTS):
        if tape.ended:
            return nth + 1
        with suppress(*REFUSALS):
            tape.pick(INPUTS)(tape)
    return VARIANTS + 1
