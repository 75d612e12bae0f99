"""Settings of the allocator: freed memory is kept for later allocations, or returned to the
system."""

from __future__ import annotations

import ctypes
import time

from fairlead_kafka.base.units import KIB, MIB

KEPT_BYTES = 64 * MIB
"""How much freed memory each of the allocator's arenas keeps at most."""
_ALLOCATED_ALONE_BYTES = 32 * MIB
"""A larger block is mapped by itself and given back at once; the most that glibc lets one set."""
LARGE_BLOCK_BYTES = 128 * KIB
"""Blocks from this size on are mapped by themselves in a process that runs for long. It is what
glibc begins with."""
GIVE_BACK_S = 60.0
"""Time between two times that freed memory is given back: seldom enough to cost nothing (some ms),
often enough that one minute's peak does not lie on the next one's."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Options of mallopt(3): M_TRIM_THRESHOLD, M_MMAP_THRESHOLD."""


def keep_freed_memory(kept_bytes: int = KEPT_BYTES) -> bool:
    """Keep freed memory in this process; True if the C library can (glibc).

    It sets the whole process, so it is for processes that are ours to set up, such as a worker. By
    itself glibc gives blocks of some MiB back to the system when they are freed, and the next block
    of that size is made of new pages, each a fault and zeroed by the kernel: 40 % of the CPU
    seconds of a consumer that fetches 8 MiB at a time.
    """
    return _set_option(_MMAP_THRESHOLD, _ALLOCATED_ALONE_BYTES) and _set_option(_TRIM_THRESHOLD, kept_bytes)


class LongRunning:
    """Keeps the memory of a process that runs for long near to what is in use.

    It sets the whole process, so it is for processes that are ours: brokers, `fairlead up`. Large
    blocks, of frames and batches, are mapped by themselves and given back when they are freed. By
    itself glibc raises the size from which it does so up to 32 MiB with each such block that is
    freed: large blocks then lie in the heap between small ones that stay, and the process grows by
    the holes, for hours. Freed pages within the heap are given back each minute, by `look`.
    """

    def __init__(self) -> None:
        _set_option(_MMAP_THRESHOLD, LARGE_BLOCK_BYTES)
        self._next_s = time.monotonic() + GIVE_BACK_S

    def look(self) -> None:
        """Give freed memory back if a minute has passed since the last time; to be called every few
        seconds."""
        if time.monotonic() >= self._next_s:
            self.give_back()

    def give_back(self) -> None:
        """Give freed memory back now, and again in a minute.

        Called before memory is measured: within a minute a process rises by MBs that are free, so
        looks that come now late and now early in its minute would show a slope.
        """
        give_back_freed_memory()
        self._next_s = time.monotonic() + GIVE_BACK_S


def give_back_freed_memory() -> bool:
    """Give freed memory of this process back to the system; True if the C library can (glibc).

    By itself glibc gives back only what lies at the end of a heap. Blocks of all sizes that are
    allocated and freed leave holes, so a process holds what its busiest minutes needed, each a
    little more than the last. Whole pages within the holes are given back. It takes 2 ms of CPU
    where nothing is to be given back of a heap of 30 MB, 14 where 50 MB are, without the GIL; pages
    that are used again are zeroed by the kernel once more.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (OSError, TypeError, AttributeError):  # another C library, or another system
        return False
    return bool(trim(0))


def _set_option(option: int, value: int) -> bool:
    """Set an option of the allocator; True if the C library can (glibc)."""
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # another C library, or another system
        return False
    return bool(set_option(option, value))
