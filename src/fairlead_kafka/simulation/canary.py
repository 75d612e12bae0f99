"""Planting of bugs: a method takes the place of another, for the time of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from fairlead_kafka.base.hooks import HOOKS, Method


@dataclass(frozen=True)
class Canary:
    """One planted bug: the method that it replaces, and the seeds of which one has to notice it."""

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
    seeds_max: int = 10
    """Seeds from `first_seed` on of which one has to notice it. For a bug that few seeds show it is
    about twice what it took from seed 0 on."""

    @property
    def seeds(self) -> range:
        """The seeds of the world, one of which has to notice the bug."""
        return range(self.first_seed, self.first_seed + self.seeds_max)

    @property
    def went_unnoticed(self) -> str:
        """A text that says that none of `seeds` has noticed the bug, and what to do about that."""
        return (
            f"world {self.world}: the planted bug {self.name!r} went unnoticed from seed "
            f"{self.first_seed} on for {self.seeds_max}, so what these seeds tell has changed. `fairlead "
            f"simulate --world {self.world} --canaries --seeds 1` tries more, and shows how many it takes. "
            "If it is a few more, have first_seed be the seed that notices it (simulation/*canaries.py). If "
            "it is many, the world does less of what shows the bug: mend that before the bound is raised"
        )

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Plant the bug, in this process, while the `with` block runs."""
        try:
            with HOOKS[self.hook].replaced(self.make):
                self.reset()
                yield
        finally:
            self.reset()
