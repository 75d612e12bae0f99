"""Compares redundant state of machines while a world runs, by the method `check()` of each that has
one (`base.checks`)."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random

from fairlead_kafka.core.machine import Machine
from fairlead_kafka.runtime import VirtualHost

SHARE = 0.04
"""Share of worlds in which every step is checked."""
STEPS_BETWEEN = 7
"""A prime, so that no machine is always passed over."""


def begin_checking(host: VirtualHost, seed: int) -> bool:
    """Have every step of the host's machines checked if the seed says so. True if it does."""
    chosen = Random(seed ^ 0xC4EC).random() < SHARE
    if chosen:
        host.stepped = check
    return chosen


def check_sometimes(host: VirtualHost) -> None:
    """Have one in `STEPS_BETWEEN` steps checked, for worlds that take many steps."""
    steps = count()

    def stepped(machine: Machine) -> None:
        if next(steps) % STEPS_BETWEEN == 0:
            check(machine)

    host.stepped = stepped


def check(machine: Machine) -> None:
    """Run the machine's own check, if it has one. CheckFailed if its redundant state differs."""
    own: Callable[[], None] | None = getattr(machine, "check", None)
    if own is not None:
        own()


def check_all(host: VirtualHost) -> None:
    """Check every machine of a host."""
    for machine in host.machines:
        check(machine)
