"""What all tests share: the Hypothesis profile, and a garbage collector that passes over what was loaded before the first test."""

from __future__ import annotations

import gc

from hypothesis import HealthCheck, settings

settings.register_profile("house", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")


def pytest_collection_finish() -> None:
    """Modules and test items stay to the end, and a collection that looks at them takes 50 ms and more."""
    gc.collect()
    gc.freeze()
