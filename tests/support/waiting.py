"""Waiting for what other threads and processes bring about."""

from __future__ import annotations

import select
from collections.abc import Callable
from time import monotonic

PATIENCE_S = 60.0


def until(true: Callable[[], object]) -> None:
    """Wait until something is so, which is looked at again and again; AssertionError if it never is."""
    deadline = monotonic() + PATIENCE_S
    while not true():
        assert monotonic() < deadline, f"it never came to be within {PATIENCE_S:g} s"
        select.select([], [], [], 0.01)
