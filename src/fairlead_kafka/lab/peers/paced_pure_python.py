"""kafka-python and aiokafka under a paced load; neither reports requests in a comparable way."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress
from functools import partial

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.lab.peers.paced import Run

STOP_S = 1.0


def _arguments(run: Run) -> JsonObject:
    """Kafka's configs in the spelling of both libraries."""
    given = {key.replace(".", "_"): value for key, value in run.task.config.items()}
    return {"bootstrap_servers": run.task.bootstrap_servers, "acks": "all", **given}


def paced_kafka_python(run: Run) -> None:
    """Send by `KafkaProducer.send` with a callback per record."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    journal, topic, value = run.journal, run.task.topic, run.value
    producer = KafkaProducer(**_arguments(run))
    producer.partitions_for(topic)

    def send(number: int) -> None:
        journal.sent(number)
        try:
            future = producer.send(topic, value)
        except KafkaError as error:
            journal.failed(number, error)
            return
        future.add_callback(partial(_acked, run, number))
        future.add_errback(partial(journal.failed, number))

    run.begin()
    run.submit_due(send, producer.flush)
    with suppress(KafkaError):  # a time-out: what is open then, the journal knows
        producer.flush(run.left_s())
    run.end()
    producer.close(0)


def _acked(run: Run, number: int, _: object) -> None:
    run.journal.acked(number)


def paced_aiokafka(run: Run) -> None:
    """Send by `AIOKafkaProducer.send`, with a callback per record on the event loop."""
    asyncio.run(_aiokafka(run))


async def _aiokafka(run: Run) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    journal, topic, value = run.journal, run.task.topic, run.value

    def done(number: int, future: asyncio.Future[object]) -> None:
        error = None if future.cancelled() else future.exception()
        if error is not None:
            journal.failed(number, error)
        elif not future.cancelled():
            journal.acked(number)

    producer = AIOKafkaProducer(**_arguments(run))
    await producer.start()
    await producer.partitions_for(topic)
    run.begin()
    open_: set[asyncio.Future[object]] = set()
    for pause_s, numbers in run.task.load.steps(time.perf_counter_ns):
        if pause_s:
            await asyncio.sleep(pause_s)
            continue
        for number in numbers:
            journal.sent(number)
            try:
                future = await producer.send(topic, value)
            except KafkaError as error:
                journal.failed(number, error)
                continue
            open_.add(future)
            future.add_done_callback(open_.discard)
            future.add_done_callback(partial(done, number))
        if run.task.load.flush:
            await producer.flush()
    if open_:
        await asyncio.wait(open_, timeout=run.left_s())
    run.end()
    with suppress(TimeoutError):
        await asyncio.wait_for(producer.stop(), STOP_S)
