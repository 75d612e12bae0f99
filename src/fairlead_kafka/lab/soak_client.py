"""The launcher's end of a soak's client: a process that reports when it is asked, and is stopped in
good order."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.lab.experiment import Row
from fairlead_kafka.lab.peers.soak import Errand

VALUE_BYTES = 200
DRAIN_S = 300.0
"""Seconds that a client has to end."""
ARROW_IN_HEAP = {"ARROW_DEFAULT_MEMORY_POOL": "system"}
"""Environment of a client: Arrow takes memory from C's heap.

There it is counted as in use, and given back before a look. Arrow's own allocator, mimalloc, keeps
some of what is freed, now more and now less: a client that reads tables went up and down by 4 MB in
an hour, of 64, and by 0.7 with this.
"""


@dataclass(slots=True)
class SoakClient:
    """One client of the soak, in a process of its own."""

    role: str
    process: subprocess.Popen[str]
    complaints: Path

    def report(self) -> Row:
        """Figures of the client since it was last asked. FairleadError if it has ended."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write("\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            raise self.ended() from None
        return self._line()

    def stop(self) -> None:
        """Tell the client to finish."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.stdin = None  # or `communicate` would write to it

    def final(self) -> Row:
        """The client's last line, once it has ended.

        FairleadError if it failed, or does not end.
        """
        try:
            said, _ = self.process.communicate(timeout=DRAIN_S)
        except subprocess.TimeoutExpired:
            raise FairleadError(f"the {self.role} client did not end within {DRAIN_S:g} s") from None
        if self.process.returncode or not said.strip():
            raise self.ended()
        found: Row = json.loads(said.splitlines()[-1])
        return found

    def kill(self) -> None:
        """Kill the client, and release its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()

    def ended(self) -> FairleadError:
        """The error for a client that ended by itself."""
        self.process.wait()
        return FairleadError(
            f"the {self.role} client ended by itself: {self.complaints.read_text().strip()[-1500:]}"
        )

    def _line(self) -> Row:
        assert self.process.stdout is not None
        if not select.select([self.process.stdout], [], [], DRAIN_S)[0]:
            raise FairleadError(f"the {self.role} client says nothing for {DRAIN_S:g} s")
        line = self.process.stdout.readline()
        if not line:
            raise self.ended()
        found: Row = json.loads(line)
        return found


def launch(role: str, bootstrap_servers: str, rate: float, folder: Path) -> SoakClient:
    """Start the client of a role, which sends `rate` records a second if it produces; `folder`: for
    what it says on stderr."""
    errand = Errand(role, bootstrap_servers, rate, VALUE_BYTES)
    complaints = folder / f"{role}.err"
    with complaints.open("w") as err:
        command = [sys.executable, "-m", "fairlead_kafka.lab.peers.soak", errand.to_json()]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=err,
            text=True,
            env={**os.environ, **ARROW_IN_HEAP},
        )
    return SoakClient(role, process, complaints)
