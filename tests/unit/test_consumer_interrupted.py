"""Polls and closes that Ctrl-C ends, and listeners that end in CancelledError."""

from __future__ import annotations

import asyncio

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.client.consumer_async import await_user
from fairlead_kafka.client.consumer_group import ConsumerGroup
from fairlead_kafka.consumer.metrics import PollRecorder
from tests.support.client_rig import Rig

T0 = TopicPartition("t", 0)


class Interrupted:
    """A method of an object that raises KeyboardInterrupt once, as a signal in it would."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, *_: object) -> int:
        self.count += 1
        raise KeyboardInterrupt


@pytest.mark.parametrize("name", ["poll_began", "poll_ended"])
def test_an_interrupted_poll_leaves_the_next_one_free(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rig = Rig()
    reader = rig.consumer(auto_offset_reset="earliest")
    reader.assign([T0])
    interrupted = Interrupted()
    with monkeypatch.context() as patch:
        patch.setattr(PollRecorder, name, interrupted)
        with pytest.raises(KeyboardInterrupt):
            reader.poll(0.1)
    assert interrupted.count == 1
    reader.poll(0.1)  # UsageError if the first still had its turn
    reader.close()


def test_close_after_an_interrupted_close_does_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": "g"})
    with monkeypatch.context() as patch:
        patch.setattr(ConsumerGroup, "part", Interrupted())
        with pytest.raises(KeyboardInterrupt):
            reader.close()
    reader.close()
    with pytest.raises(UsageError, match="closed"):
        reader.poll(0)


def test_a_listener_that_ends_in_cancelled_error_is_an_error_of_the_poll() -> None:
    async def listen() -> None:
        worker = asyncio.ensure_future(asyncio.sleep(9))
        await asyncio.sleep(0)
        worker.cancel()
        await worker

    async def main() -> None:
        completion = await_user(listen())
        while not completion.done():
            await asyncio.sleep(0)
        with pytest.raises(UsageError, match="ended in CancelledError"):
            completion.result(0)

    asyncio.run(asyncio.wait_for(main(), 10))
