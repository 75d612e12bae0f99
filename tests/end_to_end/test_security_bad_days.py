"""Bad days on our own secured brokers: what clients are told, and when; the counterpart of
`conformance/test_security_apache_kafka`."""

from __future__ import annotations

import contextlib
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import AuthenticationFailed, NoBrokerReached
from fairlead_kafka.testing.certificates import Certificates
from tests.support.guessed_log_in import until_a_log_in_is_guessed
from tests.support.secured_cluster import PASSWORD, USER, SecuredCluster, secured_cluster
from tests.support.waiting import PATIENCE_S

AT_ONCE_S = 10.0
"""What is told at once takes some tenths of a second; the rest is for a machine that is busy."""
BY_PASSWORD = {"sasl.username": USER, "sasl.password": PASSWORD}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredCluster]:
    with secured_cluster(tmp_path_factory.mktemp("security")) as running:
        running.user("SASL")
        yield running


Given = Callable[[SecuredCluster, Certificates], dict[str, Any]]
BAD_DAYS: dict[str, tuple[str, Given, str]] = {
    "an expired certificate": (
        "EXPIRED",
        lambda secured, other: {},
        r"expired on \d{4}-\d\d-\d\d \d\d:\d\d UTC; have it renewed",
    ),
    "a certificate for another host": (
        "ELSEWHERE",
        lambda secured, other: {},
        r"is for elsewhere.example, and not for 127.0.0.1: use a name that is in it in bootstrap.servers",
    ),
    "an authority that nobody trusts": (
        "TLS",
        lambda secured, other: {"ssl.truststore.location": str(other.trust)},
        r"certificate of 127.0.0.1:\d+ \(subject .*Testing cert.*, issuer .*CA.*\) was issued by nobody whom "
        r"ssl.truststore.location",
    ),
    "the system's authorities": (
        "SASLTLS",
        lambda secured, other: {"ssl.truststore.location": None, "sasl.mechanism": "PLAIN", **BY_PASSWORD},
        r"the system's trust store trusts; name its issuer's in ssl.truststore.location",
    ),
    "no certificate of its own": (
        "MTLS",
        lambda secured, other: {},
        r"wants a certificate of this client: set ssl.keystore.location",
    ),
    "a certificate of somebody else's": (
        "MTLS",
        lambda secured, other: {"ssl.keystore.location": str(other.issue("eve"))},
        r"refused the certificate of this client \(.*\): check who issued it, and its dates",
    ),
    "an expired certificate of its own": (
        "MTLS",
        lambda secured, other: {
            "ssl.keystore.location": str(secured.certificates.issue("old", expired=True))
        },
        r"refused the certificate of this client \(.*expired.*\)",
    ),
    "TLS to a plaintext port": (
        "TLS",
        lambda secured, other: {"bootstrap.servers": secured.plaintext},
        r"speaks no TLS at this port: set security.protocol to PLAINTEXT",
    ),
    "TLS to a port with log-ins in plaintext": (
        "SASLTLS",
        lambda secured, other: {
            "bootstrap.servers": secured.settings("SASL")["bootstrap.servers"],
            "sasl.mechanism": "PLAIN",
            **BY_PASSWORD,
        },
        r"speaks no TLS at this port: set security.protocol to PLAINTEXT",
    ),
    "plaintext to a TLS port": (
        "TLS",
        lambda secured, other: {"security.protocol": "PLAINTEXT"},
        r"speaks TLS at this port: set security.protocol to SSL or SASL_SSL",
    ),
    "a log-in in plaintext at a TLS port": (
        "SASLTLS",
        lambda secured, other: {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            **BY_PASSWORD,
        },
        r"speaks TLS at this port: set security.protocol to SSL or SASL_SSL",
    ),
    "a wrong password": (
        "SASLTLS",
        lambda secured, other: {"sasl.mechanism": "SCRAM-SHA-256", **BY_PASSWORD, "sasl.password": "wrong"},
        r"refused the log-in by SCRAM-SHA-256: Authentication failed.*invalid credentials",
    ),
    "a user nobody knows": (
        "SASL",
        lambda secured, other: {"sasl.mechanism": "PLAIN", **BY_PASSWORD, "sasl.username": "eve"},
        r"refused the log-in by PLAIN: Authentication failed: Invalid username or password",
    ),
    "a mechanism that is not there": (
        "SASLTLS",
        lambda secured, other: {"sasl.mechanism": "SCRAM-SHA-512", **BY_PASSWORD},
        r"has no log-in by SCRAM-SHA-512; it has .*PLAIN.*: set sasl.mechanism",
    ),
    "a token that is none": (
        "SASLTLS",
        lambda secured, other: {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.provider": lambda: "abc",
        },
        r"refused the log-in by OAUTHBEARER: .*invalid_token",
    ),
    "a token that has expired": (
        "SASLTLS",
        lambda secured, other: {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.provider": lambda: (secured.tokens.issue(USER, -60), time.time() + 60),
        },
        r"refused the log-in by OAUTHBEARER: .*invalid_token",
    ),
    "a log-in where none is asked for": (
        "SASL",
        lambda secured, other: {
            "bootstrap.servers": secured.plaintext,
            "sasl.mechanism": "PLAIN",
            **BY_PASSWORD,
        },
        r"asks for no log-in at this port: set security.protocol to PLAINTEXT or SSL",
    ),
}


def ask(client: Any) -> None:
    client.list_topics()


def send(client: Any) -> None:
    client.send("anything", b"value").result(timeout_s=PATIENCE_S)


def poll(client: Any) -> None:
    client.subscribe(["anything"])
    client.poll(timeout_s=PATIENCE_S)


CLIENTS = ((fairlead_kafka.Admin, ask), (fairlead_kafka.Producer, send), (fairlead_kafka.Consumer, poll))


@pytest.mark.parametrize("day", BAD_DAYS)
def test_on_a_bad_day_every_client_is_told_at_once(
    secured: SecuredCluster, tmp_path: Path, day: str, record_property: Callable[[str, object], None]
) -> None:
    listener, more, said = BAD_DAYS[day]
    settings = secured.settings(listener) | more(secured, Certificates(tmp_path))
    for make, use in CLIENTS:
        client = make({**settings, "group.id": "anything"} if make is fairlead_kafka.Consumer else settings)
        began_s = time.monotonic()
        try:
            with pytest.raises(AuthenticationFailed, match=said):
                use(client)
            took_s = time.monotonic() - began_s
        finally:
            with contextlib.suppress(fairlead_kafka.FairleadError):
                client.close()
        record_property(f"{make.__name__}_s", round(took_s, 3))
        print(f"BADDAY {day} | {make.__name__} {took_s:.3f}")
        assert took_s < AT_ONCE_S


def test_no_log_in_where_one_is_asked_for_is_guessed(secured: SecuredCluster) -> None:
    """The broker closes the connection without a word, as Kafka's does: so the client tries on, and
    says what may be the matter."""
    until_a_log_in_is_guessed(secured.settings("SASL"))


def test_a_token_end_point_that_is_down_is_told_before_its_retries_are_over(
    secured: SecuredCluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The brokers are there, so nobody is sent to look for them."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/token"
        settings = secured.settings("SASL") | {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": url,
            "sasl.oauthbearer.client.credentials.client.id": "orders",
            "sasl.oauthbearer.client.credentials.client.secret": "sesame",
            "bootstrap.connection.timeout.ms": 6000,  # of the 10 s that retries go on for
        }
        with (
            fairlead_kafka.Admin(settings) as admin,
            pytest.raises(NoBrokerReached, match="no token or ticket to log in with") as told,
        ):
            admin.list_topics()
    assert "check bootstrap.servers" not in str(told.value)
    warned = f"{url} could not be asked for a token: connection refused; asking again for up to "
    assert re.search(re.escape(warned) + r"\d+ s", caplog.text)
