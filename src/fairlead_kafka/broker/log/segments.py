"""The files of a broker's log: their names, their sizes, and the bytes of live entries in each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_kafka.base.checks import holds, same

_SUFFIX = ".log"


class SegmentFiles:
    """The files of the log, numbered upward from 1; the last is written to. A file without a live
    batch may be deleted, except the last."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.active = 1
        self.active_size_bytes = 0
        self._live_bytes: dict[int, int] = {}
        self._closed: dict[int, int] = {}

    def path(self, number: int) -> str:
        """Path of a file."""
        return f"{self.folder}/{number:012d}{_SUFFIX}"

    @staticmethod
    def number_of(name: str) -> int | None:
        """The number in a file's name; None if the name is not one of a log file."""
        stem = name.removesuffix(_SUFFIX)
        return int(stem) if name.endswith(_SUFFIX) and stem.isdecimal() else None

    def opened(self, number: int, size_bytes: int) -> None:
        """Note that file `number` is now the one to write to (the one before is closed)."""
        if number > self.active and self.active_size_bytes:
            self._closed[self.active] = self.active_size_bytes
        self._closed.pop(number, None)
        self.active = number
        self.active_size_bytes = size_bytes

    def closed(self, number: int, size_bytes: int) -> None:
        """Called when recovery has found file `number`, and a later one after it."""
        self._closed[number] = size_bytes

    def rewind(self, number: int, size_bytes: int) -> list[int]:
        """Called when a failed write is taken back: file `number` ends at `size_bytes` and is
        written to. Returns the later files, which are to be deleted."""
        later = [one for one in (*self._closed, self.active) if one > number]
        for one in later:
            self._closed.pop(one, None)
            self._live_bytes.pop(one, None)
        self._closed.pop(number, None)
        self.active, self.active_size_bytes = number, size_bytes
        return later

    def closed_sizes(self) -> dict[int, int]:
        """{closed file: its size in bytes}."""
        return dict(self._closed)

    def is_closed(self, number: int) -> bool:
        """True if file `number` is there and complete."""
        return number in self._closed

    def appended(self, size_bytes: int) -> int:
        """Count `size_bytes` more in the active file. Returns the position at which they begin."""
        position = self.active_size_bytes
        self.active_size_bytes = position + size_bytes
        return position

    def add_live(self, number: int, size_bytes: int) -> None:
        """Count another live batch in file `number`."""
        self._live_bytes[number] = self._live_bytes.get(number, 0) + size_bytes

    def release(self, dropped: Iterable[tuple[int, int]]) -> None:
        """Count batches, given as (file, size in bytes), as no longer needed."""
        live_bytes = self._live_bytes
        for number, size_bytes in dropped:
            if number in live_bytes:  # else the file went with a write that failed
                live_bytes[number] -= size_bytes

    def dead(self) -> list[int]:
        """Closed files without live batches."""
        return [number for number in self._closed if not self._live_bytes.get(number)]

    def sparse(self, live_ratio: float) -> list[int]:
        """Closed files of whose bytes some, but less than `live_ratio` (0 to 1), are live; those
        with least first."""
        shares = sorted(
            (self._live_bytes.get(number, 0) / max(1, size_bytes), number)
            for number, size_bytes in self._closed.items()
        )
        return [number for share, number in shares if 0 < share < live_ratio]

    def stale(self, live_ratio: float, min_bytes: int) -> bool:
        """True if the active file is `min_bytes` long at least, and less than `live_ratio` of its
        bytes are of live entries."""
        size_bytes = self.active_size_bytes
        return size_bytes >= min_bytes and self._live_bytes.get(self.active, 0) < live_ratio * size_bytes

    def forget(self, number: int) -> None:
        """Forget file `number`, which is being deleted."""
        self._closed.pop(number, None)
        self._live_bytes.pop(number, None)

    def check(self, live_bytes: Mapping[int, int]) -> None:
        """Raise CheckFailed unless the counts equal `live_bytes` ({file: bytes of batches that
        partitions have there, or are about to})."""
        same(
            "live bytes by file",
            {file: size for file, size in self._live_bytes.items() if size},
            dict(live_bytes),
        )
        holds("no closed file is written to", all(number < self.active for number in self._closed))
        for number, size_bytes in (*self._closed.items(), (self.active, self.active_size_bytes)):
            holds(f"file {number} has room for its live bytes", self._live_bytes.get(number, 0) <= size_bytes)
