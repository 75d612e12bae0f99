"""Faults that a broker is given on purpose, for tests and experiments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Faults:
    """Faults that a broker has on purpose: answers that are late, by milliseconds (0: none), other
    brokers that it is cut off from, a full disk."""

    produce_service_time_ms: float = 0
    latency_ms: float = 0
    cut_from: frozenset[int] = frozenset()
    """Ids of brokers to which it has no link."""
    cut_from_controller: bool = False
    disk_full: bool = False
    """Every write to a file fails with ENOSPC."""
