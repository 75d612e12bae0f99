"""Memory in use, as a process counts it: what NumPy keeps of freed arrays does not look like a
leak."""

from __future__ import annotations

import subprocess
import sys

import pytest

from fairlead_kafka.base.units import KIB, MIB
from fairlead_kafka.runtime import memory_use

PROGRAM = """
import numpy as np
from fairlead_kafka.runtime import memory_use
if {counted_before}:
    memory_use()
before = memory_use.__globals__["_heap_bytes"]()
for size in range(1, 1024):
    arrays = [np.empty(size, np.uint8) for _ in range(7)]
    del arrays
print(memory_use.__globals__["_heap_bytes"]() - before)
"""


def _rise_bytes(counted_before: bool) -> int:
    """How much C's heap in use of a new process rises as arrays of all small sizes come and go."""
    program = PROGRAM.format(counted_before=counted_before)
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return int(ran.stdout)


@pytest.mark.skipif(memory_use().heap_bytes is None, reason="the C library does not count its heap")
def test_freed_small_arrays_are_no_rise_once_memory_was_counted() -> None:
    assert _rise_bytes(counted_before=True) < 64 * KIB
    assert _rise_bytes(counted_before=False) > 3 * MIB  # what NumPy keeps: else nothing is to be filled
