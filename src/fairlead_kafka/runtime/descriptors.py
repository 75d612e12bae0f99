"""File descriptors kept in reserve, so that connections never take the last one from files.

A process gets a bounded number of file descriptors (`RLIMIT_NOFILE`), and connections, files and
other code in the process share them. So a listener closes a new connection whose descriptor is too
near the limit (`too_near_the_limit`), and a disk keeps some descriptors open in reserve: when no
other is left, it closes one of these to open a file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import threading
from collections.abc import Callable
from typing import TypeVar

from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import DESCRIPTORS_KEPT_FROM_CONNECTIONS, DESCRIPTORS_RESERVED_FOR_FILES
from fairlead_kafka.base.units import NS_PER_MS

T = TypeVar("T")

RETRY_NS = 10 * NS_PER_MS
"""Nanoseconds until a file effect for which there was no descriptor is tried again."""


def is_shortage(error: OSError) -> bool:
    """True if the process, or the system, has no descriptor left."""
    return error.errno in (errno.EMFILE, errno.ENFILE)


def too_near_the_limit(descriptor: int) -> bool:
    """True if this is one of the last descriptors, which are kept from accepted connections.

    The system always gives the lowest number that is free.
    """
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return limit != resource.RLIM_INFINITY and descriptor >= limit - min(
        DESCRIPTORS_KEPT_FROM_CONNECTIONS, limit // 4
    )


class Reserve:
    """File descriptors that are kept open for no file, so that one can be freed when it is needed.
    Threads may share it."""

    def __init__(self) -> None:
        self._kept: list[int] = []
        self._begun = False
        self._lock = threading.Lock()

    @hook("disk: descriptors are kept in reserve")
    def spend(self, work: Callable[[], T]) -> T:
        """The result of `work`; while it lacks a descriptor, one of the reserve is freed for it.

        OSError if `work` fails, and there is none left to free.
        """
        if not self._begun:
            self._fill()
        while True:
            try:
                given = work()
            except OSError as error:
                if not (is_shortage(error) and self._free_one()):
                    raise
            else:
                if len(self._kept) < DESCRIPTORS_RESERVED_FOR_FILES:
                    self._fill()
                return given

    def _free_one(self) -> bool:
        with self._lock:
            if not self._kept:
                return False
            os.close(self._kept.pop())
            return True

    def _fill(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._begun = True
            while len(self._kept) < DESCRIPTORS_RESERVED_FOR_FILES:
                self._kept.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def close(self) -> None:
        """Close all descriptors of the reserve."""
        with self._lock:
            kept, self._kept = self._kept, []
            for descriptor in kept:
                os.close(descriptor)
