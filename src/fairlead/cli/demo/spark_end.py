"""Seeing to it that Spark's JVM ends with the demo, whatever interrupts it.

PySpark starts the JVM and leaves it to end by itself once its standard input closes. It does not if Python was interrupted while the JVM
was starting: the folder that the JVM reports its port in is gone by then, its main thread fails, and the others keep it alive for good.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE_S = 3.0
"""For the JVM to stop by itself, after SIGTERM: it removes its temporary folders meanwhile."""
LOOK_EVERY_S = 0.05


@contextmanager
def spark_ended() -> Iterator[None]:
    """Ends, on the way out, the processes that this one has started inside the block, and waits for them."""
    before = _children()
    try:
        yield
    finally:
        _end(_children() - before)


def _children() -> set[int]:
    """The process ids of this process's children."""
    with subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True) as listing:
        lines = listing.communicate()[0].splitlines()
    pairs = [(int(pid), int(parent)) for pid, parent in (line.split() for line in lines)]
    return {pid for pid, parent in pairs if parent == os.getpid() and pid != listing.pid}


def _end(children: set[int]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    while (children := {child for child in children if _runs(child)}) and time.monotonic() < deadline_s:
        time.sleep(LOOK_EVERY_S)
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


def _runs(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False  # PySpark has waited for it
