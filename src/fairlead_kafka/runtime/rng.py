"""The random number generator of machines outside of simulations."""

from __future__ import annotations

import random

from fairlead_kafka.core.machine import Rng


def system_rng() -> Rng:
    """A generator seeded by the operating system."""
    return random.Random()
