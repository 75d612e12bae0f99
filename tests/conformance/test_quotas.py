"""Client quotas beside Apache Kafka's: the same answers to the same requests, Kafka's tools and
clients at ours, our clients at Kafka's."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message
from tests.support.java_tools import JavaTools
from tests.support.metrics import metric
from tests.support.quota_calls import Entity, alter_fields, alteration, described, parts
from tests.support.waiting import PATIENCE_S, until
from tests.support.wire_client import Wire

NewTopic = Callable[..., str]
VALUE = b"x" * 1_000
ALICE: Entity = {"user": "quota-alice"}
BOTH: Entity = {"user": "quota-alice", "client-id": None}
ALTERED: list[Message] = [
    alteration(ALICE, producer_byte_rate=1_000, consumer_byte_rate=2_000),
    alteration(ALICE, producer_byte_rate=3_000, consumer_byte_rate=None, request_percentage=12.5),
    alteration(BOTH, controller_mutation_rate=0.5),
    alteration({"client-id": "quota-c"}, producer_byte_rate=1.0000001),
    alteration({"ip": "10.9.8.7"}, connection_creation_rate=7),
    alteration({"ip": "10.9.8.7"}, no_such_quota=None),
    alteration(ALICE),
    alteration({}, producer_byte_rate=1),
    alteration({"group": "g"}, producer_byte_rate=1),
    alteration({"user": ""}, producer_byte_rate=1),
    alteration({"ip": "10.0.0.1", "user": "u"}, connection_creation_rate=1),
    alteration({"ip": "256.1.1.1"}, connection_creation_rate=1),
    alteration(ALICE, connection_creation_rate=1),
    alteration({"ip": None}, producer_byte_rate=1),
    alteration(ALICE, leader=1),
    alteration(ALICE, producer_byte_rate=0),
    alteration(ALICE, request_percentage=-1),
    alteration(ALICE, consumer_byte_rate=1.5),
    alteration(ALICE, consumer_byte_rate=1e30),
    alteration({"ip": None}, connection_creation_rate=2.0**31),
    Message(
        entity=parts(ALICE),
        ops=[Message(key="producer_byte_rate", value=value, remove=False) for value in (1.0, 2.0)],
    ),
]
FILTERS: list[tuple[list[tuple[str, int, str | None]], bool]] = [
    ([("user", 0, "quota-alice")], False),
    ([("user", 0, "quota-alice")], True),
    ([("user", 0, "quota-alice"), ("client-id", 1, None)], True),
    ([("user", 0, "quota-alice"), ("client-id", 2, None)], False),
    ([("client-id", 0, "quota-c")], True),
    ([("ip", 2, None)], True),
    ([("user", 0, "quota-nobody")], False),
    ([("", 2, None)], False),
    ([("user", 2, None), ("user", 1, None)], False),
    ([("user", 2, None), ("ip", 2, None)], False),
    ([("user", 0, None)], False),
    ([("user", 1, "quota-alice")], False),
    ([("user", 3, None)], False),
    ([("group", 2, None)], False),
]


def altered(wire: Wire, version: int) -> list[list[int]]:
    answers = [wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, version, **alter_fields(each)) for each in ALTERED]
    return [[row.error_code for row in answer.entries] for answer in answers]


def found(wire: Wire, version: int) -> Iterator[Any]:
    for components, strict in FILTERS:
        wanted = [Message(entity_type=kind, match_type=how, match=name) for kind, how, name in components]
        answer = wire.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, version, components=wanted, strict=strict)
        yield answer.error_code or described(answer)


@pytest.mark.parametrize("version", [0, 1])
def test_the_same_is_taken_refused_and_found(apache_kafka: str, version: int) -> None:
    with Cluster(brokers=1) as cluster, Wire(cluster.bootstrap_servers) as ours, Wire(apache_kafka) as theirs:
        assert altered(ours, version) == altered(theirs, version)
        wanted = list(found(ours, version))
        until(lambda: wanted == list(found(theirs, version)))  # its broker follows its controller
        removed = [
            alteration(ALICE, producer_byte_rate=None),
            alteration({"client-id": "quota-c"}, producer_byte_rate=None),
        ]
        removed += [
            alteration(ALICE, request_percentage=None),
            alteration(BOTH, controller_mutation_rate=None),
        ]
        removed += [alteration({"ip": "10.9.8.7"}, connection_creation_rate=None)]
        for wire in (ours, theirs):
            for each in removed:
                (row,) = wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, version, **alter_fields(each)).entries
                assert row.error_code == 0
        until(lambda: list(found(ours, version)) == list(found(theirs, version)))


# --- Our clients at Apache Kafka: it measures over three windows of a second, and grants
# what goes in them at once


@pytest.fixture
def limited(apache_kafka: str) -> Iterator[dict[str, Any]]:
    """Configs of a client whose quotas there are small."""
    entity: Entity = {"client-id": "quota-limited"}
    with Wire(apache_kafka) as wire:
        wire.ask(
            ApiKey.ALTER_CLIENT_QUOTAS,
            1,
            **alter_fields(alteration(entity, producer_byte_rate=50_000, consumer_byte_rate=50_000)),
        )
        yield {"bootstrap.servers": apache_kafka, "client.id": "quota-limited"}
        wire.ask(
            ApiKey.ALTER_CLIENT_QUOTAS,
            1,
            **alter_fields(alteration(entity, producer_byte_rate=None, consumer_byte_rate=None)),
        )


def test_our_clients_keep_to_the_quotas_of_apache_kafka(
    limited: dict[str, Any], apache_kafka: str, new_topic: NewTopic
) -> None:
    topic, count = new_topic(apache_kafka, partitions=1), 300
    small = {"batch.size": 16_384, "max.request.size": 20_000, "linger.ms": 5}
    began_s = monotonic()
    with fairlead_kafka.Producer({**limited, **small}) as producer:
        acks = [producer.send(topic, VALUE) for _ in range(count)]
        producer.flush()
        assert sorted(ack.result(PATIENCE_S).offset for ack in acks) == list(range(count))
        assert metric(producer, "produce-throttle-time-max") > 0
        assert metric(producer, "request-error-total") == 0
    took_s = monotonic() - began_s
    assert count * len(VALUE) <= 50_000 * (took_s + 3), "no quicker than granted"
    config = {**limited, "auto.offset.reset": "earliest", "fetch.max.bytes": 20_000}
    began_s = monotonic()
    offsets: list[int] = []
    with fairlead_kafka.Consumer(config) as consumer:
        consumer.assign([TopicPartition(topic, 0)])

        def read() -> bool:
            offsets.extend(record.offset for record in consumer.poll(1))
            return len(offsets) >= count

        until(read)
        assert consumer.metrics()["consumer-fetch-manager-metrics"]["fetch-throttle-time-max"] > 0
    took_s = monotonic() - began_s
    assert offsets == list(range(count))
    assert count * len(VALUE) <= 50_000 * (took_s + 3)


# --- Kafka's own at ours


@pytest.mark.usefixtures("kafka_jars")
def test_config_command_sets_and_shows_quotas(embedded: str, tools: JavaTools) -> None:
    def configs(*arguments: str) -> str:
        return tools.run("configs", "--bootstrap-server", embedded, *arguments)

    client = ("--entity-type", "clients", "--entity-name", "tool-client")
    both = ("--entity-type", "users", "--entity-name", "tool-user", *client)
    assert "Completed updating" in configs(
        "--alter", "--add-config", "producer_byte_rate=1024,request_percentage=50", *both
    )
    assert "Completed updating" in configs("--alter", "--add-config", "consumer_byte_rate=2048", *client)
    said = configs("--describe", *both)
    assert re.search(r"producer_byte_rate=1024(\.0)?", said), said
    assert re.search(r"request_percentage=50(\.0)?", said), said
    assert "Completed updating" in configs(
        "--alter", "--delete-config", "producer_byte_rate,request_percentage", *both
    )
    assert "producer_byte_rate" not in configs("--describe", *both)
    assert re.search(r"consumer_byte_rate=2048(\.0)?", configs("--describe", *client))
    assert "Completed updating" in configs("--alter", "--delete-config", "consumer_byte_rate", *client)


@pytest.mark.usefixtures("kafka_jars")
def test_the_java_producer_and_consumer_keep_to_our_quotas(tools: JavaTools) -> None:
    count = 600
    with Cluster(brokers=1, config={"quota.window.num": 2}) as cluster:
        cluster.create_topic("t", 1, 1)
        with Wire(cluster.bootstrap_servers) as wire:
            entry = alteration({"client-id": None}, producer_byte_rate=200_000, consumer_byte_rate=200_000)
            wire.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, **alter_fields(entry))
        load = (
            "--topic",
            "t",
            "--num-records",
            str(count),
            "--record-size",
            "1000",
            "--throughput",
            "-1",
            "--print-metrics",
        )
        servers = f"bootstrap.servers={cluster.bootstrap_servers}"
        said = tools.run("produce", *load, "--producer-props", servers, "client.id=perf", "acks=all")
        assert f"{count} records sent" in said
        (longest,) = re.findall(r"produce-throttle-time-max\S*\s*:\s*([\d.]+)", said)
        assert float(longest) > 0
        (taken,) = re.findall(rf"{count} records sent, ([\d.]+) records/sec", said)
        assert float(taken) * 1_000 < 600_000 / (600_000 / 200_000 - 1) * 1.15, (
            "beyond what is granted at once it takes its time"
        )
        read = ("--topic", "t", "--messages", str(count), "--print-metrics", "--timeout", "60000")
        said = tools.run("consume", "--bootstrap-server", cluster.bootstrap_servers, *read)
        (longest,) = re.findall(r"fetch-throttle-time-max\S*\s*:\s*([\d.]+)", said)
        assert float(longest) > 0
