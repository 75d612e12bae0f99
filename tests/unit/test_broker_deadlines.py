"""Deadlines of requests that nearly never come: who waits is called once, in time, and who was
answered before is not."""

from __future__ import annotations

from fairlead_kafka.broker.purgatory import Deadlines
from fairlead_kafka.broker.timers import SWEEP_MIN, Timers


def test_each_is_called_once_when_its_time_is_over() -> None:
    timers, called = Timers(), list[str]()
    deadlines = Deadlines(timers.call_at)
    for name, deadline_ns in (("late", 30), ("early", 10), ("middle", 20)):
        deadlines.add(deadline_ns, lambda name=name: called.append(name))  # type: ignore[misc]
    timers.run_due(9)
    assert called == []
    timers.run_due(10)
    assert called == ["early"]
    timers.run_due(100)
    timers.run_due(200)
    assert called == ["early", "middle", "late"]
    assert timers.deadline_ns() is None


def test_who_was_answered_is_not_called() -> None:
    timers, called = Timers(), list[str]()
    deadlines = Deadlines(timers.call_at)
    first = deadlines.add(10, lambda: called.append("first"))
    deadlines.add(10, lambda: called.append("second"))
    deadlines.cancel(first)
    timers.run_due(10)
    deadlines.cancel(first)
    assert called == ["second"]


def test_many_that_are_answered_leave_few_timers() -> None:
    timers = Timers()
    looks: list[int] = []

    def call_at(deadline_ns: int, function: object) -> object:
        looks.append(deadline_ns)
        return timers.call_at(deadline_ns, function)  # type: ignore[arg-type]

    deadlines = Deadlines(call_at)  # type: ignore[arg-type]
    for now_ns in range(1_000):
        deadlines.cancel(deadlines.add(now_ns + 500, lambda: None))
        timers.run_due(now_ns)
    assert len(looks) < 10


def test_cancelled_timers_do_not_pile_up() -> None:
    timers, ran = Timers(), list[int]()
    for number in range(10_000):
        timers.call_at(10**12 + number, lambda: None).cancel()
        timers.call_at(number, lambda number=number: ran.append(number))  # type: ignore[misc]
        if number % 100 == 99:
            timers.run_due(number)
    assert ran == list(range(10_000))
    assert len(timers._heap) <= 2 * 200


def test_one_timer_is_set_whatever_is_waited_for() -> None:
    timers = Timers()
    deadlines = Deadlines(timers.call_at)
    deadlines.add(10**12, lambda: None)
    for now_ns in range(10_000):
        deadlines.add(now_ns + 1, lambda: None)
        timers.run_due(now_ns + 1)
        deadlines.check()
    assert len(timers._heap) <= 2 * SWEEP_MIN
