"""The server's end of SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677; KIP-84), with
credentials from the cluster's metadata.

It is written here with `hashlib` and `hmac`, as the client's end is (`mechanisms`), and not with
`scramp`, which refuses an authorization id, though Kafka allows the user's name; changes names and
passwords by SASLprep, where Kafka takes them as they are; refuses salts of less than 12 bytes,
which Kafka takes; and fails at once for an unknown user, which reveals the names of users.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
import secrets
from collections.abc import Callable
from enum import Enum, auto
from typing import NamedTuple, Protocol

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.base.units import KIB
from fairlead_kafka.security.mechanisms import SCRAM_HASHES, SCRAM_ITERATIONS_MIN
from fairlead_kafka.security.server_mechanisms import Answer, refuse

MESSAGE_MAX_BYTES = 128 * KIB
"""Largest message taken. A user's name has 32 KiB at most, thrice as much once its commas are
written in three letters each."""
_NONCE_BYTES = 24
SALT_BYTES = 16
"""Bytes of the salts that are made here. A credential with a salt of another length (Kafka's tools
take some 26), or of more hashes, can be told from that of nobody."""
_OF_NOBODY = secrets.token_bytes(32)
"""Secret of this process. It and a name that nobody has give the salt that is shown for that name:
each time the same, as a true one is."""

_NAME = rb"(?:[^=,\x00]|=2C|=3D)+"
_EXTENSIONS = rb"(?:,[A-Za-z]+=[^,\x00]+)*"
_FIRST = re.compile(
    rb"(?P<gs2>n,(?:a=(?P<wanted>" + _NAME + rb"))?,)"
    rb"(?P<bare>n=(?P<name>"
    + _NAME
    + rb"),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)(?P<extensions>"
    + _EXTENSIONS
    + rb"))",
    re.DOTALL,
)
"""Only "n" of the flags for channel binding: Kafka has none."""
_FINAL = re.compile(
    rb"(?P<bare>c=(?P<binding>[A-Za-z0-9/+=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    + _EXTENSIONS
    + rb"),p=(?P<proof>[A-Za-z0-9/+=]+)",
    re.DOTALL,
)
_BY_TOKEN = re.compile(rb",tokenauth=true(,|\Z)", re.IGNORECASE)


class StoredCredential(Protocol):
    """Credential stored for a user: enough to verify that a client knows the password.

    It is not enough to log in with.
    """

    @property
    def salt(self) -> bytes: ...
    @property
    def stored_key(self) -> bytes: ...
    @property
    def server_key(self) -> bytes: ...
    @property
    def iterations(self) -> int: ...


class _Nobody(NamedTuple):
    """Credential made up for a user who does not exist."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int = SCRAM_ITERATIONS_MIN


class _Awaited(Enum):
    FIRST = auto()
    FINAL = auto()
    NOTHING = auto()


def scram_credential(
    mechanism: str, password: Secret, iterations: int = SCRAM_ITERATIONS_MIN
) -> tuple[bytes, bytes, bytes, int]:
    """(salt, stored key, server key, iterations) of a password, with a new salt.

    ConfigError for a password that UTF-8 cannot write, and for fewer than SCRAM_ITERATIONS_MIN.
    """
    try:
        text = password.reveal().encode()
    except UnicodeEncodeError:
        text = b""
    if not text or iterations < SCRAM_ITERATIONS_MIN:
        raise ConfigError(
            "a password for SCRAM must be a text that UTF-8 can write, not empty, and hashed "
            f"{SCRAM_ITERATIONS_MIN} times at least"
        )
    hash_name, salt = SCRAM_HASHES[mechanism], secrets.token_bytes(SALT_BYTES)
    salted = hashlib.pbkdf2_hmac(hash_name, text, salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", hash_name)
    stored_key = hashlib.new(hash_name, client_key).digest()
    return salt, stored_key, hmac.digest(salted, b"Server Key", hash_name), iterations


class ScramServer:
    """One log-in by SCRAM. `credential` looks a user up. With a user who does not exist the log-in
    goes on, and fails at the end like one with a wrong password."""

    blocking = False  # the hashes of the password are stored: this is a few more

    def __init__(self, mechanism: str, credential: Callable[[str], StoredCredential | None]) -> None:
        self._mechanism = mechanism
        self._hash = SCRAM_HASHES[mechanism]
        self._lookup = credential
        self._awaited = _Awaited.FIRST
        self._user = ""
        self._known = False
        self._credential: StoredCredential | None = None
        self._binding = b""
        self._nonce = b""
        self._said = b""  # the messages so far, which are signed

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. AuthenticationFailed, whose text the client is told, if
        the log-in is refused."""
        awaited, self._awaited = self._awaited, _Awaited.NOTHING
        if len(message) > MESSAGE_MAX_BYTES or awaited is _Awaited.NOTHING:
            refuse(self._mechanism)
        return self._first(message) if awaited is _Awaited.FIRST else self._final(message)

    def _first(self, message: bytes) -> Answer:
        found = _FIRST.fullmatch(message)
        if found is None or _BY_TOKEN.search(found["extensions"]):  # delegation tokens are not served
            refuse(self._mechanism)
        try:
            self._user = _plain(found["name"]).decode()
        except UnicodeDecodeError:
            refuse(self._mechanism)
        if found["wanted"] is not None and _plain(found["wanted"]) != self._user.encode():
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self._credential = self._credential_of(self._user)
        self._binding = base64.b64encode(found["gs2"])
        self._nonce = found["nonce"] + secrets.token_urlsafe(_NONCE_BYTES).encode()
        salt = base64.b64encode(self._credential.salt)
        said = b"r=%b,s=%b,i=%d" % (self._nonce, salt, self._credential.iterations)
        self._said = found["bare"] + b"," + said + b","
        self._awaited = _Awaited.FINAL
        return Answer(said)

    def _final(self, message: bytes) -> Answer:
        found = _FINAL.fullmatch(message)
        credential, self._credential = self._credential, None
        if (
            found is None
            or credential is None
            or found["binding"] != self._binding
            or found["nonce"] != self._nonce
        ):
            refuse(self._mechanism)
        said = self._said + found["bare"]
        signature = hmac.digest(credential.stored_key, said, self._hash)
        proof = _decoded(found["proof"])
        if len(proof) != len(signature):
            refuse(self._mechanism)
        client_key = bytes(one ^ other for one, other in zip(proof, signature, strict=True))
        proven = hmac.compare_digest(hashlib.new(self._hash, client_key).digest(), credential.stored_key)
        if not proven or not self._known:
            refuse(self._mechanism)
        return Answer(
            b"v=" + base64.b64encode(hmac.digest(credential.server_key, said, self._hash)), self._user
        )

    def _credential_of(self, user: str) -> StoredCredential:
        """The user's credential, or, for a user who does not exist, one that no password fits."""
        found = self._lookup(user)
        size = hashlib.new(self._hash).digest_size
        made = hmac.digest(_OF_NOBODY, f"{self._mechanism},{user}".encode(), "sha512")
        nobody = _Nobody(made[:SALT_BYTES], secrets.token_bytes(size), secrets.token_bytes(size))
        self._known = (
            found is not None and found.iterations >= SCRAM_ITERATIONS_MIN and len(found.stored_key) == size
        )
        return found if found is not None and self._known else nobody


def _plain(name: bytes) -> bytes:
    return name.replace(b"=2C", b",").replace(b"=3D", b"=")


def _decoded(text: bytes) -> bytes:
    """The bytes that a base64 text decodes to; empty if it is no base64."""
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
