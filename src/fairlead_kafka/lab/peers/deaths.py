"""Planned `kill -9` of processes of a job: the steps at which each is to die, kept in a folder that
all its processes share."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

WAITING = "waiting"
"""Name of the file that says that the job is at the step where it is to be killed."""
DIED = "died"
"""Name of the file that says that a task has died."""


class DeathFields(TypedDict):
    """The fields of a `Death`, as JSON."""

    folder: str
    step: str
    passed: int
    alone: bool


class Spec(TypedDict):
    """One run of the query: the argument of both engines, as JSON. `batch_rows` None: all present
    rows are one batch."""

    client: dict[str, str]
    source: str
    topic: str
    name: str
    checkpoint: str
    rows: int
    batch_rows: int | None
    deaths: list[DeathFields]
    seed: int


@dataclass(frozen=True)
class Death:
    """A kill at `step`, once processes have passed that step `passed` times in this run of the job.
    A task (`alone`) kills itself; a driver stops there, to be killed."""

    folder: str
    step: str
    passed: int
    alone: bool

    def fields(self) -> DeathFields:
        """This Death as JSON fields, for a spec."""
        return {"folder": self.folder, "step": self.step, "passed": self.passed, "alone": self.alone}

    def reached(self, step: str) -> None:
        """Called at each step; does not return if the process is to die at this one."""
        if step != self.step or self._times() != self.passed + 1:
            return
        if self.alone:
            (Path(self.folder) / DIED).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (Path(self.folder) / WAITING).touch()
        while True:
            time.sleep(60)

    def _times(self) -> int:
        """Number of times that processes were at this step, this one included."""
        descriptor = os.open(Path(self.folder) / f"{self.step}.times", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(descriptor, b".")
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)


def deaths_of(given: Sequence[DeathFields]) -> list[Death]:
    """Deaths from a spec."""
    return [Death(**one) for one in given]
