"""The stock Python clients' transactions against an embedded cluster: what each commits all of them
read, and nothing else."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import fairlead_kafka
from tests.support.stock_clients import PATIENCE_S, create, until

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

PARTITIONS = 4
COMMITTED = [(number % PARTITIONS, b"%d committed" % number) for number in range(40)]
ABORTED = [(number % PARTITIONS, b"%d aborted" % number) for number in range(40)]
_numbers = itertools.count()


@pytest.fixture
def topic(embedded: str) -> str:
    """A topic of its own, of four partitions on three brokers."""
    name = f"transactions-{next(_numbers)}"
    create(confluent_admin.AdminClient({"bootstrap.servers": embedded}), name)
    return name


# --- Writers: one aborted transaction between two committed ones


def confluent_write(servers: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    for records, committed in ((COMMITTED[:20], True), (ABORTED, False), (COMMITTED[20:], True)):
        producer.begin_transaction()
        for partition, value in records:
            producer.produce(topic, value, partition=partition)
        producer.flush(PATIENCE_S)
        if committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)


def kafka_python_write(servers: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=servers, transactional_id=topic)
    try:
        producer.init_transactions()
        for records, committed in ((COMMITTED[:20], True), (ABORTED, False), (COMMITTED[20:], True)):
            producer.begin_transaction()
            for partition, value in records:
                producer.send(topic, value, partition=partition)
            producer.flush(PATIENCE_S)
            if committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()


def aiokafka_write(servers: str, topic: str) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=servers, transactional_id=topic)
        await producer.start()
        try:
            for records, committed in ((COMMITTED[:20], True), (ABORTED, False), (COMMITTED[20:], True)):
                await producer.begin_transaction()
                sent = [
                    await producer.send(topic, value, partition=partition) for partition, value in records
                ]
                await asyncio.gather(*sent)
                await (producer.commit_transaction() if committed else producer.abort_transaction())
        finally:
            await producer.stop()

    asyncio.run(write())


WRITERS = {"confluent": confluent_write, "kafka-python": kafka_python_write, "aiokafka": aiokafka_write}


# --- Readers: everything up to the end they see


def confluent_read(servers: str, topic: str, isolation: str, count: int) -> list[tuple[int, bytes]]:
    config = {
        "bootstrap.servers": servers,
        "group.id": "unused",
        "enable.auto.commit": False,
        "isolation.level": isolation,
    }
    consumer = confluent_kafka.Consumer(config)
    got: list[tuple[int, bytes]] = []

    def poll() -> None:
        for message in consumer.consume(1_000, timeout=0.5):
            assert message.error() is None
            got.append((message.partition(), message.value()))

    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    until(lambda: len(got) >= count, poll)
    poll()
    consumer.close()
    return got


def kafka_python_read(servers: str, topic: str, isolation: str, count: int) -> list[tuple[int, bytes]]:
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=servers, isolation_level=isolation, enable_auto_commit=False
    )
    partitions = [kafka.TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    got: list[tuple[int, bytes]] = []

    def poll() -> None:
        for records in consumer.poll(timeout_ms=500).values():
            got.extend((record.partition, record.value) for record in records)

    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    until(lambda: len(got) >= count, poll)
    poll()
    consumer.close()
    return got


def aiokafka_read(servers: str, topic: str, isolation: str, count: int) -> list[tuple[int, bytes]]:
    async def read() -> list[tuple[int, bytes]]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers, isolation_level=isolation, enable_auto_commit=False
        )
        await consumer.start()
        partitions = [aiokafka.TopicPartition(topic, partition) for partition in range(PARTITIONS)]
        consumer.assign(partitions)
        await consumer.seek_to_beginning(*partitions)
        got: list[tuple[int, bytes]] = []
        for _ in range(PATIENCE_S * 2):
            for records in (await consumer.getmany(timeout_ms=500)).values():
                got.extend((record.partition, record.value) for record in records)
            if len(got) >= count:
                break
        got.extend(
            (one.partition, one.value)
            for records in (await consumer.getmany(timeout_ms=300)).values()
            for one in records
        )
        await consumer.stop()
        return got

    return asyncio.run(read())


READERS = {"confluent": confluent_read, "kafka-python": kafka_python_read, "aiokafka": aiokafka_read}


def by_partition(records: list[tuple[int, bytes]]) -> dict[int, list[bytes]]:
    return {partition: [value for of, value in records if of == partition] for partition in range(PARTITIONS)}


@pytest.mark.parametrize("writer", WRITERS)
def test_all_read_what_each_commits_and_nothing_that_it_aborts(
    embedded: str, topic: str, writer: str
) -> None:
    WRITERS[writer](embedded, topic)
    for reader in READERS.values():
        assert by_partition(reader(embedded, topic, "read_committed", len(COMMITTED))) == by_partition(
            COMMITTED
        )
    everything = COMMITTED[:20] + ABORTED + COMMITTED[20:]
    assert by_partition(confluent_read(embedded, topic, "read_uncommitted", len(everything))) == by_partition(
        everything
    )


def offset_of(servers: str, group: str, topic: str) -> int:
    config = {"bootstrap.servers": servers, "group.id": group, "isolation.level": "read_committed"}
    consumer = confluent_kafka.Consumer(config)
    (committed,) = consumer.committed([confluent_kafka.TopicPartition(topic, 0)], timeout=PATIENCE_S)
    consumer.close()
    return int(committed.offset)


def test_confluent_moves_a_group_on_with_a_transaction(embedded: str, topic: str) -> None:
    """Read, write, and send the offsets along, in two transactions of which one is aborted."""
    source, group = f"{topic}-source", f"group-{topic}"
    create(confluent_admin.AdminClient({"bootstrap.servers": embedded}), source, 1)
    with fairlead_kafka.Producer({"bootstrap.servers": embedded}) as filler:
        for number in range(10):
            filler.send(source, b"%d" % number)
    config = {
        "bootstrap.servers": embedded,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([source])
    producer = confluent_kafka.Producer({"bootstrap.servers": embedded, "transactional.id": topic})
    producer.init_transactions(PATIENCE_S)
    read: list[Any] = []
    until(lambda: len(read) >= 10, lambda: read.extend(consumer.consume(10 - len(read), timeout=0.5)))
    for upto, committed in ((4, True), (10, False)):
        producer.begin_transaction()
        for message in read[:upto]:
            producer.produce(topic, message.value(), partition=0)
        producer.flush(PATIENCE_S)
        offsets = [confluent_kafka.TopicPartition(source, 0, upto)]
        producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), PATIENCE_S)
        if committed:
            producer.commit_transaction(PATIENCE_S)
        else:
            producer.abort_transaction(PATIENCE_S)
    consumer.close()
    assert offset_of(embedded, group, source) == 4
    assert [value for _, value in confluent_read(embedded, topic, "read_committed", 4)] == [
        b"0",
        b"1",
        b"2",
        b"3",
    ]


def test_kafka_python_sends_offsets_along(embedded: str, topic: str) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=embedded, transactional_id=topic)
    try:
        producer.init_transactions()
        for offset, committed in ((3, True), (7, False)):
            producer.begin_transaction()
            offsets = {kafka.TopicPartition(topic, 0): kafka.structs.OffsetAndMetadata(offset, "", -1)}
            producer.send_offsets_to_transaction(offsets, f"group-{topic}")
            if committed:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    finally:
        producer.close()
    assert offset_of(embedded, f"group-{topic}", topic) == 3


def test_aiokafka_sends_offsets_along(embedded: str, topic: str) -> None:
    async def write() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=embedded, transactional_id=topic)
        await producer.start()
        try:
            for offset, end in ((3, producer.commit_transaction), (7, producer.abort_transaction)):
                await producer.begin_transaction()
                await producer.send_offsets_to_transaction(
                    {aiokafka.TopicPartition(topic, 0): offset}, f"group-{topic}"
                )
                finish: Callable[[], Awaitable[None]] = end
                await finish()
        finally:
            await producer.stop()

    asyncio.run(write())
    assert offset_of(embedded, f"group-{topic}", topic) == 3


def test_confluent_is_fenced_by_the_next_with_its_id(embedded: str, topic: str) -> None:
    config = {"bootstrap.servers": embedded, "transactional.id": topic}
    old, new = confluent_kafka.Producer(config), confluent_kafka.Producer(config)
    old.init_transactions(PATIENCE_S)
    old.begin_transaction()
    old.produce(topic, b"lost", partition=0)
    assert old.flush(PATIENCE_S) == 0
    new.init_transactions(PATIENCE_S)
    with pytest.raises(confluent_kafka.KafkaException) as caught:
        old.commit_transaction(PATIENCE_S)
    assert caught.value.args[0].code() == confluent_kafka.KafkaError._FENCED
    assert caught.value.args[0].fatal()
    new.begin_transaction()
    new.produce(topic, b"kept", partition=0)
    new.commit_transaction(PATIENCE_S)
    assert confluent_read(embedded, topic, "read_committed", 1) == [(0, b"kept")]


def test_transactions_survive_the_death_of_a_broker_between_them() -> None:
    with fairlead_kafka.Cluster(brokers=3) as cluster:
        servers = cluster.bootstrap_servers
        create(confluent_admin.AdminClient({"bootstrap.servers": servers}), "events")
        producer = confluent_kafka.Producer({"bootstrap.servers": servers, "transactional.id": "t"})
        producer.init_transactions(PATIENCE_S)
        for number in range(3):
            producer.begin_transaction()
            for partition in range(PARTITIONS):
                producer.produce("events", b"%d" % number, partition=partition)
            producer.flush(PATIENCE_S)
            cluster.broker(number).kill()
            cluster.broker(number).start()
            producer.commit_transaction(PATIENCE_S)
        records = confluent_read(servers, "events", "read_committed", 3 * PARTITIONS)
        assert by_partition(records) == {partition: [b"0", b"1", b"2"] for partition in range(PARTITIONS)}
