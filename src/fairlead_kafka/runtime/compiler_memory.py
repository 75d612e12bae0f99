"""Gives the compiler's memory back to the system once the kernels stand."""

from __future__ import annotations

import ctypes
from pathlib import Path

_MAPS = Path("/proc/self/maps")
_LIBRARY = "libllvmlite"
_EXECUTABLE = "r-xp"
_DONT_NEED = 4
"""MADV_DONTNEED: pages of a file that were never written to are dropped, and read again if somebody does need them."""


def release_compiler_memory() -> int:
    """Drop the pages of LLVM's own code from this process; the bytes of address space that were given up, 0 where that is not possible.

    Loading a few kernels from Numba's cache touches some 50 MB of LLVM's code, which is then never used again and
    counts as this process's resident memory as long as the machine has no better use for it. Only its executable pages are dropped,
    which nobody can have written to. Linux only.
    """
    if not _MAPS.exists():
        return 0
    advise = ctypes.CDLL(None).madvise
    released = 0
    for line in _MAPS.read_text().splitlines():
        fields = line.split()
        if len(fields) < 6 or _LIBRARY not in fields[5] or fields[1] != _EXECUTABLE:
            continue
        start, end = (int(each, 16) for each in fields[0].split("-"))
        if advise(ctypes.c_void_p(start), ctypes.c_size_t(end - start), _DONT_NEED) == 0:
            released += end - start
    return released
