"""Waiting for what other threads and processes bring about."""

from __future__ import annotations

import select
from collections.abc import Callable
from time import monotonic
from typing import TypeVar

from fairlead_kafka import Admin

T = TypeVar("T")
PATIENCE_S = 60
"""How long a test waits for what must come to pass: no machine is so busy that it takes so long,
and a hang is told in a minute."""


def until(true: Callable[[], T]) -> T:
    """Wait until something is so, which is looked at again and again, and return it; AssertionError
    if it never is."""
    deadline = monotonic() + PATIENCE_S
    while not (found := true()):
        assert monotonic() < deadline, f"it never came to be within {PATIENCE_S:g} s"
        select.select([], [], [], 0.01)
    return found


def until_transactions_are_over(servers: str) -> None:
    """Wait until what was committed or aborted can be read: a commit is answered before its markers
    are in the partitions."""
    with Admin({"bootstrap.servers": servers}) as admin:
        until(lambda: not admin.list_transactions(["PrepareCommit", "PrepareAbort"]))
