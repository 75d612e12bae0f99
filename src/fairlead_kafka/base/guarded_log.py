"""Logging from where an exception would end a client: a machine's step, and a host's loop.

A filter or a handler of the application's runs within the call that logs. What it raises, of
whatever kind but KeyboardInterrupt, is counted here and goes no further.
"""

from __future__ import annotations

import itertools
import logging
import sys

SHOWN_MAX = 300
"""Characters that are printed of an error: its text is the application's."""

_raised = itertools.count(1)  # its next() is atomic: hosts have threads of their own
raised = 0
"""Log lines of this process, so far, at which a filter or a handler raised."""


def log(
    logger: logging.Logger,
    level: int,
    text: str,
    *arguments: object,
    exc_info: BaseException | bool | None = None,
) -> None:
    """As `logger.log`, but what a filter or a handler raises does not come out.

    The first such error of the process is told on stderr, in one line, unless
    `logging.raiseExceptions` is off. `exc_info`: the exception to show, or True for the present one.
    """
    try:
        logger.log(level, text, *arguments, exc_info=exc_info, stacklevel=2)
    except KeyboardInterrupt:
        raise  # Ctrl-C of the main thread, which a virtual host runs on
    except BaseException as error:
        _count(logger.name, error)


def _count(name: str, error: BaseException) -> None:
    global raised
    count = next(_raised)
    raised = max(raised, count)
    if count > 1 or not logging.raiseExceptions:
        return
    try:
        what = " ".join(f"{type(error).__name__}: {error}".split())[:SHOWN_MAX]
        print(
            f"fairlead_kafka: a filter or handler of logger {name!r} raised {what}; the line is lost, and "
            "further ones are lost in silence",
            file=sys.stderr,
        )
    except Exception:
        pass  # stderr is closed, or the error cannot be shown: there is nobody left to tell
