"""The result of running one seed of a world."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from zlib import crc32

RAISED = "raised"
"""Prefix of a violation that is an exception."""
VIOLATIONS_MAX = 20
"""Violations kept of one seed; more tell nothing new."""


@dataclass
class Outcome:
    """Result of one seed: counts, the digest of its story, and what was violated."""

    world: str
    seed: int
    plan: str = ""
    """Setup and fault plan, to print."""
    faults: int = 0
    steps: int = 0
    records: int = 0
    acknowledged: int = 0
    digest: int = 0
    """A checksum of the run: two runs of a seed have the same."""
    violations: list[str] = field(default_factory=list)

    def violated(self, what: str) -> None:
        """Note a violation, in words."""
        if len(self.violations) < VIOLATIONS_MAX:
            self.violations.append(what)

    def note(self, text: str) -> None:
        """Add `text` to the digest."""
        self.digest = crc32(text.encode(), self.digest)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Record an exception that is raised inside as a violation, with its traceback."""
        try:
            yield
        except Exception as error:
            self.violated(f"{RAISED} {error!r}\n{''.join(traceback.format_exception(error))}".rstrip())

    def __str__(self) -> str:
        lines = [
            f"world {self.world}, seed {self.seed}: {len(self.violations)} violations",
            self.plan,
            *self.violations,
        ]
        return "\n".join(
            [*lines, f"replay: fairlead simulate --world {self.world} --seeds 1 --seed {self.seed}"]
        )


RunSeed = Callable[[int], Outcome]
"""Runs one seed of a world."""
