"""Ends Spark's JVM with the command that started it, however the command is interrupted.

PySpark starts the JVM and leaves it to end by itself once its standard input closes. It does not if
Python was interrupted while the JVM was starting: the folder that the JVM reports its port in is
deleted by then, its main thread fails, and its other threads keep it running.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PATIENCE_S = 3.0
"""Seconds for the JVM to stop by itself, after SIGTERM: it removes its temporary folders
meanwhile."""
LOOK_EVERY_S = 0.05


@contextmanager
def spark_ended() -> Iterator[None]:
    """Context manager: at the end of the block, end the processes that this one has started in it,
    and wait for them. Py4J's log records are not shown from then on."""
    before = _children()
    # For the rest of the process: a call that another thread is still in fails when the JVM ends.
    # With it Py4J gives the root logger a handler, to which all of its records would go.
    logging.getLogger().addFilter(_not_of_py4j)
    logging.getLogger("py4j").propagate = False
    try:
        yield
    finally:
        _end(_children() - before)


def _not_of_py4j(record: logging.LogRecord) -> bool:
    """True if a log record is not Py4J's. (When Ctrl-C or the JVM's end interrupts a call, Py4J
    logs a traceback to the root logger, although the caller gets an exception.)"""
    return f"{os.sep}py4j{os.sep}" not in record.pathname


def _children() -> set[int]:
    """The process ids of this process's children; none where the system has neither /proc nor ps to
    tell them."""
    if os.path.exists("/proc/self/stat"):
        return {
            int(name) for name in os.listdir("/proc") if name.isdecimal() and _parent(name) == os.getpid()
        }
    try:
        listing = subprocess.Popen(["ps", "-A", "-o", "pid=,ppid="], stdout=subprocess.PIPE, text=True)
    except OSError:
        return set()
    pairs = [line.split() for line in listing.communicate()[0].splitlines()]
    return {int(pid) for pid, parent in pairs if int(parent) == os.getpid()} - {listing.pid}


def _parent(process: str) -> int | None:
    try:
        with open(f"/proc/{process}/stat", "rb") as stat:
            return int(stat.read().rpartition(b")")[2].split()[1])
    except OSError:
        return None  # it has just ended


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
