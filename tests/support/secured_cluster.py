"""Brokers of ours with a listener of every kind, and what clients need to reach each: the
counterpart of `secured_kafka`."""

from __future__ import annotations

import secrets
import socket
import ssl
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead_kafka import (
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    Admin,
    Cluster,
    Consumer,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.base.config_broker_security import STANDARD_AUTHORIZER
from fairlead_kafka.testing.certificates import Certificates
from fairlead_kafka.testing.tokens import TokenIssuer
from fairlead_kafka.wire import ApiKey, Message, decode_response, encode_request
from tests.support.waiting import PATIENCE_S

USER, PASSWORD = "alice", "alices-secret"
LISTENERS = {
    "INSIDE": "PLAINTEXT",
    "TLS": "SSL",
    "EXPIRED": "SSL",
    "ELSEWHERE": "SSL",
    "MTLS": "SSL",
    "SASL": "SASL_PLAINTEXT",
    "SASLTLS": "SASL_SSL",
    "SHORT": "SASL_SSL",
}
SESSION_MS = 1_500
"""How long a session lasts at the listener SHORT."""


@dataclass(frozen=True)
class SecuredCluster:
    """`cluster` has LISTENERS, the first one for brokers and for tests that may do everything."""

    cluster: Cluster
    certificates: Certificates
    tokens: TokenIssuer
    identity: Path
    """What all listeners with TLS show, but two."""

    @property
    def plaintext(self) -> str:
        """The addresses of the listener without security."""
        return self.cluster.bootstrap_servers

    def admin(self) -> Admin:
        """Who may do everything."""
        return Admin({"bootstrap.servers": self.plaintext})

    def settings(self, listener: str, **more: Any) -> dict[str, Any]:
        """Client settings but for the log-in; further ones with `_` for `.`."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.cluster.bootstrap_servers_of(listener),
            "security.protocol": LISTENERS[listener],
        }
        if LISTENERS[listener].endswith("SSL"):
            settings["ssl.truststore.location"] = str(self.certificates.trust)
        return settings | {key.replace("_", "."): value for key, value in more.items()}

    def user(
        self, listener: str, name: str = USER, mechanism: ScramMechanism = ScramMechanism.SCRAM_SHA_256
    ) -> dict[str, Any]:
        """Client settings of a user who has PASSWORD; made known if he is not."""
        with self.admin() as admin:
            admin.alter_user_scram_credentials(
                [UserScramCredentialUpsertion(name, ScramCredentialInfo(mechanism), PASSWORD)]
            )
        return self.settings(listener) | {
            "sasl.mechanism": mechanism.mechanism,
            "sasl.username": name,
            "sasl.password": PASSWORD,
        }

    def only_for_others(self, kind: AclResourceType, name: str) -> None:
        """Withdraw all rights on a resource: from now on it is somebody else's."""
        other = AclBinding(
            kind,
            name,
            AclPatternType.LITERAL,
            "User:somebody-else",
            "*",
            AclOperation.ALL,
            AclPermission.ALLOW,
        )
        with self.admin() as admin:
            admin.create_acls([other])

    def read(self, topic: str, count: int) -> list[bytes]:
        """All committed values of a topic, once there are so many of them, and what more comes with
        them."""
        values: list[bytes] = []
        settings = {
            "bootstrap.servers": self.plaintext,
            "group.id": secrets.token_hex(4),
            "auto.offset.reset": "earliest",
        }
        with Consumer({**settings, "isolation.level": "read_committed"}) as consumer:
            consumer.subscribe([topic])
            while len(values) < count:
                got = consumer.poll(PATIENCE_S)
                assert got, f"only {len(values)} of {count} came"
                values += [record.value or b"" for record in got]
        return values


@contextmanager
def secured_cluster(
    folder: Path, brokers: int = 1, config: dict[str, Any] | None = None
) -> Iterator[SecuredCluster]:
    """Started here, with files in `folder`."""
    certificates, tokens = Certificates(folder), TokenIssuer(folder, "ES256")
    identity = certificates.issue("localhost", "127.0.0.1")
    sasl = [name for name, protocol in LISTENERS.items() if protocol.startswith("SASL")]
    given: dict[str, Any] = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in LISTENERS),
        "listener.security.protocol.map": ",".join(
            f"{name}:{protocol}" for name, protocol in LISTENERS.items()
        ),
        "inter.broker.listener.name": "INSIDE",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(identity),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.trust),
        "listener.name.expired.ssl.keystore.location": str(
            certificates.issue("localhost", "127.0.0.1", expired=True)
        ),
        "listener.name.elsewhere.ssl.keystore.location": str(certificates.issue("elsewhere.example")),
        "listener.name.mtls.ssl.client.auth": "required",
        "listener.name.short.connections.max.reauth.ms": SESSION_MS,
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": tokens.jwks_url,
        "sasl.oauthbearer.clock.skew.seconds": 0,
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "allow.everyone.if.no.acl.found": "true",
    }
    module = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_{USER}="{PASSWORD}";'
    given |= {f"listener.name.{name.lower()}.plain.sasl.jaas.config": module for name in sasl}
    given |= config or {}
    with Cluster(brokers, config=given) as cluster:
        yield SecuredCluster(cluster, certificates, tokens, identity)


@dataclass
class Stranger:
    """A connection that speaks in frames, encrypted if `trust` is given, and does not do what is
    expected of it."""

    address: str
    trust: Path | None = None
    client_id: str = "stranger"
    _socket: socket.socket = field(init=False)

    def __post_init__(self) -> None:
        host, port = self.address.split(",")[0].rsplit(":", 1)
        self._socket = socket.create_connection((host, int(port)), timeout=PATIENCE_S)
        if self.trust is not None:
            self._socket = ssl.create_default_context(cafile=str(self.trust)).wrap_socket(
                self._socket, server_hostname=host
            )

    def send(self, *frames: bytes) -> None:
        """All at once."""
        self._socket.sendall(b"".join(frames))

    def request(self, api_key: int, version: int, **fields: Any) -> bytes:
        """One request as it is on the wire."""
        return b"".join(encode_request(api_key, version, 1, self.client_id, Message(**fields)))

    def answer(self) -> bytes | None:
        """The next frame; None if the connection has ended instead."""
        head = self._exactly(4)
        return None if head is None else self._exactly(*struct.unpack(">i", head))

    def ask(self, api_key: int, version: int, **fields: Any) -> Message | None:
        """The answer to one request; None if the connection has ended instead."""
        self.send(self.request(api_key, version, **fields))
        frame = self.answer()
        return None if frame is None else decode_response(api_key, version, memoryview(frame))

    def log_in(self, name: str = USER, password: str = PASSWORD) -> Message | None:
        """By PLAIN."""
        answer = self.ask(ApiKey.SASL_HANDSHAKE, 1, mechanism="PLAIN")
        assert answer is not None
        assert answer.error_code == 0
        return self.ask(ApiKey.SASL_AUTHENTICATE, 2, auth_bytes=f"\0{name}\0{password}".encode())

    def ended(self) -> bool:
        """Whether the connection ends without another byte."""
        return self._exactly(1) is None

    def drained(self) -> bool:
        """Whether the connection ends, after whatever still came."""
        while self._exactly(1) is not None:
            pass
        return True

    def _exactly(self, size_bytes: int) -> bytes | None:
        data = b""
        while len(data) < size_bytes:
            try:
                piece = self._socket.recv(size_bytes - len(data))
            except (ConnectionError, ssl.SSLEOFError):
                return None
            if not piece:
                return None
            data += piece
        return data

    def close(self) -> None:
        """Hang up."""
        self._socket.close()

    def __enter__(self) -> Stranger:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
