"""The entry point: runs a command, and prints an error as one line.

The commands are imported inside `run`, not here, so that Ctrl-C works while modules are still being
loaded.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import NoReturn

from fairlead_kafka.cli.exit_codes import INTERRUPTED_EXIT_CODE, TERMINATED_EXIT_CODE
from fairlead_kafka.cli.signals import handling


def main() -> NoReturn:
    """Run the command line, and end the process with its exit code."""
    code = run(sys.argv[1:])
    # From here on a second Ctrl-C just ends the process: nothing that still runs at exit is worth a
    # traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(code)


def run(arguments: Sequence[str]) -> int:
    """Run one command. Returns the exit code: 0, 1 for an error of ours, 2 for an invalid command
    line, 130 for Ctrl-C."""
    try:
        with handling(_terminated, signal.SIGTERM):
            from fairlead_kafka.cli.application import invoke

            code = invoke(list(arguments))
            sys.stdout.flush()
            return code
    except KeyboardInterrupt:
        # One that was met inside of an exec of text, as dataclasses and named tuples use while they
        # are imported, is remembered by CPython, which then ends the process by SIGINT, not with
        # our code; the next such exec lets it forget (pythonrun.c, run_eval_code_obj).
        exec("")
        _say("interrupted")
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # The reader of a pipe left, as `head` does: nothing to say, now or when the interpreter
        # flushes what is left.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _terminated(number: int, _frame: object) -> NoReturn:
    # As an exception it runs what cleans up: temporary folders, child processes, the cluster's
    # data.
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(TERMINATED_EXIT_CODE)


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # there may be nobody left to tell
        print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
