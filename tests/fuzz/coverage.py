"""Which lines of the package an input reached that none before it did. Costs little once little is
new.

Python calls a trace function for every line, which makes it ten times slower. A code object is
therefore followed only while it still has lines that nobody reached, and less and less often the
longer it has shown nothing new: code that is settled costs one call of `_called` each time it is
entered.
"""

from __future__ import annotations

import sys
from types import CodeType, FrameType
from typing import Any

PACKAGE = "fairlead_kafka"
PATIENCE = 64
"""A code object that was followed this often without anything new is followed only every this many
times."""


class _Watched:
    __slots__ = ("idle", "missing")

    def __init__(self, code: CodeType) -> None:
        self.missing = {line for _, _, line in code.co_lines() if line is not None}
        self.idle = 0


class Coverage:
    """Lines reached so far. `with coverage:` around an input, then `take` says how many were
    new."""

    def __init__(self) -> None:
        self._watched: dict[CodeType, _Watched | None] = {}
        self._new = 0
        self.lines = 0

    def __enter__(self) -> None:
        sys.settrace(self._called)

    def __exit__(self, *_: object) -> None:
        sys.settrace(None)

    def take(self) -> int:
        """How many lines were reached for the first time since the last call."""
        new, self._new = self._new, 0
        self.lines += new
        return new

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        code = frame.f_code
        try:
            watched = self._watched[code]
        except KeyError:
            ours = PACKAGE in code.co_filename or code.co_filename.startswith("<")
            watched = self._watched[code] = _Watched(code) if ours else None
        if watched is None:
            return None
        watched.idle += 1
        if watched.idle > PATIENCE and watched.idle % PATIENCE:
            return None
        return self._line

    def _line(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if event == "line":
            watched = self._watched[frame.f_code]
            if watched is not None and frame.f_lineno in watched.missing:
                watched.missing.discard(frame.f_lineno)
                self._new += 1
                watched.idle = 0
                if not watched.missing:
                    self._watched[frame.f_code] = None
        return self._line
