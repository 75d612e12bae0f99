"""The server's end of log-ins: the base of all mechanisms, and PLAIN (RFC 4616) with the users of
the configs.

A refused client gets Kafka's messages: a specific one if it reveals nothing about users, otherwise
the same for every reason (`SaslServerAuthenticator`).
"""

from __future__ import annotations

import hmac
import secrets
from typing import Final, NamedTuple, NoReturn, Protocol

from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.jaas import parse_jaas
from fairlead_kafka.security.references import references, resolve

LOGGER = GuardedLogger("fairlead_kafka.security")

JAAS_KEY: Final = "sasl.jaas.config"
_PLAIN_MODULE = "PlainLoginModule"
_USER = "user_"
_KEY_BYTES = 32


class Answer(NamedTuple):
    """The answer to a client, and the user, once the log-in is complete; None before. `expires_ms`,
    ms since 1970: until when the log-in is valid; None: for ever."""

    message: bytes
    user: str | None = None
    expires_ms: int | None = None


class ServerAuthenticator(Protocol):
    """The server's end of one log-in."""

    blocking: bool
    """`next` may take long: it is called on a thread of its own."""

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message.

        Raises AuthenticationFailed, whose text the client is told, or ConnectionFailed for a reason
        that may pass.
        """


def refuse(mechanism: str) -> NoReturn:
    """Raise AuthenticationFailed with Kafka's words, which do not tell a client what was wrong."""
    raise AuthenticationFailed(
        "Authentication failed during authentication due to invalid credentials with SASL mechanism "
        f"{mechanism}"
    )


class Bounded:
    """Wraps another authenticator: refuses messages larger than `sasl.server.max.receive.size`, and
    messages after the end of the log-in."""

    def __init__(self, inner: ServerAuthenticator, largest_bytes: int) -> None:
        self._inner = inner
        self._largest_bytes = largest_bytes
        self._over = False
        self.blocking = inner.blocking

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. AuthenticationFailed, whose text the client is told, if
        the log-in is refused."""
        if self._over:
            raise AuthenticationFailed("the log-in is over, and nothing more is expected")
        self._over = True
        if len(message) > self._largest_bytes:
            raise AuthenticationFailed("Failing SASL authentication due to invalid receive size")
        answer = self._inner.next(bytes(message))
        self._over = answer.user is not None
        return answer


class PlainUsers:
    """The users `user_NAME="PASSWORD"` of a `sasl.jaas.config`. References in it are resolved at
    each log-in."""

    def __init__(self, jaas: Secret) -> None:
        """Read the users of a JAAS config. ConfigError if there are none."""
        self._jaas = jaas
        self.resolved_late = references(jaas.reveal())
        self._text: Secret | None = None
        self._users: dict[str, Secret] = {}
        self.now()

    def now(self) -> dict[str, Secret]:
        """Passwords by user. ConfigError if a reference leads nowhere any more."""
        if self._text is None or self.resolved_late:
            text = Secret(resolve(self._jaas.reveal(), JAAS_KEY))
            if text != self._text:
                self._users = _plain_users(text)
                self._text = text
        return self._users


def _plain_users(text: Secret) -> dict[str, Secret]:
    entry = parse_jaas(text.reveal())
    if entry.module.rpartition(".")[2] != _PLAIN_MODULE:
        raise ConfigError(
            f"{JAAS_KEY}: the log-in module for PLAIN is {_PLAIN_MODULE}, and not {entry.module}"
        )
    users = {
        name.removeprefix(_USER): Secret(password)
        for name, password in entry.options.items()
        if name.startswith(_USER)
    }
    if not users:
        raise ConfigError(
            f'{JAAS_KEY}: has no user for PLAIN; add those who may log in: user_NAME="PASSWORD"'
        )
    for name, password in users.items():
        if not name or not password:
            raise ConfigError(
                f"{JAAS_KEY}: {_USER}{name}: a name and a password are needed, for empty ones never log in"
            )
    return users


class PlainServer:
    """The server's end of PLAIN: a client sends its user name and password unencrypted."""

    def __init__(self, users: PlainUsers) -> None:
        self._users = users
        self.blocking = users.resolved_late  # files are read then

    def next(self, message: bytes) -> Answer:
        """The answer to a client's message. AuthenticationFailed, whose text the client is told, if
        the log-in is refused."""
        parts = message.split(b"\0", 3)
        if len(parts) != 3:
            raise AuthenticationFailed(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(parts)}")
        wanted, name, password = parts
        if not name:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed("Authentication failed: password not specified")
        try:
            users = self._users.now()
        except ConfigError as error:
            LOGGER.warning("nobody can log in by PLAIN: %s", error)
            raise AuthenticationFailed(
                "Authentication failed: credentials for user could not be verified"
            ) from None
        try:
            user = name.decode()
        except UnicodeDecodeError:
            user = ""  # nobody's name
        expected = users.get(user)
        if (
            not _same(password, (expected or Secret(" ")).reveal().encode("utf-8", "surrogatepass"))
            or expected is None
        ):
            raise AuthenticationFailed("Authentication failed: Invalid username or password")
        if wanted not in (b"", name):
            raise AuthenticationFailed(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        return Answer(b"", user)


def _same(given: bytes, expected: bytes) -> bool:
    """Whether two texts are the same. How long it takes does not say how far they are."""
    key = secrets.token_bytes(_KEY_BYTES)
    return hmac.compare_digest(hmac.digest(key, given, "sha256"), hmac.digest(key, expected, "sha256"))
