"""One page of Prometheus output from clients under load: every name is in the documents."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from observing_pages import METRIC_GROUPS
from prometheus_client import CollectorRegistry, generate_latest

from fairlead_kafka import (
    Admin,
    Consumer,
    OpenTelemetryMetrics,
    Producer,
    PrometheusCollector,
    ShareConsumer,
)
from fairlead_kafka.client.otel_metrics import otel_name
from fairlead_kafka.core.metric_table import GROUPS
from fairlead_kafka.spark.progress import ProgressListener, Totals
from fairlead_kafka.testing import Cluster
from tests.support.otlp import Collector, attributes

DOCUMENTS = Path(__file__).parents[2] / "docs"
RECORDS = 3_000
Attributes = frozenset[tuple[str, str]]


class Exported(NamedTuple):
    """What clients under load have exported."""

    samples: dict[str, str]
    """Value of each line of Prometheus, by name and labels."""
    received: dict[tuple[str, Attributes], float]
    """Value of each point that an OTLP collector received, by name and attributes."""


@pytest.fixture(scope="module")
def exported() -> Iterator[Exported]:
    collector = Collector()
    yield under_load(collector)
    collector.close()


def under_load(collector: Collector) -> Exported:
    listener = ProgressListener(totals={("orders", 0): Totals(micro_batches=2, rows=10, offsets=11)})
    registry = CollectorRegistry()
    with Cluster(brokers=2) as cluster:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        with (
            Admin({**servers, "client.id": "keeper"}) as admin,
            Producer({**servers, "client.id": "shop"}) as producer,
            Consumer(
                {**servers, "client.id": "desk", "group.id": "g", "auto.offset.reset": "earliest"}
            ) as consumer,
            ShareConsumer({**servers, "client.id": "till", "group.id": "shared"}) as sharer,
        ):
            sources = (admin, producer, consumer, listener, cluster, sharer)
            registry.register(PrometheusCollector(*sources))
            OpenTelemetryMetrics(*sources, meter_provider=collector.meters)
            cluster.create_topic("t", partitions=3)
            consumer.subscribe(["t"])
            sharer.subscribe(["t"])
            sharer.poll(1)
            read = 0
            for number in range(RECORDS):
                producer.send("t", b"%d" % number, partition=number % 3)
            producer.flush()
            while read < RECORDS:
                read += len(consumer.poll(10))
            consumer.commit()
            admin.list_topics()
            page = generate_latest(registry).decode()
            received = {
                (metric.name, frozenset(attributes(point).items())): (
                    point.as_int if point.HasField("as_int") else point.as_double
                )
                for metric in collector.metrics()
                for point in (metric.sum if metric.HasField("sum") else metric.gauge).data_points
            }
    samples = dict(re.findall(r"^(\w+\{[^}]*\}) (\S+)$", page, re.MULTILINE))
    return Exported(samples, received)


def test_a_page_has_the_numbers_of_all_clients(exported: Exported) -> None:
    samples = exported.samples
    assert float(samples['kafka_producer_record_delivered_total{client_id="shop"}']) == RECORDS
    assert float(samples['kafka_consumer_fetch_manager_records_consumed_total{client_id="desk"}']) == RECORDS
    coordinator = "kafka_consumer_coordinator_"
    assert float(samples[coordinator + 'rebalance_total{client_id="desk"}']) >= 1
    assert float(samples[coordinator + 'join_total{client_id="desk"}']) >= 1
    assert float(samples[coordinator + 'commit_total{client_id="desk"}']) >= 1
    assert float(samples[coordinator + 'assigned_partitions{client_id="desk"}']) == 3
    of_partition = (
        'kafka_consumer_fetch_manager_partition_records_lag{client_id="desk",partition="%d",topic="t"}'
    )
    assert [float(samples[of_partition % number]) for number in range(3)] == [0, 0, 0]
    assert float(samples['kafka_admin_client_request_total{client_id="keeper"}']) >= 1
    assert float(samples['kafka_cluster_active_broker_count{client_id="cluster-5"}']) == 2
    assert float(samples['kafka_cluster_offline_partition_count{client_id="cluster-5"}']) == 0
    leads = 'kafka_cluster_node_leader_count{client_id="cluster-5",node="node-%d"}'
    assert sum(float(samples[leads % number]) for number in range(2)) >= 3
    assert float(samples['kafka_share_consumer_coordinator_heartbeat_total{client_id="till"}']) >= 1
    stream = '{client_id="spark-4",query="orders",source="0"}'
    assert float(samples["kafka_spark_stream_rows_total" + stream]) == 10


def test_opentelemetry_receives_the_same_numbers(exported: Exported) -> None:
    received = exported.received
    names = {name for name, _ in received}
    assert names <= {otel_name(group, row) for group in GROUPS.values() for row in group.rows}
    assert len(names) > len({line.split("{")[0] for line in exported.samples}) / 2, "all that is known"
    client = {"messaging.client.id": "shop"}
    assert received["kafka.producer.record_delivered_total", of(client)] == RECORDS
    topic = {"messaging.system": "kafka", "messaging.destination.name": "t"}
    sent = of(client, topic, {"messaging.operation.name": "send"})
    assert received["messaging.client.sent.messages", sent] == RECORDS
    group = {"messaging.client.id": "desk", "messaging.consumer.group.name": "g"}
    consumed = of(group, topic, {"messaging.operation.name": "poll"})
    assert received["messaging.client.consumed.messages", consumed] == RECORDS
    partition = {"messaging.destination.name": "t", "messaging.destination.partition.id": "0"}
    assert received["kafka.consumer_fetch_manager_partition.records_lag", of(group, partition)] == 0


def of(*attributes: dict[str, str]) -> Attributes:
    return frozenset(item for each in attributes for item in each.items())


def test_every_exported_name_is_in_the_documents_and_the_other_way(exported: Exported) -> None:
    names = {line.split("{")[0] for line in exported.samples}
    documented = set(
        re.findall(r"`(kafka_\w+)`", (DOCUMENTS / "reference/metrics.md").read_text(encoding="utf-8"))
    )
    loaded = {
        f"{group.prefix}_{row.name.replace('-', '_')}" for group in GROUPS.values() for row in group.rows
    }
    assert names == documented & loaded == loaded
    assert documented == loaded, "each is exported by a client of this page"
    watched = set(
        re.findall(r"`(kafka_\w+)`", (DOCUMENTS / "how-to/observing.md").read_text(encoding="utf-8"))
    )
    for board in (DOCUMENTS / "dashboards").glob("*.json"):
        found = set(re.findall(r"kafka_\w+", board.read_text(encoding="utf-8")))
        assert found, board
        watched |= found
    assert watched
    assert watched <= names


def test_the_metrics_that_stand_for_librdkafkas_statistics_are_there() -> None:
    page = (DOCUMENTS / "tutorials/moving.md").read_text(encoding="utf-8")
    rows = [row for row in page.splitlines() if re.search(r"\| `[^|]*\| `[\w-]+`.* of `[\w-]+-metrics`", row)]
    assert len(rows) > 10
    tables = {group.name: {row.name for row in group.rows} for group in METRIC_GROUPS}
    for row in rows:
        found = re.findall(r"`([\w-]+)`", row.split("|")[2])
        groups = [name for name in found if name in tables]
        assert groups, row
        for name in set(found) - set(groups):
            assert any(name in tables[group] for group in groups), (name, row)
