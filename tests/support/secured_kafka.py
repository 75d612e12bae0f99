"""An Apache Kafka with a listener of every kind, and what clients need to reach each."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.testing.certificates import PASSWORD, Certificates

USER = "alice"
MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
LISTENERS = {
    "TLS": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "SHORT": "SASL_SSL",
}
SESSION_MS = 3_000
"""How long a session lasts at the listener SHORT."""
_MODULES = {
    "PLAIN": f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
    "OAUTHBEARER": "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
    "unsecuredLoginStringClaim_sub=x;",
}


@dataclass(frozen=True)
class SecuredKafka:
    """`servers(listener)` are the addresses; `certificates` has issued the brokers'."""

    kafka: ApacheKafka
    certificates: Certificates

    @property
    def plaintext(self) -> str:
        """The addresses of the listener without security."""
        return self.kafka.bootstrap_servers

    def settings(self, listener: str, **more: Any) -> dict[str, Any]:
        """Client settings but for the log-in; further ones with `_` for `.`."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.kafka.servers(listener),
            "security.protocol": LISTENERS[listener],
        }
        if LISTENERS[listener].endswith("SSL"):
            settings["ssl.truststore.location"] = str(self.certificates.trust)
        return settings | {key.replace("_", "."): value for key, value in more.items()}


@contextmanager
def secured_kafka(folder: Path) -> Iterator[SecuredKafka]:
    """Started here, with files in `folder`. Raises `lab.maven.Unavailable`."""
    certificates = Certificates(folder)
    properties: dict[str, object] = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates.issue("localhost"),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": certificates.trust,
        "listener.name.mtls.ssl.client.auth": "required",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
        "listener.name.short.connections.max.reauth.ms": SESSION_MS,
    }
    for listener, protocol in LISTENERS.items():
        if protocol.startswith("SASL"):
            prefix = f"listener.name.{listener.lower()}"
            properties[f"{prefix}.sasl.enabled.mechanisms"] = ",".join(MECHANISMS)
            for mechanism, module in _MODULES.items():
                properties[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = module
    with ApacheKafka(
        heap="512m", listeners=LISTENERS, users={USER: PASSWORD}, properties=properties
    ) as kafka:
        yield SecuredKafka(kafka, certificates)


def unsecured_token(life_s: float = 3600) -> str:
    """A JWT without signature, as Kafka's own validator for tests takes it."""

    def part(claims: dict[str, Any]) -> str:
        return base64.urlsafe_b64encode(json.dumps(claims).encode()).rstrip(b"=").decode()

    now_s = int(time.time())
    return f"{part({'alg': 'none'})}.{part({'sub': USER, 'iat': now_s, 'exp': now_s + life_s})}."
