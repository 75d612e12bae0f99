"""Loggers of this package, whose methods raise nothing: `GuardedLogger`.

A logging filter or handler of the application runs within the call that logs: in the step of a
client or broker, on a thread of a log-in, in a task of Spark. Exceptions that it raises are counted
here and not raised further, except KeyboardInterrupt.
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


class GuardedLogger(logging.LoggerAdapter[logging.Logger]):
    """The logger `logging.getLogger(name)`, but an exception of a filter or handler does not reach
    the code that logs.

    The process's first such exception is reported on stderr, in one line, unless
    `logging.raiseExceptions` is off.
    """

    def __init__(self, name: str) -> None:
        super().__init__(logging.getLogger(name))

    def log(  # type: ignore[override]  # Python's takes more, which nobody here gives
        self, level: int, msg: object, *args: object, exc_info: BaseException | bool | None = None
    ) -> None:
        """Log `msg % args`. `exc_info`: the exception to show, or True for the present one.

        The other methods (`info`, `warning`, `exception`, ...) call this one.
        """
        if not self.logger.isEnabledFor(level):
            return
        try:
            self.logger.log(level, msg, *args, exc_info=exc_info, stacklevel=2)
        except KeyboardInterrupt:
            raise  # Ctrl-C of the main thread, which a virtual host runs on
        except BaseException as error:
            _count(self.logger.name, error)


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
