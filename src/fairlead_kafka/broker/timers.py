"""Deadlines of a broker: a heap of functions to call, each cancellable."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.guard import Owner, Task


class Timer:
    """A function to be called once, unless it is cancelled before."""

    __slots__ = ("deadline_ns", "function")

    def __init__(self, deadline_ns: int, function: Callable[[], None]) -> None:
        self.deadline_ns = deadline_ns
        self.function: Callable[[], None] | None = function

    def cancel(self) -> None:
        """Cancel the timer: its function will not be called. Does nothing if it was called
        already."""
        self.function = None

    @property
    def pending(self) -> bool:
        """True until the timer has run or was cancelled."""
        return self.function is not None


class TimerHost(Protocol):
    """The parts of a broker that timers use: its clock, and functions called at a deadline."""

    now_ns: int
    """Time of the step, in nanoseconds on the host's clock, which does not go back."""

    def call_at(self, deadline_ns: int, function: Callable[[], None], owner: Owner | None = None) -> Timer:
        """Run `function` at the deadline, in the name of `owner`."""


class DelayHost(TimerHost, Protocol):
    """A TimerHost that also takes delays from now."""

    def call_later(
        self, milliseconds: float, function: Callable[[], None], owner: Owner | None = None
    ) -> Timer:
        """Run `function` `milliseconds` from now, in the name of `owner`."""


class TaskHost(TimerHost, Protocol):
    """A TimerHost that also runs regular tasks."""

    def repeat(self, name: str, wait_ms: Callable[[], float], function: Callable[[], object]) -> Repeating:
        """Run `function` again and again, `wait_ms()` milliseconds after its last end, whatever it
        raises. `name` is for the log."""


REPEAT_MIN_MS = 1.0
"""Shortest wait of a task: its config may be 0."""


class Repeating:
    """A task that is run again and again, some milliseconds after its last end, also if it
    raised."""

    def __init__(
        self, host: TimerHost, name: str, wait_ms: Callable[[], float], function: Callable[[], object]
    ) -> None:
        self._host = host
        self._task = Task(name)
        self._wait_ms = wait_ms
        self._function = function
        self._set()

    def cancel(self) -> None:
        """End the task: it is not run any more."""
        self._timer.cancel()

    def _set(self) -> None:
        wait_ms = max(self._wait_ms(), REPEAT_MIN_MS)
        self._timer = self._host.call_at(self._host.now_ns + ms_to_ns(wait_ms), self._due, self._task)

    def _due(self) -> None:
        before = self._timer
        try:
            self._function()
        finally:
            if self._timer is before:
                self._set()


SWEEP_MIN = 64
"""Timers set at least before those that were cancelled are taken out of the heap."""


class Timers:
    """All timers of one broker. Equal deadlines run in the order they were set.

    Most are cancelled long before their time (a member's session, five minutes for a rebalance), so
    they are taken out once there may be as many as those that count: the number of entries kept
    depends on the pending timers, not on how many were set.
    """

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Timer]] = []
        self._count = 0
        self._sweep_at = SWEEP_MIN
        """Length of the heap at which it is swept; a sweep then costs no more than what was set
        since the last."""

    def call_at(self, deadline_ns: int, function: Callable[[], None]) -> Timer:
        """Set a timer: `function` is called at the deadline or soon after."""
        timer = Timer(deadline_ns, function)
        self._count += 1
        if len(self._heap) >= self._sweep_at:
            self._heap = [entry for entry in self._heap if entry[2].pending]
            heapq.heapify(self._heap)
            self._sweep_at = max(2 * len(self._heap), SWEEP_MIN)
        heapq.heappush(self._heap, (deadline_ns, self._count, timer))
        return timer

    def run_due(self, now_ns: int) -> None:
        """Call the functions that are due at `now_ns`, in order of deadline; a function may set
        further timers, which are not called before the next time, however soon they are due: else
        one without a delay would never end."""
        due: list[tuple[int, int, Timer]] = []
        while self._heap and (self._heap[0][0] <= now_ns or not self._heap[0][2].pending):
            due.append(heapq.heappop(self._heap))
        try:
            for _deadline_ns, _count, timer in due:
                function, timer.function = timer.function, None
                if function is not None:
                    function()
        finally:
            for entry in due:
                if entry[2].pending:  # one before it raised
                    heapq.heappush(self._heap, entry)

    def deadline_ns(self) -> int | None:
        """Monotonic time, ns, at which the next timer is due; None if there is none."""
        while self._heap and not self._heap[0][2].pending:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None
