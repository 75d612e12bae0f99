"""Calls of a rebalance listener that take long: longer than polls that wait for them, and while the
consumer leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.consumer_async import AsyncConsumer
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.runtime import Completion
from tests.support.epoch_rig import T0, T1, Coordinated
from tests.support.fake_coordinator import GROUP
from tests.support.group_clients import Heard
from tests.support.virtual_hosting import Opening, Pumped


class Slow(Heard):
    """A listener whose methods are coroutines, once `slow`; a test ends them."""

    slow = False
    begun: list[Completion[Any]]

    def __init__(self) -> None:
        super().__init__()
        self.begun = []

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> Any:
        super().on_revoked(partitions)
        return self._work() if self.slow else None

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> Any:
        super().on_assigned(partitions)
        return self._work() if self.slow else None

    async def _work(self) -> None: ...

    def run(self, coroutine: Awaitable[Any]) -> Completion[Any]:
        """The `AwaitUser` of a consumer: the coroutine goes on until the test ends it."""
        coroutine.close()  # type: ignore[attr-defined]
        self.begun.append(Completion())
        return self.begun[-1]


@pytest.fixture
def rig() -> Coordinated:
    made = Coordinated()
    made.heard = Slow()
    return made


def member(rig: Coordinated) -> Consumer:
    made = rig.member()
    made._calls.group._await_user = rig.heard.run  # type: ignore[attr-defined]
    return made


def slow(rig: Coordinated) -> Slow:
    """The rig's listener."""
    assert isinstance(rig.heard, Slow)
    return rig.heard


def begin_to_revoke(rig: Coordinated, reader: Consumer) -> None:
    """Give the reader both partitions, and take T1 away again; the listener takes its time now."""
    rig.converge(reader, t=[0, 1])
    slow(rig).slow = True
    rig.coordinator.assign(t=[0])


def listening_poll(reader: Consumer, listener: Slow) -> Steps[Any] | None:
    """Poll until that waits for the listener; None if it does not come to that."""
    steps, host = reader._calls.reading.poll(0.05, None), reader._calls.host
    try:
        wait = next(steps)
        while wait.completion.done() or wait.completion not in listener.begun:
            wait = steps.send(host.wait(wait.completion, wait.timeout_s or 0.05))
    except StopIteration:
        return None
    return steps


def poll_until_listening(reader: Consumer, listener: Slow) -> None:
    """Poll until a poll waits for the listener, and cancel that."""
    steps = next(filter(None, (listening_poll(reader, listener) for _ in range(100))))
    steps.close()


def test_a_listener_is_called_once_however_many_polls_are_cancelled_meanwhile(rig: Coordinated) -> None:
    listener = slow(rig)
    with member(rig) as reader:
        begin_to_revoke(rig, reader)
        for signs in ("-1", "-1 +0"):
            before = len(listener.begun)
            for _ in range(4):
                poll_until_listening(reader, listener)
            assert len(listener.begun) == before + 1
            assert listener.signs().endswith(signs)
            assert (T1 in reader.assignment()) == (signs == "-1")
            listener.begun[-1].set_result(None)
        listener.slow = False
        rig.polled(reader, lambda: rig.coordinator.owned == [T0])
        assert listener.signs().endswith("-1 +0")


def test_what_a_listener_raises_is_raised_by_the_poll_that_saw_it_end(rig: Coordinated) -> None:
    listener = slow(rig)
    with member(rig) as reader:
        begin_to_revoke(rig, reader)
        poll_until_listening(reader, listener)
        listener.begun[-1].set_error(ValueError("not saved"))
        listener.slow = False
        with pytest.raises(ValueError, match="not saved"):
            reader.poll(0.05)
        rig.polled(reader, lambda: rig.coordinator.owned == [T0])


def run_until_listening(steps: Steps[Any], reader: Consumer, listener: Slow) -> Any:
    """Drive steps until they wait for the listener; returns that wait."""
    wait = next(steps)
    while wait.completion not in listener.begun or wait.completion.done():
        wait = steps.send(reader._calls.host.wait(wait.completion, wait.timeout_s))
    return wait


@pytest.mark.parametrize("failure", [None, ValueError("not saved")])
def test_leaving_waits_for_the_listener_and_tells_it_of_no_partition_twice(
    rig: Coordinated, failure: Exception | None
) -> None:
    listener = slow(rig)
    with member(rig) as reader:
        begin_to_revoke(rig, reader)
        poll_until_listening(reader, listener)
        listener.slow = False
        steps = reader._calls.group.unsubscribe()
        wait = run_until_listening(steps, reader, listener)
        assert listener.log[-1] == ("-", [T1]), "the rest goes once the call has ended"
        assert T1 in reader.assignment(), "so that it can commit"
        if failure is None:
            listener.begun[-1].set_result(None)
        else:
            listener.begun[-1].set_error(failure)
        raised = None
        try:
            try:
                sent = reader._calls.host.wait(wait.completion, None)
            except ValueError as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(sent)
            while True:
                wait = steps.send(reader._calls.host.wait(wait.completion, wait.timeout_s))
        except StopIteration:
            pass
        except ValueError as error:
            raised = error
        assert raised is failure
    assert listener.log[-2:] == [("-", [T1]), ("-", [T0])]


def test_a_consumer_is_closed_while_a_poll_waits_for_its_listener(rig: Coordinated) -> None:
    listener = slow(rig)
    reader = member(rig)
    begin_to_revoke(rig, reader)
    poll = next(filter(None, (listening_poll(reader, listener) for _ in range(100))))
    reader.close()  # on another thread
    assert listener.signs().endswith("-1"), "the consumer does not leave its group then"
    poll.close()


def test_an_iteration_ends_while_the_consumer_leaves(rig: Coordinated) -> None:
    rig.opener = Opening(rig.host, Pumped)
    config = rig.config(group_id=GROUP, group_protocol="consumer", auto_offset_reset="earliest")

    async def main() -> None:
        leaving, may_leave = asyncio.Event(), asyncio.Event()

        class Lingering(Heard):
            async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:  # type: ignore[override]
                leaving.set()
                await may_leave.wait()
                await reader.commit({T0: 7})  # a second close does not end what the first needs

        reader = AsyncConsumer(config, opener=rig.opener)
        await reader.subscribe(["t"], Lingering())
        rig.coordinator.assign(t=[0])
        seen = []
        async for record in reader:
            seen.append(record.offset)
            if seen == [0]:
                closing = asyncio.ensure_future(reader.close())
                await leaving.wait()
        with pytest.raises(UsageError, match="closed"):
            await reader.poll(0)
        await reader.close()
        assert not closing.done()
        may_leave.set()
        await closing

    asyncio.run(asyncio.wait_for(main(), 10))
