"""Appointments with `kill -9`: where a process of a job is to die, kept in a folder that all processes of the job know."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

WAITING = "waiting"
"""The file that says: the job is where it is to die."""
DIED = "died"
"""The file that says: a task has died."""


@dataclass(frozen=True)
class Death:
    """At `step`, the time after `passed` times in this life of the job. A task dies by itself and alone; a driver waits for the blow."""

    folder: str
    step: str
    passed: int
    alone: bool

    def reached(self, step: str) -> None:
        """A process is at `step`: it may not come back from here."""
        if step != self.step or self._times() != self.passed + 1:
            return
        if self.alone:
            (Path(self.folder) / DIED).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (Path(self.folder) / WAITING).touch()
        while True:
            time.sleep(60)

    def _times(self) -> int:
        """How often a process was here, this time included."""
        descriptor = os.open(Path(self.folder) / f"{self.step}.times", os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        try:
            os.write(descriptor, b".")
            return os.fstat(descriptor).st_size
        finally:
            os.close(descriptor)


def deaths_of(given: list[dict[str, object]]) -> list[Death]:
    """Of what `dataclasses.asdict` made of them."""
    return [Death(**one) for one in given]  # type: ignore[arg-type]
