"""Planting of bugs: a method takes the place of another, for the time of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fairlead_kafka.base.hooks import HOOKS, Method


@dataclass(frozen=True)
class Canary:
    """One planted bug."""

    name: str
    world: str
    hook: str
    """Name of the hook in `base.hooks.HOOKS` whose method the bug replaces."""
    make: Callable[[Method], Method]
    """Makes the planted method from the original one."""
    reset: Callable[[], None] = lambda: None
    """Called when the bug has been planted, and when it is gone, to make again what the other
    method had made.
    """
    first_seed: int = 0
    """The seed to begin with: a seed that noticed the bug once most likely notices it again."""

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug while the block runs, in this process."""
        try:
            with HOOKS[self.hook].replaced(self.make):
                self.reset()
                yield
        finally:
            self.reset()
