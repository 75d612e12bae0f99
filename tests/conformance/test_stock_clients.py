"""The stock Python clients, unmodified, against an embedded cluster: produce, consume, groups,
admin."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from tests.support.waiting import PATIENCE_S

confluent_kafka = pytest.importorskip("confluent_kafka")
kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka_admin = pytest.importorskip("kafka.admin")

VALUES = [b"value %d" % number for number in range(500)]
_numbers = itertools.count()

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


@pytest.fixture
def topic() -> str:
    """A topic's name that nobody has used."""
    return f"stock-{next(_numbers)}"


def until(condition: Callable[[], bool], poll: Callable[[], Any]) -> None:
    """Poll until the condition holds."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it did not come true in time"
        poll()


# --- confluent-kafka (librdkafka)


def confluent_produce(servers: str, topic: str, values: list[bytes], **config: Any) -> list[int]:
    """Produce all to partition 0; the offsets they got."""
    offsets: list[int] = []
    errors: list[Any] = []

    def delivered(error: Any, message: Any) -> None:
        (errors if error else offsets).append(error or message.offset())

    producer = confluent_kafka.Producer({"bootstrap.servers": servers, "linger.ms": 2, **config})
    for value in values:
        producer.produce(topic, value, key=b"key", partition=0, headers=[("h", b"1")], on_delivery=delivered)
    assert producer.flush(PATIENCE_S) == 0
    assert not errors
    return offsets


def confluent_read(servers: str, topic: str, count: int) -> list[Any]:
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": "unused", "enable.auto.commit": False}
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
        messages: list[Any] = []
        until(lambda: len(messages) >= count, lambda: messages.extend(consumer.consume(count, 0.5)))
        assert not [message.error() for message in messages if message.error()]
        return messages
    finally:
        consumer.close()


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_confluent_reads_what_it_wrote(embedded: str, topic: str, codec: str) -> None:
    options = {"compression.type": codec, "allow.auto.create.topics": True}
    assert confluent_produce(embedded, topic, VALUES, **options) == list(range(len(VALUES)))
    messages = confluent_read(embedded, topic, len(VALUES))
    assert [message.value() for message in messages] == VALUES
    assert messages[0].key() == b"key"
    assert messages[0].headers() == [("h", b"1")]


@pytest.mark.parametrize("options", [{"enable.idempotence": True}, {"acks": 1}, {"acks": 0}], ids=str)
def test_confluent_writes_with_any_acks(embedded: str, topic: str, options: dict[str, Any]) -> None:
    confluent_produce(embedded, topic, VALUES, **options)
    assert [message.value() for message in confluent_read(embedded, topic, len(VALUES))] == VALUES


def test_confluent_finds_offsets_by_time(embedded: str, topic: str) -> None:
    producer = confluent_kafka.Producer({"bootstrap.servers": embedded})
    for number in range(10):
        producer.produce(topic, b"v", partition=0, timestamp=1_000 * (number + 1))
    producer.flush(PATIENCE_S)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": embedded, "group.id": "unused"})
    try:
        (found,) = consumer.offsets_for_times(
            [confluent_kafka.TopicPartition(topic, 0, 3_500)], timeout=PATIENCE_S
        )
        assert found.offset == 3
        assert consumer.get_watermark_offsets(
            confluent_kafka.TopicPartition(topic, 0), timeout=PATIENCE_S
        ) == (0, 10)
    finally:
        consumer.close()


def test_a_confluent_group_goes_on_where_it_committed(embedded: str, topic: str) -> None:
    confluent_produce(embedded, topic, VALUES)
    config = {
        "bootstrap.servers": embedded,
        "group.id": f"group-{topic}",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
    }

    def read(count: int) -> list[bytes]:
        consumer = confluent_kafka.Consumer(config)
        try:
            consumer.subscribe([topic])
            messages: list[Any] = []
            until(
                lambda: len(messages) >= count,
                lambda: messages.extend(consumer.consume(count - len(messages), 0.5)),
            )
            consumer.commit(asynchronous=False)
            return [message.value() for message in messages]
        finally:
            consumer.close()

    assert read(200) == VALUES[:200]
    assert read(300) == VALUES[200:]


def test_confluent_administers_topics(embedded: str, topic: str) -> None:
    admin = confluent_admin.AdminClient({"bootstrap.servers": embedded})
    new = confluent_admin.NewTopic(topic, 4, 1, config={"retention.ms": "1234567"})
    admin.create_topics([new])[topic].result(PATIENCE_S)
    with pytest.raises(confluent_kafka.KafkaException, match="TOPIC_ALREADY_EXISTS"):
        admin.create_topics([new])[topic].result(PATIENCE_S)
    with pytest.raises(confluent_kafka.KafkaException, match="INVALID_REPLICATION_FACTOR"):
        admin.create_topics([confluent_admin.NewTopic(topic + "x", 1, 4)])[topic + "x"].result(PATIENCE_S)
    assert len(admin.list_topics(topic, timeout=PATIENCE_S).topics[topic].partitions) == 4
    admin.create_partitions([confluent_admin.NewPartitions(topic, 6)])[topic].result(PATIENCE_S)
    resource = confluent_admin.ConfigResource(confluent_admin.ConfigResource.Type.TOPIC, topic)
    assert admin.describe_configs([resource])[resource].result(PATIENCE_S)["retention.ms"].value == "1234567"
    cluster = admin.describe_cluster(request_timeout=PATIENCE_S).result(PATIENCE_S)
    assert [node.id for node in cluster.nodes] == [0, 1, 2]
    admin.delete_topics([topic])[topic].result(PATIENCE_S)
    assert topic not in admin.list_topics(timeout=PATIENCE_S).topics


# --- kafka-python


@pytest.mark.parametrize("codec", [None, "gzip", "snappy", "lz4", "zstd"])
def test_kafka_python_reads_what_it_wrote(embedded: str, topic: str, codec: str | None) -> None:
    producer = kafka.KafkaProducer(bootstrap_servers=embedded, compression_type=codec)
    try:
        futures = [producer.send(topic, value, key=b"key", partition=0) for value in VALUES]
        assert [future.get(PATIENCE_S).offset for future in futures] == list(range(len(VALUES)))
    finally:
        producer.close()
    partition = kafka.TopicPartition(topic, 0)
    consumer = kafka.KafkaConsumer(bootstrap_servers=embedded)
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        assert consumer.end_offsets([partition]) == {partition: len(VALUES)}
        read = [next(consumer).value for _ in VALUES]
        assert read == VALUES
    finally:
        consumer.close()


def test_a_kafka_python_group_reads_and_commits(embedded: str, topic: str) -> None:
    confluent_produce(embedded, topic, VALUES)
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=embedded,
        group_id=f"group-{topic}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
    )
    try:
        assert [next(consumer).value for _ in VALUES] == VALUES
        consumer.commit()
        assert consumer.committed(kafka.TopicPartition(topic, 0)) == len(VALUES)
    finally:
        consumer.close()


def test_kafka_python_administers_topics(embedded: str, topic: str) -> None:
    admin = kafka_admin.KafkaAdminClient(bootstrap_servers=embedded)
    try:
        admin.create_topics([kafka_admin.NewTopic(topic, num_partitions=3, replication_factor=1)])
        assert topic in admin.list_topics()
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()
    finally:
        admin.close()


# --- aiokafka


def run(main: Coroutine[Any, Any, None]) -> None:
    """Run one coroutine to its end."""
    asyncio.run(asyncio.wait_for(main, PATIENCE_S))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"enable_idempotence": True},
        *({"compression_type": codec} for codec in ("gzip", "snappy", "lz4", "zstd")),
    ],
    ids=str,
)
def test_aiokafka_reads_what_it_wrote(embedded: str, topic: str, options: dict[str, Any]) -> None:
    async def main() -> None:
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=embedded, **options) as producer:
            futures = [await producer.send(topic, value, partition=0) for value in VALUES]
            assert [(await future).offset for future in futures] == list(range(len(VALUES)))
        async with aiokafka.AIOKafkaConsumer(bootstrap_servers=embedded) as consumer:
            partition = aiokafka.TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            assert [(await consumer.getone()).value for _ in VALUES] == VALUES

    run(main())


def test_an_aiokafka_group_reads_and_commits(embedded: str, topic: str) -> None:
    confluent_produce(embedded, topic, VALUES)

    async def main() -> None:
        options = {"group_id": f"group-{topic}", "auto_offset_reset": "earliest", "enable_auto_commit": False}
        async with aiokafka.AIOKafkaConsumer(topic, bootstrap_servers=embedded, **options) as consumer:
            assert [(await consumer.getone()).value for _ in VALUES] == VALUES
            await consumer.commit()
            assert await consumer.committed(aiokafka.TopicPartition(topic, 0)) == len(VALUES)

    run(main())
