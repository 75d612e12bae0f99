"""Fetches that wait for data: found again by the partition that got some, so that an append wakes only who waits for it.

Kafka's `DelayedOperationPurgatory`, for fetches alone.
"""

from __future__ import annotations

from typing import Protocol

from fairlead.broker.log import Partition


class Waiter(Protocol):
    """A fetch that waits."""

    def advanced(self, partition: Partition) -> None:
        """More can be read from `partition` now."""

    def complete(self) -> None:
        """Answer with what is there."""


class Purgatory:
    """Waiters by partition."""

    def __init__(self) -> None:
        self._waiters: dict[Partition, dict[Waiter, None]] = {}

    def watch(self, partition: Partition, waiter: Waiter) -> None:
        """Let `waiter` hear of `partition`."""
        self._waiters.setdefault(partition, {})[waiter] = None

    def forget(self, partition: Partition, waiter: Waiter) -> None:
        """No longer."""
        waiters = self._waiters.get(partition)
        if waiters is not None:
            waiters.pop(waiter, None)
            if not waiters:
                del self._waiters[partition]

    def advanced(self, partition: Partition) -> None:
        """The high watermark of `partition` rose."""
        waiters = self._waiters.get(partition)
        if waiters is not None:
            for waiter in list(waiters):
                waiter.advanced(partition)

    def wake(self, partition: Partition) -> None:
        """`partition` is gone, or no longer led here: whoever waits for it is answered now."""
        for waiter in list(self._waiters.get(partition, ())):
            waiter.complete()

    def __len__(self) -> int:
        return len(self._waiters)
