"""How batches fill: a column of records seen through the prefix sum of its sizes, and the room left
per partition.

Shared by the policies whose stickiness depends on batches. All positions are record numbers in the
column of one call.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

import numpy as np

from fairlead_kafka.partitioning.load import Runs, SizeArray, TopicLoad


class Filling:
    """One call's simulation of the accumulator: where each batch ends if records are appended in
    order.

    `limit_bytes` is what a batch holds without its header (0: one record per batch). Mirrors
    Kafka's rule: a record joins the open batch if it fits, a batch that a record did not fit is
    closed, and a new batch takes at least one record.
    """

    __slots__ = ("_limit_bytes", "_load", "_rooms", "count", "ends", "runs")

    def __init__(self, sizes_bytes: SizeArray, load: TopicLoad, limit_bytes: int) -> None:
        self.count = len(sizes_bytes)
        self.runs = Runs()
        ends = np.zeros(self.count + 1, dtype=np.int64)
        np.cumsum(sizes_bytes, out=ends[1:])
        # A memoryview gives Python's integers at a fifth of what NumPy's cost, and bisect reads it.
        self.ends: Sequence[int] = ends.data
        """Prefix sums of the sizes, starting at 0."""
        self.runs.ends = self.ends
        self._load = load
        self._limit_bytes = limit_bytes
        self._rooms: dict[int, int] = {}

    def room_bytes(self, partition: int) -> int:
        """Bytes left in the partition's open batch, after all that this call has put there."""
        room = self._rooms.get(partition)
        if room is None:
            room = self._rooms[partition] = self._load.room_bytes(partition)
        return room

    def open_batch_stop(self, partition: int, start: int) -> int:
        """The record at which the partition's open batch ends if filled from `start`.

        It is `start` if that record does not fit, or no batch is open.
        """
        room = self.room_bytes(partition)
        return bisect_right(self.ends, self.ends[start] + room, start) - 1 if room > 0 else start

    def new_batch_stop(self, start: int) -> int:
        """The record at which a new batch ends if filled from `start`; `start + 1` or more."""
        return max(bisect_right(self.ends, self.ends[start] + self._limit_bytes, start) - 1, start + 1)

    def stop_at_bytes(self, start: int, size_bytes: int) -> int:
        """The first `stop` at which records `start` to `stop` reach `size_bytes`; `start + 1` or
        more, `count` if they never do."""
        return min(max(bisect_left(self.ends, self.ends[start] + size_bytes, start), start + 1), self.count)

    def overflow(self, partition: int) -> None:
        """Close the partition's open batch: the next record did not fit."""
        self._rooms[partition] = 0

    def append_together(self, parts: Sequence[tuple[int, int]], start: int) -> list[tuple[int, int]]:
        """Append all records from `start` on to the partitions in `parts`; the bytes that each got.

        A part ends with the record that reaches its bytes, so the next may get less, or nothing;
        the last gets what is left. Afterwards none of them has a batch open.
        """
        ends, got = self.ends, []
        goal_bytes, last = ends[start], len(parts) - 1
        for number, (partition, size_bytes) in enumerate(parts):
            goal_bytes += size_bytes
            stop = self.count if number == last else bisect_left(ends, goal_bytes, start, self.count)
            if stop > start:
                self.append(partition, stop, 0)
                got.append((partition, ends[stop] - ends[start]))
                start = stop
        return got

    def append(self, partition: int, stop: int, room_bytes: int) -> None:
        """Append records up to `stop` to the partition; the last run grows, or a new one begins.

        The partition's open batch then has `room_bytes` left.
        """
        runs = self.runs
        self._rooms[partition] = room_bytes
        if runs and runs[-1][0] == partition:
            runs[-1] = (partition, stop)
        else:
            runs.append((partition, stop))
