"""Settings of log-ins: by themselves and by JAAS, with references, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.security import client_transport
from fairlead_kafka.security.credentials import credentials

KAFKA = "org.apache.kafka.common.security"
CLIENT = "sasl.oauthbearer.client.credentials.client"
PLAIN = f'{KAFKA}.plain.PlainLoginModule required username="alice" password="hunter2";'
SCRAM = f'{KAFKA}.scram.ScramLoginModule required username="alice" password="hunter2"'
OAUTH = (
    f'{KAFKA}.oauthbearer.OAuthBearerLoginModule required clientId="orders" clientSecret="hunter2" '
    'scope="kafka" '
    'extension_logicalCluster="lkc-1" extension_identityPoolId="pool-2";'
)


def settings(mechanism: str, protocol: str = "SASL_PLAINTEXT", **more: Any) -> Any:
    given = {
        "bootstrap.servers": "b-1.x.kafka.eu-west-1.amazonaws.com:9098",
        "security.protocol": protocol,
        "sasl.mechanism": mechanism,
    }
    return CLIENT_CONFIGS.parse(
        "admin",
        {
            **given,
            **{key if key == "oauth_cb" else key.replace("_", "."): value for key, value in more.items()},
        },
    )


def test_plaintext_needs_nothing() -> None:
    assert client_transport(CLIENT_CONFIGS.parse("admin", {"bootstrap.servers": "x:1"})) is None


@pytest.mark.parametrize(
    ("mechanism", "jaas", "found"),
    [
        ("PLAIN", PLAIN, {"sasl.username": "alice", "sasl.password": "hunter2"}),
        (
            "SCRAM-SHA-512",
            f"{SCRAM} tokenauth=false;",
            {"sasl.username": "alice", "sasl.password": "hunter2"},
        ),
        (
            "OAUTHBEARER",
            OAUTH,
            {
                f"{CLIENT}.id": "orders",
                f"{CLIENT}.secret": "hunter2",
                "sasl.oauthbearer.scope": "kafka",
                "sasl.oauthbearer.extensions": "logicalCluster=lkc-1,identityPoolId=pool-2",
            },
        ),
        (
            "GSSAPI",
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true keyTab="/k" '
            'principal="a@R";',
            {
                "sasl.kerberos.keytab": "/k",
                "sasl.kerberos.principal": "a@R",
                "sasl.kerberos.service.name": "kafka",
            },
        ),
        (
            "AWS_MSK_IAM",
            'software.amazon.msk.auth.iam.IAMLoginModule required awsProfileName="dev" awsDebugCreds=true;',
            {"awsProfileName": "dev"},
        ),
    ],
)
def test_javas_log_in_is_read_into_our_settings(mechanism: str, jaas: str, found: dict[str, str]) -> None:
    read = credentials(settings(mechanism, sasl_jaas_config=jaas))
    assert found.items() <= dict(read).items()
    assert "hunter2" not in repr(read)


def test_extensions_are_pairs() -> None:
    read = credentials(settings("OAUTHBEARER", sasl_jaas_config=OAUTH))
    assert read.extensions() == {"logicalCluster": "lkc-1", "identityPoolId": "pool-2"}
    with pytest.raises(ConfigError, match="must be name=value pairs"):
        credentials(settings("OAUTHBEARER", sasl_oauthbearer_extensions="x")).extensions()


@pytest.mark.parametrize(
    ("mechanism", "more", "said"),
    [
        ("PLAIN", {}, "sasl.username: is needed for sasl.mechanism PLAIN"),
        (
            "SCRAM-SHA-256",
            {"sasl.username": "a"},
            "sasl.password: is needed for sasl.mechanism SCRAM-SHA-256",
        ),
        (
            "PLAIN",
            {"sasl.jaas.config": PLAIN, "sasl.username": "a"},
            "sasl.jaas.config and sasl.username say the same",
        ),
        (
            "SCRAM-SHA-256",
            {"sasl.jaas.config": PLAIN},
            "PlainLoginModule is for sasl.mechanism PLAIN, and that is SCRAM-SHA-256",
        ),
        (
            "SCRAM-SHA-256",
            {"sasl.jaas.config": f"{SCRAM} tokenauth=true;"},
            "delegation tokens are not served",
        ),
        (
            "PLAIN",
            {"sasl.jaas.config": "com.example.MyModule required;"},
            "the log-in module com.example.MyModule is Java's alone",
        ),
        (
            "PLAIN",
            {"sasl.jaas.config": PLAIN.replace("username", "user")},
            "PlainLoginModule has no option user; it has username",
        ),
        (
            "PLAIN",
            {"sasl.username": "a", "sasl.password": "${env:FAIRLEAD_NONE}"},
            "${env:FAIRLEAD_NONE}: there is no such environment variable",
        ),
        (
            "OAUTHBEARER",
            {},
            "needs one of sasl.oauthbearer.token.endpoint.url and sasl.oauthbearer.token.provider; none was "
            "given",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.token.endpoint.url": "https://idp/token"},
            f"{CLIENT}.id: is needed to ask",
        ),
        (
            "OAUTHBEARER",
            {"sasl.oauthbearer.token.endpoint.url": "https://idp/token", "oauth_cb": print},
            "oauth_cb and sasl.oauthbearer.token.endpoint.url were both given",
        ),
    ],
)
def test_what_is_missing_or_wrong_is_said_when_the_client_is_made(
    mechanism: str, more: dict[str, Any], said: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        client_transport(settings(mechanism, **more))
    assert said in str(raised.value)
    assert "hunter2" not in str(raised.value)


def test_a_secret_that_changes_is_read_again_at_the_next_log_in(tmp_path: Path) -> None:
    secrets = tmp_path / "secrets.properties"
    secrets.write_text("password=old\n")
    given = settings("PLAIN", sasl_username="alice", sasl_password=f"${{file:{secrets}:password}}")
    assert "old" not in repr(given)
    transport = client_transport(given)
    assert transport is not None
    assert transport.authenticator("broker").next(None) == b"\0alice\0old"
    secrets.write_text("password=new\n")
    assert transport.authenticator("broker").next(None) == b"\0alice\0new"
