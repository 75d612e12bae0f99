"""Steps of calls on an event loop: cancellations, time-outs, and work on threads."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.consumer_async import await_user
from fairlead_kafka.client.hosting import Steps, offload, run_async, wait_for, wait_until
from fairlead_kafka.runtime import Completion


def test_a_cancellation_that_meets_the_answer_is_not_lost() -> None:
    async def main() -> None:
        answered: Completion[int] = Completion()
        never: Completion[None] = Completion()

        def steps() -> Steps[None]:
            yield from wait_until(answered, 60)
            yield from wait_for(never)

        task = asyncio.ensure_future(run_async(steps()))
        while not answered._callbacks:
            await asyncio.sleep(0)
        answered.set_result(1)
        await asyncio.sleep(0)  # the future has the answer now, and its task does not run yet
        task.cancel()
        for _ in range(5):
            await asyncio.sleep(0)
        assert task.cancelled()

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_wait_that_has_no_time_gives_an_answer_that_is_there() -> None:
    async def main() -> None:
        answered, late = Completion[int](), Completion[int]()
        answered.set_result(1)
        assert await run_async(wait_until(answered, 0)) == 1
        assert await run_async(wait_until(late, 0)) is None
        assert await run_async(wait_until(late, -1)) is None
        await asyncio.sleep(0)
        assert late._callbacks == []

    asyncio.run(asyncio.wait_for(main(), 10))


def _exit() -> None:
    raise SystemExit(3)


def _cancel() -> None:
    raise asyncio.CancelledError


@pytest.mark.parametrize("work", [_exit, _cancel])
def test_work_on_a_thread_answers_whatever_it_ends_in(work: Callable[[], None]) -> None:
    async def main() -> None:
        with pytest.raises(UsageError, match=r"ended in (SystemExit\(3\)|CancelledError)"):
            await run_async(wait_for(offload(work)))

    asyncio.run(asyncio.wait_for(main(), 10))


def test_a_listener_that_exits_leaves_nobody_waiting() -> None:
    found: list[Completion[None]] = []

    async def listen() -> None:
        _exit()

    async def main() -> None:
        found.append(await_user(listen()))
        await asyncio.sleep(1)

    with pytest.raises(SystemExit):
        asyncio.run(main())
    with pytest.raises(UsageError, match=r"ended in SystemExit\(3\)"):
        found[0].result(0)
