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

    def advanced(self, partition: Partition) -> None:
        """Called when more can be read from `partition`."""

    def lost(self, partition: Partition) -> None:
        """Called when `partition` was deleted here, or is no longer led here."""


class Purgatory:
    """Finds the requests that wait for a partition."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._waiters: dict[Partition, dict[Waiter, Owner | None]] = {}
        """Partition → waiters, each with its owner: the request that it waits for."""

    def watch(self, partition: Partition, waiter: Waiter) -> None:
        """Have the methods of `waiter` called for `partition`."""
        self._waiters.setdefault(partition, {})[waiter] = self._guard.owner

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
            for waiter, owner in list(waiters.items()):
                self._guard.call(owner, waiter.advanced, partition)

    def wake(self, partition: Partition) -> None:
        """Call `lost` of the waiters for `partition`, which was deleted, or is no longer led
        here."""
        for waiter, owner in list(self._waiters.get(partition, {}).items()):
            self._guard.call(owner, waiter.lost, partition)

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
    ) -> None:
        self._call_at = call_at
        self._bind = bind
        self._due: dict[int, tuple[int, Callable[[], None]]] = {}
        self._count = 0
        self._looking_ns: int | None = None
        """When the next look is due; None: nobody waits."""

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
        holds(
            f"a deadline at {first}, the next look at {self._looking_ns}",
            first is None or first >= (self._looking_ns or first + 1),
        )

    def _look_at(self, deadline_ns: int) -> None:
        if self._looking_ns is None or deadline_ns < self._looking_ns:
            self._looking_ns = deadline_ns
            self._call_at(deadline_ns, lambda: self._look(deadline_ns))

    def _look(self, now_ns: int) -> None:
        if self._looking_ns != now_ns:
            return  # an earlier look took its place
        self._looking_ns = None
        over = [number for number, (deadline_ns, _function) in self._due.items() if deadline_ns <= now_ns]
        for number in over:
            found = self._due.pop(number, None)
            if found is not None:
                found[1]()
        if self._due:
            self._look_at(min(deadline_ns for deadline_ns, _function in self._due.values()))
