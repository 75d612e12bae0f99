"""Brokers that stop, die, come back, are slow or stay away, while a producer and a consumer go on."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.cutting_proxy import CuttingProxy, Fault
from tests.support.delivery_verdict import PARTITIONS, QUICK, Sent, judge, read_back

TOPIC = "events"
NUMBERS = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]


class Reader:
    """Reads the topic on a thread of its own, from the beginning, until `stop` and nothing more comes."""

    def __init__(self, servers: str) -> None:
        self.offsets: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        self.errors: list[Exception] = []
        self._servers = servers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with fairlead_kafka.Consumer({"bootstrap.servers": self._servers, "auto.offset.reset": "earliest", **QUICK}) as consumer:
                consumer.assign(NUMBERS)
                while not self._stopping.is_set() or not self._caught_up(consumer):
                    table = consumer.poll_table(timeout_s=0.2)
                    for partition, offset in zip(table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True):
                        self.offsets[partition].append(offset)
        except Exception as error:
            self.errors.append(error)

    def _caught_up(self, consumer: fairlead_kafka.Consumer) -> bool:
        ends = consumer.end_offsets(NUMBERS)
        return all(consumer.position(partition) >= ends[partition] for partition in NUMBERS)

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("flush_messages", [None, 1])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_brokers_bounce_under_load_and_nothing_is_lost_repeated_or_skipped(tmp_path: Path, end: str, flush_messages: int | None) -> None:
    config = {"num.partitions": PARTITIONS, **({"log.flush.interval.messages": flush_messages} if flush_messages else {})}
    with fairlead_kafka.Cluster(brokers=3, data_dir=tmp_path, config=config) as cluster:
        servers, sent = cluster.bootstrap_servers, Sent(TOPIC, PARTITIONS)
        with fairlead_kafka.Producer({"bootstrap.servers": servers, "batch.size": 700, **QUICK}) as producer:
            sent.send_all_ways(producer)
            producer.flush(20)
            reader = Reader(servers)
            for broker in [cluster.broker(number % 3) for number in range(5)]:
                sent.send_all_ways(producer)
                getattr(broker, end)()
                sent.send_all_ways(producer)
                broker.start()
                sent.send_all_ways(producer)
            placed = sent.acknowledged()
        reader.finish()
        assert reader.errors == []
        found = read_back(servers, TOPIC, PARTITIONS)
        judge(placed, found)
        for partition, offsets in reader.offsets.items():
            assert offsets == list(range(len(offsets))), "the consumer skipped or repeated records"
            assert len(offsets) == sum(1 for number, _ in found if number == partition)
    with fairlead_kafka.Cluster(brokers=3, data_dir=tmp_path, config=config) as cluster:
        judge(placed, read_back(cluster.bootstrap_servers, TOPIC, PARTITIONS))


@pytest.fixture
def settled() -> Iterator[tuple[fairlead_kafka.Cluster, fairlead_kafka.Producer, list[int]]]:
    """A cluster, a producer that knows it, and each partition's leader."""
    with fairlead_kafka.Cluster(brokers=3, config={"num.partitions": PARTITIONS}) as cluster:
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as patient:
            patient.send("warm-up", b"").result(30)  # the first message of a process loads its schemas, longer than these time-outs
        config = {"request.timeout.ms": 400, "delivery.timeout.ms": 900, "max.block.ms": 5_000, "linger.ms": 0, **QUICK}
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers, **config}) as producer:
            for partition in range(PARTITIONS):
                producer.send(TOPIC, b"first", partition=partition).result(10)
            yield cluster, producer, [entry.leader for entry in producer.partitions_for(TOPIC)]


def test_a_slow_broker_holds_up_nobody_elses_partitions(settled: tuple[fairlead_kafka.Cluster, fairlead_kafka.Producer, list[int]]) -> None:
    cluster, producer, leaders = settled
    cluster.broker(leaders[0]).slow(latency_ms=250)
    order: list[int] = []
    for partition in (0, 1, 2, 0, 1, 2):
        producer.send(
            TOPIC, b"x", partition=partition, on_delivery=lambda metadata, _: order.append(metadata.partition if metadata else -1)
        )
    producer.flush(10)
    assert sorted(order[:4]) == [1, 1, 2, 2]
    assert order[4:] == [0, 0]


@pytest.mark.parametrize("most_bytes", [0, 1 << 20])
def test_unkeyed_records_flow_past_a_broker_that_serves_slowly(most_bytes: int) -> None:
    with fairlead_kafka.Cluster(brokers=3, config={"num.partitions": PARTITIONS}) as cluster:
        cluster.broker(1).slow(produce_service_time_ms=20)
        config = {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0, "batch.max.size": most_bytes}
        with fairlead_kafka.Producer(config) as producer:
            producer.send(TOPIC, b"first").result(10)
            leaders = [entry.leader for entry in producer.partitions_for(TOPIC)]
            tables = []
            for _ in range(300):
                tables.append(producer.send_table(TOPIC, pa.table({"value": [b"v" * 100] * 200})))
                time.sleep(0.002)
            counts = dict.fromkeys(leaders, 0)
            for table in tables:
                for partition in table.result(30)["partition"].to_pylist():
                    counts[leaders[partition]] += 1
    assert sum(counts.values()) == 300 * 200
    if not most_bytes:  # Else its queue, by which adaptive goes, is emptied with each request: it is slower, but not behind.
        assert counts[1] < min(counts[0], counts[2])


def test_records_for_a_broker_that_stays_away_fail_in_time_and_the_producer_is_whole_afterwards(
    settled: tuple[fairlead_kafka.Cluster, fairlead_kafka.Producer, list[int]],
) -> None:
    cluster, producer, leaders = settled
    cluster.broker(leaders[0]).stop()
    begun = time.monotonic()
    lost = [producer.send(TOPIC, b"l%d" % number, partition=0) for number in range(50)]
    table = producer.send_table(TOPIC, pa.table({"value": [b"t"] * 200, "partition": pa.array([0, 1] * 100, pa.int32())}))
    kept = [producer.send(TOPIC, b"k", partition=1) for _ in range(50)]
    for ack in kept:
        ack.result(10)
    producer.flush(10)
    assert time.monotonic() - begun < 5, "delivery.timeout.ms is 0.9 s"
    for ack in lost:
        with pytest.raises(fairlead_kafka.TimedOut, match=r"events-0 .*delivery\.timeout\.ms=900"):
            ack.result(0)
    result = table.result(0, raise_on_error=False)
    assert [error is None for error in result["error"].to_pylist()] == [False, True] * 100
    metrics = producer.metrics()["producer-metrics"]
    assert (metrics["records-open"], metrics["waiting-threads"]) == (0, 0)
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
    cluster.broker(leaders[0]).start()
    assert producer.send(TOPIC, b"after", partition=0).result(10).offset == 1


def test_records_whose_requests_are_never_answered_fail_in_time_and_close_does_not_hang() -> None:
    with fairlead_kafka.Cluster(brokers=1) as cluster, CuttingProxy(cluster.bootstrap_servers, lambda _: Fault.SWALLOWED) as proxy:
        config = {"request.timeout.ms": 400, "delivery.timeout.ms": 700, "linger.ms": 0, **QUICK}
        producer = fairlead_kafka.Producer({"bootstrap.servers": proxy.bootstrap_servers, **config})
        ack = producer.send(TOPIC, b"x")
        begun = time.monotonic()
        producer.close()
        assert time.monotonic() - begun < 5
        with pytest.raises(fairlead_kafka.TimedOut, match=r"delivery\.timeout\.ms=700"):
            ack.result(0)
        metrics = producer.metrics()["producer-metrics"]
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]
