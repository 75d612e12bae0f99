"""Memory that this process has in use, as its two allocators count it.

What a process holds (`/proc`) says nothing of a leak: it is what its busiest minute needed, with
the holes that were left since. What is in use comes back to where it was when a load is even. But
NumPy keeps the memory of freed arrays below 1 KiB, up to seven of each size, and that counts as in
use: up to 3.5 MiB, which a process fills in steps, when arrays have sizes that none had before. A
process whose use is asked for therefore fills that cache first, or its steps would pass for a leak.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import cache
from typing import NamedTuple, cast

import numpy as np

_KEPT_BELOW_BYTES = 1024
"""NumPy keeps the memory of a freed array that is smaller (`NBUCKETS` of its allocator)."""
_KEPT_OF_A_SIZE = 7
"""Freed arrays of each size whose memory NumPy keeps at most (`NCACHE` of its allocator)."""


class MemoryUse(NamedTuple):
    """`blocks`: blocks that CPython has allocated, almost all of up to 512 bytes.

    `heap_bytes`: bytes in use of C's heap, where larger blocks and buffers are; None where the C
    library does not count them (glibc does since 2.33).
    """

    blocks: int
    heap_bytes: int | None


class _Counts(ctypes.Structure):
    """Counts of mallinfo2(3), by glibc's names."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]
    hblkhd: int
    uordblks: int


def memory_use() -> MemoryUse:
    """Memory in use of this process, now. It takes microseconds, and C's heap is locked meanwhile.

    The first call fills NumPy's cache of small arrays: it takes some ms, and the process has up to
    3.5 MiB more from then on.
    """
    _fill_small_array_cache()
    return MemoryUse(sys.getallocatedblocks(), _heap_bytes())


@cache
def _fill_small_array_cache() -> None:
    """Have NumPy keep as much memory of freed small arrays as it ever will, once in a process."""
    for size in range(1, _KEPT_BELOW_BYTES):
        arrays = [np.empty(size, np.uint8) for _ in range(_KEPT_OF_A_SIZE)]
        del arrays


def _heap_bytes() -> int | None:
    count = _counter()
    if count is None:
        return None
    counts = count()
    return counts.uordblks + counts.hblkhd  # in heaps, and mapped by themselves


@cache
def _counter() -> Callable[[], _Counts] | None:
    """glibc's function, looked up once; None if the C library has none, or on another system."""
    try:
        function = ctypes.CDLL(None).mallinfo2
    except (OSError, TypeError, AttributeError):
        return None
    function.restype = _Counts
    return cast("Callable[[], _Counts]", function)
