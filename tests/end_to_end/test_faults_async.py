"""The awaiting faces under load: many awaits at once, awaits that are cancelled, a close in the
middle."""

from __future__ import annotations

import asyncio
import random
import threading
from collections.abc import Iterator

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.client.handles import AsyncAck
from tests.support.cutting_proxy import CuttingProxy
from tests.support.metrics import metric
from tests.support.waiting import PATIENCE_S, until

NOBODY = {"bootstrap.servers": "127.0.0.1:1", "reconnect.backoff.ms": 1000}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        yield cluster.bootstrap_servers


def test_two_thousand_awaits_at_once_are_all_answered(servers: str) -> None:
    async def main() -> None:
        async with fairlead_kafka.AsyncProducer(
            {"bootstrap.servers": servers, "buffer.memory": 20_000}
        ) as producer:

            async def one(number: int) -> int:
                return (await (await producer.send("awaits", b"%d" % number))).offset

            assert sorted(await asyncio.gather(*map(one, range(2_000)))) == list(range(2_000))
            tables = [
                await producer.send_table("awaits", pa.table({"value": [b"t"] * 100})) for _ in range(20)
            ]
            assert (
                sum(table.num_rows for table in await asyncio.gather(*[ack.result() for ack in tables]))
                == 2_000
            )

    asyncio.run(main())


def test_cancelling_who_waits_for_a_record_leaves_the_record_alone() -> None:
    async def main() -> None:
        with (
            fairlead_kafka.Cluster(brokers=1) as cluster,
            CuttingProxy(cluster.bootstrap_servers, lambda _: None) as proxy,
        ):
            async with fairlead_kafka.AsyncProducer(
                {"bootstrap.servers": proxy.bootstrap_servers}
            ) as producer:
                await (await producer.send("t", b"first"))
                proxy.hold(cluster.broker(0).address)
                ack = await producer.send("t", b"second")
                waits = [asyncio.ensure_future(ack.result()), asyncio.ensure_future(producer.flush())]
                await asyncio.sleep(0)
                for wait in waits:
                    wait.cancel()
                ended = await asyncio.gather(*waits, return_exceptions=True)
                assert all(isinstance(each, asyncio.CancelledError) for each in ended)
                proxy.release()
                assert (await ack).offset == 1
                await producer.flush()

    asyncio.run(main())


def test_cancelling_sends_that_wait_for_memory_takes_them_out_of_the_line() -> None:
    async def main() -> fairlead_kafka.AsyncProducer:
        producer = fairlead_kafka.AsyncProducer({**NOBODY, "buffer.memory": 1_000})
        await producer.send("t", b"x" * 800)
        sends = [asyncio.ensure_future(producer.send("t", b"x" * 800)) for _ in range(5)]
        await asyncio.sleep(0)
        assert metric(producer, "waiting-threads") == 5
        for send in sends:
            send.cancel()
        ended = await asyncio.gather(*sends, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended)
        assert metric(producer, "waiting-threads") == 0
        await producer.close(timeout_s=0)
        return producer

    metrics = asyncio.run(main()).metrics()["producer-metrics"]
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


def test_a_close_that_is_cancelled_ends_the_thread_all_the_same() -> None:
    threads = set(threading.enumerate())

    async def main() -> AsyncAck:
        producer = fairlead_kafka.AsyncProducer(NOBODY)
        ack = await producer.send("t", b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.close(), 0.05)
        return ack

    ack = asyncio.run(main())
    until(lambda: set(threading.enumerate()) <= threads)
    assert ack.done()


def test_a_block_that_is_cancelled_does_not_wait_for_records_that_cannot_be_delivered() -> None:
    async def main() -> None:
        async with fairlead_kafka.AsyncProducer(NOBODY) as producer:
            await (await producer.send("t", b"x"))

    with pytest.raises(TimeoutError):
        asyncio.run(asyncio.wait_for(main(), 0.1))


def test_close_under_load_settles_every_record(servers: str) -> None:
    async def main() -> None:
        producer = fairlead_kafka.AsyncProducer({"bootstrap.servers": servers, "buffer.memory": 50_000})
        acks: list[AsyncAck] = []

        async def send(task: int) -> None:
            try:
                for number in range(1_000_000):
                    acks.append(await producer.send("storm", b"%d-%d" % (task, number)))
                    if number % 20 == 0:
                        await asyncio.sleep(0)
            except fairlead_kafka.UsageError:
                return

        tasks = [asyncio.ensure_future(send(number)) for number in range(8)]
        while len(acks) < 2_000:
            await asyncio.sleep(0)
        await producer.close()
        await asyncio.gather(*tasks)
        offsets = [(await ack.result(0)).offset for ack in acks]
        assert sorted(offsets) == list(range(len(acks)))
        metrics = producer.metrics()["producer-metrics"]
        assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]

    asyncio.run(main())


def test_polls_cancelled_at_any_moment_lose_nothing(servers: str) -> None:
    rng, count = random.Random(7), 3_000
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "batch.size": 500}) as producer:
        producer.send_table("polls", pa.table({"value": [b"v"] * count})).result(PATIENCE_S)

    async def main() -> list[int]:
        offsets: list[int] = []
        config = {
            "bootstrap.servers": servers,
            "auto.offset.reset": "earliest",
            "max.partition.fetch.bytes": 2_000,
            "fetch.max.bytes": 5_000,
        }
        async with fairlead_kafka.AsyncConsumer(config) as consumer:
            await consumer.assign([TopicPartition("polls", 0)])
            while len(offsets) < count:
                wants_table = rng.random() < 0.5
                poll = asyncio.ensure_future(
                    consumer.poll_table(PATIENCE_S) if wants_table else consumer.poll(PATIENCE_S)
                )
                for _ in range(rng.randrange(4)):
                    await asyncio.sleep(0)
                if rng.random() < 0.5:
                    poll.cancel()
                try:
                    found = await poll
                except asyncio.CancelledError:
                    continue
                offsets += found["offset"].to_pylist() if wants_table else [record.offset for record in found]
        return offsets

    assert asyncio.run(asyncio.wait_for(main(), PATIENCE_S)) == list(range(count))


def test_a_consumer_closed_while_it_polls_ends_the_poll(servers: str) -> None:
    async def main() -> None:
        consumer = fairlead_kafka.AsyncConsumer({"bootstrap.servers": servers})
        await consumer.assign([TopicPartition("nothing", 0)])
        poll = asyncio.ensure_future(consumer.poll(60))
        await asyncio.sleep(0)
        await consumer.close()
        with pytest.raises(fairlead_kafka.UsageError, match="closed"):
            await asyncio.wait_for(poll, PATIENCE_S)

    asyncio.run(main())
