"""A cluster that is secured by one word: a throw-away authority, certificates, users, and the
settings that clients need for them.

    SSL             TLS; a client that shows the certificate of a user is that user
    SASL_PLAINTEXT  log-ins without TLS, by every mechanism that the cluster has
    SASL_SSL        both

Everything is in the folder `security` of the cluster's own: certificates and keys as PEM, a token
for each user, and a file of settings for Java's tools and for `--command-config`. If the folder is
kept, so are the authority and the users.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from fairlead_kafka.base.config_security import PROTOCOLS
from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.broker.controller import ScramAlteration, ScramCredential
from fairlead_kafka.broker.controller.credentials import SCRAM_MECHANISMS, credential_of, digest_of

if TYPE_CHECKING:
    from fairlead_kafka.testing.certificates import Certificates
    from fairlead_kafka.testing.tokens import TokenIssuer

ADMIN = "admin"
"""Name of the user that may do everything, and as which brokers authenticate to each other."""
MECHANISMS = ("SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN", "OAUTHBEARER")
"""SASL mechanisms of the cluster; the first is used unless another one is asked for."""
ITERATIONS = 4_096
"""Iterations of SCRAM: Kafka's default, enough for users of a throw-away cluster."""
TOKEN_LIFETIME_S = 10 * 365 * 86_400
"""Lifetime of the tokens in the folder, in seconds: longer than any test cluster lives."""
AUDIENCE, ISSUER = "kafka", "https://fairlead.invalid"
Style = Literal["fairlead", "librdkafka", "java"]


class Securing:
    """Certificates, users and tokens of one cluster.

    ConfigError if the packages that make them are not installed, or for an invalid protocol, user
    name or password.
    """

    def __init__(
        self, protocol: str, folder: Path, users: Mapping[str, str] | Sequence[str], host: str
    ) -> None:
        self.protocol = protocol.upper()
        if self.protocol not in PROTOCOLS or self.protocol == "PLAINTEXT":
            raise ConfigError(f"security: must be ssl, sasl_plaintext or sasl_ssl, got {protocol!r}")
        self.folder = folder
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.passwords = self._users(users)
        self._certificates: Certificates | None = None
        self._tokens: TokenIssuer | None = None
        self._of_users: dict[str, Path] = {}
        if self.protocol.endswith("SSL"):
            from fairlead_kafka.testing.certificates import Certificates

            self._certificates = Certificates(folder)
            names = dict.fromkeys([host, "localhost", "127.0.0.1", "host.docker.internal"])
            self.identity = self._certificates.issue(*names, common_name=ADMIN)
        if self.protocol.startswith("SASL"):
            from fairlead_kafka.testing.tokens import TokenIssuer

            self._tokens = TokenIssuer(folder, "ES256")  # a key of this kind is made in no time

    def _users(self, users: Mapping[str, str] | Sequence[str]) -> dict[str, str]:
        """{user name: password}: the users given, with passwords that were kept from an earlier
        run, or new ones. ConfigError for an invalid name or password."""
        path = self.folder / "users.json"
        kept: dict[str, str] = json.loads(path.read_text()) if path.exists() else {}
        given = dict(users) if isinstance(users, Mapping) else {}
        found: dict[str, str] = {}
        for name in [ADMIN, *users]:
            if not isinstance(name, str) or not name or not name.isprintable() or set(name) & set('",;=\\ '):
                raise ConfigError(f'users: {name!r} must be a name without spaces and any of ",;=\\')
            password = given.get(name) or kept.get(name) or secrets.token_urlsafe(12)
            if (
                not isinstance(password, str)
                or not password.isprintable()
                or '"' in password
                or "\\" in password
            ):
                raise ConfigError(
                    f"users: the password of {name} must be printable, without quotation marks and "
                    "backslashes"
                )
            found[name] = password
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            json.dump(found, file)
        return found

    # --- For the cluster

    def broker_config(self, host: str, port: int) -> dict[str, object]:
        """Broker configs for the secured listener `host:port`."""
        config: dict[str, object] = {
            "listeners": f"{self.protocol}://{host}:{port}",
            "security.inter.broker.protocol": self.protocol,
            "super.users": f"User:{ADMIN}",
        }
        if self._certificates is not None:
            config |= {
                "ssl.keystore.location": str(self.identity),
                "ssl.keystore.type": "PEM",
                "ssl.truststore.location": str(self._certificates.trust),
                "ssl.truststore.type": "PEM",
                "ssl.client.auth": "requested",
                "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
            }
        if self._tokens is not None:
            plain = " ".join(f'user_{name}="{password}"' for name, password in self.passwords.items())
            own = f'username="{ADMIN}" password="{self.passwords[ADMIN]}"'
            listener = self.protocol.lower()
            config |= {
                "sasl.enabled.mechanisms": ",".join(MECHANISMS),
                "sasl.mechanism.inter.broker.protocol": MECHANISMS[0],
                "sasl.jaas.config": Secret(
                    f"org.apache.kafka.common.security.scram.ScramLoginModule required {own};"
                ),
                f"listener.name.{listener}.plain.sasl.jaas.config": Secret(
                    f"org.apache.kafka.common.security.plain.PlainLoginModule required {own} {plain};"
                ),
                "sasl.oauthbearer.jwks.endpoint.url": self._tokens.jwks_url,
                "sasl.oauthbearer.expected.audience": AUDIENCE,
                "sasl.oauthbearer.expected.issuer": ISSUER,
            }
        return config

    def scram_alterations(self, kept: Mapping[tuple[str, str], ScramCredential]) -> list[ScramAlteration]:
        """Changes of SCRAM credentials that are needed so that every user can log in by SCRAM;
        `kept` are the credentials that the cluster has already."""
        changed: list[ScramAlteration] = []
        for user, password in self.passwords.items():
            for number, mechanism in SCRAM_MECHANISMS.items():
                before = kept.get((mechanism, user))
                salt = secrets.token_bytes(16) if before is None else before.salt
                credential = _credential(
                    mechanism, password, salt, ITERATIONS if before is None else before.iterations
                )
                if credential != before:
                    changed.append(ScramAlteration(user, number, credential))
        return changed

    # --- For clients

    def client_settings(
        self, bootstrap: str, user: str | None, mechanism: str | None, style: Style
    ) -> dict[str, object]:
        """A client's configs, in the names of `style`, to authenticate as `user`.

        UsageError if there is no such user or mechanism.
        """
        if user is not None and user not in self.passwords:
            raise UsageError(
                f"there is no user {user!r}; this cluster has {', '.join(self.passwords)} "
                "(Cluster(users=...))"
            )
        if user is None and self._tokens is not None:
            raise UsageError(
                "clients of this cluster have to log in: say as whom, such as client_settings('admin')"
            )
        if mechanism is not None and (self._tokens is None or mechanism not in MECHANISMS):
            raise UsageError(
                f"there is no mechanism {mechanism!r}; a cluster with log-ins has {', '.join(MECHANISMS)}"
            )
        found: dict[str, object] = {"bootstrap.servers": bootstrap, "security.protocol": self.protocol}
        if self._certificates is not None:
            found |= _tls(
                style,
                str(self._certificates.trust),
                None if user is None or self._tokens is not None else self._certificate(user),
            )
        if self._tokens is not None and user is not None:
            found |= self._log_in(style, user, mechanism or MECHANISMS[0])
        return found

    def write_settings(self, bootstrap: str, user: str, mechanism: str | None) -> Path:
        """Path of a file of a user's settings, as Java's tools and `--command-config` take it."""
        path = self.folder / f"{user}.properties"
        lines = "".join(
            f"{key}={value}\n"
            for key, value in self.client_settings(bootstrap, user, mechanism, "java").items()
        )
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "w") as file:
            file.write(lines)
        return path

    def _certificate(self, user: str) -> Path:
        assert self._certificates is not None
        if user not in self._of_users:
            self._of_users[user] = self._certificates.issue(f"{user}.invalid", common_name=user)
        return self._of_users[user]

    def _log_in(self, style: Style, user: str, mechanism: str) -> Mapping[str, object]:
        password = self.passwords[user]
        if mechanism == "OAUTHBEARER":
            return self._token(style, user)
        if style != "java":
            return {"sasl.mechanism": mechanism, "sasl.username": user, "sasl.password": password}
        kind = "plain.Plain" if mechanism == "PLAIN" else "scram.Scram"
        module = (
            f'org.apache.kafka.common.security.{kind}LoginModule required username="{user}" '
            f'password="{password}";'
        )
        return {"sasl.mechanism": mechanism, "sasl.jaas.config": module}

    def _token(self, style: Style, user: str) -> Mapping[str, object]:
        assert self._tokens is not None
        token = self._tokens.issue(user, TOKEN_LIFETIME_S, aud=AUDIENCE, iss=ISSUER)
        if style == "fairlead":
            return {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.provider": lambda: token}
        if style == "librdkafka":
            import time

            expires_s = time.time() + TOKEN_LIFETIME_S
            return {"sasl.mechanism": "OAUTHBEARER", "oauth_cb": lambda _config: (token, expires_s)}
        path = self.folder / f"{user}.token"
        path.touch(mode=0o600)
        path.write_text(token)
        return {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.login.callback.handler.class": "org.apache.kafka.common.security.oauthbearer."
            "OAuthBearerLoginCallbackHandler",
            "sasl.oauthbearer.token.endpoint.url": path.as_uri(),
            "sasl.jaas.config": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule "
            "required;",
        }


def _credential(mechanism: str, password: str, salt: bytes, iterations: int) -> ScramCredential:
    salted = hashlib.pbkdf2_hmac(digest_of(mechanism), password.encode(), salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def _tls(style: Style, trust: str, own: Path | None) -> dict[str, str]:
    """A client's TLS settings: in the names of `style`: the authority that it trusts, and its own
    certificate, if any."""
    if style == "librdkafka":
        shown = {} if own is None else {"ssl.certificate.location": str(own), "ssl.key.location": str(own)}
        return {"ssl.ca.location": trust} | shown
    shown = {} if own is None else {"ssl.keystore.location": str(own), "ssl.keystore.type": "PEM"}
    return {"ssl.truststore.location": trust, "ssl.truststore.type": "PEM"} | shown
