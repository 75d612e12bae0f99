"""Runs a command from start to end: its duration, CPU seconds, memory and output."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.json_types import Json, JsonObject, json_object, number_at
from fairlead_kafka.lab.bounded import NotFinished
from fairlead_kafka.lab.processes import peak_rss_mb

_LOOKS_S = 0.02
"""Seconds between looks at its memory.

`wait4` would tell no less than ours: its pages were ours before it ran its program.
"""


class Whole(NamedTuple):
    """Result of a command: `seconds` from right before the process was started until its end, peak
    memory `rss_mb` in 2**20 bytes, both outputs in `said`."""

    returncode: int
    said: str
    seconds: float
    cpu_s: float
    rss_mb: int


def run_whole(command: Sequence[str], limit_s: float, environment: Mapping[str, str] | None = None) -> Whole:
    """Run a command to its end.

    Raises NotFinished after `limit_s` seconds; the process is then gone.
    """
    over = threading.Event()
    peaks_mb = [0.0]

    def watch() -> None:
        until_s = started_s + limit_s
        while not over.wait(_LOOKS_S):
            peaks_mb.append(peak_rss_mb(process.pid))
            if time.monotonic() > until_s:
                process.kill()
                return

    with tempfile.TemporaryFile("w+") as said:
        started_s = time.monotonic()
        process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, text=True, env=environment)
        watcher = threading.Thread(target=watch, daemon=True)
        watcher.start()
        try:
            _, ended, used = os.wait4(process.pid, 0)  # of this child alone
            seconds = time.monotonic() - started_s
            process.returncode = os.waitstatus_to_exitcode(ended)
        finally:
            over.set()
            watcher.join()
            if process.returncode is None:
                process.kill()
                process.wait()
        said.seek(0)
        text = said.read()
    if process.returncode == -signal.SIGKILL:
        raise NotFinished(f"not finished within {limit_s:g} s")
    return Whole(process.returncode, text, seconds, used.ru_utime + used.ru_stime, int(max(peaks_mb)))


def run_program(command: Sequence[str], limit_s: float) -> JsonObject:
    """The JSON that a program prints last, with compiled modules kept; {"skipped": why} if it fails
    or does not end in time."""
    try:
        ran = run_whole(command, limit_s, without_cache_ban())
    except NotFinished as error:
        return {"skipped": str(error)}
    if ran.returncode:
        return {"skipped": f"failed: {ran.said.strip()[-200:]}"}
    return json_object(ran.said.splitlines()[-1])


def marks_of(document: Mapping[str, Json]) -> dict[str, float]:
    """The marks, all numbers, that a program printed. ValueError if there is anything else."""
    return {name: number_at(document, name) for name in document}


def without_cache_ban() -> dict[str, str]:
    """This process's environment, but with compiled modules kept, as by default."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
