"""A metadata log in memory, on a disk that fails."""

from __future__ import annotations

import errno
import random

FAULTS = ("full", "full", "torn", "refused", "refused", "filling", "filling", "flaky", "flaky")
"""Ways in which the disk of a FailingLog fails, as often as they are to be drawn:

- full: no write succeeds.
- torn: an append leaves a part of the line, and fails.
- refused: the next writes fail, and then all succeed.
- filling: the next writes succeed, and then it is full.
- flaky: two writes in five fail.
"""
MAX_WRITES = 4
"""Writes, at most, until "refused" or "filling" goes over into what follows it."""


class FailingLog:
    """Takes what a controller writes; `data` is what is there after a restart. `fault` is one of
    FAULTS, or "" for a disk that works."""

    def __init__(self, rng: random.Random) -> None:
        self.data = b""
        self.fault = ""
        self._rng = rng
        self._writes_left = 0

    def fail(self, fault: str) -> None:
        """Begin to fail in this way, after one write or a few where the fault counts them."""
        self.fault = fault
        self._writes_left = self._rng.randint(1, MAX_WRITES)

    def append(self, line: bytes) -> None:
        """Add a line; OSError: a part of it at most is there."""
        if self._fails():
            if self.fault == "torn":
                self.data += line[: self._rng.randrange(len(line))]
            raise OSError(errno.ENOSPC, "No space left on device")
        self.data += line

    def replace(self, data: bytes) -> None:
        """Put a snapshot in the place of all lines; OSError: they are as they were."""
        if self._fails():
            raise OSError(errno.ENOSPC, "No space left on device")
        self.data = data

    def _fails(self) -> bool:
        if self.fault == "flaky":
            return self._rng.random() < 0.4
        if self.fault in ("refused", "filling"):
            self._writes_left -= 1
        if self.fault == "filling":
            if self._writes_left >= 0:
                return False
            self.fault = "full"
        if self.fault == "refused" and self._writes_left <= 0:
            self.fault = ""
            return True
        return self.fault != ""
