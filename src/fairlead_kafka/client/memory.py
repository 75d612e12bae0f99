"""Account of `buffer.memory`: records take bytes as they are submitted, the machine releases them.

It releases them once the records are delivered or failed.
"""

from __future__ import annotations

from collections import OrderedDict
from itertools import compress
from threading import Lock
from typing import TypeVar

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.client.single_records import ByteCounter
from fairlead_kafka.runtime import Completion

T = TypeVar("T")


class Place(ByteCounter):
    """A place in line: bytes that were granted to its caller, until a record takes them or the
    caller leaves."""

    def __init__(self, size_bytes: int) -> None:
        super().__init__()
        self.size_bytes = size_bytes
        self.called: Completion[None] = Completion()
        """Done once `size_bytes` are here; fails if the producer is closed before."""


class MemoryPool(ByteCounter):
    """Counts bytes of `buffer.memory`; holds none. First come, first served (Kafka's `BufferPool`).

    No call passes one that waits. Bytes always belong to somebody who gives them back: to the pool,
    a `Place`, or a record in the intake or the machine. They pass from one to the next within one
    call of machine code, which no signal comes between, so that nothing that ends a call leaves any
    behind.

    `lock` also guards what a client does together with that (see `client.intake`). A plain `send`
    takes bytes without it, at any time, so what is free is looked at and taken by `take`, and never
    otherwise.
    """

    def __init__(self, total_bytes: int) -> None:
        super().__init__()
        self.lock = Lock()
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.waiters: OrderedDict[Place, None] = OrderedDict()
        """Places in line; one may be left at its head that was called already."""

    def line_up(self, place: Place) -> None:
        """Wait in line for the bytes of `place`, `total_bytes` at most, until it is called. In any
        case the caller has to `leave`."""
        with self.lock:
            self.waiters[place] = None
            self._grant()

    def leave(self, place: Place) -> None:
        """Give up a place in line, and what is left of its bytes. Does nothing the second time."""
        if place.called.done() and not place.free_bytes:
            return  # a record has them
        with self.lock:
            self.waiters.pop(place, None)
            _pass_on(place.free_bytes, place, self)
            self._grant()

    def release(self, size_bytes: int) -> None:
        """Give bytes back, and grant as many places in line as then fit, in their order."""
        with self.lock:
            self.give(size_bytes)
            self._grant()

    def waiting(self) -> bool:
        """True if a caller is in line."""
        return bool(self.waiters)

    def check(self, held_bytes: int) -> None:
        """Raise CheckFailed unless exactly `held_bytes` are taken, and the first caller in line
        asks for more than is free.

        Called between two calls.
        """
        with self.lock:
            same("bytes of buffer.memory taken", self.total_bytes - self.free_bytes, held_bytes)
            first = next(iter(self.waiters)).size_bytes if self.waiters else self.total_bytes + 1
            holds(
                f"{first} bytes are waited for, and {self.free_bytes} are free",
                first > self.free_bytes,
            )

    def close(self, error: Exception) -> None:
        """Fail every caller in line with `error`."""
        with self.lock:
            for place in self.waiters:
                place.called.set_error(error)
            self.waiters.clear()

    def _grant(self) -> None:
        waiters = self.waiters
        while waiters:
            first = next(iter(waiters))
            if not first.called.done():
                if not first.free_bytes and not _pass_on(first.size_bytes, self, first):
                    return
                first.called.set_result(None)
            waiters.popitem(last=False)


def take_for(item: T, size_bytes: int, source: ByteCounter, items: list[T]) -> bool:
    """Take `size_bytes` of `source` for `item`, which is appended to `items`. False, and neither
    done, if there are fewer."""
    count = len(items)
    items.extend(compress((item,), map(source.take, (size_bytes,))))  # one call of machine code
    return len(items) > count


def _pass_on(size_bytes: int, source: ByteCounter, target: ByteCounter) -> bool:
    """Take `size_bytes` of `source` and give them to `target`. False, and neither done, if there
    are fewer."""
    return bool(list(map(target.give, filter(source.take, (size_bytes,)))))  # one call of machine code
