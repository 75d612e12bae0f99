"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from fairlead.lab.peers.run import Stopwatch

QUEUE_RECORDS = 1_000_000
POLL_EVERY = 1_000
"""Records between two polls, which serve the delivery callbacks."""
BATCH_RECORDS = 10_000


def _producer(bootstrap_servers: str, topic: str, compression: str) -> Any:
    settings = {
        "bootstrap.servers": bootstrap_servers,
        "acks": "all",
        "compression.type": compression,
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "queue.buffering.max.kbytes": 2_000_000,
    }
    producer = Producer(settings)
    producer.list_topics(topic, timeout=10)
    return producer


def confluent_kafka_produce(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str) -> int:
    """One call per record, each with a delivery callback, since nothing else tells what was acknowledged."""
    producer = _producer(bootstrap_servers, topic, compression)
    acked = 0

    def delivered(error: object, _: object) -> None:
        nonlocal acked
        if error is None:
            acked += 1

    stopwatch.start()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    producer.flush()
    stopwatch.stop()
    return acked


def confluent_kafka_produce_batch(
    stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str
) -> int:
    """Lists of 10,000 records; what is left unsent after the flush was not acknowledged."""
    producer = _producer(bootstrap_servers, topic, compression)
    messages = [{"value": value} for _ in range(min(BATCH_RECORDS, records))]
    accepted = 0
    stopwatch.start()
    for _ in range(max(1, records // len(messages))):
        while len(producer) + len(messages) > QUEUE_RECORDS:
            producer.poll(0.05)
        accepted += producer.produce_batch(topic, messages)
        producer.poll(0)
    left = producer.flush()
    stopwatch.stop()
    return accepted - int(left)
