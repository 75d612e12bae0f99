"""Reads, transforms and writes in transactions through a proxy that spoils requests, and judges
what committed readers find afterwards."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

import fairlead_kafka
from fairlead_kafka import Producer, TopicPartition
from fairlead_kafka.wire import ApiKey
from tests.support.cutting_proxy import CuttingProxy, Fault, every
from tests.support.delivery_check import QUICK
from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")

PARTITIONS = 2
STEPS = (
    ApiKey.FIND_COORDINATOR,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.PRODUCE,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.END_TXN,
)
"""Every kind of request in a transaction's life."""


@dataclass
class Pipeline:
    """A stage that takes offsets of `source` and writes to `target`: what it committed and what it
    aborted."""

    source: str
    target: str
    group: str
    committed: list[bytes] = field(default_factory=list)
    aborted: list[bytes] = field(default_factory=list)
    offset: int = 0

    def transact(self, producer: Producer, rows: int = 6, *, commit: bool = True) -> None:
        """One transaction: records for every partition, and the source's next offset."""
        first = len(self.committed) + len(self.aborted)
        values = [b"%s-%05d" % (self.group.encode(), number) for number in range(first, first + rows)]
        producer.begin_transaction()
        acks = [
            producer.send(self.target, value, partition=place % PARTITIONS)
            for place, value in enumerate(values)
        ]
        offset = self.offset + rows
        producer.send_offsets_to_transaction({TopicPartition(self.source, 0): offset}, self.group)
        if commit:
            producer.commit_transaction()
            assert all(ack.result(0).offset >= 0 for ack in acks)
            self.committed += values
            self.offset = offset
        else:
            producer.abort_transaction()
            self.aborted += values

    def check_output(self, servers: str) -> None:
        """Each committed record exactly once, no aborted one, and the offset of the last commit."""
        found = Counter(read_committed(servers, self.target))
        assert found == Counter(self.committed)
        assert committed_offset(servers, self.group, TopicPartition(self.source, 0)) == self.offset


def read_committed(servers: str, topic: str, partitions: int = PARTITIONS) -> list[bytes]:
    """Everything committed, once every transaction has ended in every partition."""
    numbers = [TopicPartition(topic, number) for number in range(partitions)]
    found: list[bytes] = []
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "isolation.level": "read_committed"}
    ) as consumer:
        ends = ends_when_complete(servers, consumer, numbers)
        for partition in numbers:
            for table in consumer.read_range(
                partition, 0, ends[partition], columns=["value"], timeout_s=PATIENCE_S
            ):
                found += table.column("value").to_pylist()
    return found


def ends_when_complete(
    servers: str, consumer: fairlead_kafka.Consumer, partitions: Sequence[TopicPartition]
) -> dict[TopicPartition, int]:
    """The end offsets, once what is stable is all there is: a commit returns before its markers are
    in the partitions."""
    deadline = time.monotonic() + PATIENCE_S
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as dirty:
        while (ends := consumer.end_offsets(partitions)) != dirty.end_offsets(partitions):
            assert time.monotonic() < deadline, "a transaction is left open"
    return ends


def committed_offset(servers: str, group: str, partition: TopicPartition) -> int:
    """What the group has committed, as librdkafka sees it, which waits for pending transactions."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": servers, "group.id": group})
    try:
        (row,) = consumer.committed([confluent_kafka.TopicPartition(*partition)], timeout=PATIENCE_S)
        assert row.error is None
        return int(row.offset)
    finally:
        consumer.close()


def confluent_values(servers: str, topic: str, count: int, partitions: int = PARTITIONS) -> list[bytes]:
    """`count` records of a topic, and then all that librdkafka's committed reader finds up to the
    end."""
    config = {
        "bootstrap.servers": servers,
        "group.id": f"reader-of-{topic}",
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.assign([confluent_kafka.TopicPartition(topic, number, 0) for number in range(partitions)])
    found: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + PATIENCE_S
    while len(found) < count or len(ended) < partitions:
        assert time.monotonic() < deadline, f"only {len(found)} records of {count} came"
        for message in consumer.consume(100, timeout=0.2):
            if message.error() is None:
                found.append(message.value())
                ended.discard(message.partition())
            elif message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise AssertionError(message.error())
    consumer.close()
    return found


def run(servers: str, source: str, target: str, api_key: ApiKey, faults: list[Fault]) -> None:
    """Four transactions, one of them aborted, while the first requests of one kind meet `faults`;
    then the verdict."""
    pipeline = Pipeline(source, target, f"stage-of-{target}")
    with CuttingProxy(servers, every(1, faults, start=0), api_key) as proxy:
        config = {
            "bootstrap.servers": proxy.bootstrap_servers,
            "transactional.id": target,
            "linger.ms": 0,
            **QUICK,
        }
        with Producer(config) as producer:
            producer.init_transactions()
            pipeline.transact(producer)
            pipeline.transact(producer, commit=False)
            pipeline.transact(producer)
            pipeline.transact(producer)
        assert sum(proxy.spoiled.values()) == len(faults)
    pipeline.check_output(servers)
