"""Runs a client in a process of its own, with a time limit; if it does not end in time, reports
where it hung.

The process has `report_where_on_request` called before it begins. When its time is over it is
asked, and then killed.
"""

from __future__ import annotations

import faulthandler
import re
import signal
import subprocess
from collections.abc import Sequence

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import JsonObject, json_object

_REQUEST = signal.SIGUSR1
_ANSWER_S = 2.0
_MAIN_THREAD = "Current thread"
_FRAME = re.compile(r'File "(?P<path>[^"]+)", line (?P<line>\d+) in (?P<function>\S+)')


class NotFinished(FairleadError):
    """A client did not end in time; the message says where it was."""


def report_where_on_request() -> None:
    """Have this process write a stack trace when `run_bounded`, which waits for it, asks for
    one."""
    faulthandler.register(_REQUEST, all_threads=True)


def run_client(command: Sequence[str], limit_s: float) -> JsonObject:
    """The figures that a client prints, JSON in its last line; or {"skipped": why}."""
    try:
        ran = run_bounded(command, limit_s)
    except NotFinished as error:
        return {"skipped": str(error)}
    if ran.returncode != 0:
        return {
            "skipped": "failed: "
            f"{ran.stderr.strip().splitlines()[-1] if ran.stderr.strip() else ran.returncode}"
        }
    return json_object(ran.stdout.splitlines()[-1])


def run_bounded(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[str]:
    """Run a command to its end. Raises NotFinished after `limit_s` seconds; the process is gone
    then."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        said, complained = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        raise NotFinished(f"not finished within {limit_s:g} s{_where(process)}") from None
    finally:
        process.kill()
        process.wait()
    return subprocess.CompletedProcess(list(command), process.returncode, said, complained)


def _where(process: subprocess.Popen[str]) -> str:
    """ ", in function (file:line)" of the process's main thread, where it hangs; "" if the process
    does not say."""
    process.send_signal(_REQUEST)
    try:
        process.wait(_ANSWER_S)  # it goes on, unless the signal was too early for it
    except subprocess.TimeoutExpired:
        process.kill()
    _, complained = process.communicate()
    return innermost(complained)


def innermost(dump: str) -> str:
    """ ", in function (file:line)" of the first frame that faulthandler gives of the main thread;
    "" if there is none."""
    found = _FRAME.search(dump, max(0, dump.rfind(_MAIN_THREAD)))
    if found is None:
        return ""
    file = "/".join(found["path"].split("/")[-2:])
    return f", in {found['function']} ({file}:{found['line']})"
