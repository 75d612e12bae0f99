"""What the stock clients do in more than one test: make topics, fill them, read them as a group."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")

PARTITIONS = 4
FIRST_TEN = [(partition, offset) for partition in range(PARTITIONS) for offset in range(10)]
NEXT_TEN = [(partition, offset) for partition in range(PARTITIONS) for offset in range(10, 20)]


def create(
    admin: Any, name: str, partitions: int = PARTITIONS, replication_factor: int = 1, **options: Any
) -> None:
    validate_only = options.pop("validate_only", False)
    new = confluent_admin.NewTopic(name, partitions, replication_factor, **options)
    admin.create_topics([new], validate_only=validate_only)[name].result(PATIENCE_S)


def fill(servers: str, topic: str, per_partition: int = 10) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers})
    for number in range(per_partition):
        for partition in range(PARTITIONS):
            producer.produce(topic, b"%d" % number, partition=partition)
    assert producer.flush(PATIENCE_S) == 0


def until(condition: Callable[[], bool], poll: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        poll()


def confluent_read(servers: str, group: str, topic: str, count: int) -> list[tuple[int, int]]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )
    got: list[tuple[int, int]] = []

    def poll() -> None:
        for message in consumer.consume(count - len(got), timeout=0.5):
            assert message.error() is None
            got.append((message.partition(), message.offset()))

    consumer.subscribe([topic])
    until(lambda: len(got) >= count, poll)
    consumer.commit(asynchronous=False)
    consumer.close()
    return sorted(got)


def kafka_python_read(servers: str, group: str, topic: str, count: int) -> list[tuple[int, int]]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=servers,
        group_id=group,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        max_poll_records=1,
    )
    got: list[tuple[int, int]] = []

    def poll() -> None:
        for records in consumer.poll(timeout_ms=500).values():
            got.extend((record.partition, record.offset) for record in records)

    try:
        until(lambda: len(got) >= count, poll)
        consumer.commit()
    finally:
        consumer.close()
    return sorted(got)


def aiokafka_read(servers: str, group: str, topic: str, count: int) -> list[tuple[int, int]]:
    async def read() -> list[tuple[int, int]]:
        consumer = aiokafka.AIOKafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        await consumer.start()
        try:
            got = [await asyncio.wait_for(consumer.getone(), PATIENCE_S) for _ in range(count)]
            await consumer.commit()
        finally:
            await consumer.stop()
        return sorted((record.partition, record.offset) for record in got)

    return asyncio.run(read())


READERS = {"confluent": confluent_read, "kafka-python": kafka_python_read, "aiokafka": aiokafka_read}
