"""`ServerTransport`: made from a broker's settings for its host, for accepted connections and those
to other brokers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.references import resolve
from fairlead_kafka.security.server_mechanisms import (
    JAAS_KEY,
    Bounded,
    PlainServer,
    PlainUsers,
    ServerAuthenticator,
)
from fairlead_kafka.security.tokens import shown
from fairlead_kafka.security.transport import client_transport

if TYPE_CHECKING:
    from fairlead_kafka.security.mechanisms import Gssapi, OAuthBearer, Plain, Scram
    from fairlead_kafka.security.server_scram import StoredCredential
    from fairlead_kafka.security.server_tls import ServerTls
    from fairlead_kafka.security.tls import ClientTls

Credential = Callable[[str, str], "StoredCredential | None"]
"""credential(mechanism, user): what is stored of that user's password."""
_PREFIX = "listener.name."
_CLIENT_AUTH = "ssl.client.auth"


class ServerTransport:
    """`runtime.transport.ServingTransport` of one broker: TLS and log-ins of connections that it
    makes and accepts.

    `settings` are of scope "broker"; `listeners`: name and security protocol by number;
    `inter_broker`: client settings (scope "admin") for connections to other brokers, None for
    plaintext. ConfigError, naming listener and key, for settings that cannot work.
    """

    def __init__(
        self,
        settings: Settings,
        listeners: Mapping[int, tuple[str, str]],
        credential: Credential,
        inter_broker: Settings | None,
    ) -> None:
        _check_names(settings, [name for name, _protocol in listeners.values()])
        self._tls: dict[int, ServerTls | None] = {}
        self._logins: dict[int, dict[str, Callable[[], ServerAuthenticator]]] = {}
        for number, (name, protocol) in listeners.items():
            with _named(f"listener {name}"):
                self._tls[number] = _made_tls(settings, name, protocol) if protocol.endswith("SSL") else None
                self._logins[number] = (
                    _made_logins(settings, name, credential) if protocol.startswith("SASL") else {}
                )
        with _named("between brokers"):
            self._client = None if inter_broker is None else client_transport(inter_broker)
        self.tls: ClientTls | None = None if self._client is None else self._client.tls

    def authenticator(self, host: str) -> Plain | Scram | OAuthBearer | Gssapi:
        """A new authenticator for a log-in at another broker. ConfigError if none was set up."""
        if self._client is None:
            raise ConfigError("between brokers: no log-in was set up (sasl.mechanism.inter.broker.protocol)")
        return self._client.authenticator(host)

    def listener_tls(self, listener: int) -> ServerTls | None:
        """How connections to a listener are encrypted; None: they are not."""
        return self._tls[listener]

    def server_authenticator(self, listener: int, mechanism: str) -> ServerAuthenticator:
        """The broker's end of one log-in. AuthenticationFailed if the listener has not enabled
        `mechanism`."""
        made = self._logins[listener].get(mechanism)
        if made is None:
            raise AuthenticationFailed(f"Unsupported SASL mechanism {shown(mechanism)}")
        return made()


def listener_settings(settings: Settings, listener: str, mechanism: str | None = None) -> Settings:
    """The settings of one listener, and of one mechanism there: its own values, under the plain
    keys, before the general ones."""
    values = {key: settings[key] for key in settings if not key.startswith(_PREFIX)}
    given = {key for key in settings.given if not key.startswith(_PREFIX)}
    prefix = f"{_PREFIX}{listener.lower()}."
    for narrower in [prefix] if mechanism is None else [prefix, f"{prefix}{mechanism.lower()}."]:
        own = {key.removeprefix(narrower): settings[key] for key in settings if key.startswith(narrower)}
        values.update({key: value for key, value in own.items() if key in values})
        given.update(key for key in own if key in values)
    return Settings(values, frozenset(given))


@contextmanager
def _named(where: str) -> Iterator[None]:
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"{where}: {error}") from None


def _check_names(settings: Settings, names: list[str]) -> None:
    """Raise ConfigError if a setting is for a listener that does not exist: it would be ignored."""
    prefixes = tuple(f"{_PREFIX}{name.lower()}." for name in names)
    stray = next((key for key in settings if key.startswith(_PREFIX) and not key.startswith(prefixes)), None)
    if stray is not None:
        raise ConfigError(
            f"{stray}: there is no such listener; there are "
            f"{', '.join(sorted(name.lower() for name in names)) or 'none'}"
        )


def _made_tls(settings: Settings, name: str, protocol: str) -> ServerTls:
    from fairlead_kafka.security.server_tls import ServerTls

    own = listener_settings(settings, name)
    if protocol.startswith("SASL") and f"{_PREFIX}{name.lower()}.{_CLIENT_AUTH}" not in settings:
        # Where clients log in, only a value of the listener's own asks for certificates (KIP-684).
        own = Settings({**own, _CLIENT_AUTH: "none"}, own.given)
    return ServerTls(own)


def _made_logins(
    settings: Settings, name: str, credential: Credential
) -> dict[str, Callable[[], ServerAuthenticator]]:
    mechanisms: tuple[str, ...] = listener_settings(settings, name)["sasl.enabled.mechanisms"]
    if not mechanisms:
        raise ConfigError("sasl.enabled.mechanisms: is needed for a listener where clients log in")
    return {
        mechanism: _made_login(listener_settings(settings, name, mechanism), mechanism, credential)
        for mechanism in mechanisms
    }


def _made_login(own: Settings, mechanism: str, credential: Credential) -> Callable[[], ServerAuthenticator]:
    """Function that makes the server's end of each log-in by one mechanism. ConfigError for PLAIN
    without users."""
    largest_bytes: int = own["sasl.server.max.receive.size"]
    if mechanism == "PLAIN":
        jaas: Secret | None = own[JAAS_KEY]
        if jaas is None:
            raise ConfigError(
                f'{JAAS_KEY}: is needed for PLAIN, with the users who may log in: user_NAME="PASSWORD"'
            )
        users = PlainUsers(jaas)
        return lambda: Bounded(PlainServer(users), largest_bytes)
    if mechanism == "OAUTHBEARER":
        return _made_bearer(own, largest_bytes)
    from fairlead_kafka.security.server_scram import ScramServer

    return lambda: Bounded(ScramServer(mechanism, partial(credential, mechanism)), largest_bytes)


def _made_bearer(own: Settings, largest_bytes: int) -> Callable[[], ServerAuthenticator]:
    from fairlead_kafka.security.jwks import URL_KEY, Jwks, source_of
    from fairlead_kafka.security.jwt import Expected
    from fairlead_kafka.security.server_bearer import OAuthBearerServer

    try:
        import cryptography  # noqa: F401
    except ImportError:
        raise ConfigError(
            "sasl.enabled.mechanisms: OAUTHBEARER needs the package cryptography: pip install "
            '"fairlead-kafka[security]"'
        ) from None
    url: str | None = own[URL_KEY]
    if url is None:
        raise ConfigError(
            f"{URL_KEY}: is needed for OAUTHBEARER, for tokens are verified with the keys that are there"
        )
    source = source_of(resolve(url, URL_KEY))
    expected = Expected.of(own)
    for key, value in (("sub", expected.user_claim), ("scope", expected.scope_claim)):
        if not value:
            raise ConfigError(f"sasl.oauthbearer.{key}.claim.name: must not be empty")
    keys = Jwks(source, own["sasl.oauthbearer.jwks.endpoint.refresh.ms"] / 1000)
    if url.lower().startswith(
        "file:"
    ):  # an end point may come up later than a broker, and a file is there or is not
        keys.read()
    return lambda: Bounded(OAuthBearerServer(keys, expected), largest_bytes)
