"""kafka-python and aiokafka."""

from __future__ import annotations

import asyncio

from fairlead_kafka.lab.peers.run import Job, Stopwatch

LINGER_MS = 5
"""The others' default."""


def kafka_python(stopwatch: Stopwatch, job: Job) -> int:
    """KafkaProducer.send, every future looked at in the end."""
    from kafka import KafkaProducer

    codec = None if job.compression == "none" else job.compression
    producer = KafkaProducer(bootstrap_servers=job.bootstrap_servers, acks="all", linger_ms=LINGER_MS, compression_type=codec)
    producer.partitions_for(job.topic)
    pairs = job.pairs()
    stopwatch.start()
    futures = [producer.send(job.topic, value, key=key) for key, value in pairs]
    producer.flush()
    stopwatch.stop()
    acked = sum(future.succeeded() for future in futures)
    producer.close()
    return int(acked)


def aiokafka(stopwatch: Stopwatch, job: Job) -> int:
    """AIOKafkaProducer.send, every future awaited."""
    return asyncio.run(_aiokafka(stopwatch, job))


async def _aiokafka(stopwatch: Stopwatch, job: Job) -> int:
    from aiokafka import AIOKafkaProducer

    codec = None if job.compression == "none" else job.compression
    producer = AIOKafkaProducer(bootstrap_servers=job.bootstrap_servers, acks="all", linger_ms=LINGER_MS, compression_type=codec)
    await producer.start()
    await producer.partitions_for(job.topic)
    pairs = job.pairs()
    stopwatch.start()
    sent = [await producer.send(job.topic, value, key=key) for key, value in pairs]
    results = await asyncio.gather(*sent, return_exceptions=True)
    stopwatch.stop()
    await producer.stop()
    return sum(not isinstance(result, BaseException) for result in results)
