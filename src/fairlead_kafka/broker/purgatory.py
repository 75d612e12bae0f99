"""Requests that wait: fetches for data, which are found by the partition that advances, and any
request for its time-out.

Kafka's `DelayedOperationPurgatory`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.checks import holds
from fairlead_kafka.broker.guard import Guard, Owner
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.broker.timers import Timer

Done = Callable[[], None]


class Waiter(Protocol):
    """A waiter for partitions: a fetch request, or its session."""

    @property
    def owner(self) -> Owner | None:
        """The request that it waits for now, in whose name its methods are called; None: it is kept
        for requests to come."""

    def advanced(self, partition: Partition) -> None:
        """Called when more can be read from `partition`."""

    def lost(self, partition: Partition) -> None:
        """Called when `partition` was deleted here, or is no longer led here."""


class Purgatory:
    """Finds the requests that wait for a partition."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._waiters: dict[Partition, dict[Waiter, None]] = {}

    def watch(self, partition: Partition, waiter: Waiter) -> None:
        """Have the methods of `waiter` called for `partition`."""
        self._waiters.setdefault(partition, {})[waiter] = None

    def forget(self, partition: Partition, waiter: Waiter) -> None:
        """Do not call the methods of `waiter` for `partition` any more."""
        waiters = self._waiters.get(partition)
        if waiters is not None:
            waiters.pop(waiter, None)
            if not waiters:
                del self._waiters[partition]

    def advanced(self, partition: Partition) -> None:
        """Called when the high watermark of `partition` rose."""
        waiters = self._waiters.get(partition)
        if waiters is not None:
            for waiter in list(waiters):
                self._guard.call(waiter.owner, waiter.advanced, partition)

    def wake(self, partition: Partition) -> None:
        """Call `lost` of the waiters for `partition`, which was deleted, or is no longer led
        here."""
        for waiter in list(self._waiters.get(partition, ())):
            self._guard.call(waiter.owner, waiter.lost, partition)

    def check(self) -> None:
        """Raise CheckFailed if a partition is kept that no request waits for."""
        holds("a partition is kept that nobody waits for", all(self._waiters.values()))

    def waiters(self) -> dict[Partition, list[Waiter]]:
        """The waiters of each partition."""
        return {partition: list(waiters) for partition, waiters in self._waiters.items()}

    def __len__(self) -> int:
        return len(self._waiters)


class Deadlines:
    """Deadlines of requests, nearly all of which end long before: a dictionary, and one timer for
    the earliest deadline. (If each request had a timer, that would stay among the timers until its
    time, long after the request.)"""

    def __init__(
        self,
        call_at: Callable[[int, Callable[[], None]], Timer],
        bind: Callable[[Done], Done] = lambda done: done,
        now_ns: Callable[[], int] = lambda: 0,
    ) -> None:
        self._call_at = call_at
        self._bind = bind
        self._now_ns = now_ns
        self._due: dict[int, tuple[int, Callable[[], None]]] = {}
        self._count = 0
        self._looking: Timer | None = None
        """The one timer that is set: the next look; None: nobody waits."""

    def add(self, deadline_ns: int, function: Callable[[], None]) -> int:
        """Have `function` called at the deadline or soon after, unless `cancel` is called with the
        number returned."""
        self._count += 1
        self._due[self._count] = deadline_ns, self._bind(function)
        self._look_at(deadline_ns)
        return self._count

    def cancel(self, number: int) -> None:
        """Cancel a deadline; does nothing if its function was called."""
        self._due.pop(number, None)

    def check(self) -> None:
        """Raise CheckFailed unless the timer is set for the earliest deadline or before."""
        first = min((deadline_ns for deadline_ns, _ in self._due.values()), default=None)
        look_ns = None if self._looking is None else self._looking.deadline_ns
        holds(
            f"a deadline at {first}, the next look at {look_ns}",
            first is None or (look_ns is not None and look_ns <= first),
        )

    def _look_at(self, deadline_ns: int) -> None:
        if self._looking is not None:
            if self._looking.deadline_ns <= deadline_ns:
                return
            self._looking.cancel()
        self._looking = self._call_at(deadline_ns, lambda: self._look(deadline_ns))

    def _look(self, deadline_ns: int) -> None:
        self._looking = None
        now_ns = max(deadline_ns, self._now_ns())
        over = [number for number, (deadline_ns, _function) in self._due.items() if deadline_ns <= now_ns]
        for number in over:
            found = self._due.pop(number, None)
            if found is not None:
                found[1]()
        if self._due:
            self._look_at(min(deadline_ns for deadline_ns, _function in self._due.values()))
