"""A short program as users write it, once for each client: `python fresh.py JSON`. Run as a file,
so that nothing of Fairlead is loaded before.

Only a few standard modules are imported before the clock runs, and nothing is prepared: the figures
are those of a script, a notebook's cell or a test. JSON: {system, task, bootstrap_servers, topic,
partitions, records, file, started_s}, the last the time of `time.monotonic` right before the
process was made. Prints one line of JSON: {counted, import_s, client_s, done_s, rss_mb}, seconds
since then, and `…_cpu_s`, CPU seconds until then; `rss_mb` is what is resident at the end, the
client still open.

Tasks: `idle` makes a producer and waits until it knows the topic; `send` sends so many records of
100 bytes, as a table those of `file`, an Arrow file, and waits until all are acknowledged; `read`
reads so many from the beginning; `cluster` starts a cluster of so many brokers. One record is
waited for by itself.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead_kafka import Consumer

SIZE = 100
_VALUES = 1_000
_TAKEN = 20_000
"""Futures that are awaited together, where every record has one: no program keeps a million."""
WAIT_S = 30.0


class Job(TypedDict):
    """The program's one argument, as JSON."""

    system: str
    task: str
    bootstrap_servers: str
    topic: str
    partitions: int
    records: int
    file: str
    started_s: float


class Program:
    """A program's task, and seconds and CPU seconds at which it reached its marks."""

    def __init__(self, job: Job) -> None:
        self.bootstrap_servers: str = job["bootstrap_servers"]
        self.topic: str = job["topic"]
        self.partitions: int = job["partitions"]
        self.records: int = job["records"]
        self.file: str = job["file"]
        self._started_s: float = job["started_s"]
        self.marks: dict[str, float] = {}

    def mark(self, name: str) -> None:
        """Note the time and the CPU seconds under `name`."""
        self.marks[f"{name}_s"] = time.monotonic() - self._started_s
        self.marks[f"{name}_cpu_s"] = time.process_time()

    def values(self) -> list[bytes]:
        """One value for each record; a thousand different ones."""
        different = [os.urandom(SIZE) for _ in range(min(self.records, _VALUES))]
        return (different * (self.records // len(different) + 1))[: self.records]

    def done(self, counted: int) -> int:
        """Note that all records are sent or read, and the memory in use; the client is still open.
        Returns `counted`."""
        self.mark("done")
        with open("/proc/self/statm", encoding="ascii") as statm:
            self.marks["rss_mb"] = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
        return counted


def fairlead_idle(program: Program) -> int:
    from fairlead_kafka import Producer

    program.mark("import")
    with Producer({"bootstrap.servers": program.bootstrap_servers}) as producer:
        program.mark("client")
        producer.partitions_for(program.topic)
        return program.done(0)


def _delivered(found: Mapping[str, float]) -> int:
    return int(found["record-send-total"] - found["record-error-total"])


def fairlead_send(program: Program) -> int:
    from fairlead_kafka import Producer

    program.mark("import")
    with Producer({"bootstrap.servers": program.bootstrap_servers}) as producer:
        program.mark("client")
        if program.records == 1:
            producer.send(program.topic, b"v" * SIZE).result()
        for value in program.values() if program.records > 1 else ():
            producer.send(program.topic, value)
        producer.flush()
        return program.done(_delivered(producer.metrics()["producer-metrics"]))


def fairlead_send_table(program: Program) -> int:
    import pyarrow as pa

    from fairlead_kafka import Producer

    program.mark("import")
    with Producer({"bootstrap.servers": program.bootstrap_servers}) as producer:
        program.mark("client")
        with pa.memory_map(program.file) as source:
            table = pa.ipc.open_file(source).read_all()
        results = producer.send_table(program.topic, table).result()
        return program.done(results.num_rows)


def fairlead_send_async(program: Program) -> int:
    import asyncio

    from fairlead_kafka import AsyncProducer

    program.mark("import")

    async def send() -> int:
        async with AsyncProducer({"bootstrap.servers": program.bootstrap_servers}) as producer:
            program.mark("client")
            for value in program.values():
                await producer.send(program.topic, value)
            await producer.flush()
            return program.done(_delivered(producer.metrics()["producer-metrics"]))

    return asyncio.run(send())


def _fairlead_read(program: Program, poll: Callable[[Consumer], int]) -> int:
    from fairlead_kafka import Consumer, TopicPartition

    program.mark("import")
    with Consumer({"bootstrap.servers": program.bootstrap_servers}) as consumer:
        program.mark("client")
        partitions = [TopicPartition(program.topic, number) for number in range(program.partitions)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        counted = 0
        while counted < program.records:
            counted += poll(consumer)
        return program.done(counted)


def fairlead_read(program: Program) -> int:
    return _fairlead_read(program, lambda consumer: len(consumer.poll(WAIT_S)))


def fairlead_read_table(program: Program) -> int:
    return _fairlead_read(program, lambda consumer: consumer.poll_table(WAIT_S).num_rows)


def fairlead_cluster(program: Program) -> int:
    from fairlead_kafka.testing import Cluster

    program.mark("import")
    with Cluster(brokers=program.records):
        return program.done(program.records)


def confluent_idle(program: Program) -> int:
    from confluent_kafka import Producer

    program.mark("import")
    producer = Producer({"bootstrap.servers": program.bootstrap_servers})
    program.mark("client")
    producer.list_topics(program.topic, WAIT_S)
    return program.done(0)


def confluent_send(program: Program) -> int:
    from confluent_kafka import Producer

    program.mark("import")
    producer = Producer(
        {"bootstrap.servers": program.bootstrap_servers, "queue.buffering.max.messages": 1_000_000}
    )
    program.mark("client")
    for value in program.values():
        while True:
            try:
                producer.produce(program.topic, value)
                break
            except BufferError:
                producer.poll(0.01)
    left = producer.flush(WAIT_S)
    return program.done(program.records - left)


def confluent_read(program: Program) -> int:
    from confluent_kafka import Consumer, TopicPartition

    program.mark("import")
    config = {
        "bootstrap.servers": program.bootstrap_servers,
        "group.id": "fresh",
        "enable.auto.commit": False,
    }
    consumer = Consumer(config)
    program.mark("client")
    consumer.assign([TopicPartition(program.topic, number, 0) for number in range(program.partitions)])
    counted = 0
    while counted < program.records:
        counted += sum(
            message.error() is None
            for message in consumer.consume(min(5_000, program.records - counted), WAIT_S)
        )
    program.done(counted)
    consumer.close()
    return counted


def aiokafka_idle(program: Program) -> int:
    return aiokafka_send(program)


def aiokafka_send(program: Program) -> int:
    import asyncio

    from aiokafka import AIOKafkaProducer

    program.mark("import")

    async def send() -> int:
        producer = AIOKafkaProducer(bootstrap_servers=program.bootstrap_servers, acks="all")
        await producer.start()
        program.mark("client")
        counted, futures = 0, []
        for value in program.values() if program.records else ():
            futures.append(await producer.send(program.topic, value))
            if len(futures) == _TAKEN:
                counted += len(await asyncio.gather(*futures))
                futures = []
        counted += len(await asyncio.gather(*futures))
        program.done(counted)
        await producer.stop()
        return counted

    return asyncio.run(send())


def aiokafka_read(program: Program) -> int:
    import asyncio

    from aiokafka import AIOKafkaConsumer, TopicPartition

    program.mark("import")

    async def read() -> int:
        consumer = AIOKafkaConsumer(bootstrap_servers=program.bootstrap_servers, auto_offset_reset="earliest")
        await consumer.start()
        program.mark("client")
        consumer.assign([TopicPartition(program.topic, number) for number in range(program.partitions)])
        await consumer.seek_to_beginning()
        counted = 0
        while counted < program.records:
            counted += sum(map(len, (await consumer.getmany(timeout_ms=int(WAIT_S * 1000))).values()))
        program.done(counted)
        await consumer.stop()
        return counted

    return asyncio.run(read())


def kafka_python_idle(program: Program) -> int:
    from kafka import KafkaProducer

    program.mark("import")
    producer = KafkaProducer(bootstrap_servers=program.bootstrap_servers)
    program.mark("client")
    producer.partitions_for(program.topic)
    return program.done(0)


def kafka_python_send(program: Program) -> int:
    from kafka import KafkaProducer

    program.mark("import")
    producer = KafkaProducer(bootstrap_servers=program.bootstrap_servers, acks="all")
    program.mark("client")
    last = None
    for value in program.values():
        last = producer.send(program.topic, value)
    producer.flush()
    assert last is not None
    last.get(WAIT_S)
    program.done(program.records)
    producer.close()
    return program.records


def kafka_python_read(program: Program) -> int:
    from kafka import KafkaConsumer, TopicPartition

    program.mark("import")
    consumer = KafkaConsumer(bootstrap_servers=program.bootstrap_servers, auto_offset_reset="earliest")
    program.mark("client")
    partitions = [TopicPartition(program.topic, number) for number in range(program.partitions)]
    consumer.assign(partitions)
    consumer.seek_to_beginning(*partitions)
    counted = 0
    while counted < program.records:
        counted += sum(map(len, consumer.poll(timeout_ms=int(WAIT_S * 1000), max_records=5_000).values()))
    program.done(counted)
    consumer.close()
    return counted


PROGRAMS: dict[tuple[str, str], Callable[[Program], int]] = {
    ("fairlead", "idle"): fairlead_idle,
    ("fairlead", "send"): fairlead_send,
    ("fairlead", "read"): fairlead_read,
    ("fairlead", "cluster"): fairlead_cluster,
    ("fairlead.table", "send"): fairlead_send_table,
    ("fairlead.table", "read"): fairlead_read_table,
    ("fairlead.async", "send"): fairlead_send_async,
    ("confluent-kafka", "idle"): confluent_idle,
    ("confluent-kafka", "send"): confluent_send,
    ("confluent-kafka", "read"): confluent_read,
    ("aiokafka", "idle"): aiokafka_idle,
    ("aiokafka", "send"): aiokafka_send,
    ("aiokafka", "read"): aiokafka_read,
    ("kafka-python", "idle"): kafka_python_idle,
    ("kafka-python", "send"): kafka_python_send,
    ("kafka-python", "read"): kafka_python_read,
}
"""Programs by system and task; every system of `lab.first_second` that is written in Python."""


def main() -> None:
    """Run the program that the command line asks for."""
    job: Job = json.loads(sys.argv[1])
    program = Program(job)
    counted = PROGRAMS[job["system"], job["task"]](program)
    print(json.dumps({"counted": counted, **program.marks}), flush=True)


if __name__ == "__main__":
    main()
