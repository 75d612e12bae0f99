"""Compares redundant state of machines while a world lives, by the method `check()` of each that
has one (`base.checks`).
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fairlead_kafka.core.machine import Machine
from fairlead_kafka.runtime import VirtualHost

SHARE = 0.04
"""Share of worlds in which every step is checked."""


def begin_checking(host: VirtualHost, seed: int) -> bool:
    """Have every step checked if the seed says so. True if it does."""
    chosen = Random(seed ^ 0xC4EC).random() < SHARE
    if chosen:
        host.stepped = check
    return chosen


def check(machine: Machine) -> None:
    """Run the machine's own check, if it has one. CheckFailed if its redundant state differs."""
    own: Callable[[], None] | None = getattr(machine, "check", None)
    if own is not None:
        own()


def check_all(host: VirtualHost) -> None:
    """Check every machine of a host."""
    for machine in host.machines:
        check(machine)
