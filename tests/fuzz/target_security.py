"""What strangers send while nobody is logged in yet, and files and answers that log-ins are made
of: our own errors, or what is right."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from scramp import ScramMechanism

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError, ConnectionFailed
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.credentials import credentials
from fairlead_kafka.security.failures import shown_certificate
from fairlead_kafka.security.jaas import parse_jaas
from fairlead_kafka.security.key_stores import identity, split_pem, trusted_certificates
from fairlead_kafka.security.mechanisms import OAuthBearer, Scram
from fairlead_kafka.security.oidc import OidcSource, Patience, TokenRequest, _Answer
from fairlead_kafka.security.references import parse_properties, resolve
from fairlead_kafka.security.tokens import Token, make_token
from tests.fuzz.messages import garbled
from tests.fuzz.tape import Tape

FOLDER = Path(__file__).parents[1] / "data" / "security"
OURS = (ConfigError, AuthenticationFailed, ConnectionFailed)
SECRET = "hunter2-of-nobody-else"
VARIANTS = 12
JAAS = f'a.b.PlainLoginModule required username="al\\"ice" password=\'{SECRET}\' /* x */ debug=true; // end'
PROPERTIES = f"# c\nuser : alice\npassword={SECRET}\nlong = a\\\n  b\\u00e9\n!x\n"
CLAIMS = json.dumps({"sub": "alice", "exp": 2_000_000_000}).encode()
TOKEN = f"{{}}.{base64.urlsafe_b64encode(CLAIMS).decode().rstrip('=')}.c2ln"
ANSWER = json.dumps(
    {"access_token": TOKEN.format("e30"), "expires_in": 300, "error": "", "error_description": SECRET}
).encode()


@cache
def stores() -> tuple[bytes, ...]:
    """Stores of every kind that cost little to open, for those of PKCS12 hash a password thousands
    of times."""
    names = (
        "trust.jks",
        "identity.jks",
        "ec.jks",
        "two-keys.jks",
        "chain.pem",
        "key-ec.pem",
        "cert-ec.pem",
        "old.jceks",
        "trust-open.p12",
    )
    return tuple((FOLDER / name).read_bytes() for name in names)


@cache
def certificate() -> bytes:
    """A certificate in DER."""
    return split_pem((FOLDER / "chain.pem").read_bytes(), "chain.pem")[0].der


def store(tape: Tape) -> None:
    """A file that is to hold certificates and keys."""
    data = garbled(tape.pick(stores()), tape)
    kind, password = tape.pick((None, "JKS", "PKCS12", "PEM")), tape.pick((SECRET, "changeit", None))
    if tape.chance(128):
        trusted_certificates(data, kind, password, "it")
    else:
        identity(data, kind, password, tape.pick((None, "changeit")), "it")


def shown(tape: Tape) -> None:
    """The certificate that a broker shows."""
    with suppress(ValueError):
        shown_certificate(garbled(certificate(), tape))


def jaas(tape: Tape) -> None:
    """A log-in as Java writes it."""
    parse_jaas(_text(JAAS, tape))


def properties(tape: Tape) -> None:
    """A file of secrets."""
    with suppress(ValueError):
        parse_properties(_text(PROPERTIES, tape))


def reference(tape: Tape) -> None:
    """A value with references in it; of files there are none."""
    resolve(_text("a${env:FAIRLEAD_NONE}b${file:/nowhere/x:key}${dir:/nowhere:x}${x:y}", tape), "it")


def settings(tape: Tape) -> None:
    """A setting of SASL that makes no sense."""
    given = {
        "bootstrap.servers": "x:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": tape.pick(("PLAIN", "OAUTHBEARER", "GSSAPI")),
    }
    given["sasl.jaas.config"] = _text(JAAS, tape)
    credentials(CLIENT_CONFIGS.parse("admin", given))


@cache
def _scram() -> Any:
    mechanism = ScramMechanism("SCRAM-SHA-256")
    return mechanism, mechanism.make_auth_info(SECRET, iteration_count=4096)


def scram(tape: Tape) -> None:
    """A server that may not know the password: it is believed only if it proves that it does."""
    mechanism, info = _scram()
    server = mechanism.make_server(lambda _name: info)
    client = Scram("SCRAM-SHA-256", lambda: ("alice", Secret(SECRET)))
    server.set_client_first((client.next(None) or b"").decode())
    first = server.get_server_first().encode()
    final = client.next(garbled(first, tape) if tape.chance(128) else first)
    try:
        server.set_client_final((final or b"").decode())
        proof = server.get_server_final().encode()
    except Exception:  # the client answered to something else than the server said
        proof = b"v=cnVibWlzaA=="
    said = garbled(proof, tape)
    if client.next(said) is None and _signature(said) != _signature(proof):
        raise AssertionError("a server was believed that proved nothing")


def _signature(server_final: bytes) -> bytes | None:
    """The signature in a server's last message. Base64 has several texts for the same bytes: some
    bits of its last character say nothing."""
    found = next((part[2:] for part in server_final.split(b",") if part.startswith(b"v=")), None)
    return None if found is None else base64.b64decode(found)


def bearer(tape: Tape) -> None:
    """A token and extensions that somebody gives, and what a broker answers."""
    text = garbled(TOKEN.format("e30").encode(), tape)
    token = make_token(
        text if tape.chance(40) else text.decode("utf-8", "replace"),
        0.0,
        "it",
        extensions={"pool": _text("p", tape)},
    )
    client = OAuthBearer(lambda: token, {})
    message = client.next(None) or b""
    assert message.count(b"\x01") == 3 + len(token.extensions), "a field was put in that nobody gave"
    client.next(garbled(b'{"status":"invalid_token"}', tape))
    assert client.next(b"") is None


class _Answered(OidcSource):
    def __init__(self, answer: _Answer) -> None:
        super().__init__(
            TokenRequest("https://idp.example/token", "orders", Secret(SECRET)),
            Patience(retry_backoff_max_ms=1),
            sleep_s=lambda _s: None,
        )
        self._made = answer

    def _exchanged(self) -> _Answer:
        return self._made


def endpoint(tape: Tape) -> None:
    """What a token end point answers."""
    status = tape.pick((200, 200, 200, 201, 302, 400, 401, 403, 429, 500, 501, 0, 999))
    location = _text(f"https://u:{SECRET}@x/y?secret={SECRET}", tape)
    token: Token = _Answered(_Answer(status, _text("reason", tape), location, garbled(ANSWER, tape))).fetch(
        0.0
    )
    assert SECRET not in repr(token)


INPUTS: tuple[Callable[[Tape], None], ...] = (
    store, shown, jaas, properties, reference, settings, bearer, endpoint, store, shown, jaas, bearer,
    endpoint, properties, jaas, scram,
)  # fmt: skip


def run(tape: Tape) -> int:
    """Some inputs, each of any kind."""
    for nth in range(VARIANTS):
        if tape.ended:
            return nth + 1
        try:
            tape.pick(INPUTS)(tape)
        except OURS as error:
            if SECRET in str(error):
                raise AssertionError("an error shows the secret") from error
    return VARIANTS + 1


def _text(text: str, tape: Tape) -> str:
    return garbled(text.encode(), tape).decode("utf-8", "replace")
