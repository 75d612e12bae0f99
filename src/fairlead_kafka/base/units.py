"""Units: time is an integer of nanoseconds inside machines, milliseconds on the wire and in
configs."""

from __future__ import annotations

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000
KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


def ms_to_ns(milliseconds: float) -> int:
    """Nanoseconds in `milliseconds`, rounded to the nearest."""
    return round(milliseconds * NS_PER_MS)


def s_to_ns(seconds: float) -> int:
    """Nanoseconds in `seconds`, rounded to the nearest."""
    return round(seconds * NS_PER_S)


def ns_to_ms(nanoseconds: int) -> float:
    """Milliseconds, as a float, in `nanoseconds`."""
    return nanoseconds / NS_PER_MS
