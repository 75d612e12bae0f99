"""Commits transactions, once for each client: `python committing.py JSON`. Run as a file, so that
nothing of Fairlead is loaded before.

It imports its client, and makes transactions one after the other, each with so many records to each
partition. That is `cold` until `transactions` of them are committed, the first by itself. It goes
on until `warm_after_s` are over; what it does in the `warm_s` after that is warm. The latency of a
commit is the duration of the call that ends a transaction, with the delivery of records that were
not delivered yet.

JSON: {system, bootstrap_servers, topic, partitions, records, transactions, warm_after_s, warm_s,
started_s}; the last is the time of `time.monotonic` right before the process was made. Prints one
line of JSON: {first_s, cold_s} since then, {cold_cpu_s} of the process so far, {warm_transactions,
warm_s, warm_cpu_s, p50_ms, p99_ms} (of commits), `transactions`, all that were committed, and
`rss_mb`, the process's peak of memory.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from typing import TypedDict

VALUE = b"a value of a hundred bytes, as an order or a click might be, with some words and a few numbers 0123"
TRANSACTIONAL_ID = "committing"


class Job(TypedDict):
    """The program's one argument, as JSON."""

    system: str
    bootstrap_servers: str
    topic: str
    partitions: int
    records: int
    transactions: int
    warm_after_s: float
    warm_s: float
    started_s: float


class Committing:
    """A program's job, its marks, and how many transactions it has committed."""

    def __init__(self, job: Job) -> None:
        self.bootstrap_servers = job["bootstrap_servers"]
        self.topic = job["topic"]
        self.partitions = job["partitions"]
        self.records = job["records"]
        self.marks: dict[str, float] = {}
        self._job = job
        self._done = 0
        self._began_s = time.monotonic()
        self._warm_since_s: float | None = None
        self._warm_cpu_s = 0.0
        self._commits_s: list[float] = []

    @property
    def config(self) -> dict[str, str]:
        """Configs of the producer, by Kafka's names."""
        return {
            "bootstrap.servers": self.bootstrap_servers,
            "transactional.id": f"{TRANSACTIONAL_ID}-{self.topic}",
        }

    def goes_on(self, commit_s: float) -> bool:
        """Note that a transaction was committed, which took `commit_s` seconds. True if another one
        is to be made."""
        now_s = time.monotonic()
        self._done += 1
        if self._done == 1:
            self.marks["first_s"] = now_s - self._job["started_s"]
        if self._done == self._job["transactions"]:
            self.marks |= {"cold_s": now_s - self._job["started_s"], "cold_cpu_s": time.process_time()}
        if self._warm_since_s is not None:
            self._commits_s.append(commit_s)
            if now_s - self._warm_since_s >= self._job["warm_s"]:
                self._end(now_s - self._warm_since_s)
                return False
        elif self._done >= self._job["transactions"] and now_s - self._began_s >= self._job["warm_after_s"]:
            self._warm_since_s, self._warm_cpu_s = now_s, time.process_time()
        return True

    def _end(self, warm_s: float) -> None:
        commits_ms = sorted(1000 * seconds for seconds in self._commits_s)
        self.marks |= {
            "warm_transactions": len(commits_ms),
            "warm_s": warm_s,
            "warm_cpu_s": time.process_time() - self._warm_cpu_s,
            "p50_ms": commits_ms[len(commits_ms) // 2],
            "p99_ms": commits_ms[len(commits_ms) * 99 // 100],
            "transactions": self._done,
            "rss_mb": peak_memory_mb(),
        }


def peak_memory_mb() -> int:
    """This process's resident memory at its peak, in 2**20 bytes."""
    with open("/proc/self/status", encoding="ascii") as status:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
    return int(found[1]) // 1024 if found else 0


def follow(
    committing: Committing,
    begin: Callable[[], object],
    send: Callable[[], object],
    commit: Callable[[], object],
) -> None:
    """Begin, send and commit transactions until `goes_on` says that it is enough."""
    while True:
        begin()
        send()
        began_s = time.monotonic()
        commit()
        if not committing.goes_on(time.monotonic() - began_s):
            return


def fairlead_send(committing: Committing) -> None:
    """Commit transactions of our producer's `send`, record by record."""
    from fairlead_kafka import Producer

    with Producer(committing.config) as producer:

        def send() -> None:
            for partition in range(committing.partitions):
                for _ in range(committing.records):
                    producer.send(committing.topic, VALUE, partition=partition)

        producer.init_transactions()
        follow(committing, producer.begin_transaction, send, producer.commit_transaction)


def fairlead_send_table(committing: Committing) -> None:
    """Commit transactions of our producer's `send_table`, with tables that name the partitions."""
    import pyarrow as pa

    from fairlead_kafka import Producer

    rows = committing.partitions * committing.records
    numbers = [row // committing.records for row in range(rows)]
    table = pa.table(
        {"value": pa.array([VALUE] * rows, pa.binary()), "partition": pa.array(numbers, pa.int32())}
    )
    with Producer(committing.config) as producer:
        producer.init_transactions()
        follow(
            committing,
            producer.begin_transaction,
            lambda: producer.send_table(committing.topic, table),
            producer.commit_transaction,
        )


def confluent_kafka(committing: Committing) -> None:
    """Commit transactions of librdkafka's producer."""
    from confluent_kafka import Producer

    producer = Producer(committing.config)
    producer.init_transactions()

    def send() -> None:
        for partition in range(committing.partitions):
            for _ in range(committing.records):
                producer.produce(committing.topic, VALUE, partition=partition)
        producer.poll(0)

    follow(committing, producer.begin_transaction, send, producer.commit_transaction)


def kafka_python(committing: Committing) -> None:
    """Commit transactions of kafka-python's `KafkaProducer.send`."""
    from kafka import KafkaProducer

    producer = KafkaProducer(
        bootstrap_servers=committing.bootstrap_servers,
        transactional_id=committing.config["transactional.id"],
        acks="all",
    )
    producer.init_transactions()

    def send() -> None:
        for partition in range(committing.partitions):
            for _ in range(committing.records):
                producer.send(committing.topic, VALUE, partition=partition)

    follow(committing, producer.begin_transaction, send, producer.commit_transaction)
    producer.close()


def aiokafka(committing: Committing) -> None:
    """Commit transactions of `AIOKafkaProducer.send`."""
    import asyncio

    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        producer = AIOKafkaProducer(
            bootstrap_servers=committing.bootstrap_servers,
            transactional_id=committing.config["transactional.id"],
        )
        await producer.start()
        send: Callable[..., Awaitable[object]] = producer.send
        try:
            while True:
                await producer.begin_transaction()
                for partition in range(committing.partitions):
                    for _ in range(committing.records):
                        await send(committing.topic, VALUE, partition=partition)
                began_s = time.monotonic()
                await producer.commit_transaction()
                if not committing.goes_on(time.monotonic() - began_s):
                    return
        finally:
            await producer.stop()

    asyncio.run(run())


PROGRAMS: dict[str, Callable[[Committing], None]] = {
    "fairlead.send": fairlead_send,
    "fairlead.send_table": fairlead_send_table,
    "confluent-kafka": confluent_kafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def main() -> None:
    """Run the program that the command line asks for."""
    job: Job = json.loads(sys.argv[1])
    committing = Committing(job)
    PROGRAMS[job["system"]](committing)
    print(json.dumps(committing.marks), flush=True)


if __name__ == "__main__":
    main()
