"""Our own producer, record by record and by the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fairlead_kafka.client import Producer
from fairlead_kafka.lab.peers.run import Job, Stopwatch
from fairlead_kafka.records import columns_from_lists

TABLE_BYTES = 10_000_000
"""Values of a table: 100,000 rows of 100 bytes. It is the application's memory, and small enough not to stand out."""
TABLE_ROWS_MAX = 100_000


def _producer(job: Job) -> Producer:
    producer = Producer({"bootstrap.servers": job.bootstrap_servers, "acks": "all", "compression.type": job.compression})
    producer.partitions_for(job.topic)
    return producer


def fairlead_send(stopwatch: Stopwatch, job: Job) -> int:
    """One call per record, nothing kept of it; the producer's own counters say in the end what was acknowledged."""
    with _producer(job) as producer:
        send, topic = producer.send, job.topic
        pairs = job.pairs()
        stopwatch.start()
        for key, value in pairs:
            send(topic, value, key=key)
        producer.flush()
        stopwatch.stop()
        return _acked(producer)


def fairlead_send_callbacks(stopwatch: Stopwatch, job: Job) -> int:
    """One call per record, each with a delivery callback."""
    acked = 0

    def delivered(_: Any, error: Exception | None) -> None:
        nonlocal acked
        if error is None:
            acked += 1

    with _producer(job) as producer:
        send, topic = producer.send, job.topic
        pairs = job.pairs()
        stopwatch.start()
        for key, value in pairs:
            send(topic, value, key=key, on_delivery=delivered)
        producer.flush()
        stopwatch.stop()
    return acked


def fairlead_send_handles(stopwatch: Stopwatch, job: Job) -> int:
    """One call per record, every handle kept, and looked at in the end."""
    with _producer(job) as producer:
        send, topic = producer.send, job.topic
        pairs = job.pairs()
        stopwatch.start()
        handles = [send(topic, value, key=key) for key, value in pairs]
        producer.flush()
        stopwatch.stop()
        return sum(handle.result(timeout_s=1).offset >= 0 for handle in handles)


def fairlead_send_table(stopwatch: Stopwatch, job: Job) -> int:
    """Arrow tables of 10 MB of values, or 100,000 rows."""
    rows = min(TABLE_ROWS_MAX, max(TABLE_BYTES // job.size, 1), job.records)
    with _producer(job) as producer:
        # By our own conversion: `pa.array` of a list imports pandas where it is installed, and 50 MB of it would be counted here.
        columns = columns_from_lists(job.keys(rows) if job.keyed else None, job.values(rows))
        named = (("key", columns.keys), ("value", columns.values))
        table = pa.table({name: column.to_arrow() for name, column in named if column is not None})
        stopwatch.start()
        for _ in range(max(1, job.records // rows)):
            producer.send_table(job.topic, table)
        producer.flush()
        stopwatch.stop()
        return _acked(producer)


def _acked(producer: Producer) -> int:
    counters = producer.metrics()["producer-metrics"]
    return int(counters["record-send-total"]) - int(counters["record-error-total"])
