"""Clients push their metrics to our cluster once a subscription asks for them (KIP-714): Java's,
librdkafka's and ours."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

import fairlead_kafka
from fairlead_kafka import ConfigChange, ConfigResource
from fairlead_kafka.testing import ClientMetrics, Cluster
from fairlead_kafka.wire import ApiKey
from tests.support.java_tools import JavaTools
from tests.support.waiting import until
from tests.support.wire_client import Wire

TELEMETRY = {int(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS), int(ApiKey.PUSH_TELEMETRY)}


def offered(cluster: Cluster) -> set[int]:
    with Wire(cluster.bootstrap_servers.split(",")[0]) as wire:
        answer = wire.ask(ApiKey.API_VERSIONS, 3, client_software_name="test", client_software_version="1")
    return TELEMETRY & {row.api_key for row in answer.api_keys}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    pytest.importorskip("opentelemetry.proto")
    with Cluster(brokers=2) as cluster:
        assert not offered(cluster), "nobody asks for metrics yet"
        changes = [
            ConfigChange.set("metrics", "org.apache.kafka.producer."),
            ConfigChange.set("interval.ms", "500"),
            ConfigChange.set("match", "client_id=(billing|orders|ours)-.*"),
        ]
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.alter_configs({ConfigResource.client_metrics("producers"): changes})
        until(lambda: offered(cluster) == TELEMETRY)
        cluster.create_topic("t", partitions=2)
        yield cluster


def pushed_by(cluster: Cluster, client_id: str) -> list[ClientMetrics]:
    return [each for each in cluster.client_metrics() if each.client_id == client_id]


def test_the_java_producer_pushes_what_is_asked_for(cluster: Cluster, tools: JavaTools) -> None:
    tools.run(
        "produce", "--topic", "t", "--num-records", "3000", "--record-size", "100", "--throughput", "1000",
        "--producer-props", f"bootstrap.servers={cluster.bootstrap_servers}", "client.id=billing-7",
    )  # fmt: skip
    pushes = pushed_by(cluster, "billing-7")
    assert pushes, cluster.client_metrics()
    assert {each.software[0] for each in pushes} == {"apache-kafka-java"}
    metrics = [metric for each in pushes for metric in each.metrics]
    assert metrics
    assert all(metric.name.startswith("org.apache.kafka.producer.") for metric in metrics)
    created = [metric for metric in metrics if metric.name.endswith("connection.creation.total")]
    assert created
    assert all(metric.value >= 1 for metric in created if not metric.is_delta)


def test_librdkafka_pushes_too_and_who_is_not_meant_does_not(cluster: Cluster) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    config = {"bootstrap.servers": cluster.bootstrap_servers}
    meant = confluent_kafka.Producer(config | {"client.id": "orders-1"})
    other = confluent_kafka.Producer(config | {"client.id": "nobody"})
    deadline = time.monotonic() + 60
    while not pushed_by(cluster, "orders-1") and time.monotonic() < deadline:
        for producer in (meant, other):
            producer.produce("t", b"x")
            producer.poll(0.05)
    meant.flush(10)
    other.flush(10)
    (push, *_) = pushed_by(cluster, "orders-1")
    assert push.software[0] is not None
    assert "librdkafka" in push.software[0] or "confluent" in push.software[0]
    assert all(metric.name.startswith("org.apache.kafka.producer.") for metric in push.metrics)
    assert not pushed_by(cluster, "nobody")


def names_of(pushes: list[ClientMetrics]) -> set[str]:
    return {metric.name for each in pushes for metric in each.metrics}


def test_our_producer_pushes_what_javas_does_while_it_runs_and_when_it_closes(cluster: Cluster) -> None:
    config = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "ours-1"}
    with fairlead_kafka.Producer(config) as producer:
        producer.send("t", b"x").result(30)
        instance_id = producer.client_instance_id(30)
        until(lambda: pushed_by(cluster, "ours-1"))
        (first,) = pushed_by(cluster, "ours-1")
        for _ in range(100):
            producer.send("t", b"x")
    (last,) = pushed_by(cluster, "ours-1")
    assert first.client_instance_id == last.client_instance_id == instance_id
    assert first.software == ("fairlead", fairlead_kafka.__version__)
    sent = {metric.name: metric for metric in last.metrics if not metric.attributes}
    assert sent["org.apache.kafka.producer.record.send.total"].is_delta
    assert 0 < sent["org.apache.kafka.producer.record.send.total"].value <= 100, "since the last push"
    topics = [
        each for each in last.metrics if each.name == "org.apache.kafka.producer.topic.record.send.total"
    ]
    assert [each.attributes for each in topics] == [{"topic": "t"}]
    javas = names_of(pushed_by(cluster, "billing-7"))
    required = {
        f"org.apache.kafka.producer.{name}"
        for name in (
            "connection.creation.rate", "connection.creation.total", "record.queue.time.avg",
            "record.queue.time.max", "produce.throttle.time.avg", "produce.throttle.time.max",
            "node.request.latency.avg", "node.request.latency.max",
        )
    }  # fmt: skip
    assert required <= names_of([last])
    assert required <= javas
    assert names_of([last]) - javas == set(), "names that Java's producer has not"


def test_consumers_and_admins_push_kafkas_names(cluster: Cluster) -> None:
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    wanted = "org.apache.kafka.consumer.,org.apache.kafka.admin."
    changes = [ConfigChange.set("metrics", wanted), ConfigChange.set("interval.ms", "500")]
    with fairlead_kafka.Admin(servers) as admin:
        admin.alter_configs({ConfigResource.client_metrics("readers"): changes})
    with fairlead_kafka.Producer(servers) as producer:
        producer.send("read", b"x").result(30)
    reading = {"group.id": "ours-3", "auto.offset.reset": "earliest"}
    with (
        fairlead_kafka.Consumer(servers | reading | {"client.id": "ours-2"}) as consumer,
        fairlead_kafka.ShareConsumer(servers | {"group.id": "ours-4", "client.id": "ours-3"}) as sharing,
        fairlead_kafka.Admin(servers | {"client.id": "ours-4"}) as admin,
    ):
        consumer.subscribe(["read"])
        until(lambda: consumer.poll(0.1))
        sharing.subscribe(["read"])
        admin.list_topics()
        ids = [each.client_instance_id(30) for each in (consumer, sharing, admin)]
        lags = until(
            lambda: [
                metric
                for push in pushed_by(cluster, "ours-2")
                for metric in push.metrics  # the first push may be older than the first record
                if metric.name == "org.apache.kafka.consumer.fetch.manager.records.lag"
            ]
        )
        assert lags[0].attributes == {"topic": "read", "partition": "0"}
    assert len(set(ids)) == 3
    prefixes = {"ours-2": "consumer", "ours-3": "consumer.share", "ours-4": "admin.client"}
    for client_id, prefix in prefixes.items():
        names = names_of(pushed_by(cluster, client_id))
        assert f"org.apache.kafka.{prefix}.connection.creation.total" in names
        assert all(name.startswith(f"org.apache.kafka.{prefix}.") for name in names)
