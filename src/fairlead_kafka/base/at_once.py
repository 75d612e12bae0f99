"""Several changes of an object's state as one: neither Ctrl-C nor another thread comes between."""

from __future__ import annotations

from collections.abc import Callable
from operator import call


def at_once(*changes: Callable[[], object]) -> None:
    """Make all changes, in this order, with nothing in between.

    They must be functions written in C, or `partial`s of such (`setattr`, methods of lists and
    deques), and must not raise: so Python runs no bytecode until the last one is made. It handles
    signals between bytecodes only, and after the last change not before this function's caller, and
    that one's caller, have returned or make another call.
    """
    made = map(call, changes)
    _ = [*made]  # no loop, and no call: after these Python looks for signals
