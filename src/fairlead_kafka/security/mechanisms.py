"""The client's end of each log-in: a message for each challenge (RFC 4616, 5802, 7628, 4752).
`Authenticator`s of `runtime.transport`."""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.tokens import Token

if TYPE_CHECKING:
    from gssapi import SecurityContext

Reveal = Callable[[], tuple[str, Secret]]
"""User name and password, resolved at each log-in."""
_EXTENSION_KEY = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
SCRAM_HASHES = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
SCRAM_ITERATIONS_MIN = 4096
"""Fewest hashes of a password (Kafka's `ScramMechanism.minIterations`)."""
SCRAM_ITERATIONS_MAX = 1_000_000
"""Kafka's brokers store 4,096 to 16,384; a million take half a second."""
_NONCE_BYTES = 24
_NO_BINDING = b"n,,"
"""Kafka has no channel binding."""
_SERVER_FIRST = re.compile(
    rb"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9/+=]+),i=(?P<iterations>[0-9]+)"
    rb"(?:,[A-Za-z]+=[^,\x00]+)*"
)
_SERVER_FINAL = re.compile(rb"v=(?P<proof>[A-Za-z0-9/+=]+)(?:,[A-Za-z]+=[^,\x00]+)*")
_SERVER_ERROR = re.compile(rb"e=([\x20-\x2b\x2d-\x7e]{1,100})")
SECURITY_NONE = b"\x01"
"""GSSAPI's security layers: none; encryption is TLS's affair (RFC 4752, 3.1)."""


class Plain:
    """PLAIN: sends user name and password unencrypted, so it is for TLS."""

    blocking = False

    def __init__(self, reveal: Reveal) -> None:
        self._reveal = reveal

    def next(self, challenge: bytes | None) -> bytes | None:
        """The message to the broker, which has user and password, if `challenge` is None; else
        None, for the log-in is complete at this end. ConfigError if user or password has a null
        character, or is no text."""
        if challenge is not None:
            return None
        user, password = self._reveal()
        if "\0" in user or "\0" in password.reveal():
            raise ConfigError("sasl.username and sasl.password must not hold a null character")
        return b"\0" + _utf8(user) + b"\0" + _utf8(password.reveal())


class Scram:
    """SCRAM: each end proves to the other that it knows the password, without sending it (RFC 5802,
    7677; KIP-84). As in Kafka, whose tools store them so, user name and password are taken as they
    are given, in UTF-8, and not prepared by SASLprep."""

    blocking = True  # thousands of hashes

    def __init__(self, mechanism: str, reveal: Reveal) -> None:
        self._mechanism = mechanism
        self._hash = SCRAM_HASHES[mechanism]
        self._reveal = reveal
        self._stage = 0
        self._password = b""
        self._nonce = secrets.token_urlsafe(_NONCE_BYTES).encode()
        self._first = b""
        self._proof_of_broker = b""

    def next(self, challenge: bytes | None) -> bytes | None:
        """The next message to the broker, whose last one was `challenge` (None: begin); None: the
        log-in is complete at this end. AuthenticationFailed if the broker's message is not one of
        SCRAM, or does not prove that the broker knows the password. ConfigError if user or password
        is no text."""
        self._stage += 1
        if challenge is None:
            user, password = self._reveal()
            self._password = _utf8(password.reveal())
            name = _utf8(user).replace(b"=", b"=3D").replace(b",", b"=2C")
            self._first = b"n=%b,r=%b" % (name, self._nonce)
            return _NO_BINDING + self._first
        try:
            if self._stage == 2:
                return self._proof(challenge)
            self._check_proof(challenge)
        except ValueError as error:
            raise AuthenticationFailed(
                f"the broker's part of the log-in by {self._mechanism} does not fit: {error}"
            ) from None
        return None

    def _proof(self, said: bytes) -> bytes:
        """The last message, which proves that this end knows the password. ValueError if the
        broker's first message is of no use."""
        found = _SERVER_FIRST.fullmatch(said)
        if found is None:
            raise ValueError(_server_error(said) or "its first message is not one of SCRAM")
        if not found["nonce"].startswith(self._nonce) or found["nonce"] == self._nonce:
            raise ValueError("its nonce does not go on from the client's")
        iterations = _iterations(found["iterations"].decode())
        salt = base64.b64decode(found["salt"], validate=True)
        salted = hashlib.pbkdf2_hmac(self._hash, self._password, salt, iterations)
        final = b"c=%b,r=%b" % (base64.b64encode(_NO_BINDING), found["nonce"])
        signed = b",".join((self._first, said, final))
        client_key = hmac.digest(salted, b"Client Key", self._hash)
        signature = hmac.digest(hashlib.new(self._hash, client_key).digest(), signed, self._hash)
        self._proof_of_broker = hmac.digest(
            hmac.digest(salted, b"Server Key", self._hash), signed, self._hash
        )
        proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
        return final + b",p=" + base64.b64encode(proof)

    def _check_proof(self, said: bytes) -> None:
        """Raise ValueError unless the broker's last message proves that it knows the password."""
        found = _SERVER_FINAL.fullmatch(said)
        if found is None:
            raise ValueError(_server_error(said) or "its last message is not one of SCRAM")
        shown, expected = base64.b64decode(found["proof"], validate=True), self._proof_of_broker
        if not expected or not hmac.compare_digest(shown, expected):
            raise ValueError("it does not know the password")


def _server_error(said: bytes) -> str:
    """The error that a broker's message reports, in words; empty if it reports none."""
    found = _SERVER_ERROR.match(said)
    return "" if found is None else f"it says {found[1].decode()}"


def _iterations(given: str) -> int:
    """How many hashes a broker asks for. ValueError if they are so few that the password is not
    safe, or so many that they would only hold this client up."""
    number = int(given) if len(given) < 10 else 0
    if not SCRAM_ITERATIONS_MIN <= number <= SCRAM_ITERATIONS_MAX:
        raise ValueError(
            f"it asks for {given[:10]} iterations, and {SCRAM_ITERATIONS_MIN} to {SCRAM_ITERATIONS_MAX} are "
            "computed"
        )
    return number


def _utf8(text: str) -> bytes:
    """`text` in UTF-8. ConfigError, which does not show it, if it holds half a character."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise ConfigError("sasl.username and sasl.password must be texts that UTF-8 can write") from None


class OAuthBearer:
    """OAUTHBEARER: shows a token (RFC 7628; KIP-255, KIP-342)."""

    blocking = True  # a token may have to be asked for

    def __init__(self, token: Callable[[], Token], extensions: dict[str, str]) -> None:
        self._token = token
        self._extensions = extensions
        self._refused = ""

    def next(self, challenge: bytes | None) -> bytes | None:
        """The next message to the broker, whose last one was `challenge` (None: begin); None: the
        log-in is complete at this end. ConfigError for SASL extensions that RFC 7628 does not
        allow; and whatever fetching a token raises."""
        if challenge is None:
            token = self._token()
            extensions = {**self._extensions, **token.extensions}
            for name, value in extensions.items():
                printable = all(char >= " " or char in "\t\r\n" for char in value)
                if not name or not set(name) <= _EXTENSION_KEY or name == "auth" or not printable:
                    raise ConfigError(
                        f"sasl.oauthbearer.extensions: {name!r} must be letters, not 'auth', and its value "
                        "printable"
                    )
            shown = "".join(f"\x01{name}={value}" for name, value in extensions.items())
            return f"n,,\x01auth=Bearer {token.text.reveal()}{shown}\x01\x01".encode()
        if challenge and not self._refused:
            self._refused = challenge.decode("utf-8", "replace")
            return b"\x01"  # the broker ends the log-in once it has this, and says why (RFC 7628, 3.2.3)
        return None


class Gssapi:
    """GSSAPI: a Kerberos ticket (RFC 4752), by the package `gssapi`."""

    blocking = True  # it may ask a Kerberos server

    def __init__(self, service: str, host: str, principal: str | None, keytab: str | None) -> None:
        self._service, self._host = service, host
        self._principal, self._keytab = principal, keytab
        self._context: SecurityContext | None = None
        self._layer_sent = False

    def next(self, challenge: bytes | None) -> bytes | None:
        """The next message to the broker, whose last one was `challenge` (None: begin); None: the
        log-in is complete at this end. AuthenticationFailed if Kerberos refuses. ConfigError if the
        package is not installed."""
        try:
            import gssapi
        except ImportError:
            raise ConfigError(
                "sasl.mechanism GSSAPI needs the package gssapi, which Kerberos' headers are needed to "
                "build: "
                'pip install "fairlead-kafka[kerberos]"; or set sasl.mechanism to what your brokers have'
            ) from None
        try:
            return self._step(gssapi, challenge)
        except gssapi.exceptions.GSSError as error:
            where = f"{self._service}@{self._host}"
            raise AuthenticationFailed(
                f"Kerberos gave no ticket for {where}: {error}; run kinit, or name sasl.kerberos.keytab and "
                "sasl.kerberos.principal"
            ) from error

    def _step(self, gssapi: ModuleType, challenge: bytes | None) -> bytes | None:
        if self._context is None:
            name = gssapi.Name(f"{self._service}@{self._host}", gssapi.NameType.hostbased_service)
            self._context = gssapi.SecurityContext(
                name=name, creds=self._credentials(gssapi), usage="initiate"
            )
        if not self._context.complete:
            token: bytes | None = self._context.step(challenge)
            return token or b""
        if self._layer_sent:
            return None
        # The last message says which security layers the broker has; the answer: none, and whom to
        # log in as.
        offered = self._context.unwrap(challenge or b"").message
        if not offered or not offered[0] & 1:
            raise AuthenticationFailed(
                "the broker wants a security layer of Kerberos' own, which Kafka does not have; use SASL_SSL"
            )
        self._layer_sent = True
        user = (self._principal or str(self._context.initiator_name)).encode()
        answer: bytes = self._context.wrap(SECURITY_NONE + b"\0\0\0" + user, False).message
        return answer

    def _credentials(self, gssapi: ModuleType) -> object:
        if self._keytab is None and self._principal is None:
            return None
        name = (
            None
            if self._principal is None
            else gssapi.Name(self._principal, gssapi.NameType.kerberos_principal)
        )
        store = None
        if self._keytab is not None:
            # Tickets by keytab are kept in this process: the user's own cache may be somebody
            # else's, and stays as it is.
            store = {
                "client_keytab": self._keytab,
                "ccache": f"MEMORY:fairlead {self._keytab} {self._principal}",
            }
        return gssapi.Credentials(name=name, usage="initiate", store=store)
