"""Our clients on every kind of listener of Apache Kafka: reading, writing, sessions that are
renewed, and what a bad day is told as."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import AuthenticationFailed
from fairlead_kafka.testing.certificates import PASSWORD, Certificates
from tests.support.guessed_log_in import until_a_log_in_is_guessed
from tests.support.java_tools import JavaTools
from tests.support.secured_kafka import SESSION_MS, USER, SecuredKafka, unsecured_token
from tests.support.waiting import until

PATIENCE_S = 60.0
ROWS = 50_000
BY_PASSWORD = {"sasl.username": USER, "sasl.password": PASSWORD}
JAAS = (
    f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}" '
    f'password="{PASSWORD}";'
)


@pytest.fixture
def kafka(secured: SecuredKafka) -> SecuredKafka:
    return secured


WAYS: dict[str, tuple[str, Callable[[SecuredKafka], dict[str, Any]]]] = {
    "SSL": ("TLS", lambda kafka: {}),
    "SSL 1.2": ("TLS", lambda kafka: {"ssl.enabled.protocols": "TLSv1.2"}),
    "mTLS, PEM": ("MTLS", lambda kafka: {"ssl.keystore.location": str(kafka.certificates.issue("client"))}),
    "mTLS, PKCS12": (
        "MTLS",
        lambda kafka: {
            "ssl.keystore.location": str(kafka.certificates.pkcs12(kafka.certificates.issue("client"))),
            "ssl.keystore.password": PASSWORD,
        },
    ),
    "PLAIN": ("SASL", lambda kafka: {"sasl.mechanism": "PLAIN", **BY_PASSWORD}),
    "PLAIN, TLS": ("SASLTLS", lambda kafka: {"sasl.mechanisms": "PLAIN", **BY_PASSWORD}),
    "SCRAM-SHA-256": ("SASLTLS", lambda kafka: {"sasl.mechanism": "SCRAM-SHA-256", **BY_PASSWORD}),
    "SCRAM-SHA-512, by JAAS": (
        "SASL",
        lambda kafka: {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": JAAS},
    ),
    "OAUTHBEARER": (
        "SASLTLS",
        lambda kafka: {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.token.provider": unsecured_token},
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_all_three_clients_work_over(kafka: SecuredKafka, way: str) -> None:
    listener, more = WAYS[way]
    settings = kafka.settings(listener) | more(kafka)
    topic = f"secured-{list(WAYS).index(way)}"
    with fairlead_kafka.Admin(settings) as admin:
        admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=3)])
    with fairlead_kafka.Producer(settings) as producer:
        producer.send(topic, b"alone").result(timeout_s=PATIENCE_S)
        producer.send_table(topic, pa.table({"value": [b"v" * 100] * ROWS})).result(timeout_s=PATIENCE_S)
    with fairlead_kafka.Consumer(
        {**settings, "group.id": topic, "auto.offset.reset": "earliest"}
    ) as consumer:
        consumer.subscribe([topic])
        deadline_s = time.monotonic() + PATIENCE_S
        rows = 0
        while rows < ROWS + 1 and time.monotonic() < deadline_s:
            rows += consumer.poll_table(timeout_s=1).num_rows
    assert rows == ROWS + 1


def test_sessions_are_renewed_within_a_running_produce_and_a_running_transaction(kafka: SecuredKafka) -> None:
    settings = kafka.settings("SHORT") | {"sasl.mechanism": "SCRAM-SHA-256", **BY_PASSWORD}
    with fairlead_kafka.Admin(settings) as admin:
        admin.create_topics([fairlead_kafka.NewTopic("renewed", partitions=2)])
    committed = {**settings, "auto.offset.reset": "earliest", "isolation.level": "read_committed"}
    with (
        fairlead_kafka.Producer(settings) as producer,
        fairlead_kafka.Producer({**settings, "transactional.id": "renewed"}) as transactional,
        fairlead_kafka.Consumer(committed) as consumer,
    ):
        consumer.assign([fairlead_kafka.TopicPartition("renewed", number) for number in (0, 1)])
        transactional.init_transactions()
        transactional.begin_transaction()
        acks, values = [], []
        until_s = time.monotonic() + 3.5 * SESSION_MS / 1000
        while time.monotonic() < until_s:
            acks.append(producer.send("renewed", b"%d" % len(acks)))
            acks.append(transactional.send("renewed", b"%d" % len(acks)))
            values += [record.value for record in consumer.poll(timeout_s=0.01)]
        transactional.commit_transaction()
        assert all(ack.result(timeout_s=PATIENCE_S) for ack in acks)
        deadline_s = time.monotonic() + PATIENCE_S
        while len(values) < len(acks) and time.monotonic() < deadline_s:
            values += [record.value for record in consumer.poll(timeout_s=1)]
    assert sorted(map(int, values)) == list(range(len(acks)))


BAD_DAYS: dict[str, tuple[str, Callable[[SecuredKafka, Certificates], dict[str, Any]], str]] = {
    "an authority that nobody trusts": (
        "TLS",
        lambda kafka, other: {"ssl.truststore.location": str(other.trust)},
        r"certificate of localhost:\d+ \(subject .*Testing cert.*, issuer .*CA.*\) was issued by nobody whom "
        r"ssl.truststore.location",
    ),
    "the system's authorities": (
        "TLS",
        lambda kafka, other: {"ssl.truststore.location": None},
        r"the system's trust store trusts; name its issuer's in ssl.truststore.location",
    ),
    "another host": (
        "TLS",
        lambda kafka, other: {
            "bootstrap.servers": kafka.settings("TLS")["bootstrap.servers"].replace("localhost", "127.0.0.1")
        },
        r"is for localhost, and not for 127.0.0.1: use a name that is in it in bootstrap.servers",
    ),
    "no certificate of its own": (
        "MTLS",
        lambda kafka, other: {},
        r"wants a certificate of this client: set ssl.keystore.location",
    ),
    "a certificate of somebody else's": (
        "MTLS",
        lambda kafka, other: {"ssl.keystore.location": str(other.issue("eve"))},
        r"refused the certificate of this client \(certificate unknown\): check who issued it, and its dates",
    ),
    "an expired certificate of its own": (
        "MTLS",
        lambda kafka, other: {"ssl.keystore.location": str(kafka.certificates.issue("old", expired=True))},
        r"refused the certificate of this client",
    ),
    "a wrong password": (
        "SASLTLS",
        lambda kafka, other: {"sasl.mechanism": "SCRAM-SHA-256", **BY_PASSWORD, "sasl.password": "wrong"},
        r"refused the log-in by SCRAM-SHA-256: Authentication failed.*invalid credentials",
    ),
    "a user nobody knows": (
        "SASL",
        lambda kafka, other: {"sasl.mechanism": "PLAIN", **BY_PASSWORD, "sasl.username": "eve"},
        r"refused the log-in by PLAIN: Authentication failed: Invalid username or password",
    ),
    "a mechanism that is not there": (
        "SASLTLS",
        lambda kafka, other: {"sasl.mechanism": "GSSAPI"},
        r"has no log-in by GSSAPI; it has .*PLAIN.*: set sasl.mechanism",
    ),
    "a token that is none": (
        "SASLTLS",
        lambda kafka, other: {
            "sasl.mechanism": "OAUTHBEARER",
            "sasl.oauthbearer.token.provider": lambda: "abc",
        },
        r"refused the log-in by OAUTHBEARER: .*invalid_token",
    ),
    "TLS to a plaintext port": (
        "TLS",
        lambda kafka, other: {"bootstrap.servers": kafka.plaintext},
        r"speaks no TLS at this port: set security.protocol to PLAINTEXT",
    ),
    "plaintext to a TLS port": (
        "TLS",
        lambda kafka, other: {"security.protocol": "PLAINTEXT"},
        r"speaks TLS at this port: set security.protocol to SSL or SASL_SSL",
    ),
    "a log-in where none is asked for": (
        "SASL",
        lambda kafka, other: {"bootstrap.servers": kafka.plaintext, "sasl.mechanism": "PLAIN", **BY_PASSWORD},
        r"asks for no log-in at this port: set security.protocol to PLAINTEXT or SSL",
    ),
}


@pytest.mark.parametrize("day", BAD_DAYS)
def test_on_a_bad_day_every_client_is_told_at_once(kafka: SecuredKafka, tmp_path: Path, day: str) -> None:
    listener, more, said = BAD_DAYS[day]
    settings = kafka.settings(listener) | more(kafka, Certificates(tmp_path))

    def ask(client: Any) -> None:
        client.list_topics()

    def send(client: Any) -> None:
        client.send("anything", b"value").result(timeout_s=PATIENCE_S)

    def poll(client: Any) -> None:
        client.subscribe(["anything"])
        client.poll(timeout_s=PATIENCE_S)

    for make, use in (
        (fairlead_kafka.Admin, ask),
        (fairlead_kafka.Producer, send),
        (fairlead_kafka.Consumer, poll),
    ):
        own = {**settings, "group.id": "anything"} if make is fairlead_kafka.Consumer else settings
        client = make(own)
        began_s = time.monotonic()
        try:
            with pytest.raises(AuthenticationFailed, match=said):
                use(client)
        finally:
            with contextlib.suppress(fairlead_kafka.FairleadError):
                client.close()
        assert time.monotonic() - began_s < PATIENCE_S / 2


def test_what_is_mended_is_used_without_a_restart(kafka: SecuredKafka, tmp_path: Path) -> None:
    trust = tmp_path / "trust.pem"
    trust.write_bytes(Certificates(tmp_path).trust.read_bytes())
    with fairlead_kafka.Admin(kafka.settings("TLS") | {"ssl.truststore.location": str(trust)}) as admin:
        with pytest.raises(AuthenticationFailed):
            admin.list_topics()
        trust.write_bytes(kafka.certificates.trust.read_bytes())
        deadline_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline_s:
            with contextlib.suppress(AuthenticationFailed):
                admin.list_topics()
                return
    pytest.fail("the new certificates were never used")


def test_no_log_in_where_one_is_asked_for_is_guessed(kafka: SecuredKafka) -> None:
    """The broker closes the connection without a word, as one does that dies: so the client tries
    on, and says what may be the matter."""
    until_a_log_in_is_guessed(kafka.settings("SASL"))


@pytest.mark.usefixtures("no_rights_after")
def test_a_missing_right_is_named_with_what_it_is_on(kafka: SecuredKafka, tools: JavaTools) -> None:
    settings = kafka.settings("SASL") | {"sasl.mechanism": "PLAIN", **BY_PASSWORD}
    with fairlead_kafka.Admin({"bootstrap.servers": kafka.plaintext}) as admin:
        admin.create_topics([fairlead_kafka.NewTopic("secret", partitions=1)])
    for right in ("--topic secret", "--group secret", "--transactional-id secret"):
        command = (
            f"--bootstrap-server {kafka.plaintext} --add --allow-principal User:somebody-else "
            f"--operation All {right}"
        )
        tools.run("acls", *command.split())
    with fairlead_kafka.Admin({"bootstrap.servers": kafka.plaintext}) as admin:
        until(lambda: len(admin.describe_acls()) >= 3)

    def waits_for(code: int, words: str, use: Callable[[], object]) -> None:
        with pytest.raises(fairlead_kafka.BrokerError, match=words) as raised:
            use()
        assert raised.value.code == code

    with fairlead_kafka.Producer(settings) as producer:
        waits_for(
            29,
            "topic 'secret': not authorized for the topic; the user of this client needs the right to Write "
            "on the topic",
            lambda: producer.send("secret", b"v").result(timeout_s=PATIENCE_S),
        )
        assert producer.send("open", b"others go on").result(timeout_s=PATIENCE_S).offset == 0
    with fairlead_kafka.Producer({**settings, "transactional.id": "secret"}) as producer:
        waits_for(
            53,
            "needs the right to Write on the transactional id",
            lambda: producer.init_transactions(PATIENCE_S),
        )
    with fairlead_kafka.Consumer({**settings, "group.id": "secret"}) as consumer:
        consumer.subscribe(["open"])
        waits_for(
            30,
            "group 'secret': not authorized.*needs the right to Describe on the group",
            lambda: consumer.poll(PATIENCE_S),
        )
    with fairlead_kafka.Consumer(settings) as consumer:
        consumer.assign([fairlead_kafka.TopicPartition("secret", 0)])
        waits_for(
            29,
            "topic secret: not authorized.*needs the right to Describe on the topic",
            lambda: consumer.poll(PATIENCE_S),
        )
