"""Lets this process keep the memory that it frees, for what it takes next."""

from __future__ import annotations

import ctypes

from fairlead_kafka.base.units import MIB

KEPT_BYTES = 64 * MIB
"""How much freed memory each of the allocator's arenas keeps at most."""
_ALLOCATED_ALONE_BYTES = 32 * MIB
"""What is larger is mapped by itself and given back at once; the most that glibc lets one set."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Of mallopt(3)."""


def keep_freed_memory(kept_bytes: int = KEPT_BYTES) -> bool:
    """For the whole process, so for processes that are ours to set up, such as a worker. True if the C library is one that can (glibc).

    By itself glibc gives blocks of some MiB back to the system when they are freed, and the next block of that size is made of new
    pages, each a fault and zeroed by the kernel: 40 % of the CPU seconds of a consumer that fetches 8 MiB at a time.
    """
    try:
        set_option = ctypes.CDLL(None).mallopt
    except (OSError, TypeError, AttributeError):  # another C library, or another system
        return False
    return bool(set_option(_MMAP_THRESHOLD, _ALLOCATED_ALONE_BYTES) and set_option(_TRIM_THRESHOLD, kept_bytes))
