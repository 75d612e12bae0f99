"""Account of `buffer.memory`: records take bytes as they are submitted, the machine releases them.

It releases them once the records are delivered or failed.
"""

from __future__ import annotations

from collections import deque
from itertools import compress
from threading import Lock
from typing import TypeVar

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.client.single_records import ByteCounter
from fairlead_kafka.runtime import Completion

T = TypeVar("T")
Place = tuple[int, Completion[None]]
"""A place in line: the bytes that its caller needs, and what is done once they are free and it is
the first."""


class MemoryPool(ByteCounter):
    """Counts bytes of `buffer.memory`; holds none. First come, first served (Kafka's `BufferPool`).

    No call passes one that waits: the first in line is called when there is room for it, takes its
    bytes and leaves the line. Bytes are taken in the same step in which what gives them back, a
    record, is handed to the machine, so that nothing that ends a call leaves any behind.

    `lock` also guards what a client does together with that (see `client.intake`). A plain `send`
    takes bytes without it, at any time, so what is free is looked at and taken by `take`, and never
    otherwise.
    """

    def __init__(self, total_bytes: int) -> None:
        super().__init__()
        self.lock = Lock()
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.waiters: deque[Place] = deque()

    def may_take(self, place: Place | None) -> bool:
        """True if a caller may take bytes, as far as the line goes: nobody waits, or `place` is the
        first. `lock` is held."""
        return not self.waiters or self.waiters[0] is place

    def take_for(self, item: T, size_bytes: int, items: list[T]) -> bool:
        """Take `size_bytes` and append `item`, which they are for, to `items`. False, and neither
        done, if fewer are free."""
        count = len(items)
        # One call of machine code, which no signal comes between: what is taken has an owner.
        items.extend(compress((item,), map(self.take, (size_bytes,))))
        return len(items) > count

    def line_up(self, place: Place) -> None:
        """Wait in line, for `total_bytes` at most, until the completion of `place` is done; then
        take the bytes. In any case the caller has to `leave`."""
        with self.lock:
            self.waiters.append(place)
        self._call_first()

    def leave(self, place: Place) -> None:
        """Give up a place in line, for those behind it. Does nothing the second time."""
        with self.lock:
            if place in self.waiters:
                self.waiters.remove(place)
        self._call_first()

    def release(self, size_bytes: int) -> None:
        """Give bytes back, and call the first in line if there is room for it now."""
        with self.lock:
            self.give(size_bytes)
        self._call_first()

    def waiting(self) -> bool:
        """True if a caller is in line."""
        return bool(self.waiters)

    def check(self, held_bytes: int) -> None:
        """Raise CheckFailed unless exactly `held_bytes` are taken, and the first caller in line was
        called or asks for more than is free.

        Called between two calls.
        """
        with self.lock:
            same("bytes of buffer.memory taken", self.total_bytes - self.free_bytes, held_bytes)
            fits = self._fits() and not self.waiters[0][1].done()
            holds(
                f"{self.waiters[0][0] if fits else 0} bytes are waited for, and {self.free_bytes} are free",
                not fits,
            )

    def close(self, error: Exception) -> None:
        """Fail every caller in line with `error`."""
        with self.lock:
            waiters = list(self.waiters)
            self.waiters.clear()
        for _, completion in waiters:
            completion.set_error(error)

    def _fits(self) -> bool:
        return bool(self.waiters) and self.waiters[0][0] <= self.free_bytes

    def _call_first(self) -> None:
        with self.lock:
            called = self.waiters[0][1] if self._fits() else None
        if called is not None:
            called.set_result(None)
