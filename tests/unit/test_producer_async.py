"""The awaiting face: the same machine, awaited."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import BufferExhausted, TimedOut, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.producer_async import AsyncProducer
from tests.support.metrics import metric
from tests.support.producer_rig import Rig
from tests.support.transaction_broker import FakeTransactions


@pytest.fixture
def rig() -> Rig:
    made = Rig(brokers=1)
    made.cluster.create("t", 2)
    return made


def drive(rig: Rig, main: Callable[[], Awaitable[None]]) -> None:
    """Run a coroutine while virtual time goes on, a millisecond per turn of the loop."""

    async def pumped() -> None:
        task = asyncio.ensure_future(main())
        while not task.done():
            await asyncio.sleep(0)
            rig.host.advance(1)
        await task

    asyncio.run(pumped())


def producer(rig: Rig, **more: Any) -> AsyncProducer:
    return AsyncProducer(
        {
            "bootstrap.servers": rig.cluster.bootstrap,
            **{key.replace("_", "."): value for key, value in more.items()},
        },
        opener=rig.opener,
    )


def test_records_and_tables_are_awaited(rig: Rig) -> None:
    async def main() -> None:
        async with producer(rig) as sender:
            ack = await sender.send("t", b"v", partition=1)
            assert (await ack).offset == 0
            assert (await ack.result(timeout_s=1)).partition == 1
            handle = await sender.send_table(
                "t", pa.table({"value": [b"a", b"b"], "partition": pa.array([1, 1], pa.int32())})
            )
            assert (await handle)["offset"].to_pylist() == [1, 2]
            assert len(await sender.partitions_for("t")) == 2
            await sender.send("t", b"w")
            await sender.flush()
            assert metric(sender, "record-delivered-total") == 4
        with pytest.raises(UsageError):
            await sender.send("t", b"v")

    drive(rig, main)


def test_callbacks_run_in_the_loop(rig: Rig) -> None:
    async def main() -> None:
        loops: list[Any] = []
        async with producer(rig) as sender:
            await sender.send(
                "t", b"v", on_delivery=lambda metadata, error: loops.append(asyncio.get_running_loop())
            )
        await asyncio.sleep(0)
        assert loops == [asyncio.get_running_loop()]

    drive(rig, main)


def test_a_send_without_room_awaits_it(rig: Rig) -> None:
    async def main() -> None:
        sender = producer(rig, buffer_memory=1000)
        handles = [await sender.send("t", b"x" * 100) for _ in range(30)]
        await sender.flush()
        assert all(handle.done() for handle in handles)
        rig.cluster.on_produce = lambda *_: 19
        await sender.send("t", b"x" * 900)
        task = asyncio.ensure_future(sender.send("t", b"x" * 900))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert metric(sender, "waiting-threads") == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert metric(sender, "waiting-threads") == 0

    drive(rig, main)


def test_errors_come_through(rig: Rig) -> None:
    async def main() -> None:
        rig.cluster.on_produce = lambda *_: 19
        sender = producer(rig, buffer_memory=1000, max_block_ms=1)
        ack = await sender.send("t", b"x" * 900)
        with pytest.raises(BufferExhausted):
            await sender.send("t", b"x" * 900)
        with pytest.raises(TimedOut):
            await ack.result(timeout_s=0)
        with pytest.raises(TimedOut, match=r"flush: 1 record is"):
            await sender.flush(timeout_s=0)
        await sender.close(timeout_s=0)
        with pytest.raises(TimedOut, match=r"closed before"):
            await ack

    drive(rig, main)


def test_transactions_are_awaited(rig: Rig) -> None:
    coordinator = FakeTransactions(rig.cluster)

    async def lose(sender: AsyncProducer) -> None:
        async with sender.transaction():
            await (await sender.send("t", b"undone", partition=0))
            raise ZeroDivisionError

    async def main() -> None:
        async with producer(rig, transactional_id="app") as sender:
            await sender.init_transactions()
            async with sender.transaction():
                await sender.send("t", b"kept", partition=0)
                await sender.send_offsets_to_transaction({TopicPartition("s", 0): 3}, "group")
            with pytest.raises(ZeroDivisionError):
                await lose(sender)
            await sender.begin_transaction()
            await sender.send("t", b"too", partition=0)
            await sender.commit_transaction()
            await sender.begin_transaction()
            await sender.abort_transaction()

    drive(rig, main)
    assert coordinator.committed("t")[0] == [b"kept", b"too"]
    assert coordinator.offsets == {"group": {TopicPartition("s", 0): 3}}


def test_a_commit_whose_task_was_cancelled_is_waited_for_by_the_next_one(rig: Rig) -> None:
    coordinator = FakeTransactions(rig.cluster)

    async def main() -> None:
        async with producer(rig, transactional_id="app") as sender:
            await sender.init_transactions()
            await sender.begin_transaction()
            await (await sender.send("t", b"kept", partition=0))
            task = asyncio.ensure_future(sender.commit_transaction())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            with pytest.raises(UsageError, match="commit_transaction"):
                await sender.begin_transaction()
            await sender.commit_transaction()

    drive(rig, main)
    assert coordinator.committed("t")[0] == [b"kept"]


def test_a_begin_whose_task_was_cancelled_is_gone_on_with_by_the_next_one(rig: Rig) -> None:
    coordinator = FakeTransactions(rig.cluster)

    async def main() -> None:
        async with producer(rig, transactional_id="app") as sender:
            await sender.init_transactions()
            task = asyncio.ensure_future(sender.begin_transaction())
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with sender.transaction():
                await sender.send("t", b"kept", partition=0)

    drive(rig, main)
    assert coordinator.committed("t")[0] == [b"kept"]
