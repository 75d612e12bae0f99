"""`client_transport`: makes the transport of a client's host from the client's settings."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.credentials import Credentials, credentials

if TYPE_CHECKING:
    from fairlead_kafka.security.mechanisms import Gssapi, OAuthBearer, Plain, Scram
    from fairlead_kafka.security.tls import ClientTls
    from fairlead_kafka.security.tokens import Token, Tokens, TokenSource

_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_END_POINT: Final = "sasl.oauthbearer.token.endpoint.url"
_CLIENT = "sasl.oauthbearer.client.credentials.client"
_PROVIDER: Final = "sasl.oauthbearer.token.provider"


class ClientTransport:
    """`runtime.transport.Transport` of one client. ConfigError if a setting or package that a
    log-in needs is missing."""

    def __init__(self, settings: Settings) -> None:
        protocol: str = settings["security.protocol"]
        self._settings = settings
        self._mechanism: str = settings["sasl.mechanism"]
        self._tokens: Tokens | None = None
        self.tls: ClientTls | None = None
        if protocol.endswith("SSL"):
            from fairlead_kafka.security.tls import ClientTls

            self.tls = ClientTls(settings)
        if protocol.startswith("SASL"):
            found = credentials(settings)
            if self._mechanism in _BY_PASSWORD:
                self._by_password()
            elif self._mechanism in ("OAUTHBEARER", "AWS_MSK_IAM"):
                self._tokens = self._made_tokens(found)

    def authenticator(self, host: str) -> Plain | Scram | OAuthBearer | Gssapi:
        """A new authenticator for a log-in at `host`."""
        from fairlead_kafka.security.mechanisms import Gssapi, OAuthBearer, Plain, Scram

        if self._mechanism == "PLAIN":
            return Plain(self._by_password)
        if self._mechanism in _BY_PASSWORD:
            return Scram(self._mechanism, self._by_password)
        found = credentials(self._settings)
        tokens = self._tokens
        if tokens is not None:
            return OAuthBearer(lambda: tokens.get(time.time()), found.extensions())
        service = found.get("sasl.kerberos.service.name", "kafka")
        return Gssapi(service, host, found.get("sasl.kerberos.principal"), found.get("sasl.kerberos.keytab"))

    def _by_password(self) -> tuple[str, Secret]:
        found = credentials(self._settings)
        for key in ("sasl.username", "sasl.password"):
            if not found.get(key):
                raise ConfigError(
                    f"{key}: is needed for sasl.mechanism {self._mechanism} (or both of them in "
                    "sasl.jaas.config)"
                )
        return found["sasl.username"], found.secret("sasl.password")

    def _made_tokens(self, found: Credentials) -> Tokens:
        from fairlead_kafka.security.tokens import Refresh, Tokens

        settings = self._settings
        return Tokens(
            self._source(found),
            random=random.SystemRandom().random,
            refresh=Refresh(
                window_factor=settings["sasl.login.refresh.window.factor"],
                jitter=settings["sasl.login.refresh.window.jitter"],
                min_period_s=settings["sasl.login.refresh.min.period.seconds"],
                buffer_s=settings["sasl.login.refresh.buffer.seconds"],
            ),
        )

    def _source(self, found: Credentials) -> TokenSource:
        from fairlead_kafka.security.token_providers import CallableSource, MskSource

        settings = self._settings
        if self._mechanism == "AWS_MSK_IAM":
            return MskSource(
                settings["bootstrap.servers"],
                profile=found.get("awsProfileName"),
                role_arn=found.get("awsRoleArn"),
                role_session_name=found.get("awsRoleSessionName"),
                sts_region=found.get("awsStsRegion"),
            )
        ways = [key for key in (_PROVIDER, "oauth_cb", _END_POINT) if settings[key] is not None]
        if len(ways) != 1:
            which = f"{ways[0]} and {ways[1]} were both given" if ways else "none was given"
            raise ConfigError(
                f"sasl.mechanism OAUTHBEARER needs one of {_END_POINT} and {_PROVIDER}; {which}"
            )
        if ways[0] == _PROVIDER:
            return CallableSource(settings[_PROVIDER])
        if ways[0] == "oauth_cb":
            return CallableSource(
                settings["oauth_cb"], argument=found.get("sasl.oauthbearer.config", ""), setting="oauth_cb"
            )
        self._end_point()  # says at once what is missing
        return _EndPoint(self._end_point)

    def _end_point(self) -> TokenSource:
        from fairlead_kafka.security.oidc import OidcSource, Patience, TokenRequest
        from fairlead_kafka.security.token_files import FileSource

        found, settings = credentials(self._settings), self._settings
        if found[_END_POINT].startswith("file:"):
            return FileSource(found[_END_POINT], _END_POINT)
        for key in (f"{_CLIENT}.id", f"{_CLIENT}.secret"):
            if not found.get(key):
                raise ConfigError(f"{key}: is needed to ask {_END_POINT} for a token")
        return OidcSource(
            TokenRequest(
                found[_END_POINT],
                found[f"{_CLIENT}.id"],
                found.secret(f"{_CLIENT}.secret"),
                scope=found.get("sasl.oauthbearer.scope"),
                header_urlencode=settings["sasl.oauthbearer.header.urlencode"],
            ),
            Patience(
                connect_timeout_ms=settings["sasl.login.connect.timeout.ms"],
                read_timeout_ms=settings["sasl.login.read.timeout.ms"],
                retry_backoff_ms=settings["sasl.login.retry.backoff.ms"],
                retry_backoff_max_ms=settings["sasl.login.retry.backoff.max.ms"],
            ),
        )


class _EndPoint:
    """A source of tokens that asks the token endpoint with the id and secret that the settings'
    references lead to at that moment: they may change."""

    def __init__(self, made: Callable[[], TokenSource]) -> None:
        self._made = made

    def fetch(self, now_s: float) -> Token:
        """A new token, asked for at `now_s` (seconds since 1970). Blocks; raises as
        `tokens.TokenSource.fetch` does."""
        return self._made().fetch(now_s)


def client_transport(settings: Settings) -> ClientTransport | None:
    """How a client's connections are secured; None for PLAINTEXT. ConfigError if its settings
    cannot work."""
    return None if settings["security.protocol"] == "PLAINTEXT" else ClientTransport(settings)
