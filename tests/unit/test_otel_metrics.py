"""The table of metrics as instruments of OpenTelemetry."""

from __future__ import annotations

import gc
import math
from collections import Counter
from typing import Any

import pytest
from observing_pages import METRIC_GROUPS

pytest.importorskip("opentelemetry.sdk.metrics")
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

import fairlead_kafka
from fairlead_kafka.client.otel_metrics import FRESH_S, SEMANTIC, _Readings, otel_name, otel_unit
from fairlead_kafka.spark import metric_names as spark_metrics
from tests.support.producer_rig import Rig
from tests.support.share_rig import Sharing

(STREAM,) = spark_metrics.GROUPS


class Stream:
    """A source of a Spark stream's metrics that counts how often it is read."""

    client_id = ""

    def __init__(self) -> None:
        self.reads = 0

    def metrics(self) -> Any:
        self.reads += 1
        values = {row.name: float(self.reads) for row in STREAM.rows} | {"lag-bytes": math.nan}
        return {STREAM.name: {("orders", "0"): values}}


class Reader:
    """A provider of meters whose metrics are read from memory."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader])

    def read(self) -> dict[str, Any]:
        """Metrics by name, collected now."""
        data = self._reader.get_metrics_data()
        scopes = (
            [scope for resource in data.resource_metrics for scope in resource.scope_metrics] if data else []
        )
        assert {scope.scope.name for scope in scopes} <= {"fairlead_kafka"}
        return {metric.name: metric for scope in scopes for metric in scope.metrics}


def points(metric: Any) -> list[tuple[dict[str, Any], Any]]:
    return [(dict(point.attributes), point.value) for point in metric.data.data_points]


@pytest.fixture
def reader() -> Reader:
    return Reader()


def test_a_producer_is_exported_by_the_conventions_and_by_kafkas_names(reader: Reader) -> None:
    rig = Rig(brokers=1)
    rig.cluster.create("t", 1)
    producer = rig.producer(client_id="shop")
    for _ in range(3):
        producer.send("t", b"v")
    producer.flush()
    fairlead_kafka.OpenTelemetryMetrics(producer, meter_provider=reader.provider)
    found = reader.read()
    sent = found["messaging.client.sent.messages"]
    assert points(sent) == [
        (
            {
                "messaging.client.id": "shop",
                "messaging.destination.name": "t",
                "messaging.system": "kafka",
                "messaging.operation.name": "send",
            },
            3,
        )
    ]
    assert (sent.unit, sent.data.is_monotonic) == ("{message}", True)
    assert points(found["kafka.producer.record_send_total"]) == [({"messaging.client.id": "shop"}, 3)]
    assert "kafka.producer_topic.record_send_total" not in found
    latency = found["kafka.producer_node.request_latency_avg"]
    ((attributes, _),) = points(latency)
    assert attributes == {"messaging.client.id": "shop", "node": "node-0"}
    assert (latency.unit, found["kafka.producer.outgoing_byte_rate"].unit) == ("ms", "By/s")
    assert "kafka.producer.compression_rate_avg" in found
    del producer
    gc.collect()
    assert reader.read() == {}, "an exporter keeps no client"


def test_a_share_consumer_has_its_group(reader: Reader) -> None:
    rig = Sharing()
    with rig.member(client_id="till") as member:
        rig.polled(member, 10)
        fairlead_kafka.OpenTelemetryMetrics(member, meter_provider=reader.provider)
        ((attributes, value),) = points(reader.read()["messaging.client.consumed.messages"])
    assert value == 10
    assert attributes["messaging.consumer.group.name"] == member.group_id
    assert attributes["messaging.operation.name"] == "poll"


def test_one_collection_reads_each_source_once(reader: Reader) -> None:
    stream, late = Stream(), Stream()
    exported = fairlead_kafka.OpenTelemetryMetrics(stream, meter_provider=reader.provider)
    for number in (1, 2):
        found = reader.read()
        assert {value for metric in found.values() for _, value in points(metric)} == {number}
    assert stream.reads == 2
    assert sorted(found) == sorted(
        otel_name(STREAM, row) for row in STREAM.rows if row.name != "lag-bytes"
    ), "what is not known is left out"
    exported.add(late)
    exported.remove(stream)
    assert points(reader.read()["kafka.spark_stream.rows_total"]) == [
        ({"messaging.client.id": "source-2", "query": "orders", "source": "0"}, 1)
    ]


def test_a_reading_serves_each_instrument_once_and_for_a_while() -> None:
    now, read = [0], Counter[str]()

    def reading() -> list[Any]:
        read["all"] += 1
        return []

    readings = _Readings(reading, lambda: now[0])
    for name in ("a", "b"):
        readings.take(name)
    assert read["all"] == 1
    readings.take("b")
    readings.take("a")
    assert read["all"] == 2
    now[0] = FRESH_S * 1_000_000_000
    readings.take("c")
    assert read["all"] == 3


def test_names_are_of_one_instrument_each_but_for_those_of_the_conventions() -> None:
    names = Counter(otel_name(group, row) for group in METRIC_GROUPS for row in group.rows)
    assert {name for name, count in names.items() if count > 1} <= {name for name, _ in SEMANTIC.values()}


@pytest.mark.parametrize(
    ("unit", "ucum"),
    [
        ("records", "{record}"),
        ("bytes/s", "By/s"),
        ("batches", "{batch}"),
        ("batches/s", "{batch}/s"),
        ("rebalances/h", "{rebalance}/h"),
        ("1", "1"),
    ],
)
def test_units_are_ucums(unit: str, ucum: str) -> None:
    assert otel_unit(unit) == ucum
