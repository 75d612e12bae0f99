"""Clients push their metrics to our cluster once a subscription asks for them (KIP-714): Java's and
librdkafka's."""

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
            ConfigChange.set("match", "client_id=(billing|orders)-.*"),
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
