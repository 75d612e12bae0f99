"""The awaiting face: the same machine, awaited."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pyarrow as pa
import pytest

from fairlead.base.errors import BufferExhausted, TimedOut, UsageError
from fairlead.client.producer_async import AsyncProducer
from tests.support.producer_rig import Rig


@pytest.fixture
def rig(monkeypatch: pytest.MonkeyPatch) -> Rig:
    made = Rig(monkeypatch, brokers=1)
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
    return AsyncProducer({"bootstrap.servers": rig.cluster.bootstrap, **{key.replace("_", "."): value for key, value in more.items()}})


def test_records_and_tables_are_awaited(rig: Rig) -> None:
    async def main() -> None:
        async with producer(rig) as sender:
            ack = await sender.send("t", b"v", partition=1)
            assert (await ack).offset == 0
            assert (await ack.result(timeout_s=1)).partition == 1
            handle = await sender.send_table("t", pa.table({"value": [b"a", b"b"], "partition": pa.array([1, 1], pa.int32())}))
            assert (await handle)["offset"].to_pylist() == [1, 2]
            assert len(await sender.partitions_for("t")) == 2
            await sender.send("t", b"w")
            await sender.flush()
            assert sender.metrics()["records_sent"] == 4
        with pytest.raises(UsageError):
            await sender.send("t", b"v")

    drive(rig, main)


def test_callbacks_run_in_the_loop(rig: Rig) -> None:
    async def main() -> None:
        loops: list[Any] = []
        async with producer(rig) as sender:
            await sender.send("t", b"v", on_delivery=lambda metadata, error: loops.append(asyncio.get_running_loop()))
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
        assert sender.metrics()["waiting_for_memory"] == 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert sender.metrics()["waiting_for_memory"] == 0

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
        with pytest.raises(TimedOut, match=r"flush: 1 records"):
            await sender.flush(timeout_s=0)
        await sender.close(timeout_s=0)
        with pytest.raises(TimedOut, match=r"closed before"):
            await ack

    drive(rig, main)
