"""Our own producer, record by record and by the table."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from fairlead.base.kernel import compile_all
from fairlead.client import Producer
from fairlead.lab.peers.run import Stopwatch

TABLE_ROWS = 100_000


def _producer(bootstrap_servers: str, topic: str, compression: str) -> Producer:
    compile_all()
    producer = Producer({"bootstrap.servers": bootstrap_servers, "acks": "all", "compression.type": compression})
    producer.partitions_for(topic)
    return producer


def fairlead_send(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str) -> int:
    """One call per record, every handle looked at in the end."""
    with _producer(bootstrap_servers, topic, compression) as producer:
        send = producer.send
        stopwatch.start()
        handles = [send(topic, value) for _ in range(records)]
        producer.flush()
        stopwatch.stop()
        return sum(handle.result(timeout_s=1).offset >= 0 for handle in handles)


def fairlead_send_table(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str) -> int:
    """Arrow tables of 100,000 rows."""
    table = pa.table({"value": pa.array([value] * min(TABLE_ROWS, records), pa.binary())})
    with _producer(bootstrap_servers, topic, compression) as producer:
        stopwatch.start()
        handles: list[Any] = [producer.send_table(topic, table) for _ in range(max(1, records // table.num_rows))]
        producer.flush()
        stopwatch.stop()
        return sum(handle.result(timeout_s=1).num_rows for handle in handles)
