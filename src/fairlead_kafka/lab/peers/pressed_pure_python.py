"""kafka-python and aiokafka, pressed: `send` for one record after another, each with a callback;
both may block the caller."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.lab.peers.pressed import Run

if TYPE_CHECKING:
    from aiokafka.structs import RecordMetadata


def _arguments(run: Run) -> JsonObject:
    """Kafka's configs in the spelling of both libraries."""
    given = {key.replace(".", "_"): value for key, value in run.task.config.items()}
    return {"bootstrap_servers": run.task.bootstrap_servers.split(","), "acks": "all", **given}


def pressed_kafka_python(run: Run) -> None:
    """Send by `KafkaProducer.send`, which has no bound on its memory."""
    from kafka import KafkaProducer
    from kafka.errors import KafkaError

    topic, value = run.task.topic, run.value
    producer = KafkaProducer(**_arguments(run))
    producer.partitions_for(topic)
    acked, fail = run.acked, run.fail

    def delivered(metadata: RecordMetadata) -> None:
        acked(metadata.partition, metadata.timestamp)

    run.begin()
    for key in run.endless_keys():
        try:
            future = producer.send(topic, value, key=key)
        except KafkaError as error:
            fail(error)
            continue
        future.add_callback(delivered)
        future.add_errback(fail)


def pressed_aiokafka(run: Run) -> None:
    """Send by `AIOKafkaProducer.send`, one coroutine: the call waits while the partition's batch is
    full and not yet sent.
    """
    asyncio.run(_aiokafka(run))


async def _aiokafka(run: Run) -> None:
    from aiokafka import AIOKafkaProducer
    from aiokafka.errors import KafkaError

    topic, value = run.task.topic, run.value
    producer = AIOKafkaProducer(**_arguments(run))
    await producer.start()
    await producer.partitions_for(topic)
    acked, fail = run.acked, run.fail

    def done(future: asyncio.Future[RecordMetadata]) -> None:
        error = future.exception()
        if error is None:
            metadata = future.result()
            acked(metadata.partition, metadata.timestamp)
        else:
            fail(error)

    run.begin()
    for number, key in enumerate(run.endless_keys()):
        try:
            future = await producer.send(topic, value, key=key)
        except KafkaError as error:
            fail(error)
            continue
        future.add_done_callback(done)
        if number % 100 == 0:
            await asyncio.sleep(0)  # else sends that do not wait never yield, and none is sent
