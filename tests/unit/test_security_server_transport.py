"""From a broker's settings to the ends of its listeners."""

from __future__ import annotations

import re
import ssl
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_broker import BROKER_CONFIGS
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import AuthenticationFailed, ConfigError
from fairlead_kafka.base.secret import Secret
from fairlead_kafka.security.server_transport import ServerTransport, listener_settings
from fairlead_kafka.testing.certificates import Certificates

USERS = 'a.PlainLoginModule required user_alice="hunter2";'


def broker(given: dict[str, Any]) -> Settings:
    return BROKER_CONFIGS.parse("broker", given)


def transport(
    given: dict[str, Any], inter_broker: Settings | None = None, **listeners: str
) -> ServerTransport:
    return ServerTransport(
        broker(given), dict(enumerate(listeners.items())), lambda _mechanism, _user: None, inter_broker
    )


def test_each_listener_has_its_own(tmp_path: Path) -> None:
    own = str(Certificates(tmp_path).issue("localhost"))
    made = transport(
        {
            "ssl.keystore.location": own,
            "ssl.client.auth": "required",
            "listener.name.both.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
            "listener.name.both.plain.sasl.jaas.config": USERS,
            "listener.name.asked.sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "listener.name.asked.ssl.client.auth": "requested",
        },
        OPEN="PLAINTEXT",
        TLS="SSL",
        BOTH="SASL_SSL",
        ASKED="SASL_SSL",
    )
    assert made.listener_tls(0) is None
    modes = [
        tls.context().verify_mode for number in (1, 2, 3) if (tls := made.listener_tls(number)) is not None
    ]
    assert modes == [ssl.CERT_REQUIRED, ssl.CERT_NONE, ssl.CERT_OPTIONAL], (
        "the general ssl.client.auth is for listeners of SSL (KIP-684)"
    )
    assert made.server_authenticator(2, "PLAIN").next(b"\0alice\0hunter2").user == "alice"
    assert made.server_authenticator(2, "SCRAM-SHA-512").next(b"n,,n=alice,r=x").message
    for listener, mechanism in (
        (0, "PLAIN"),
        (1, "PLAIN"),
        (2, "SCRAM-SHA-256"),
        (3, "PLAIN"),
        (2, "plain"),
        (2, ""),
    ):
        with pytest.raises(AuthenticationFailed, match=f"Unsupported SASL mechanism {mechanism}"):
            made.server_authenticator(listener, mechanism)
    assert made.tls is None
    with pytest.raises(ConfigError):
        made.authenticator("localhost")


def test_credentials_are_asked_for_by_mechanism_and_user() -> None:
    asked = []
    given = broker({"sasl.enabled.mechanisms": "SCRAM-SHA-256"})
    made = ServerTransport(given, {7: ("X", "SASL_PLAINTEXT")}, lambda *of: asked.append(of), None)
    made.server_authenticator(7, "SCRAM-SHA-256").next(b"n,,n=a=2Cb,r=x")
    assert asked == [("SCRAM-SHA-256", "a,b")]


def test_a_message_is_bounded_by_the_listener_s_setting() -> None:
    made = transport(
        {
            "sasl.enabled.mechanisms": "PLAIN",
            "sasl.jaas.config": USERS,
            "listener.name.x.plain.sasl.server.max.receive.size": 13,
        },
        X="SASL_PLAINTEXT",
    )
    with pytest.raises(AuthenticationFailed, match="invalid receive size"):
        made.server_authenticator(0, "PLAIN").next(b"\0alice\0hunter2")


def test_brokers_reach_each_other_as_clients(tmp_path: Path) -> None:
    trust = str(Certificates(tmp_path).trust)
    client = CLIENT_CONFIGS.parse(
        "admin",
        {
            "bootstrap.servers": "x:1",
            "security.protocol": "SASL_SSL",
            "ssl.truststore.location": trust,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "a",
            "sasl.password": "b",
        },
    )
    made = transport({}, client, OPEN="PLAINTEXT")
    assert made.tls is not None
    assert made.authenticator("localhost").next(None) == b"\0a\0b"
    wrong = CLIENT_CONFIGS.parse(
        "admin",
        {"bootstrap.servers": "x:1", "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
    )
    with pytest.raises(ConfigError, match=r"between brokers: sasl\.username"):
        transport({}, wrong, OPEN="PLAINTEXT")


@pytest.mark.parametrize(
    ("given", "protocol", "said"),
    [
        ({}, "SSL", "listener X: ssl.keystore.location: is needed"),
        ({}, "SASL_PLAINTEXT", "listener X: sasl.enabled.mechanisms: is needed"),
        (
            {"sasl.enabled.mechanisms": "PLAIN"},
            "SASL_PLAINTEXT",
            "listener X: sasl.jaas.config: is needed for PLAIN",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": 'a.PlainLoginModule required username="a" password="b";',
            },
            "SASL_PLAINTEXT",
            "listener X: sasl.jaas.config: has no user for PLAIN",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": 'a.PlainLoginModule required user_a="";',
            },
            "SASL_PLAINTEXT",
            "listener X: sasl.jaas.config: user_a: a name and a password are needed",
        ),
        (
            {
                "sasl.enabled.mechanisms": "PLAIN",
                "sasl.jaas.config": 'a.ScramLoginModule required user_a="b";',
            },
            "SASL_PLAINTEXT",
            "listener X: sasl.jaas.config: the log-in module for PLAIN is PlainLoginModule, and not "
            "a.ScramLoginModule",
        ),
        (
            {"listener.name.y.ssl.client.auth": "none"},
            "PLAINTEXT",
            "listener.name.y.ssl.client.auth: there is no such listener; there are x",
        ),
    ],
)
def test_what_cannot_work_is_told_at_once(given: dict[str, Any], protocol: str, said: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(said)):
        transport(given, X=protocol)


def test_the_narrowest_value_is_taken() -> None:
    settings = broker(
        {
            "sasl.jaas.config": "general",
            "connections.max.reauth.ms": 1,
            "listener.name.a.connections.max.reauth.ms": 2,
            "listener.name.a.plain.sasl.jaas.config": "own",
        }
    )
    assert listener_settings(settings, "A", "PLAIN")["sasl.jaas.config"] == Secret("own")
    assert listener_settings(settings, "A", "SCRAM-SHA-256")["sasl.jaas.config"] == Secret("general")
    assert listener_settings(settings, "A")["connections.max.reauth.ms"] == 2
    assert listener_settings(settings, "B")["connections.max.reauth.ms"] == 1
    assert listener_settings(settings, "A").given == {"sasl.jaas.config", "connections.max.reauth.ms"}
