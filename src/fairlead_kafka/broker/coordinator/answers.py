"""Answers to members, sent once a change of the group is complete.

An answer admits its connection's next request at once: a member that sent JoinGroup and then
LeaveGroup leaves while its join is being answered. That must not happen in the middle of a change
of the group. So answers are collected, and sent when the outermost change is complete.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

Outcome = TypeVar("Outcome")


class Answers:
    """Sends the answers to requests about all groups of one broker, in the order in which they were
    given, after the groups' changes."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._depth = 0

    def give(self, reply: Callable[[Outcome], None], outcome: Outcome) -> None:
        """Answer at the end of the present context (`changing`). Only to be called within one."""
        self._waiting.append(lambda: reply(outcome))

    @contextmanager
    def changing(self) -> Iterator[None]:
        """A context in which groups may be changed. Nested contexts, also those of functions that
        answers call, are part of the outermost one, at whose end the answers are sent."""
        self._depth += 1
        try:
            try:
                yield
            finally:
                while self._depth == 1 and self._waiting:
                    self._waiting.popleft()()
        finally:
            self._depth -= 1

    def within(self, change: Callable[[], None]) -> Callable[[], None]:
        """A function that calls `change` in a context (`changing`) of its own, for timers."""

        def changing() -> None:
            with self.changing():
                change()

        return changing
