"""The dice that machines throw outside of simulations."""

from __future__ import annotations

import random

from fairlead_kafka.core.machine import Dice


def system_dice() -> Dice:
    """A generator seeded by the operating system."""
    return random.Random()
