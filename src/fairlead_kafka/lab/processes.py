"""Descendants, CPU seconds and memory of processes, from Linux's `/proc`. A process that has ended
has none of these.

psutil was weighed (docs/decisions/processes-are-read-from-proc.md): it has no peaks of memory, and
finds children by reading every process of the machine.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

TICKS_PER_S = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_UTIME, _STIME, _STARTTIME = 11, 12, 19
"""Places in /proc/PID/stat, counted from the field behind the name (proc(5))."""


def descendants(process_id: int) -> Iterator[int]:
    """Ids of all processes below this one, itself first."""
    yield process_id
    try:
        tasks = list(Path(f"/proc/{process_id}/task").iterdir())
        children = [int(child) for task in tasks for child in (task / "children").read_text().split()]
    except (OSError, ValueError):
        return
    for child in children:
        yield from descendants(child)


def program(process_id: int) -> str:
    """Name of the program that a process runs, such as java or python3; empty if it has ended."""
    try:
        return Path(f"/proc/{process_id}/comm").read_text().strip()
    except OSError:
        return ""


def cpu_s(process_id: int) -> float:
    """User and system time so far, s; 0 if the process has ended."""
    fields = stat_fields(process_id)
    return (int(fields[_UTIME]) + int(fields[_STIME])) / TICKS_PER_S if fields else 0.0


def started_ticks(process_id: int) -> float:
    """Start time of a process, in ticks since the machine started; infinity if it has ended."""
    fields = stat_fields(process_id)
    return int(fields[_STARTTIME]) if fields else float("inf")


def rss_mb(process_id: int) -> float:
    """Resident memory, in 2**20 bytes; 0 if the process has ended."""
    return _size_mb(process_id, "VmRSS:")


def peak_rss_mb(process_id: int) -> float:
    """Peak of resident memory, in 2**20 bytes, as the kernel kept it; 0 if the process has
    ended."""
    return _size_mb(process_id, "VmHWM:")


def stat_fields(process_id: int) -> list[str]:
    """Fields of /proc/PID/stat after the name, which may hold anything and ends with the last
    parenthesis; empty if the process has ended.
    """
    try:
        return Path(f"/proc/{process_id}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _size_mb(process_id: int, line: str) -> float:
    try:
        status = Path(f"/proc/{process_id}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0.0
    return next((int(each.split()[1]) / 1024 for each in status.splitlines() if each.startswith(line)), 0.0)
