"""What is kept twice is compared: how a `check()` says that the two differ.

An object that keeps incrementally what could be computed from something else (a counter, an index, a sum) has a method `check()`,
which computes it from that and raises CheckFailed if it differs. The simulator and property tests call it; a running program does not.
"""

from __future__ import annotations

from typing import Any


class CheckFailed(AssertionError):
    """Something that is kept twice differs from what it stands for."""


def same(what: str, kept: Any, computed: Any) -> None:
    """CheckFailed unless `kept`, of which `what` is the name, equals what was `computed`."""
    if kept != computed:
        raise CheckFailed(f"{what} is {kept!r}, but what it stands for gives {computed!r}")


def holds(what: str, condition: bool) -> None:
    """CheckFailed, with `what` as the text, unless `condition`."""
    if not condition:
        raise CheckFailed(what)
