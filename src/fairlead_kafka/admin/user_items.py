"""Arguments and results of admin calls on SCRAM users (KIP-554)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from hashlib import pbkdf2_hmac
from typing import Annotated, NamedTuple

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.secret import HIDDEN, Secret
from fairlead_kafka.base.within import Within

SCRAM_ITERATIONS = 8192
"""Default iterations of a password: twice Kafka's minimum."""
ScramIterations = Annotated[int, Within(4096, 16_384)]
"""Iterations that Kafka takes: fewer are no protection, and each log-in costs as many
(`ScramMechanism`, `ScramControlManager.MAX_ITERATIONS`)."""


SALT_BYTES = 24
"""Bytes of a random salt: 192 bits."""


class ScramMechanism(IntEnum):
    """Kinds of SCRAM, by their numbers in Kafka's protocol. UNKNOWN: newer than this client."""

    UNKNOWN = 0
    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def mechanism(self) -> str:
        """Name in `sasl.mechanism`: SCRAM-SHA-256."""
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        """Name in `hashlib`: sha256."""
        return self.name.rpartition("SCRAM_")[2].replace("_", "").lower()


class ScramCredentialInfo(NamedTuple):
    """Mechanism of a SCRAM password, and its number of iterations of the hash."""

    mechanism: ScramMechanism
    iterations: ScramIterations = SCRAM_ITERATIONS

    def __str__(self) -> str:
        return f"{self.mechanism.mechanism} ({self.iterations:,} iterations)"


@dataclass(slots=True, frozen=True)
class UserScramCredentialUpsertion:
    """An alteration: set a user's password for a mechanism, in place of its present one, if any.

    `salt` None: random bytes. The password stays here: brokers get what PBKDF2 makes of it. It is
    kept as a `Secret`, which is never shown.
    """

    user: str
    info: ScramCredentialInfo
    password: Secret | str
    salt: bytes | None = None

    @property
    def mechanism(self) -> ScramMechanism:
        """The SCRAM mechanism that the password is for."""
        return self.info.mechanism

    def __post_init__(self) -> None:
        if not isinstance(self.password, (str, Secret)):
            raise UsageError(
                "UserScramCredentialUpsertion: password must be a text or a Secret"
            )  # and whatever it is, is not shown
        object.__setattr__(self, "password", secret_of(self.password))


@dataclass(slots=True, frozen=True)
class UserScramCredentialDeletion:
    """An alteration: delete a user's password for this mechanism."""

    user: str
    mechanism: ScramMechanism


class HiddenBytes(bytes):
    """Bytes that messages, and errors about them, do not show."""

    def __repr__(self) -> str:
        return HIDDEN

    __str__ = __repr__


class SaltedPassword(NamedTuple):
    """An upsertion as it is sent: the password hashed (RFC 5802's SaltedPassword).

    It is enough to log in, so it is not shown.
    """

    user: str
    info: ScramCredentialInfo
    salt: bytes
    salted: HiddenBytes

    @property
    def mechanism(self) -> ScramMechanism:
        """The SCRAM mechanism, as in `info`."""
        return self.info.mechanism


def salted_password(one: UserScramCredentialUpsertion, salt: bytes) -> SaltedPassword:
    """Hash a password as Kafka's `ScramFormatter.hi` does. That takes some 10 ms, with the
    interpreter's lock released."""
    info = one.info
    password = secret_of(one.password).reveal().encode()
    return SaltedPassword(
        one.user,
        info,
        salt,
        HiddenBytes(pbkdf2_hmac(info.mechanism.hash_name, password, salt, info.iterations)),
    )


def secret_of(password: Secret | str) -> Secret:
    """A password as a `Secret`, which is never shown."""
    return password if isinstance(password, Secret) else Secret(password)


def check_alteration(where: str, one: UserScramCredentialUpsertion | UserScramCredentialDeletion) -> None:
    """Raise UsageError, whose text begins with `where`, for an alteration that no broker takes. The
    text never shows the password."""
    if not one.user:
        raise UsageError(f"{where}: user is empty")
    if one.mechanism == ScramMechanism.UNKNOWN:
        raise UsageError(f"{where}: mechanism is UNKNOWN; it must be SCRAM_SHA_256 or SCRAM_SHA_512")
    if isinstance(one, UserScramCredentialDeletion):
        return
    text = secret_of(one.password).reveal()
    if not text:
        raise UsageError(f"{where}: password is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        raise UsageError(f"{where}: password is not valid text")
    if one.salt is not None and not one.salt:
        raise UsageError(f"{where}: salt is empty; leave it out for a random one")
