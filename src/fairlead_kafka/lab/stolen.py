"""CPU time that a virtual machine's host gave to others during a measurement: how far to trust a
row.
"""

from __future__ import annotations

from pathlib import Path

_STAT = Path("/proc/stat")
_STEAL = 7
"""Index of steal in the first line's numbers: user, nice, system, idle, iowait, irq, softirq, steal
(guest time is part of user time).
"""


class Stolen:
    """Measures stolen CPU time from when it is made. Linux only; elsewhere the share is None."""

    def __init__(self, stat: Path = _STAT) -> None:
        self._stat = stat
        self._begin = self._ticks()

    def share(self) -> float | None:
        """Share (0 to 1) of the CPU time since this object was made that the host gave to others;
        None if unknown."""
        begin, end = self._begin, self._ticks()
        if begin is None or end is None:
            return None
        spent = [after - before for before, after in zip(begin, end, strict=True)]
        return round(spent[_STEAL] / (sum(spent) or 1), 3)

    def _ticks(self) -> list[int] | None:
        try:
            words = self._stat.read_text().split("\n", 1)[0].split()
        except OSError:
            return None
        return [int(word) for word in words[1 : _STEAL + 2]] if len(words) > _STEAL + 1 else None
