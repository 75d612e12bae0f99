"""Producers' metrics: Kafka's names, windows in injected time, and numbers that agree with what the
broker saw."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BufferExhausted, RecordTooLarge, TimedOut
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.meters import Meter, Sampling, combined
from fairlead_kafka.producer.metric_names import GROUPS
from tests.support.metrics import metric
from tests.support.producer_rig import Rig
from tests.support.transaction_broker import FakeTransactions

WINDOW_S = 30


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=2)
    made.cluster.create("t", 4)
    return made


class Counter(Meter):
    """One total and one maximum."""

    TOTALS = ("count", "size")
    MAXIMA = ("largest",)
    __slots__ = (*TOTALS, *MAXIMA)
    count: int
    size: int
    largest: int

    def note(self, size: int, at_s: float) -> None:
        now_ns = round(at_s * NS_PER_S)
        if now_ns >= self.rolls_ns:
            self.roll(now_ns)
        self.count += 1
        self.size += size
        self.largest = max(self.largest, size)

    def at(self, seconds: float) -> Any:
        return self.read(round(seconds * NS_PER_S))


@pytest.fixture
def counter() -> Counter:
    return Counter(Sampling(WINDOW_S * NS_PER_S, 2))


def test_a_young_meter_takes_its_rate_over_one_whole_window_as_kafka_does(counter: Counter) -> None:
    for second in range(10):
        counter.note(6, 100 + second)
    assert counter.at(110).rate("size") == pytest.approx(60 / WINDOW_S)


def test_rates_and_averages_cover_the_windows_and_totals_everything(counter: Counter) -> None:
    for second in range(200):
        counter.note(10, 1000 + second)
    found = counter.at(1200)  # in the window from 1180 on; the one before began at 1150
    assert found.total("count") == 200
    assert found.changes["count"] == 50
    assert found.rate("count") == pytest.approx(1)
    assert found.average("size", "count") == 10


def test_what_is_older_than_the_windows_is_forgotten(counter: Counter) -> None:
    counter.note(99, 0.5)
    counter.note(1, 40)
    assert counter.at(59).maximum("largest") == 99
    assert counter.at(61).maximum("largest") == 1
    assert counter.at(61).average("size", "count") == 1
    assert counter.at(200).rate("size") == 0
    assert math.isnan(counter.at(200).maximum("largest"))
    assert math.isnan(counter.at(200).average("size", "count"))
    assert counter.at(200).total("size") == 100


def test_windows_stay_aligned_over_a_silence(counter: Counter) -> None:
    counter.note(5, 10)
    counter.note(7, 10 + 10 * WINDOW_S + 1)
    found = counter.at(10 + 10 * WINDOW_S + 2)
    assert (found.changes["size"], found.maximum("largest")) == (7, 7)
    assert counter.at(10 + 12 * WINDOW_S).changes["size"] == 0


def test_a_single_sample_is_allowed() -> None:
    alone = Counter(Sampling(NS_PER_S, 1))
    alone.note(4, 5.0)
    alone.note(4, 5.5)
    assert alone.at(5.5).rate("count") == pytest.approx(4)
    assert alone.at(6.1).changes["count"] == 0
    alone.note(9, 6.2)
    assert alone.at(6.3).maximum("largest") == 9


def test_readings_of_two_meters_add_up(counter: Counter) -> None:
    other = Counter(Sampling(WINDOW_S * NS_PER_S, 2))
    counter.note(2, 1)
    other.note(8, 1)
    both = combined([counter.at(2), other.at(2)], {"free": 3})
    assert (
        both.total("size"),
        both.average("size", "count"),
        both.maximum("largest"),
        both.gauge("free"),
    ) == (10, 5, 8, 3)
    assert math.isnan(both.gauge("unknown"))


def test_every_name_of_the_table_is_there_and_is_a_number(rig: Rig) -> None:
    producer = rig.producer()
    producer.send("t", b"v").result()
    found = producer.metrics()
    assert list(found) == [group.name for group in GROUPS]
    expected = {group.name: [row.name for row in group.rows] for group in GROUPS}
    assert [len(names) == len(set(names)) for names in expected.values()] == [True] * 3
    assert list(found["producer-metrics"]) == expected["producer-metrics"]
    for group in ("producer-node-metrics", "producer-topic-metrics"):
        assert found[group]
        assert all(list(values) == expected[group] for values in found[group].values())
    assert all(isinstance(value, int | float) for value in found["producer-metrics"].values())


def test_records_batches_and_bytes_are_those_the_brokers_saw(rig: Rig) -> None:
    producer = rig.producer(linger_ms=20)
    rig.cluster.create("u", 1)
    for index in range(40):
        producer.send("t", b"x" * 100, partition=index % 4)
    producer.send("u", b"y" * 1000)
    producer.flush()
    found = producer.metrics()
    whole, topics = found["producer-metrics"], found["producer-topic-metrics"]
    seen = [entry for request in rig.cluster.produce_requests for entry in request]
    assert whole["record-send-total"] == whole["record-delivered-total"] == 41
    assert whole["batch-total"] == len(seen)
    assert whole["produce-request-total"] == len(rig.cluster.produce_requests)
    assert whole["records-per-request-avg"] == 41 / len(rig.cluster.produce_requests)
    assert whole["batch-size-max"] == max(header.size_bytes for _, _, header in seen)
    assert whole["batch-size-avg"] == pytest.approx(
        sum(header.size_bytes for _, _, header in seen) / len(seen)
    )
    assert topics["t"]["record-send-total"] == 40
    assert topics["u"]["byte-total"] == sum(header.size_bytes for topic, _, header in seen if topic == "u")
    assert whole["record-send-rate"] == pytest.approx(41 / WINDOW_S)
    assert 1000 < whole["record-size-max"] < 1030
    assert whole["records-open"] == 0
    assert whole["compression-rate-avg"] == topics["t"]["compression-rate"] == 1


def test_latency_is_from_writing_to_the_answer_and_queue_time_from_the_first_record(rig: Rig) -> None:
    rig.cluster.brokers[1].service_ms = 80
    producer = rig.producer(linger_ms=40)
    producer.partitions_for("t")
    producer.send("t", b"0", partition=0).result()
    producer.send("t", b"1", partition=1).result()
    found = producer.metrics()
    nodes, whole = found["producer-node-metrics"], found["producer-metrics"]
    assert (
        nodes["node-1"]["request-latency-avg"]
        == nodes["node-1"]["request-latency-max"]
        == pytest.approx(80, abs=1)
    )
    assert nodes["node-0"]["request-latency-max"] < 1
    assert whole["request-latency-max"] == pytest.approx(80, abs=1)
    assert whole["record-queue-time-max"] >= 40
    assert nodes["node-1"]["request-window"] >= 1


def test_bytes_on_the_wire_are_counted_for_each_broker_and_all_kinds_of_requests(rig: Rig) -> None:
    producer = rig.producer()
    producer.send_table(
        "t", pa.table({"value": [b"x" * 500] * 100, "partition": pa.array([1] * 100, pa.int32())})
    ).result()
    found = producer.metrics()
    whole, nodes = found["producer-metrics"], found["producer-node-metrics"]
    assert whole["outgoing-byte-total"] == sum(node["outgoing-byte-total"] for node in nodes.values())
    assert (
        whole["request-total"]
        == whole["response-total"]
        == sum(node["request-total"] for node in nodes.values())
    )
    assert nodes["node-1"]["outgoing-byte-total"] > 50_000 > nodes["node-1"]["incoming-byte-total"] > 0
    assert whole["requests-in-flight"] == 0
    assert whole["connection-count"] == whole["connection-creation-total"] >= 2
    assert 0 <= whole["metadata-age"] < 1


def test_retries_and_failures_are_counted_by_topic(rig: Rig) -> None:
    faults = iter([19])
    rig.cluster.on_produce = lambda node, topic, partition, header: next(faults, None) if topic == "t" else 87
    rig.cluster.create("u", 1)
    producer = rig.producer()
    good, bad = producer.send("t", b"v"), producer.send("u", b"v")
    producer.flush()
    assert (good.done(), bad.done()) == (True, True)
    topics = producer.metrics()["producer-topic-metrics"]
    assert (
        topics["t"]["record-retry-total"],
        topics["t"]["record-send-total"],
        topics["t"]["record-error-total"],
    ) == (1, 2, 0)
    assert (topics["u"]["record-retry-total"], topics["u"]["record-error-total"]) == (0, 1)
    assert metric(producer, "record-error-total") == 1


def test_records_that_send_refuses_count_as_errors_as_in_kafka(rig: Rig) -> None:
    rig.cluster.on_produce = lambda *_: 19
    producer = rig.producer(buffer_memory=1000, max_block_ms=250, max_request_size=2000)
    with pytest.raises(RecordTooLarge):
        producer.send("t", b"x" * 3000)
    producer.send("t", b"x" * 900)
    with pytest.raises(BufferExhausted):
        producer.send("t", b"x" * 900)
    found = producer.metrics()["producer-metrics"]
    assert found["record-error-total"] == 2
    assert found["buffer-exhausted-total"] == 1
    assert found["bufferpool-wait-time-ns-total"] == 250_000_000
    assert found["bufferpool-wait-ratio"] == pytest.approx(0.25 / WINDOW_S)
    assert found["buffer-available-bytes"] < 100


def test_the_time_that_partitions_for_waits_is_counted(rig: Rig) -> None:
    producer = rig.producer()
    with pytest.raises(TimedOut):
        producer.partitions_for("nowhere", timeout_s=0.5)
    assert metric(producer, "metadata-wait-time-ns-total") == 500_000_000


def test_the_time_that_flush_takes_is_counted(rig: Rig) -> None:
    rig.cluster.brokers[0].service_ms = 30
    producer = rig.producer()
    producer.send("t", b"v", partition=0)
    producer.flush()
    assert metric(producer, "flush-time-ns-total") >= 30_000_000


def test_compression_is_told_as_the_share_that_is_left(rig: Rig) -> None:
    producer = rig.producer(compression_type="gzip", linger_ms=20)
    producer.send_table("t", pa.table({"value": [b"a" * 1000] * 10})).result()
    assert 0 < metric(producer, "compression-rate-avg") < 0.2
    assert producer.metrics()["producer-topic-metrics"]["t"]["compression-rate"] < 0.2


def test_the_windows_are_those_of_the_config(rig: Rig) -> None:
    producer = rig.producer(metrics_sample_window_ms=1000, metrics_num_samples=3)
    producer.send("t", b"v").result()
    assert metric(producer, "record-send-rate") == pytest.approx(0.5)
    rig.host.advance(3500)
    assert metric(producer, "record-send-rate") == 0
    assert metric(producer, "record-send-total") == 1


def test_metrics_can_be_read_once_closed(rig: Rig) -> None:
    with rig.producer() as producer:
        producer.send("t", b"v")
    assert metric(producer, "record-delivered-total") == 1
    assert metric(producer, "connection-count") == 0


def test_the_time_that_transactions_take_is_counted_by_call() -> None:
    rig = Rig(brokers=1, latency_ms=5)
    rig.cluster.create("t", 1)
    FakeTransactions(rig.cluster)
    producer = rig.producer(transactional_id="x")
    producer.init_transactions()
    for commit in (True, False):
        producer.begin_transaction()
        producer.send("t", b"v").result()
        (producer.commit_transaction if commit else producer.abort_transaction)()
    found = producer.metrics()["producer-metrics"]
    for call in ("init", "commit", "abort"):
        assert found[f"txn-{call}-time-ns-total"] >= 10_000_000, call
    assert found["txn-send-offsets-time-ns-total"] == 0
