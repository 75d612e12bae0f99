"""Faults by script: what a broker does on purpose, for tests and experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Faults:
    """What a broker does on purpose: answers late, by milliseconds; hears nothing of some others; has a full disk. Zeros: nothing."""

    produce_service_time_ms: float = 0
    latency_ms: float = 0
    cut_from: frozenset[int] = frozenset()
    """Ids of brokers to which it has no link."""
    cut_from_controller: bool = False
    disk_full: bool = False
    """Nothing can be written: ENOSPC."""
