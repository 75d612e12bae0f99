"""kafka-python and aiokafka."""

from __future__ import annotations

import asyncio

from fairlead.lab.peers.run import Stopwatch

LINGER_MS = 5
"""The others' default."""


def kafka_python(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str) -> int:
    """KafkaProducer.send, every future looked at in the end."""
    from kafka import KafkaProducer

    codec = None if compression == "none" else compression
    producer = KafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", linger_ms=LINGER_MS, compression_type=codec)
    producer.partitions_for(topic)
    stopwatch.start()
    futures = [producer.send(topic, value) for _ in range(records)]
    producer.flush()
    stopwatch.stop()
    acked = sum(future.succeeded() for future in futures)
    producer.close()
    return int(acked)


def aiokafka(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, compression: str) -> int:
    """AIOKafkaProducer.send, every future awaited."""
    return asyncio.run(_aiokafka(stopwatch, bootstrap_servers, topic, records, value, None if compression == "none" else compression))


async def _aiokafka(stopwatch: Stopwatch, bootstrap_servers: str, topic: str, records: int, value: bytes, codec: str | None) -> int:
    from aiokafka import AIOKafkaProducer

    producer = AIOKafkaProducer(bootstrap_servers=bootstrap_servers, acks="all", linger_ms=LINGER_MS, compression_type=codec)
    await producer.start()
    await producer.partitions_for(topic)
    stopwatch.start()
    sent = [await producer.send(topic, value) for _ in range(records)]
    results = await asyncio.gather(*sent, return_exceptions=True)
    stopwatch.stop()
    await producer.stop()
    return sum(not isinstance(result, BaseException) for result in results)
