"""The async faces: the same calls, awaited; cancelling a poll, iterating, leaving."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import pytest

from fairlead_kafka.admin import NewTopic
from fairlead_kafka.base.errors import DecodeError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import consumer_taking
from fairlead_kafka.client.admin import Admin
from fairlead_kafka.client.admin_async import AsyncAdmin
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.consumer_async import AsyncConsumer
from tests.support.client_rig import Rig
from tests.support.virtual_hosting import Opening, Pumped

T0 = TopicPartition("t", 0)


@pytest.fixture
def rig() -> Rig:
    made = Rig()
    made.opener = Opening(made.host, Pumped)
    return made


def test_topics_are_created_and_read_on_an_event_loop(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_taking, "OFFLOAD_BYTES", 1)  # decode on a thread, however little

    async def main() -> None:
        async with AsyncAdmin(rig.config(), opener=rig.opener) as admin:
            await admin.create_topics([NewTopic("t", 1)])
            assert list(await admin.list_topics()) == ["t"]
        rig.cluster.write("t", 0, [b"a", b"b", b"c"])
        async with AsyncConsumer(rig.config(auto_offset_reset="earliest"), opener=rig.opener) as reader:
            await reader.assign([T0])
            assert [record.value for record in await reader.poll(5, max_records=1)] == [b"a"]
            assert (await reader.poll_table(5))["value"].to_pylist() == [b"b", b"c"]
            assert await reader.position(T0) == 3
            await reader.seek(T0, 1)
            seen = []
            async for record in reader:
                seen.append(record.value)
                if len(seen) == 2:
                    break
            assert seen == [b"b", b"c"]
            assert [table.num_rows async for table in reader.read_range(T0, 0, 2)] == [2]
            assert await reader.end_offsets([T0]) == {T0: 3}
            await reader.unsubscribe()
            assert reader.assignment() == []
            with pytest.raises(UsageError, match="no partition is assigned"):
                await reader.poll(1)
        with pytest.raises(UsageError, match="closed"):
            await reader.poll(1)

    asyncio.run(main())


def test_errors_of_work_on_a_thread_reach_the_task(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consumer_taking, "OFFLOAD_BYTES", 1)
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"bad"], corrupt=True)

    async def main() -> None:
        async with AsyncConsumer(rig.config(auto_offset_reset="earliest"), opener=rig.opener) as reader:
            await reader.assign([T0])
            for _ in range(2):
                with pytest.raises(DecodeError, match="t-0 from offset 0"):
                    await reader.poll_table(5)

    asyncio.run(main())


@pytest.mark.parametrize(("blocking", "waiting"), [(Consumer, AsyncConsumer), (Admin, AsyncAdmin)])
def test_both_faces_have_the_same_methods_with_the_same_parameters(blocking: type, waiting: type) -> None:
    names = {name for name in vars(blocking) if not name.startswith("_")}
    assert names == {name for name in vars(waiting) if not name.startswith("_")}
    for name in names:
        if not isinstance(vars(blocking)[name], property):
            one, other = (inspect.signature(getattr(api, name)) for api in (blocking, waiting))
            assert one.parameters == other.parameters, name
        assert getattr(blocking, name).__doc__ == getattr(waiting, name).__doc__, name


def test_iterating_hands_over_what_interceptors_leave(rig: Rig) -> None:
    class Last:
        def on_consume(self, records: list[Any]) -> list[Any]:
            return records[-1:]

    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"a", b"b", b"c"])

    async def main() -> None:
        async with AsyncConsumer(
            {**rig.config(auto_offset_reset="earliest"), "interceptor.classes": [Last()]},
            opener=rig.opener,
        ) as reader:
            await reader.assign([T0])
            async for record in reader:
                assert (record.value, await reader.position(T0)) == (b"c", 3)
                break

    asyncio.run(main())
