"""The files of a broker's log: their names, their sizes, and how much in each is still alive."""

from __future__ import annotations

from collections.abc import Iterable

_SUFFIX = ".log"


class SegmentFiles:
    """Files numbered upward from 1; the last is the one written to. A file without a live batch may go, except the last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.active = 1
        self.active_size_bytes = 0
        self._live: dict[int, int] = {self.active: 0}
        self._closed: dict[int, None] = {}

    def path(self, number: int) -> str:
        """Path of a file."""
        return f"{self.folder}/{number:012d}{_SUFFIX}"

    @staticmethod
    def number_of(name: str) -> int | None:
        """The number in a file's name; None if the name is not one of a log file."""
        stem = name.removesuffix(_SUFFIX)
        return int(stem) if name.endswith(_SUFFIX) and stem.isdecimal() else None

    def opened(self, number: int, size_bytes: int) -> None:
        """File `number` is now the one to write to (the one before is closed)."""
        if number != self.active:
            self._closed[self.active] = None
        self.active = number
        self.active_size_bytes = size_bytes
        self._live.setdefault(number, 0)

    def closed(self, number: int) -> None:
        """Recovery found file `number`, and a later one after it."""
        self._closed[number] = None

    def any_closed(self) -> bool:
        """True if there are files besides the one written to."""
        return bool(self._closed)

    def is_closed(self, number: int) -> bool:
        """True if file `number` is there and complete."""
        return number in self._closed

    def appended(self, size_bytes: int) -> int:
        """Account for a live batch of `size_bytes` (its entry header included) in the active file; where the entry begins."""
        position = self.active_size_bytes
        self.active_size_bytes = position + size_bytes
        self._live[self.active] += 1
        return position

    def add_live(self, number: int) -> None:
        """One more live batch in file `number`."""
        self._live[number] = self._live.get(number, 0) + 1

    def release(self, dropped: Iterable[tuple[int, int]]) -> None:
        """Batches, as (file, size in bytes), are no longer needed."""
        live = self._live
        for number, _size_bytes in dropped:
            live[number] -= 1

    def take_dead(self) -> list[int]:
        """Closed files in which nothing lives; they are forgotten here, the caller deletes them."""
        dead = [number for number in self._closed if not self._live.get(number)]
        for number in dead:
            del self._closed[number]
            self._live.pop(number, None)
        return dead
