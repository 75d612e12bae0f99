"""A producer and a consumer on one event loop."""

import asyncio
import sys

from fairlead_kafka import AsyncConsumer, AsyncProducer

servers = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"


async def produce(count):
    async with AsyncProducer({"bootstrap.servers": servers}) as producer:
        handles = [await producer.send("ticks", b"tick %d" % number) for number in range(count)]
        await asyncio.gather(*handles)


async def consume(count):
    settings = {"bootstrap.servers": servers, "group.id": "clock", "auto.offset.reset": "earliest"}
    async with AsyncConsumer(settings) as consumer:
        await consumer.subscribe(["ticks"])
        seen = 0
        async for record in consumer:
            print(record.value)
            seen += 1
            if seen == count:
                return


async def main():
    await produce(5)
    await consume(5)


asyncio.run(main())
