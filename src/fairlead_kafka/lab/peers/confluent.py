"""confluent-kafka (librdkafka)."""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer

from fairlead_kafka.lab.peers.run import Job, Stopwatch

QUEUE_RECORDS = 1_000_000
POLL_EVERY = 1_000
"""Records between two polls, which serve the delivery callbacks."""
BATCH_RECORDS = 10_000


def _producer(job: Job) -> Any:
    settings = {
        "bootstrap.servers": job.bootstrap_servers,
        "acks": "all",
        "compression.type": job.compression,
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "queue.buffering.max.kbytes": 2_000_000,
    }
    producer = Producer(settings)
    producer.list_topics(job.topic, timeout=10)
    return producer


def confluent_kafka_produce(stopwatch: Stopwatch, job: Job) -> int:
    """One call per record; what is left unsent after the flush was not acknowledged."""
    producer = _producer(job)
    produce, topic = producer.produce, job.topic
    pairs = job.pairs()
    stopwatch.start()
    for number, (key, value) in enumerate(pairs):
        while True:
            try:
                produce(topic, value, key)
                break
            except BufferError:
                producer.poll(0.05)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    left = producer.flush()
    stopwatch.stop()
    return job.records - int(left)


def confluent_kafka_produce_callbacks(stopwatch: Stopwatch, job: Job) -> int:
    """One call per record, each with a delivery callback: the only way to hear what was acknowledged."""
    producer = _producer(job)
    produce, topic = producer.produce, job.topic
    pairs = job.pairs()
    acked = 0

    def delivered(error: object, _: object) -> None:
        nonlocal acked
        if error is None:
            acked += 1

    stopwatch.start()
    for number, (key, value) in enumerate(pairs):
        while True:
            try:
                produce(topic, value, key, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.05)
        if number % POLL_EVERY == 0:
            producer.poll(0)
    producer.flush()
    stopwatch.stop()
    return acked


def confluent_kafka_produce_batch(stopwatch: Stopwatch, job: Job) -> int:
    """Lists of 10,000 records; what is left unsent after the flush was not acknowledged."""
    producer = _producer(job)
    count = min(BATCH_RECORDS, job.records)
    messages = [{"key": key, "value": value} for key, value in zip(job.keys(count), job.values(count), strict=True)]
    accepted = 0
    stopwatch.start()
    for _ in range(max(1, job.records // count)):
        while len(producer) + count > QUEUE_RECORDS:
            producer.poll(0.05)
        accepted += producer.produce_batch(job.topic, messages)
        producer.poll(0)
    left = producer.flush()
    stopwatch.stop()
    return accepted - int(left)
