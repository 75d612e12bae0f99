"""Producers' metrics in Prometheus' text format."""

from __future__ import annotations

import gc

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import fairlead_kafka
from fairlead_kafka.producer.metric_names import GROUPS
from tests.support.producer_rig import Rig


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 1)
    return made


def scrape(collector: fairlead_kafka.PrometheusCollector) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    return generate_latest(registry).decode().splitlines()


def test_the_text_exposition_has_kafkas_names_and_labels(rig: Rig) -> None:
    producer = rig.producer(client_id="orders")
    for _ in range(3):
        producer.send("t", b"v")
    producer.flush()
    lines = scrape(fairlead_kafka.PrometheusCollector(producer))
    assert 'kafka_producer_record_send_total{client_id="orders"} 3.0' in lines
    assert "# TYPE kafka_producer_record_send_total counter" in lines
    assert "# TYPE kafka_producer_request_latency_avg gauge" in lines
    assert 'kafka_producer_topic_record_delivered_total{client_id="orders",topic="t"} 3.0' in lines
    assert any(
        line.startswith('kafka_producer_node_request_total{client_id="orders",node="node-0"} ')
        for line in lines
    )
    assert 'kafka_producer_flush_time_ns_total{client_id="orders"}' in " ".join(lines)
    assert sum(line.startswith("# TYPE") for line in lines) == sum(len(group.rows) for group in GROUPS)


def test_several_producers_share_a_collector_and_names_never_clash(rig: Rig) -> None:
    named, same_id, nameless = rig.producer(client_id="a"), rig.producer(client_id="a"), rig.producer()
    collector = fairlead_kafka.PrometheusCollector(named, same_id)
    collector.add(nameless)
    lines = scrape(collector)
    for client_id in ("a", "a-2", "producer-3"):
        assert f'kafka_producer_records_open{{client_id="{client_id}"}} 0.0' in lines
    collector.remove(same_id)
    assert not any('"a-2"' in line for line in scrape(collector))


def test_a_producer_that_is_gone_is_forgotten(rig: Rig) -> None:
    producer = rig.producer(client_id="short")
    collector = fairlead_kafka.PrometheusCollector(producer)
    assert any("short" in line for line in scrape(collector))
    del producer
    gc.collect()
    assert not any("short" in line for line in scrape(collector))


def test_nothing_sent_is_not_a_number_for_averages(rig: Rig) -> None:
    producer = rig.producer(client_id="c")
    assert 'kafka_producer_batch_size_avg{client_id="c"} NaN' in scrape(
        fairlead_kafka.PrometheusCollector(producer)
    )
