"""What machines keep twice is compared while a world lives: `check()` of each that has one (`base.checks`)."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fairlead_kafka.core.machine import Machine
from fairlead_kafka.runtime import VirtualHost

SHARE = 0.04
"""Of worlds, those in which it is done after every step."""


def begin_checking(host: VirtualHost, seed: int) -> bool:
    """Have every step checked, if the seed says so; what it says."""
    chosen = Random(seed ^ 0xC4EC).random() < SHARE
    if chosen:
        host.stepped = check
    return chosen


def check(machine: Machine) -> None:
    """CheckFailed if what it keeps twice differs."""
    own: Callable[[], None] | None = getattr(machine, "check", None)
    if own is not None:
        own()


def check_all(host: VirtualHost) -> None:
    """Every machine of a host."""
    for machine in host.machines:
        check(machine)
