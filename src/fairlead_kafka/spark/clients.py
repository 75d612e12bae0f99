"""Settings of the clients of tasks, which make them fast and bound their memory. The job's own
settings take precedence.

A task reads one partition at a time, so it asks for more of it at once than a consumer of many, and
holds no more ahead than it needs to stay busy: `fetch.max.bytes` and what is made of one fetch are
all the memory that a read takes, however long its range. A task writes as fast as it can, so its
batches are large: a batch costs client and broker the same whether it is full of 16 KiB or of 256.

A worker of Spark's runs one task after the other, and collects all garbage after each
(`pyspark/daemon.py`). That looks at every object of every library that was loaded, 50 ms and more,
and finds next to nothing; so loaded objects are hidden from the collector (`gc.freeze`).
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from pyspark import TaskContext

from fairlead_kafka.base.units import KIB, MIB
from fairlead_kafka.client import Consumer, Producer
from fairlead_kafka.runtime import keep_freed_memory
from fairlead_kafka.spark.shipped import with_shipped_files

NO_NEW_TOPICS: Mapping[str, str] = {"allow.auto.create.topics": "false"}
"""Settings of a consumer that only looks: a topic that was deleted while a query reads it stays
deleted, and is told as missing."""
READ_SETTINGS: Mapping[str, str] = {
    **NO_NEW_TOPICS,
    "max.partition.fetch.bytes": str(8 * MIB),
    "fetch.max.bytes": str(24 * MIB),
}
WRITE_SETTINGS: Mapping[str, str] = {"batch.size": str(256 * KIB)}


@contextmanager
def task_consumer(client: Mapping[str, str]) -> Iterator[Consumer]:
    """A consumer for the task of a read, in a process that Spark keeps for tasks. NoBrokerReached
    if no broker is reached within `bootstrap.connection.timeout.ms`."""
    _prepare_worker()
    with Consumer({**READ_SETTINGS, **with_shipped_files(client)}) as consumer:
        consumer.connect()
        yield consumer


@contextmanager
def task_producer(client: Mapping[str, str]) -> Iterator[Producer]:
    """A producer for the task of a write, in a process that Spark keeps for tasks. NoBrokerReached
    if no broker is reached within `bootstrap.connection.timeout.ms`."""
    _prepare_worker()
    with Producer({**WRITE_SETTINGS, **with_shipped_files(client)}) as producer:
        producer.connect()
        yield producer


def _prepare_worker() -> None:
    """Prepare a Spark worker for reuse: keep freed memory, and hide loaded objects from the garbage
    collector.

    Other processes are left as they are.
    """
    if TaskContext.get() is None:
        return
    keep_freed_memory()
    if not gc.get_freeze_count():
        gc.freeze()
