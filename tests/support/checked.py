"""Machines that compare what they keep twice after every step (`check()`), in rigs of virtual
time."""

from __future__ import annotations

from typing import Any


def checked(machine: Any) -> Any:
    """`machine`, whose steps end with its `check()` from now on; one that has none (the admin
    client keeps nothing twice) is as it was."""
    if not hasattr(machine, "check"):
        return machine
    step = machine.step

    def checked_step(now_ns: int, wall_ms: int) -> Any:
        effects = step(now_ns, wall_ms)
        machine.check()
        return effects

    machine.step = checked_step
    return machine
