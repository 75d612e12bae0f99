"""Raises KeyboardInterrupt at one point of a client's code in the caller's thread, as Ctrl-C
might."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

import fairlead_kafka

_ROOT = Path(fairlead_kafka.__file__).parent
_FILES = {
    str(path)
    for path in (
        *(_ROOT / "client").glob("*.py"),
        *(_ROOT / "consumer" / name for name in ("decoding.py", "tables.py")),
        *(_ROOT / "consumer" / "share" / name for name in ("inflight.py", "tables.py")),
        _ROOT / "base" / "at_once.py",
    )
}
"""What runs in the caller's thread; a consumer's machine runs in a thread that gets no signals."""
HANDING = {"hand_out", "one_by_one"}
"""Functions that move positions; from then on an interrupt is like one after the poll."""


CLOSELY = HANDING | {
    *("at_once", "answered", "open", "run", "_take", "one_poll", "timed"),
    *("run_blocking", "_run", "poll", "_poll", "poll_table", "_poll_table", "block", "__iter__"),
    *("take", "send", "collect", "report", "to_send", "sent", "complete_first"),
}
"""Functions that are interrupted at each of their bytecodes; all others at each line."""


class Interrupting:
    """Calls a function and interrupts it at one line, or bytecode, of those that it runs."""

    def __init__(self, at: int) -> None:
        self.left = at
        self.raised = False
        self.handing = False
        """A function of `HANDING` had begun to move positions."""

    def __call__(self, function: Callable[[], Any]) -> Any:
        """What `function` returns; None if it was interrupted.

        It runs on a thread of its own: an exception at a bytecode where Python itself would raise
        none may leave the thread with an exception that it takes for being handled.
        """
        ended: list[Any] = []

        def run() -> None:
            sys.settrace(self._entered)
            try:
                ended.append(function())
            except KeyboardInterrupt:
                ended.append(None)
            except BaseException as error:
                ended.append(error)
            finally:
                sys.settrace(None)

        thread = Thread(target=run)
        gc.disable()  # or another client's finalizer may be what is interrupted, on whatever thread
        try:
            thread.start()
            thread.join()
        finally:
            gc.enable()
        if isinstance(ended[0], BaseException):
            raise ended[0]
        return ended[0]

    def _entered(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename not in _FILES:
            return None
        closely = frame.f_code.co_name in CLOSELY
        frame.f_trace_opcodes, frame.f_trace_lines = closely, not closely
        caller = frame.f_back.f_code.co_name if frame.f_back is not None else ""
        if frame.f_code.co_name == "at_once" and caller in HANDING:
            self.handing = True
        return self._stepped

    def _stepped(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event not in ("opcode", "line"):
            return self._stepped
        if frame.f_code.co_name == "one_by_one" and "opened" in frame.f_locals:
            self.handing |= frame.f_locals["opened"].index > frame.f_locals.get("first", sys.maxsize)
        self.left -= 1
        if self.left == 0:
            self.raised = True
            raise KeyboardInterrupt
        return self._stepped
