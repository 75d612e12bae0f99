"""What all tests share: the Hypothesis profile."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("house", derandomize=True, deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("house")
