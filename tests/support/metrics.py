"""Reading producers' metrics in tests."""

from __future__ import annotations

from typing import Any


def metric(producer: Any, name: str) -> float:
    """One of the group producer-metrics."""
    value: float = producer.metrics()["producer-metrics"][name]
    return value


def memory_is_free(producer: Any) -> bool:
    """Every byte of buffer.memory is given back, and nobody waits for any."""
    found = producer.metrics()["producer-metrics"]
    return bool(
        found["buffer-available-bytes"] == found["buffer-total-bytes"] and not found["waiting-threads"]
    )
