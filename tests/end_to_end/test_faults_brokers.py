"""Brokers that stop, die, come back or are slow, while a producer and a consumer go on."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.cutting_proxy import CuttingProxy
from tests.support.delivery_check import PARTITIONS, QUICK, Sent, check_delivered, read_back
from tests.support.waiting import PATIENCE_S

TOPIC = "events"
NUMBERS = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]


class Reader:
    """Reads the topic on a thread of its own, from the beginning, until `stop` and nothing more
    comes."""

    def __init__(self, servers: str) -> None:
        self.offsets: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
        self.errors: list[Exception] = []
        self._servers = servers
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        try:
            with fairlead_kafka.Consumer(
                {"bootstrap.servers": self._servers, "auto.offset.reset": "earliest", **QUICK}
            ) as consumer:
                consumer.assign(NUMBERS)
                while not self._stopping.is_set() or not self._caught_up(consumer):
                    table = consumer.poll_table(timeout_s=0.2)
                    for partition, offset in zip(
                        table["partition"].to_pylist(), table["offset"].to_pylist(), strict=True
                    ):
                        self.offsets[partition].append(offset)
        except Exception as error:
            self.errors.append(error)

    def _caught_up(self, consumer: fairlead_kafka.Consumer) -> bool:
        ends = consumer.end_offsets(NUMBERS)
        return all(consumer.position(partition) >= ends[partition] for partition in NUMBERS)

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        assert not self._thread.is_alive()


@pytest.mark.parametrize("flush_messages", [None, 1])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_brokers_bounce_under_load_and_nothing_is_lost_repeated_or_skipped(
    tmp_path: Path, end: str, flush_messages: int | None
) -> None:
    config = {
        "num.partitions": PARTITIONS,
        **({"log.flush.interval.messages": flush_messages} if flush_messages else {}),
    }
    with fairlead_kafka.Cluster(brokers=3, data_dir=tmp_path, config=config) as cluster:
        servers, sent = cluster.bootstrap_servers, Sent(TOPIC, PARTITIONS)
        with fairlead_kafka.Producer({"bootstrap.servers": servers, "batch.size": 700, **QUICK}) as producer:
            sent.send_all_ways(producer)
            producer.flush(PATIENCE_S)
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
        check_delivered(placed, found)
        for partition, offsets in reader.offsets.items():
            assert offsets == list(range(len(offsets))), "the consumer skipped or repeated records"
            assert len(offsets) == sum(1 for number, _ in found if number == partition)
    with fairlead_kafka.Cluster(brokers=3, data_dir=tmp_path, config=config) as cluster:
        check_delivered(placed, read_back(cluster.bootstrap_servers, TOPIC, PARTITIONS))


def test_a_slow_broker_holds_up_nobody_elses_partitions() -> None:
    with (
        fairlead_kafka.Cluster(brokers=3, config={"num.partitions": PARTITIONS}) as cluster,
        CuttingProxy(cluster.bootstrap_servers, lambda _: None) as proxy,
        fairlead_kafka.Producer({"bootstrap.servers": proxy.bootstrap_servers, "linger.ms": 0}) as producer,
    ):
        for partition in range(PARTITIONS):
            producer.send(TOPIC, b"first", partition=partition).result(PATIENCE_S)
        proxy.hold(cluster.broker(producer.partitions_for(TOPIC)[0].leader).address)
        acks = [producer.send(TOPIC, b"x", partition=partition) for partition in (0, 1, 2, 0, 1, 2)]
        for ack in (acks[1], acks[2], acks[4], acks[5]):
            assert ack.result(PATIENCE_S).offset >= 1
        assert not acks[0].done()
        assert not acks[3].done()
        proxy.release()
        assert [acks[0].result(PATIENCE_S).offset, acks[3].result(PATIENCE_S).offset] == [1, 2]
