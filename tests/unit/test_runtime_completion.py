"""Completions: waited for, awaited, called back, interrupted."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
import time

import pytest

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.cli.signals import handling
from fairlead_kafka.runtime import Completion, system_rng, wrap_async
from tests.support.waiting import PATIENCE_S


def test_a_result_is_given_to_everyone_who_waits() -> None:
    completion = Completion()
    got: list[int] = []
    threads = [threading.Thread(target=lambda: got.append(completion.result(PATIENCE_S))) for _ in range(5)]
    for thread in threads:
        thread.start()
    completion.set_result(7)
    for thread in threads:
        thread.join()
    assert got == [7] * 5
    assert completion.result() == completion.result(0) == 7


def test_an_error_is_raised() -> None:
    completion = Completion()
    completion.set_error(ValueError("no"))
    assert completion.done()
    assert isinstance(completion.error(), ValueError)
    with pytest.raises(ValueError, match="no"):
        completion.result(1)


def test_the_first_answer_counts() -> None:
    completion = Completion()
    completion.set_result(1)
    completion.set_result(2)
    completion.set_error(ValueError())
    assert completion.result() == 1


def test_waiting_ends_after_the_time_given() -> None:
    completion = Completion()
    with pytest.raises(TimedOut, match=r"within 0\.01 s"):
        completion.result(0.01)
    with pytest.raises(TimedOut):
        completion.result(-1)
    completion.set_result(None)
    assert completion.result(0) is None


def test_callbacks_run_once_each_in_order_and_at_once_if_it_is_done() -> None:
    completion = Completion()
    calls: list[int] = []
    completion.add_done_callback(lambda done: calls.append(1))
    completion.add_done_callback(lambda done: calls.append(2))
    assert calls == []
    completion.set_result(None)
    completion.add_done_callback(lambda done: calls.append(3 if done is completion else -1))
    assert calls == [1, 2, 3]


def test_a_callback_that_raises_stops_nobody(caplog: pytest.LogCaptureFixture) -> None:
    completion = Completion()
    calls: list[int] = []
    completion.add_done_callback(lambda done: 1 // 0)
    completion.add_done_callback(lambda done: calls.append(1))
    with caplog.at_level(logging.ERROR):
        completion.set_result(None)
    assert calls == [1]
    assert "ZeroDivisionError" in caplog.text


def test_an_event_loop_can_await_it() -> None:
    async def wait() -> list[object]:
        done, later, failed = Completion(), Completion(), Completion()
        done.set_result("done")
        thread = threading.Thread(
            target=lambda: (later.set_result("later"), failed.set_error(ValueError("no")))
        )
        futures = [wrap_async(completion) for completion in (done, later, failed)]
        thread.start()
        answers = await asyncio.gather(*futures, return_exceptions=True)
        thread.join()
        return list(answers)

    answers = asyncio.run(wait())
    assert answers[:2] == ["done", "later"]
    assert isinstance(answers[2], ValueError)


def test_cancelling_a_future_leaves_the_operation_alone() -> None:
    async def wait() -> bool:
        completion = Completion()
        future = wrap_async(completion, asyncio.get_running_loop())
        future.cancel()
        completion.set_result(1)
        await asyncio.sleep(0)
        return future.cancelled() and completion.result() == 1

    assert asyncio.run(wait())


def test_waits_that_end_early_leave_nothing_behind() -> None:
    completion = Completion()

    async def wait() -> None:
        for _ in range(3):
            wrap_async(completion).cancel()
        await asyncio.sleep(0)

    asyncio.run(wait())
    for _ in range(3):
        with pytest.raises(TimedOut):
            completion.result(0)
    assert (completion._callbacks, completion._waiters) == ([], [])
    completion.set_result(1)
    assert completion.result() == 1


def test_an_answer_after_the_event_loop_is_closed_is_no_error() -> None:
    completion = Completion()

    async def begin() -> None:
        wrap_async(completion)

    asyncio.run(begin())
    completion.set_result(1)


def test_control_c_comes_through_a_wait() -> None:
    completion = Completion()
    main, heard = threading.main_thread().ident, threading.Event()
    assert main is not None

    def interrupt() -> None:
        while not heard.is_set():
            if completion._waiters:
                signal.pthread_kill(main, signal.SIGINT)
                return
            time.sleep(0)

    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        # Whatever ran before in this process may have a handler of its own, as a Spark session has.
        with handling(signal.default_int_handler, signal.SIGINT), pytest.raises(KeyboardInterrupt):
            completion.result(PATIENCE_S)
    finally:
        heard.set()
        interrupting.join()


def test_dice_show_what_machines_need() -> None:
    rng = system_rng()
    assert 0 <= rng.random() < 1
    assert 0 <= rng.randrange(3) < 3
