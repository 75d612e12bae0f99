"""CPU seconds and peak memory of this process's descendants, by kind: read from `/proc`, so on
Linux alone.

Peaks are those of the kernel (`VmHWM`), reset at the start, so that no peak between two samples is
missed. Samples, a few per second, only find new and ended processes, and their CPU seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.lab.processes import TICKS_PER_S, cpu_s, descendants, peak_rss_mb, started_ticks

LOOK_EVERY_S = 0.2
_RESET_PEAK = "5"
"""Text that resets VmHWM to what is resident now, if written into clear_refs (proc(5))."""


@dataclass
class Used:
    """CPU time and memory that one process used since the start of a `Watch`."""

    kind: str
    cpu_s: float = 0.0
    peak_rss_mb: float = 0.0
    """Peak of resident memory, in 2**20 bytes."""


class Watch:
    """A context manager that watches all processes below `root`; `kind_of(id)` gives a process's
    kind (None: it is not counted), `below(id)` the ids of a process and of all below it."""

    def __init__(
        self,
        root: int,
        kind_of: Callable[[int], str | None],
        below: Callable[[int], Iterable[int]] = descendants,
    ) -> None:
        self._root = root
        self._below = below
        self._kind_of = kind_of
        self._used: dict[int, Used] = {}
        self._cpu_before_s: dict[int, float] = {}
        self._began_ticks = 0
        self._ended = threading.Event()
        self._looks = threading.Thread(target=self._look_on, name="fairlead-lab-watch", daemon=True)

    def __enter__(self) -> Watch:
        self._began_ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_S)
        for process_id in self._below(self._root):
            self._cpu_before_s[process_id] = cpu_s(process_id)
            try:
                Path(f"/proc/{process_id}/clear_refs").write_text(_RESET_PEAK)
            except OSError:
                continue
        self._looks.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._looks.join()
        self.look()

    def cpu_s(self, kind: str) -> float:
        """CPU seconds, user and system, of all processes of a kind."""
        return sum(used.cpu_s for used in self._used.values() if used.kind == kind)

    def peak_rss_mb(self, kind: str) -> float:
        """Peak of resident memory of the largest process of a kind, in 2**20 bytes; shared memory
        counts in each.
        """
        return max((used.peak_rss_mb for used in self._used.values() if used.kind == kind), default=0.0)

    def _look_on(self) -> None:
        while not self._ended.wait(LOOK_EVERY_S):
            self.look()

    def look(self) -> None:
        """Look once, between the regular looks."""
        for process_id in self._below(self._root):
            used = self._used.get(process_id)
            if used is None:
                kind = self._kind_of(process_id)
                if kind is None:
                    continue
                used = self._used[process_id] = Used(kind)
                if process_id not in self._cpu_before_s:
                    # The list of children may lack one while others end: what that had used before
                    # is not this watch's.
                    self._cpu_before_s[process_id] = (
                        cpu_s(process_id) if started_ticks(process_id) < self._began_ticks else 0.0
                    )
            used.cpu_s = max(used.cpu_s, cpu_s(process_id) - self._cpu_before_s[process_id])
            used.peak_rss_mb = max(used.peak_rss_mb, peak_rss_mb(process_id))
