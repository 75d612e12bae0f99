"""Account of `buffer.memory`: calls reserve bytes for records, the machine releases them.

It releases them once the records are delivered or failed.
"""

from __future__ import annotations

from collections import deque
from threading import Lock

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.client.single_records import ByteCounter
from fairlead_kafka.runtime import Completion


class MemoryPool(ByteCounter):
    """Counts bytes of `buffer.memory`; holds none. First come, first served (Kafka's `BufferPool`).

    No call passes one that waits. `lock` also guards what a client does together with a reservation
    (see `client.intake`). A plain `send` takes bytes without it, at any time, so what is free is
    looked at and taken by `take`, and never otherwise.
    """

    def __init__(self, total_bytes: int) -> None:
        super().__init__()
        self.lock = Lock()
        self.total_bytes = total_bytes
        self.free_bytes = total_bytes
        self.waiters: deque[tuple[int, Completion[None]]] = deque()

    def reserve(self, size_bytes: int) -> Completion[None] | None:
        """Take `size_bytes`, which are `total_bytes` at most. None: they are taken. Otherwise the
        caller waits in line until the completion is done."""
        with self.lock:
            if not self.waiters and self.take(size_bytes):
                return None
            completion: Completion[None] = Completion()
            self.waiters.append((size_bytes, completion))
            return completion

    def withdraw(self, size_bytes: int, completion: Completion[None]) -> None:
        """Give up a reservation of `size_bytes` whose `completion` is waited for. If it was granted
        at the last moment, the bytes are given back."""
        with self.lock:
            waiting = (size_bytes, completion) in self.waiters
            if waiting:
                self.waiters.remove((size_bytes, completion))
            granted = not waiting and completion.error() is None
        self.release(size_bytes if granted else 0)

    def release(self, size_bytes: int) -> None:
        """Give bytes back, and grant as many waiting reservations as then fit, in their order."""
        granted = []
        with self.lock:
            self.give(size_bytes)
            while self.waiters and self.take(self.waiters[0][0]):
                granted.append(self.waiters.popleft()[1])
        for completion in granted:
            completion.set_result(None)

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
            fits = bool(self.waiters) and self.waiters[0][0] <= self.free_bytes
            holds(
                f"{self.waiters[0][0] if fits else 0} bytes are waited for, and {self.free_bytes} are free",
                not fits,
            )

    def close(self, error: Exception) -> None:
        """Fail every caller in line with `error`."""
        with self.lock:
            # Under the lock, so that `withdraw` sees that it was failed, not granted.
            for _, completion in self.waiters:
                completion.set_error(error)
            self.waiters.clear()
