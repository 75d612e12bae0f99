"""Sends records to a topic, once for each client: `python sending.py JSON`. Run as a file, so that
nothing of Fairlead is loaded before.

It imports its client, submits records as fast as it can, and waits until all are acknowledged. That
is `cold`; the first 100,000 are waited for by themselves. Then it goes on until `warm_after_s` are
over; what it sends in the `warm_s` after that, and waits for, is warm.

JSON: {system, bootstrap_servers, secured, topic, records, keyed, compression, file, warm_after_s,
warm_s, started_s}: `file` has different values, one per line, that go round (a program that sends
tables reads them as Arrow from `file`.arrow); the last is the time of `time.monotonic` right before
the process was made. Prints one line of JSON: {first_100000_s, cold_s} since then, {sending_s,
cold_cpu_s, cold_acked} of the cold part from the first record on, {warm_acked, warm_s, warm_cpu_s},
and `rss_mb`, the process's peak of memory.
"""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import cycle, islice
from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from kafka.producer.future import FutureRecordMetadata

    from fairlead_kafka import Producer
    from fairlead_kafka.client.handles import Ack

COMPLETE = 0
KEYS = 3_000
"""Number of different keys, used in turn."""
LINGER_MS = 5  # the others' default
QUEUE_RECORDS = 1_000_000
POLL_EVERY = 1_000  # records, between two polls of confluent-kafka, which serve its delivery callbacks
BATCH_RECORDS = 10_000
AWAITED = 20_000
"""Futures that are awaited together, where every record has one: no program keeps a million."""
_FIRST = 100_000
_PIECE = 100_000
"""Records that are submitted between two looks at the clock; fewer if fewer are asked for in
all."""
KEPT = 1_000_000  # handles, at once

Plan = Generator[int, int, None]


class Job(TypedDict):
    """The program's one argument, as JSON."""

    system: str
    bootstrap_servers: str
    secured: dict[str, str]
    topic: str
    records: int
    keyed: bool
    compression: str
    file: str
    warm_after_s: float
    warm_s: float
    started_s: float


class Sending:
    """The values and keys that a program sends, and its progress."""

    def __init__(self, job: Job) -> None:
        self.bootstrap_servers: str = job["bootstrap_servers"]
        self.topic: str = job["topic"]
        self.compression: str = job["compression"]
        self.file: str = job["file"]
        self.secured = job["secured"]  # settings for TLS, in the client's own words
        self.config = {
            "bootstrap.servers": self.bootstrap_servers,
            "compression.type": self.compression,
            **self.secured,
        }
        self.codec = None if self.compression == "none" else self.compression
        self.marks: dict[str, float] = {}
        self._job = job
        with open(self.file, "rb") as file:
            self._values = file.read().split(b"\n")[:-1]
        self._keys: list[bytes | None] = (
            [b"key-%d" % number for number in range(KEYS)] if job["keyed"] else [None]
        )
        self._pairs = zip(cycle(self._keys), cycle(self._values), strict=False)

    def pairs(self, count: int) -> Iterator[tuple[bytes | None, bytes]]:
        """Key and value of the next records; nothing is made or kept while they are taken, so that
        memory is the client's alone."""
        return islice(self._pairs, count)

    def plan(self) -> Plan:
        """The steps of the program: how many records to send next, or COMPLETE, to which the caller
        sends the number acknowledged."""
        records, started_s = self._job["records"], self._job["started_s"]
        begun_s, cpu_s = time.monotonic(), time.process_time()
        first, piece = min(_FIRST, records), min(_PIECE, records)
        yield first
        yield COMPLETE
        if first == _FIRST:
            self.marks["first_100000_s"] = time.monotonic() - started_s
        if records > first:
            yield records - first
        acked = yield COMPLETE
        now_s = time.monotonic()
        self.marks |= {
            "cold_s": now_s - started_s,
            "sending_s": now_s - begun_s,
            "cold_cpu_s": time.process_time() - cpu_s,
        }
        self.marks["cold_acked"] = acked
        while time.monotonic() < begun_s + self._job["warm_after_s"]:
            yield piece
        acked = yield COMPLETE
        begun_s, cpu_s = time.monotonic(), time.process_time()
        while time.monotonic() < begun_s + self._job["warm_s"]:
            yield piece
        acked = (yield COMPLETE) - acked
        seconds = time.monotonic() - begun_s
        self.marks |= {
            "warm_acked": acked,
            "warm_s": seconds,
            "warm_cpu_s": time.process_time() - cpu_s,
            "rss_mb": peak_memory_mb(),
        }


def peak_memory_mb() -> int:
    """This process's resident memory at its peak, in 2**20 bytes; `getrusage` begins with that of
    the process it was started from."""
    with open("/proc/self/status", encoding="ascii") as status:
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read())
    return int(found[1]) // 1024 if found else 0


def follow(plan: Plan, send: Callable[[int], object], complete: Callable[[], int]) -> None:
    """Follow the plan: `send` submits records, `complete` waits for all and counts those acked."""
    count = next(plan)
    try:
        while True:
            count = plan.send(complete()) if count == COMPLETE else (send(count), next(plan))[1]
    except StopIteration:
        return


async def follow_async(
    plan: Plan, send: Callable[[int], Awaitable[object]], complete: Callable[[], Awaitable[int]]
) -> None:
    """`follow`, in an event loop."""
    count = next(plan)
    try:
        while True:
            if count == COMPLETE:
                count = plan.send(await complete())
            else:
                await send(count)
                count = next(plan)
    except StopIteration:
        return


def _fairlead(
    sending: Sending,
    send_of: Callable[[Producer], Callable[[int], object]],
    acked: Callable[[], int] | None = None,
) -> None:
    from fairlead_kafka import Producer

    with Producer(sending.config) as producer:

        def complete() -> int:
            producer.flush()
            return _acked(producer.metrics()["producer-metrics"]) if acked is None else acked()

        follow(sending.plan(), send_of(producer), complete)


def _acked(found: Mapping[str, float]) -> int:
    return int(found["record-send-total"] - found["record-retry-total"] - found["record-error-total"])


def _one_by_one(
    sending: Sending, on_delivery: Callable[[object, Exception | None], object] | None = None
) -> Callable[[Producer], Callable[[int], object]]:
    def send_of(producer: Producer) -> Callable[[int], object]:
        def send(count: int) -> None:
            for key, value in sending.pairs(count):
                producer.send(sending.topic, value, key=key, on_delivery=on_delivery)

        return send

    return send_of


def fairlead_send(sending: Sending) -> None:
    """Send by our producer's `send` and keep nothing of a record; the producer's counters give the
    number acknowledged."""
    _fairlead(sending, _one_by_one(sending))


def fairlead_send_callbacks(sending: Sending) -> None:
    """Send each record by our producer's `send`, with a delivery callback."""
    acked = 0

    def delivered(_: object, error: Exception | None) -> None:
        nonlocal acked
        if error is None:
            acked += 1

    _fairlead(sending, _one_by_one(sending, on_delivery=delivered), lambda: acked)


def fairlead_send_handles(sending: Sending) -> None:
    """Send by our producer's `send`; keep every handle, up to a million, and look at each once its
    record is acknowledged."""
    handles: list[Ack] = []
    acked: int = 0

    def looked_at() -> int:
        nonlocal acked
        acked += sum(bool(handle.result().offset >= 0) for handle in handles)
        handles.clear()
        return acked

    def send_of(producer: Producer) -> Callable[[int], object]:
        def send(count: int) -> None:
            handles.extend(
                [producer.send(sending.topic, value, key=key) for key, value in sending.pairs(count)]
            )
            if len(handles) >= KEPT:
                looked_at()

        return send

    _fairlead(sending, send_of, looked_at)


def fairlead_send_table(sending: Sending) -> None:
    """Send by our producer's `send_table`: tables of 100,000 rows, or 10 MB."""
    import pyarrow as pa

    with pa.memory_map(sending.file + ".arrow") as source:
        table = pa.ipc.open_file(source).read_all()

    def send(producer: Producer, count: int) -> None:
        for first in range(0, count, table.num_rows):
            producer.send_table(sending.topic, table.slice(0, count - first))

    _fairlead(sending, lambda producer: partial(send, producer))


def fairlead_async(sending: Sending) -> None:
    """Send by our AsyncProducer: `await send` for each record, from one event loop."""
    import asyncio

    from fairlead_kafka import AsyncProducer

    async def run() -> None:
        async with AsyncProducer(sending.config) as producer:

            async def send(count: int) -> None:
                for key, value in sending.pairs(count):
                    await producer.send(sending.topic, value, key=key)

            async def complete() -> int:
                await producer.flush()
                return _acked(producer.metrics()["producer-metrics"])

            await follow_async(sending.plan(), send, complete)

    asyncio.run(run())


async def _with_futures(
    sending: Sending, send_one: Callable[[bytes, bytes | None], Awaitable[Awaitable[object]]]
) -> None:
    """Send each record by `send_one`, and await its future, AWAITED of them together."""
    import asyncio

    acked = 0

    async def send(count: int) -> None:
        nonlocal acked
        for first in range(0, count, AWAITED):
            futures = [
                await send_one(value, key) for key, value in sending.pairs(min(count - first, AWAITED))
            ]
            acked += len(await asyncio.gather(*futures))

    async def complete() -> int:
        return acked

    await follow_async(sending.plan(), send, complete)


def _confluent_config(sending: Sending) -> dict[str, object]:
    return {
        **sending.config,
        "acks": "all",
        "queue.buffering.max.messages": QUEUE_RECORDS,
        "queue.buffering.max.kbytes": 2_000_000,
    }


def _confluent(
    sending: Sending,
    acked: Callable[[], int] | None = None,
    on_delivery: Callable[[object, object], None] | None = None,
) -> None:
    from confluent_kafka import Producer

    producer = Producer(_confluent_config(sending))
    topic = sending.topic
    produce = producer.produce if on_delivery is None else partial(producer.produce, on_delivery=on_delivery)
    submitted = 0

    def send(count: int) -> None:
        nonlocal submitted
        submitted += count
        for number, (key, value) in enumerate(sending.pairs(count)):
            while True:
                try:
                    produce(topic, value, key)
                    break
                except BufferError:
                    producer.poll(0.05)
            if number % POLL_EVERY == 0:
                producer.poll(0)

    def complete() -> int:
        left = producer.flush()
        return submitted - int(left) if acked is None else acked()

    follow(sending.plan(), send, complete)


def confluent_produce(sending: Sending) -> None:
    """Send by librdkafka's `produce` without callbacks; a record left unsent after a flush was not
    acknowledged."""
    _confluent(sending)


def confluent_produce_callbacks(sending: Sending) -> None:
    """Send by librdkafka's `produce` with a delivery callback for each record, by which alone it
    tells what was acknowledged."""
    acked = 0

    def delivered(error: object, _: object) -> None:
        nonlocal acked
        if error is None:
            acked += 1

    _confluent(sending, lambda: acked, on_delivery=delivered)


def confluent_produce_batch(sending: Sending) -> None:
    """Send by librdkafka's `produce_batch`, lists of 10,000 records; records left unsent after a
    flush were not acknowledged."""
    from confluent_kafka import Producer

    producer = Producer(_confluent_config(sending))
    accepted = 0

    def send(count: int) -> None:
        nonlocal accepted
        for first in range(0, count, BATCH_RECORDS):
            messages = [
                {"key": key, "value": value}
                for key, value in sending.pairs(min(count - first, BATCH_RECORDS))
            ]
            while len(producer) + len(messages) > QUEUE_RECORDS:
                producer.poll(0.05)
            accepted += producer.produce_batch(sending.topic, messages)
            producer.poll(0)

    follow(sending.plan(), send, lambda: accepted - int(producer.flush()))


def confluent_async(sending: Sending) -> None:
    """Send by confluent-kafka's AIOProducer."""
    import asyncio

    from confluent_kafka.aio import AIOProducer

    async def run() -> None:
        async with AIOProducer(_confluent_config(sending)) as producer:
            await _with_futures(sending, lambda value, key: producer.produce(sending.topic, value, key))

    asyncio.run(run())


def kafka_python(sending: Sending) -> None:
    """Send by KafkaProducer.send, and look at every future when all are acknowledged."""
    from kafka import KafkaProducer

    config = {"acks": "all", "linger_ms": LINGER_MS, "compression_type": sending.codec, **sending.secured}
    producer = KafkaProducer(bootstrap_servers=sending.bootstrap_servers, **config)
    futures: list[FutureRecordMetadata] = []
    acked = 0

    def complete() -> int:
        nonlocal acked
        producer.flush()
        acked += sum(bool(future.succeeded()) for future in futures)
        futures.clear()
        return acked

    def send(count: int) -> None:
        futures.extend([producer.send(sending.topic, value, key=key) for key, value in sending.pairs(count)])

    follow(sending.plan(), send, complete)
    producer.close()


def aiokafka(sending: Sending) -> None:
    """Send by AIOKafkaProducer.send."""
    import asyncio
    import ssl

    from aiokafka import AIOKafkaProducer

    async def run() -> None:
        config: dict[str, object] = {"acks": "all", "linger_ms": LINGER_MS, "compression_type": sending.codec}
        if sending.secured:
            config |= {
                "security_protocol": "SSL",
                "ssl_context": ssl.create_default_context(cafile=sending.secured["cafile"]),
            }
        async with AIOKafkaProducer(bootstrap_servers=sending.bootstrap_servers, **config) as producer:
            await _with_futures(sending, lambda value, key: producer.send(sending.topic, value, key=key))

    asyncio.run(run())


def raw(sending: Sending) -> None:
    """Send requests that were built beforehand, without a client: shows how fast the broker is."""
    from fairlead_kafka.lab.peers.raw import Raw

    connection = Raw(
        sending.bootstrap_servers, sending.topic, sending.compression, list(sending.pairs(1_000))
    )
    follow(sending.plan(), connection.send, connection.complete)
    connection.close()


PROGRAMS: dict[str, Callable[[Sending], None]] = {
    "raw": raw,
    "fairlead.send": fairlead_send,
    "fairlead.send.callbacks": fairlead_send_callbacks,
    "fairlead.send.handles": fairlead_send_handles,
    "fairlead.send_table": fairlead_send_table,
    "fairlead.async": fairlead_async,
    "confluent-kafka.produce": confluent_produce,
    "confluent-kafka.produce.callbacks": confluent_produce_callbacks,
    "confluent-kafka.produce_batch": confluent_produce_batch,
    "confluent-kafka.async": confluent_async,
    "aiokafka": aiokafka,
    "kafka-python": kafka_python,
}


def main() -> None:
    """Run the program that the command line asks for."""
    job: Job = json.loads(sys.argv[1])
    sending = Sending(job)
    PROGRAMS[job["system"]](sending)
    print(json.dumps(sending.marks), flush=True)


if __name__ == "__main__":
    main()
