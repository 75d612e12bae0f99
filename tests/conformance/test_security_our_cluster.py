"""Other people's clients and Kafka's own tools against our cluster, over every kind of listener."""

from __future__ import annotations

import asyncio
import itertools
import logging
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka import Admin, AuthenticationFailed, Cluster, Consumer, Producer
from fairlead_kafka.lab.apache_kafka import java_command
from tests.support.java_tools import CLASSES, JavaTools
from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")
kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

WAYS = {
    "TLS": ("ssl", None),
    "PLAIN": ("sasl_plaintext", "PLAIN"),
    "SCRAM-SHA-256": ("sasl_plaintext", "SCRAM-SHA-256"),
    "TLS and PLAIN": ("sasl_ssl", "PLAIN"),
    "TLS and SCRAM-SHA-256": ("sasl_ssl", "SCRAM-SHA-256"),
    "TLS and SCRAM-SHA-512": ("sasl_ssl", "SCRAM-SHA-512"),
    "TLS and OAUTHBEARER": ("sasl_ssl", "OAUTHBEARER"),
}
_numbers = itertools.count()


@pytest.fixture(scope="module")
def clusters() -> Iterator[Callable[[str], Cluster]]:
    """A cluster of two brokers for each protocol, made when it is asked for."""
    made: dict[str, Cluster] = {}

    def cluster(protocol: str) -> Cluster:
        if protocol not in made:
            config = {"ssl.client.auth": "required"} if protocol == "ssl" else {}
            made[protocol] = Cluster(2, security=protocol, config=config | {"default.replication.factor": 2})
        return made[protocol]

    yield cluster
    for each in made.values():
        each.close()


def ours(cluster: Cluster, topic: str, mechanism: str | None) -> int:
    settings = cluster.client_settings("alice", mechanism=mechanism)
    with Producer(settings) as producer:
        producer.send(topic, b"ours").result(PATIENCE_S)
    with Consumer({**settings, "group.id": f"ours-{topic}", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe([topic])
        return len(consumer.poll(PATIENCE_S))


def librdkafka(cluster: Cluster, topic: str, mechanism: str | None) -> int:
    settings = cluster.client_settings("alice", mechanism=mechanism, style="librdkafka")
    producer = confluent_kafka.Producer(settings)
    producer.produce(topic, b"theirs")
    assert producer.flush(PATIENCE_S) == 0
    consumer = confluent_kafka.Consumer(
        {**settings, "group.id": f"rd-{topic}", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    message = consumer.poll(PATIENCE_S)
    consumer.close()
    assert message is not None
    assert message.error() is None
    return 1


def _python_settings(cluster: Cluster, mechanism: str | None) -> dict[str, Any]:
    """The same in the words of kafka-python and aiokafka."""
    given = cluster.client_settings("alice", mechanism=mechanism, style="librdkafka")
    names = {
        "bootstrap.servers": "bootstrap_servers",
        "security.protocol": "security_protocol",
        "sasl.mechanism": "sasl_mechanism",
        "sasl.username": "sasl_plain_username",
        "sasl.password": "sasl_plain_password",
    }
    return {names[key]: value for key, value in given.items() if key in names}


def kafka_python(cluster: Cluster, topic: str, mechanism: str | None) -> int:
    given = cluster.client_settings("alice", mechanism=mechanism, style="librdkafka")
    settings = _python_settings(cluster, mechanism)
    if "ssl.ca.location" in given:
        settings |= {"ssl_cafile": given["ssl.ca.location"]}
    if "ssl.certificate.location" in given:
        settings |= {
            "ssl_certfile": given["ssl.certificate.location"],
            "ssl_keyfile": given["ssl.key.location"],
        }
    producer = kafka.KafkaProducer(**settings)
    producer.send(topic, b"theirs").get(PATIENCE_S)
    producer.close()
    consumer = kafka.KafkaConsumer(
        topic, group_id=None, auto_offset_reset="earliest", consumer_timeout_ms=30_000, **settings
    )
    message = next(iter(consumer))
    consumer.close()
    return int(message.value is not None)


def aio_kafka(cluster: Cluster, topic: str, mechanism: str | None) -> int:
    from aiokafka.helpers import create_ssl_context

    given = cluster.client_settings("alice", mechanism=mechanism, style="librdkafka")
    settings = _python_settings(cluster, mechanism)
    if "ssl.ca.location" in given:
        own = given.get("ssl.certificate.location")
        settings["ssl_context"] = create_ssl_context(
            cafile=given["ssl.ca.location"], certfile=own, keyfile=own
        )

    async def work() -> int:
        async with aiokafka.AIOKafkaProducer(**settings) as producer:
            await producer.send_and_wait(topic, b"theirs")
        async with aiokafka.AIOKafkaConsumer(topic, auto_offset_reset="earliest", **settings) as consumer:
            return int((await asyncio.wait_for(consumer.getone(), PATIENCE_S)).value is not None)

    return asyncio.run(work())


CLIENTS = {"ours": ours, "confluent-kafka": librdkafka, "kafka-python": kafka_python, "aiokafka": aio_kafka}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("way", WAYS)
def test_clients_come_in(clusters: Callable[[str], Cluster], way: str, client: str) -> None:
    protocol, mechanism = WAYS[way]
    if mechanism == "OAUTHBEARER" and client in ("kafka-python", "aiokafka"):
        pytest.skip(
            f"{client} takes tokens from a class of its own; librdkafka and Java show that ours are taken"
        )
    cluster = clusters(protocol)
    topic = f"way-{next(_numbers)}"
    cluster.create_topic(topic)
    assert CLIENTS[client](cluster, topic, mechanism) >= 1


@pytest.mark.parametrize("way", WAYS)
def test_java_comes_in(
    clusters: Callable[[str], Cluster], tools: JavaTools, way: str, tmp_path: Path
) -> None:
    """In the Java that all tools share, but for tokens: where they may come from is said when a
    Java starts."""
    protocol, mechanism = WAYS[way]
    cluster = clusters(protocol)
    topic = f"java-{next(_numbers)}"
    cluster.create_topic(topic)
    config = tmp_path / "java.properties"
    config.write_text(
        "".join(
            f"{key}={value}\n"
            for key, value in cluster.client_settings("bob", mechanism=mechanism, style="java").items()
        )
    )
    token = [
        f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={line.split('=', 1)[1]}"
        for line in _token_lines(config)
    ]
    run = partial(_java, token) if token else tools.run
    produced = run(
        "produce", "--topic", topic, "--num-records", "20", "--payload-monotonic", "--throughput", "-1",
        "--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}",
        "--producer.config", str(config),
    )  # fmt: skip
    assert "20 records sent" in produced
    consumed = run(
        "console-consume", "--bootstrap-server", cluster.bootstrap_servers, "--topic", topic,
        "--from-beginning", "--max-messages", "20", "--timeout-ms", "60000", "--consumer.config", str(config),
    )  # fmt: skip
    assert len([line for line in consumed.splitlines() if line.isdigit()]) == 20


def _token_lines(config: Path) -> list[str]:
    return [
        line
        for line in config.read_text().splitlines()
        if line.startswith("sasl.oauthbearer.token.endpoint.url")
    ]


def _java(options: list[str], tool: str, *arguments: str) -> str:
    command = java_command(CLASSES[tool], *arguments)
    command[1:1] = options
    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_users_are_shown_and_changed_by_kafkas_own_tool(
    clusters: Callable[[str], Cluster], tools: JavaTools
) -> None:
    cluster = clusters("sasl_ssl")
    config = str(cluster.settings_file("admin"))
    common = ("--bootstrap-server", cluster.bootstrap_servers, "--command-config", config)
    added = "SCRAM-SHA-256=[iterations=4096,password=carols-secret]"
    tools.run(
        "configs",
        *common,
        "--alter",
        "--add-config",
        added,
        "--entity-type",
        "users",
        "--entity-name",
        "carol",
    )
    shown = tools.run("configs", *common, "--describe", "--entity-type", "users", "--entity-name", "carol")
    assert "SCRAM-SHA-256=iterations=4096" in shown
    settings = {
        **cluster.client_settings("alice", mechanism="SCRAM-SHA-256"),
        "sasl.username": "carol",
        "sasl.password": "carols-secret",
    }
    with Admin(settings) as admin:
        assert admin.list_topics()
    gone = (
        "--alter",
        "--delete-config",
        "SCRAM-SHA-256",
        "--entity-type",
        "users",
        "--entity-name",
        "carol",
    )
    tools.run("configs", *common, *gone)
    with Admin(settings) as admin, pytest.raises(AuthenticationFailed, match="invalid credentials"):
        admin.list_topics()
