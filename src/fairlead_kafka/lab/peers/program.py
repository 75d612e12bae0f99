"""Helpers of the lab's programs that import this package: values, keys, and the process's own
memory.
"""

from __future__ import annotations

import re
import resource
import sys
from pathlib import Path

KEYS = 3_000
"""Number of different keys, used in turn."""


def value_of(size: int) -> bytes:
    """A value of `size` bytes: letters that do not all repeat."""
    state, letters = 1, bytearray()
    for _ in range(size):
        state = (1_103_515_245 * state + 12_345) % 2**31
        letters.append(65 + (state >> 16) % 26)
    return bytes(letters)


def peak_memory_mb() -> int:
    """This process's resident memory at its peak, in 2**20 bytes.

    The figure is Linux's VmHWM: the peak of `getrusage` begins with that of the process this one
    was started from.
    """
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) // 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // (
        1 << 20 if sys.platform == "darwin" else 1 << 10
    )
