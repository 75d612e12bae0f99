"""Where each batch of one partition lies: six parallel arrays, found in by bisection."""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np


class Location(NamedTuple):
    """One batch on disk: the number of its file, its position there (behind the entry header) and its size in bytes."""

    file: int
    position: int
    size_bytes: int


class BatchIndex:
    """The batches of a partition in order of offset. About 48 bytes a batch; nothing for a partition that has none."""

    __slots__ = ("base_offsets", "files", "last_offsets", "max_timestamps_ms", "positions", "sizes_bytes")

    def __init__(self) -> None:
        self.base_offsets = array("q")
        self.last_offsets = array("q")
        self.files = array("q")
        self.positions = array("q")
        self.sizes_bytes = array("q")
        self.max_timestamps_ms = array("q")

    def __len__(self) -> int:
        return len(self.base_offsets)

    def append(self, base_offset: int, last_offset: int, file: int, position: int, size_bytes: int, max_timestamp_ms: int) -> None:
        """Add a batch behind the last one."""
        self.base_offsets.append(base_offset)
        self.last_offsets.append(last_offset)
        self.files.append(file)
        self.positions.append(position)
        self.sizes_bytes.append(size_bytes)
        self.max_timestamps_ms.append(max_timestamp_ms)

    def first_reaching(self, offset: int) -> int:
        """Number of the first batch whose last record is at `offset` or later; len(self) if there is none."""
        return bisect_left(self.last_offsets, offset)

    def below(self, offset: int) -> int:
        """How many batches begin before `offset`."""
        return bisect_left(self.base_offsets, offset)

    def location(self, number: int) -> Location:
        """Where batch `number` lies."""
        return Location(self.files[number], self.positions[number], self.sizes_bytes[number])

    def select(self, start: int, stop: int, max_bytes: int, at_least_one: bool) -> list[Location]:
        """Batches `start` to `stop` (excluded) that fit into `max_bytes` together; the first in any case if `at_least_one`."""
        chosen: list[Location] = []
        files, positions, sizes = self.files, self.positions, self.sizes_bytes
        for number in range(start, stop):
            size_bytes = sizes[number]
            max_bytes -= size_bytes
            if max_bytes < 0 and not (at_least_one and not chosen):
                break
            chosen.append(Location(files[number], positions[number], size_bytes))
        return chosen

    def first_with_timestamp(self, timestamp_ms: int, start: int) -> int:
        """Number of the first batch, from `start` on, whose newest record is at `timestamp_ms` or later; len(self) if none."""
        if start >= len(self):
            return len(self)
        late = np.frombuffer(self.max_timestamps_ms, np.int64)[start:] >= timestamp_ms
        number = int(late.argmax())
        return start + number if late[number] else len(self)

    def newest(self, start: int, stop: int) -> int:
        """Number of the first batch in `start` to `stop` (excluded) that holds the greatest timestamp; `stop` if empty."""
        if start >= stop:
            return stop
        return start + int(np.frombuffer(self.max_timestamps_ms, np.int64)[start:stop].argmax())

    def drop_front(self, count: int) -> list[tuple[int, int]]:
        """Forget the first `count` batches; what is forgotten as (file, size in bytes)."""
        dropped = list(zip(self.files[:count], self.sizes_bytes[:count], strict=True))
        for column in (self.base_offsets, self.last_offsets, self.files, self.positions, self.sizes_bytes, self.max_timestamps_ms):
            del column[:count]
        return dropped


class LeaderEpochs:
    """Which leader epoch began at which offset (Kafka's `LeaderEpochFileCache`), rebuilt from the batches."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self.latest = -1
        """The newest epoch known; -1: none."""
        self._epochs: list[int] = []
        self._starts: list[int] = []

    def assign(self, epoch: int, start_offset: int) -> None:
        """Records from `start_offset` on belong to `epoch`; an epoch known already, or an older one, changes nothing."""
        if not self._epochs or epoch > self._epochs[-1]:
            self.latest = epoch
            self._epochs.append(epoch)
            self._starts.append(start_offset)

    def end_offset(self, epoch: int, current_epoch: int, log_end: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch: the greatest epoch <= `epoch`, and where the next one begins.

        (-1, -1) if nothing is known of that epoch, as Kafka answers.
        """
        if epoch == current_epoch:
            return epoch, log_end
        if epoch > current_epoch or epoch < 0 or not self._epochs:
            return -1, -1
        number = bisect_right(self._epochs, epoch)
        if number == len(self._epochs):
            return self._epochs[-1], log_end
        if number == 0:
            # An epoch older than all that is kept ends where the log begins.
            return epoch, self._starts[0]
        return self._epochs[number - 1], self._starts[number]
