"""Reads a topic from its beginning, once for each client: `python reading.py JSON`. Run as a file,
so that nothing of Fairlead is loaded before.

It reads as a user's program does: it imports its client, assigns all partitions (or joins a group),
and polls until every record has come. That is `cold`. Then it continues, from the beginning again
and again, until it has read for `warm_after_s`; the `warm_s` after that are warm.

JSON: {system, bootstrap_servers, secured, topic, partitions, records, group, isolation,
warm_after_s, warm_s, started_s}, the last the time of `time.monotonic` right before the process was
made. Prints one line of JSON: {cold_s, first_100000_s} since then, {reading_s, cold_cpu_s} of the
cold part from the first poll on, {warm_records, warm_s, warm_cpu_s}, and `rss_mb`, the resident
memory at the end.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from confluent_kafka import Consumer as PeerConsumer
    from kafkarrow import ConsumerManager

    from fairlead_kafka import Consumer

GO_ON, AGAIN, END = range(3)
POLL_S = 5.0
CONSUMED_AT_ONCE = 5_000
ARROW_BATCH = 100_000
"""Records per batch of kafkarrow; its default, 1,024, is three times as slow."""
_FIRST = 100_000


class Job(TypedDict):
    """The program's one argument, as JSON."""

    system: str
    bootstrap_servers: str
    secured: dict[str, str]
    topic: str
    partitions: int
    records: int
    group: bool
    isolation: str
    warm_after_s: float
    warm_s: float
    started_s: float


class Reading:
    """The job of a program that reads, its progress, and what it is to do next."""

    def __init__(self, job: Job) -> None:
        self.bootstrap_servers: str = job["bootstrap_servers"]
        self.topic: str = job["topic"]
        self.partitions: int = job["partitions"]
        self.group: str | None = f"reading-{os.getpid()}" if job["group"] else None
        self.isolation: str = job["isolation"]
        self.secured = job["secured"]  # settings for TLS, in the client's own words
        self.config = {
            "bootstrap.servers": self.bootstrap_servers,
            "isolation.level": self.isolation,
            **self.secured,
        }
        self.marks: dict[str, float] = {}
        self._job = job
        self._read = self._round = self._warm_from = 0
        self._begun_s = self._warm_s = 0.0
        self._cpu_s = 0.0

    def begin(self) -> None:
        """Start the clock: the first poll is next."""
        self._begun_s, self._cpu_s = time.monotonic(), time.process_time()

    def took(self, count: int) -> int:
        """Count the records of one poll.

        Returns AGAIN: every record has come, begin with the first; END: enough; else GO_ON.
        """
        self._read += count
        self._round += count
        now_s, started_s = time.monotonic(), self._job["started_s"]
        if "first_100000_s" not in self.marks and self._read >= _FIRST:
            self.marks["first_100000_s"] = now_s - started_s
        whole = self._round >= self._job["records"]
        if whole and "cold_s" not in self.marks:
            self.marks |= {
                "cold_s": now_s - started_s,
                "reading_s": now_s - self._begun_s,
                "cold_cpu_s": time.process_time() - self._cpu_s,
            }
        if not self._warm_s and "cold_s" in self.marks and now_s - self._begun_s >= self._job["warm_after_s"]:
            self._warm_s, self._warm_from, self._cpu_s = now_s, self._read, time.process_time()
        if self._warm_s and now_s - self._warm_s >= self._job["warm_s"]:
            self._end(now_s)
            return END
        if whole:
            self._round = 0
            return AGAIN
        return GO_ON

    def _end(self, now_s: float) -> None:
        with open("/proc/self/statm", encoding="ascii") as statm:
            rss_bytes = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        self.marks |= {
            "warm_records": self._read - self._warm_from,
            "warm_s": now_s - self._warm_s,
            "warm_cpu_s": time.process_time() - self._cpu_s,
            "rss_mb": rss_bytes / 2**20,
        }


def _read(reading: Reading, poll: Callable[[], int], rewind: Callable[[], object]) -> None:
    reading.begin()
    while (then := reading.took(poll())) != END:
        if then == AGAIN:
            rewind()


def _fairlead(reading: Reading, poll_of: Callable[[Consumer], Callable[[], int]]) -> None:
    from fairlead_kafka import Consumer, TopicPartition

    config = {**reading.config, "auto.offset.reset": "earliest"}
    with Consumer(config | ({"group.id": reading.group} if reading.group else {})) as consumer:
        partitions = [TopicPartition(reading.topic, number) for number in range(reading.partitions)]
        if reading.group:
            consumer.subscribe([reading.topic])
        else:
            consumer.assign(partitions)
            consumer.seek_to_beginning(partitions)
        _read(reading, poll_of(consumer), lambda: consumer.seek_to_beginning(partitions))


def fairlead_poll(reading: Reading) -> None:
    _fairlead(reading, lambda consumer: lambda: len(consumer.poll(POLL_S)))


def fairlead_poll_table(reading: Reading) -> None:
    _fairlead(reading, lambda consumer: lambda: consumer.poll_table(POLL_S).num_rows)


def _fairlead_async(reading: Reading, table: bool) -> None:
    import asyncio

    from fairlead_kafka import AsyncConsumer, TopicPartition

    async def read() -> None:
        config = {**reading.config, "auto.offset.reset": "earliest"}
        async with AsyncConsumer(config | ({"group.id": reading.group} if reading.group else {})) as consumer:
            partitions = [TopicPartition(reading.topic, number) for number in range(reading.partitions)]
            if reading.group:
                await consumer.subscribe([reading.topic])
            else:
                await consumer.assign(partitions)
                await consumer.seek_to_beginning(partitions)
            reading.begin()
            then = GO_ON
            while then != END:
                count = (
                    (await consumer.poll_table(POLL_S)).num_rows
                    if table
                    else len(await consumer.poll(POLL_S))
                )
                then = reading.took(count)
                if then == AGAIN:
                    await consumer.seek_to_beginning(partitions)

    asyncio.run(read())


def fairlead_async(reading: Reading) -> None:
    _fairlead_async(reading, table=False)


def fairlead_async_table(reading: Reading) -> None:
    _fairlead_async(reading, table=True)


def _confluent(reading: Reading, poll_of: Callable[[PeerConsumer], Callable[[], int]]) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            **reading.config,
            "group.id": reading.group or "reading",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": reading.group is not None,
        }
    )
    partitions = [TopicPartition(reading.topic, number, 0) for number in range(reading.partitions)]
    if reading.group:
        consumer.subscribe([reading.topic])
    else:
        consumer.assign(partitions)

    def rewind() -> None:
        for each in partitions:
            consumer.seek(each)

    _read(reading, poll_of(consumer), rewind)
    consumer.close()


def confluent_consume(reading: Reading) -> None:
    _confluent(
        reading,
        lambda consumer: (
            lambda: sum(one.error() is None for one in consumer.consume(CONSUMED_AT_ONCE, POLL_S))
        ),
    )


def confluent_poll(reading: Reading) -> None:
    def poll_of(consumer: PeerConsumer) -> Callable[[], int]:
        def poll() -> int:
            message = consumer.poll(POLL_S)
            return int(message is not None and message.error() is None)

        return poll

    _confluent(reading, poll_of)


def kafkarrow(reading: Reading) -> None:
    from kafkarrow import ConsumerManager, SourceTopic

    def make() -> ConsumerManager:
        return ConsumerManager(reading.config, [SourceTopic.from_earliest(reading.topic)], ARROW_BATCH)

    manager = make()
    reading.begin()
    while (then := reading.took(manager.poll(int(POLL_S * 1000)).num_rows)) != END:
        if then == AGAIN:  # it cannot seek
            manager = make()


def aiokafka(reading: Reading) -> None:
    import asyncio
    import ssl

    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def read() -> None:
        topics = [reading.topic] if reading.group else []
        secured = {}
        if reading.secured:
            secured = {
                "security_protocol": "SSL",
                "ssl_context": ssl.create_default_context(cafile=reading.secured["cafile"]),
            }
        consumer = AIOKafkaConsumer(
            *topics,
            bootstrap_servers=reading.bootstrap_servers,
            group_id=reading.group,
            auto_offset_reset="earliest",
            isolation_level=reading.isolation,
            **secured,
        )
        await consumer.start()
        partitions = [TopicPartition(reading.topic, number) for number in range(reading.partitions)]
        if not reading.group:
            consumer.assign(partitions)
            await consumer.seek_to_beginning()
        reading.begin()
        then = GO_ON
        while then != END:
            then = reading.took(
                sum(map(len, (await consumer.getmany(timeout_ms=int(POLL_S * 1000))).values()))
            )
            if then == AGAIN:
                await consumer.seek_to_beginning()
        await consumer.stop()

    asyncio.run(read())


def kafka_python(reading: Reading) -> None:
    from kafka import KafkaConsumer, TopicPartition

    topics = [reading.topic] if reading.group else []
    consumer = KafkaConsumer(
        *topics,
        bootstrap_servers=reading.bootstrap_servers,
        group_id=reading.group,
        auto_offset_reset="earliest",
        isolation_level=reading.isolation,
        **reading.secured,
    )
    partitions = [TopicPartition(reading.topic, number) for number in range(reading.partitions)]
    if not reading.group:
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)

    def poll() -> int:
        return sum(
            map(len, consumer.poll(timeout_ms=int(POLL_S * 1000), max_records=CONSUMED_AT_ONCE).values())
        )

    _read(reading, poll, lambda: consumer.seek_to_beginning(*partitions))
    consumer.close()


def raw(reading: Reading) -> None:
    """Fetch without a client, from one broker over two connections, each for half of the
    partitions; only headers of batches are read."""
    import socket
    import ssl

    from fairlead_kafka.records import scan
    from fairlead_kafka.wire import ApiKey, FrameReader, decode_response, encode_request
    from fairlead_kafka.wire.messages import FetchRequest, FetchResponse

    host, _, port = reading.bootstrap_servers.split(",")[0].rpartition(":")
    version, offsets = 12, [0] * reading.partitions
    connections = [socket.create_connection((host, int(port))) for _ in range(min(2, reading.partitions))]
    if reading.secured:
        context = ssl.create_default_context(cafile=reading.secured["cafile"])
        connections = [context.wrap_socket(each, server_hostname=host) for each in connections]
    readers = [FrameReader() for _ in connections]
    connection_number = 0
    overtaken: set[int] = set()  # connections whose next answer was asked for before a rewind

    def ask(number: int) -> None:
        mine = range(number, reading.partitions, len(connections))
        partitions = [
            FetchRequest.FetchPartition(
                partition=each, fetch_offset=offsets[each], partition_max_bytes=2**20,
                current_leader_epoch=-1, last_fetched_epoch=-1, log_start_offset=-1,
            )
            for each in mine
        ]  # fmt: skip
        message = FetchRequest(
            replica_id=-1, max_wait_ms=500, min_bytes=1, max_bytes=50 * 2**20, isolation_level=0,
            session_id=0,
            session_epoch=-1, topics=[FetchRequest.FetchTopic(topic=reading.topic, partitions=partitions)],
            forgotten_topics_data=[], rack_id="",
        )  # fmt: skip
        connections[number].sendall(b"".join(encode_request(ApiKey.FETCH, version, 1, "raw", message)))

    def fetch() -> int:
        nonlocal connection_number
        number, connection_number = connection_number, (connection_number + 1) % len(connections)
        frames: list[memoryview] = []
        while not frames:
            frames = list(readers[number].feed(connections[number].recv(1 << 20)))
        count = 0
        for topic in decode_response(ApiKey.FETCH, version, frames[0], FetchResponse).responses:
            for entry in topic.partitions:
                headers = scan(entry.records or b"")
                count += sum(header.count for header in headers)
                if headers and number not in overtaken:
                    offsets[entry.partition_index] = headers[-1].last_offset + 1
        overtaken.discard(number)
        ask(number)
        return count

    def rewind() -> None:
        offsets[:] = [0] * reading.partitions
        overtaken.update(range(len(connections)))

    for number, connection in enumerate(connections):
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask(number)
    _read(reading, fetch, rewind)


PROGRAMS: dict[str, Callable[[Reading], None]] = {
    "raw": raw,
    "fairlead.poll_table": fairlead_poll_table,
    "fairlead.poll": fairlead_poll,
    "fairlead.async.poll_table": fairlead_async_table,
    "fairlead.async.poll": fairlead_async,
    "confluent-kafka.consume": confluent_consume,
    "confluent-kafka.poll": confluent_poll,
    "kafkarrow": kafkarrow,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}


def main() -> None:
    """Run the program that the command line asks for."""
    job: Job = json.loads(sys.argv[1])
    reading = Reading(job)
    PROGRAMS[job["system"]](reading)
    print(json.dumps(reading.marks), flush=True)


if __name__ == "__main__":
    main()
