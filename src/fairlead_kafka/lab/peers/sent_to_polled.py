"""Milliseconds from `send` until `poll` gives the record, producer and consumer in one program:
`python sent_to_polled.py JSON`.

Run as a file, so that nothing of Fairlead is loaded before. The program sends `RATE` records of 100
bytes a second, one by one, with `linger.ms=0` and its clients' defaults otherwise, and polls them
from all partitions; a record carries the time at which it was passed to `send`. The first second is
not counted. JSON: {system, bootstrap_servers, topic, partitions, seconds}. Prints one line of JSON:
{p50_ms, p99_ms, records}.
"""

from __future__ import annotations

import json
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable
from typing import TypedDict

RATE = 1_000
_WARM_UP_S = 1.0
_POLL_S = 0.2
_TIME = struct.Struct(">d92x")


class Job(TypedDict):
    """The program's one argument, as JSON."""

    system: str
    bootstrap_servers: str
    topic: str
    partitions: int
    seconds: float


class Latencies:
    """Measures latencies of records from being sent to being polled."""

    def __init__(self, job: Job) -> None:
        self.bootstrap_servers: str = job["bootstrap_servers"]
        self.topic: str = job["topic"]
        self.partitions = range(job["partitions"])
        self._seconds: float = job["seconds"] + _WARM_UP_S
        self._late_ms: list[float] = []
        self._begun_s = time.monotonic()
        self._sent = threading.Event()

    def pace(self, send: Callable[[bytes], object]) -> None:
        """Call `send` RATE times a second until the time is over."""
        begun_s = self._begun_s = time.monotonic()
        number = 0
        while (now_s := time.monotonic()) < begun_s + self._seconds:
            while number < (now_s - begun_s) * RATE:
                send(_TIME.pack(time.monotonic()))
                number += 1
            time.sleep(max(0.0, begun_s + number / RATE - time.monotonic()))
        self._sent.set()

    def took(self, values: Iterable[bytes | None]) -> None:
        """Note the latencies of the records with these values, which were polled just now."""
        now_s = time.monotonic()
        for value in values:
            sent_s = _TIME.unpack(value or b"")[0]
            if sent_s - self._begun_s > _WARM_UP_S:
                self._late_ms.append((now_s - sent_s) * 1000)

    def over(self) -> bool:
        """True if all was sent, and enough time has passed for it to come."""
        return self._sent.is_set() and time.monotonic() > self._begun_s + self._seconds + 1.0

    def threads(self, send: Callable[[bytes], object], poll: Callable[[], Iterable[bytes | None]]) -> None:
        """Send on another thread, and poll on this one, until the time is over."""
        for _ in range(5):
            poll()  # the consumer is there before the first record
        sender = threading.Thread(target=self.pace, args=(send,), daemon=True)
        sender.start()
        while not self.over():
            self.took(poll())
        sender.join()

    def figures(self) -> dict[str, float]:
        """The figures of a row: {p50_ms, p99_ms, records}."""
        late = sorted(self._late_ms)
        return {
            "p50_ms": round(late[len(late) // 2], 2),
            "p99_ms": round(late[len(late) * 99 // 100], 2),
            "records": len(late),
        }


def fairlead(latencies: Latencies) -> None:
    from fairlead_kafka import Consumer, Producer, TopicPartition

    config = {"bootstrap.servers": latencies.bootstrap_servers}
    with Producer(config | {"linger.ms": 0}) as producer, Consumer(config) as consumer:
        partitions = [TopicPartition(latencies.topic, number) for number in latencies.partitions]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        latencies.threads(
            lambda value: producer.send(latencies.topic, value),
            lambda: [one.value for one in consumer.poll(_POLL_S)],
        )


def confluent(latencies: Latencies) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer({"bootstrap.servers": latencies.bootstrap_servers, "linger.ms": 0})
    consumer = Consumer(
        {"bootstrap.servers": latencies.bootstrap_servers, "group.id": "latency", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(latencies.topic, number, 0) for number in latencies.partitions])

    def poll() -> list[bytes | None]:
        message = consumer.poll(_POLL_S)
        return [] if message is None or message.error() is not None else [message.value()]

    latencies.threads(lambda value: producer.produce(latencies.topic, value), poll)
    consumer.close()


def kafka_python(latencies: Latencies) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=latencies.bootstrap_servers, acks="all")
    consumer = KafkaConsumer(bootstrap_servers=latencies.bootstrap_servers, auto_offset_reset="earliest")
    consumer.assign([TopicPartition(latencies.topic, number) for number in latencies.partitions])

    def poll() -> list[bytes | None]:
        return [
            one.value for records in consumer.poll(timeout_ms=int(_POLL_S * 1000)).values() for one in records
        ]

    latencies.threads(lambda value: producer.send(latencies.topic, value), poll)
    consumer.close()
    producer.close()


def aiokafka(latencies: Latencies) -> None:
    import asyncio

    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

    async def run() -> None:
        producer = AIOKafkaProducer(bootstrap_servers=latencies.bootstrap_servers, acks="all")
        consumer = AIOKafkaConsumer(
            bootstrap_servers=latencies.bootstrap_servers, auto_offset_reset="earliest"
        )
        await producer.start()
        await consumer.start()
        consumer.assign([TopicPartition(latencies.topic, number) for number in latencies.partitions])
        loop = asyncio.get_running_loop()

        def send(value: bytes) -> None:  # on the pacing thread, as in the other programs
            asyncio.run_coroutine_threadsafe(producer.send(latencies.topic, value), loop)

        for _ in range(5):
            await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
        sender = threading.Thread(target=latencies.pace, args=(send,), daemon=True)
        sender.start()
        while not latencies.over():
            found = await consumer.getmany(timeout_ms=int(_POLL_S * 1000))
            latencies.took(one.value for records in found.values() for one in records)
        await consumer.stop()
        await producer.stop()

    asyncio.run(run())


PROGRAMS: dict[str, Callable[[Latencies], None]] = {
    "fairlead.poll": fairlead,
    "confluent-kafka.poll": confluent,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
}


def main() -> None:
    """Run the program that the command line asks for."""
    job: Job = json.loads(sys.argv[1])
    latencies = Latencies(job)
    PROGRAMS[job["system"]](latencies)
    print(json.dumps(latencies.figures()), flush=True)


if __name__ == "__main__":
    main()
