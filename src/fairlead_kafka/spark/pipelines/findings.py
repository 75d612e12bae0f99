"""Mistakes in a pipeline: where each is, what is wrong, and what to do."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

ERROR, WARNING = "error", "warning"


@dataclass(frozen=True, order=True)
class Finding:
    """One mistake. `line` counts from 1; 0: `file` is no file, but what the user typed. `rule` is a
    short name that stays, for tools."""

    file: str
    line: int
    rule: str
    what: str
    fix: str
    severity: str = ERROR

    @property
    def place(self) -> str:
        """File and line of the mistake, as compilers write it; the file alone if `line` is 0."""
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.place}: {self.severity}: {self.what}; {self.fix}"


@dataclass(frozen=True)
class Place:
    """A line of a file of the project."""

    file: Path
    line: int


def one_of(names: Iterable[str]) -> str:
    """Names as a part of a sentence, ten of them at most: a project may have many."""
    listed = sorted(names)
    return ", ".join(listed[:10]) + (", …" if len(listed) > 10 else "") if listed else "none"
