"""Consistency checks: how a `check()` method says that redundant state differs.

An object that keeps a value incrementally which could be computed from other state (a counter, an
index, a sum) has a method `check()`, which computes the value and raises CheckFailed if it differs.
The simulator and property tests call it; a running program does not.
"""

from __future__ import annotations


class CheckFailed(AssertionError):
    """Redundant state differs from what it is computed from."""


def same(what: str, kept: object, computed: object) -> None:
    """Raise CheckFailed unless `kept` equals `computed`; `what` names it in the message."""
    if kept != computed:
        raise CheckFailed(f"{what} is {kept!r}, but what it stands for gives {computed!r}")


def holds(what: str, condition: bool) -> None:
    """Raise CheckFailed, with `what` as its message, unless `condition`."""
    if not condition:
        raise CheckFailed(what)
