"""The only reader of the machine's clocks."""

from __future__ import annotations

import time

monotonic_ns = time.monotonic_ns
"""Nanoseconds that never go back; what machines call `now_ns`."""

thread_work_ns = time.thread_time_ns
"""Nanoseconds for which the calling thread had a processor: what a broker measures its handlers
by."""


def wall_ms() -> int:
    """The time of day, in milliseconds since 1970, by which records and logs are stamped."""
    return time.time_ns() // 1_000_000
