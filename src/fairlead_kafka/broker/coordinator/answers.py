"""Answers to members, given once a group is as it is to be.

An answer lets its connection's next request in, at once: a member that asked to join and then to
leave leaves while it is being answered. That must not happen in the middle of a change of the
group. So answers are gathered, and given when the outermost turn is over.
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
