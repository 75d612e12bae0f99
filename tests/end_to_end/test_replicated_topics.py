"""Replicated topics under a client that is not ours: what it was told is written survives brokers
that die and come back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

confluent_kafka = pytest.importorskip("confluent_kafka")

from confluent_kafka.admin import AdminClient, NewTopic  # noqa: E402

import fairlead_kafka  # noqa: E402
from tests.support.waiting import PATIENCE_S  # noqa: E402

TOPIC = "events"
PARTITIONS = 4


@pytest.fixture
def cluster() -> Iterator[fairlead_kafka.Cluster]:
    with fairlead_kafka.Cluster(brokers=3) as cluster:
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        topic = NewTopic(TOPIC, PARTITIONS, 3, config={"min.insync.replicas": "2"})
        admin.create_topics([topic])[TOPIC].result(PATIENCE_S)
        yield cluster


class Load:
    """A producer on a thread of its own, idempotent and with acks=all, until `finish`."""

    def __init__(self, servers: str) -> None:
        self.acked: dict[tuple[int, int], bytes] = {}
        """(partition, offset) → value."""
        self.errors: list[Any] = []
        settings = {
            "bootstrap.servers": servers,
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 2,
            "retry.backoff.ms": 20,
        }
        self._producer = confluent_kafka.Producer(settings)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for _ in range(20):
                self._producer.produce(
                    TOPIC, b"%d" % number, partition=number % PARTITIONS, on_delivery=self._delivered
                )
                number += 1
            self._producer.poll(0.002)

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None:
            self.errors.append(error)
        else:
            self.acked[message.partition(), message.offset()] = message.value()

    def more(self, count: int = 200) -> None:
        """Wait until so many more are acknowledged."""
        target, give_up = len(self.acked) + count, time.monotonic() + PATIENCE_S
        while len(self.acked) < target:
            assert time.monotonic() < give_up, f"no more is acknowledged after {len(self.acked)} records"
            time.sleep(0.01)

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(PATIENCE_S)
        assert self._producer.flush(PATIENCE_S) == 0


def read_all(servers: str, at_least: int) -> dict[tuple[int, int], bytes]:
    """Everything in the topic, by partition and offset."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "checker",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
    }
    consumer = confluent_kafka.Consumer(settings)
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, number, 0) for number in range(PARTITIONS)])
    found: dict[tuple[int, int], bytes] = {}
    ended: set[int] = set()
    give_up = time.monotonic() + PATIENCE_S
    while len(ended) < PARTITIONS or len(found) < at_least:
        assert time.monotonic() < give_up, f"{len(found)} records were read, at least {at_least} are due"
        for message in consumer.consume(1_000, 0.5):
            if message.error() is None:
                assert (message.partition(), message.offset()) not in found
                found[message.partition(), message.offset()] = message.value()
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
    consumer.close()
    return found


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_each_broker_goes_and_comes_back_under_load_and_nothing_acknowledged_is_lost_or_repeated(
    cluster: fairlead_kafka.Cluster, end: str
) -> None:
    load = Load(cluster.bootstrap_servers)
    load.more()
    for broker in cluster.brokers:
        broker.kill() if end == "kill" else broker.stop()
        load.more()
        broker.start()
        in_sync_again(cluster)
    load.finish()
    assert not load.errors
    found = read_all(cluster.bootstrap_servers, len(load.acked))
    assert {place: found.get(place) for place in load.acked} == load.acked
    assert len(set(found.values())) == len(found), "a record is there twice"


def in_sync_again(cluster: fairlead_kafka.Cluster) -> None:
    """Wait until every replica is in sync, as a client sees it."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    give_up = time.monotonic() + PATIENCE_S
    while True:
        partitions = admin.list_topics(TOPIC, timeout=PATIENCE_S).topics[TOPIC].partitions.values()
        if all(len(partition.isrs) == 3 for partition in partitions):
            return
        assert time.monotonic() < give_up, f"still out of sync: {[(one.id, one.isrs) for one in partitions]}"
        time.sleep(0.02)
