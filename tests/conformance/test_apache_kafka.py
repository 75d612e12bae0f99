"""Our clients against Apache Kafka, with other clients as judges of what is there."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from confluent_kafka import Consumer as ConfluentConsumer
from confluent_kafka import Producer as ConfluentProducer
from confluent_kafka import TopicPartition as ConfluentPartition

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.waiting import PATIENCE_S

NewTopic = Callable[..., str]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TIMESTAMP_MS = 1_700_000_000_123


def _read_with_confluent(
    servers: str, topic: str, count: int
) -> list[tuple[int, int, object, object, object, tuple[int, int]]]:
    consumer = ConfluentConsumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"check-{topic}",
            "auto.offset.reset": "earliest",
            "check.crcs": True,
        }
    )
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([ConfluentPartition(topic, number, 0) for number in partitions])
    found = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), timeout=20)
        assert messages, f"only {len(found)} of {count} records came"
        for message in messages:
            assert message.error() is None
            found.append(
                (
                    message.partition(),
                    message.offset(),
                    message.key(),
                    message.value(),
                    message.headers(),
                    message.timestamp(),
                )
            )
    assert not consumer.consume(1, timeout=0.2)
    consumer.close()
    return found


@pytest.mark.parametrize("codec", CODECS)
def test_single_records_arrive_as_they_were_sent(apache_kafka: str, new_topic: NewTopic, codec: str) -> None:
    topic = new_topic(apache_kafka)
    cases = [
        (b"k", b"v", [("h", b"1"), ("h", None), ("", b"")]),
        (None, b"", []),
        (b"", None, [("empty", b"")]),
        (b"\x00\xff", b"x" * 5_000, [("ü", "ß".encode())]),
    ]
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka, "compression.type": codec}) as producer:
        acks = [
            producer.send(topic, value, key=key, headers=headers, timestamp_ms=TIMESTAMP_MS)
            for key, value, headers in cases
        ]
        placed = [ack.result(timeout_s=PATIENCE_S) for ack in acks]
    found = {
        (partition, offset): rest
        for partition, offset, *rest in _read_with_confluent(apache_kafka, topic, len(cases))
    }
    for metadata, (key, value, headers) in zip(placed, cases, strict=True):
        assert found[metadata.partition, metadata.offset] == [key, value, headers or None, (1, TIMESTAMP_MS)]


@pytest.mark.parametrize("codec", CODECS)
def test_tables_arrive_whole_and_in_order(apache_kafka: str, new_topic: NewTopic, codec: str) -> None:
    topic, rows = new_topic(apache_kafka), 20_000
    keys = pa.array(
        [None if number % 7 == 0 else b"key-%d" % (number % 50) for number in range(rows)], pa.binary()
    )
    table = pa.table(
        {"key": keys, "value": pa.array([b"%06d" % number for number in range(rows)], pa.binary())}
    )
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka, "compression.type": codec}) as producer:
        results = producer.send_table(topic, table).result(timeout_s=PATIENCE_S)
    assert results.num_rows == rows
    found = _read_with_confluent(apache_kafka, topic, rows)
    assert sorted(value for _, _, _, value, _, _ in found) == table["value"].to_pylist()
    by_key: dict[bytes, list[tuple[int, int, bytes]]] = {}
    for partition, offset, key, value, _, _ in found:
        if key is not None:
            by_key.setdefault(key, []).append((partition, offset, value))
    for placed in by_key.values():
        assert len({partition for partition, _, _ in placed}) == 1
        assert [value for _, _, value in sorted(placed)] == sorted(value for _, _, value in placed)


def test_keys_go_where_javas_and_librdkafkas_murmur2_puts_them(
    apache_kafka: str, new_topic: NewTopic
) -> None:
    ours, theirs = new_topic(apache_kafka, partitions=7), new_topic(apache_kafka, partitions=7)
    keys = [b"key-%d" % number for number in range(200)]
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka}) as producer:
        for key in keys:
            producer.send(ours, b"", key=key)
    read_by_librdkafka = ConfluentProducer({"bootstrap.servers": apache_kafka, "partitioner": "murmur2"})
    for key in keys:
        read_by_librdkafka.produce(theirs, b"", key=key)
    read_by_librdkafka.flush()
    placed = [
        {key: partition for partition, _, key, *_ in _read_with_confluent(apache_kafka, topic, len(keys))}
        for topic in (ours, theirs)
    ]
    assert placed[0] == placed[1]


@pytest.mark.parametrize("codec", CODECS)
def test_our_consumer_reads_what_librdkafka_wrote(apache_kafka: str, new_topic: NewTopic, codec: str) -> None:
    topic, count = new_topic(apache_kafka), 3_000
    read_by_librdkafka = ConfluentProducer(
        {
            "bootstrap.servers": apache_kafka,
            "compression.type": codec,
            "linger.ms": 20,
            "enable.idempotence": True,
        }
    )
    for number in range(count):
        headers = [("n", b"%d" % number)] if number % 3 else None
        read_by_librdkafka.produce(topic, b"v%d" % number if number % 5 else None,
        key=b"k%d" % number if number % 2 else None, partition=number % 3,
                      headers=headers, timestamp=TIMESTAMP_MS + number)  # fmt: skip
    read_by_librdkafka.flush()
    partitions = [TopicPartition(topic, number) for number in range(3)]
    with fairlead_kafka.Consumer({"bootstrap.servers": apache_kafka}) as consumer:
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        rows = []
        while len(rows) < count:
            table = consumer.poll_table(timeout_s=PATIENCE_S)
            assert table.num_rows, f"only {len(rows)} of {count} records came"
            rows += table.to_pylist()
    for row in rows:
        number = row["offset"] * 3 + row["partition"]
        assert row["value"] == (b"v%d" % number if number % 5 else None)
        assert row["key"] == (b"k%d" % number if number % 2 else None)
        assert row["headers"] == ([{"key": "n", "value": b"%d" % number}] if number % 3 else None)
        assert round(row["timestamp"].timestamp() * 1000) == TIMESTAMP_MS + number


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_level_delivers(apache_kafka: str, new_topic: NewTopic, acks: str) -> None:
    topic = new_topic(apache_kafka)
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka}) as producer:
        for partition in range(
            3
        ):  # With acks=0 nothing would tell us that a new partition is not quite ready.
            producer.send(topic, b"ready", partition=partition)
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka, "acks": acks}) as producer:
        sent = [producer.send(topic, b"%d" % number) for number in range(500)]
        producer.flush()
        offsets = [ack.result(timeout_s=PATIENCE_S).offset for ack in sent]
    assert all((offset == -1) == (acks == "0") for offset in offsets)
    assert len(_read_with_confluent(apache_kafka, topic, 503)) == 503


def test_a_record_the_broker_calls_too_large_fails_alone_and_says_so(
    apache_kafka: str, new_topic: NewTopic
) -> None:
    topic = new_topic(apache_kafka, partitions=1, max_message_bytes="2000")
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka, "linger.ms": 50}) as producer:
        small = [producer.send(topic, b"s" * 500) for _ in range(20)]
        large = producer.send(topic, b"l" * 5_000)
        more = [producer.send(topic, b"s" * 500) for _ in range(20)]
        producer.flush()
        with pytest.raises(fairlead_kafka.RecordTooLarge):
            large.result(timeout_s=PATIENCE_S)
        assert sorted(ack.result(timeout_s=PATIENCE_S).offset for ack in small + more) == list(range(40))


def test_admin_round_trip(apache_kafka: str, new_topic: NewTopic) -> None:
    topic = new_topic(apache_kafka, partitions=2, retention_ms="3600000")
    with fairlead_kafka.Admin({"bootstrap.servers": apache_kafka}) as admin:
        assert topic in admin.list_topics()
        assert len(admin.describe_topics([topic])[topic].partitions) == 2
        admin.create_partitions({topic: fairlead_kafka.NewPartitions(5)})
        assert len(admin.describe_topics([topic])[topic].partitions) == 5
        with pytest.raises(fairlead_kafka.BrokerError, match="TOPIC_ALREADY_EXISTS"):
            admin.create_topics([fairlead_kafka.NewTopic(topic, partitions=1)])
        admin.delete_topics([topic])
        assert topic not in admin.list_topics()


def test_offsets_by_place_and_by_time(apache_kafka: str, new_topic: NewTopic) -> None:
    topic = new_topic(apache_kafka, partitions=1)
    partition = TopicPartition(topic, 0)
    with fairlead_kafka.Producer({"bootstrap.servers": apache_kafka}) as producer:
        for number in range(10):
            producer.send(topic, b"x", timestamp_ms=TIMESTAMP_MS + 1_000 * number)
    with fairlead_kafka.Consumer({"bootstrap.servers": apache_kafka}) as consumer:
        assert consumer.beginning_offsets([partition]) == {partition: 0}
        assert consumer.end_offsets([partition]) == {partition: 10}
        found = consumer.offsets_for_times({partition: TIMESTAMP_MS + 2_500})[partition]
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (3, TIMESTAMP_MS + 3_000)
        assert consumer.offsets_for_times({partition: TIMESTAMP_MS + 99_000}) == {partition: None}
