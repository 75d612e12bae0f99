"""The queue of a topic's records that have no partition yet, under a policy that binds them when a broker is ready."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.partitioning import LatePolicy
from fairlead_kafka.producer.batch import GROWTH_BYTES
from fairlead_kafka.producer.handover import Handover, Int64

if TYPE_CHECKING:
    from fairlead_kafka.producer.batch import Batch


class Stretch:
    """Rows of one hand-over that wait: from `position` on, of `order`, or of its columns if that is None.

    `ends` is the prefix sum of their sizes, from 0, made once; so a batch is cut from a table of any length by one binary search.
    """

    __slots__ = ("count", "ends", "handover", "order", "position")

    def __init__(self, handover: Handover, rows: Int64 | None) -> None:
        sizes = handover.sizes_bytes()
        if rows is not None:
            sizes = sizes[rows]
        self.handover = handover
        self.order = None if rows is None else (rows + handover.base if handover.base else rows)
        self.count = len(sizes)
        self.position = 0
        self.ends: Sequence[int]
        if self.count == 1:
            self.ends = (0, int(sizes[0]))
        else:
            ends = np.zeros(self.count + 1, np.int64)
            np.add.accumulate(sizes, out=ends[1:])
            self.ends = ends.data  # hands out Python's integers at a fifth of what NumPy's cost

    def rows_left(self) -> Int64:
        """The rows of the hand-over's columns that still wait."""
        if self.order is None:
            return np.arange(self.position, self.count, dtype=np.int64)
        left: Int64 = self.order[self.position :] - self.handover.base
        return left


class LateQueue:
    """First in, first out. All sizes are of records, in bytes before compression, without headers of batches."""

    __slots__ = ("arrived_bytes", "counted", "joining", "kept_ns", "policy", "size_bytes", "stretches", "troubled")

    def __init__(self, policy: LatePolicy) -> None:
        self.policy = policy
        self.stretches: deque[Stretch] = deque()
        self.size_bytes = 0
        self.counted: dict[int, bool] = {}
        """By broker: whether its partitions were in the account at the last look."""
        self.joining: dict[int, None] = {}
        """Partitions that are to become part of the open transaction, so that they can be bound to."""
        self.arrived_bytes = 0
        """Of all records that ever waited here."""
        self.kept_ns = -NS_PER_S * 3600
        """When all was taken the last time that was not kept for busy brokers; linger.ms counts from then for what is open later."""
        self.troubled: set[int] = set()
        """Partitions that are out of it for reasons of their own."""

    @property
    def growth_ratio(self) -> float:
        """What the next records may come to in a batch of many, by what they take one by one (`GROWTH_BYTES`)."""
        stretch = self.stretches[0]
        return 1 + GROWTH_BYTES * stretch.count / stretch.ends[stretch.count]

    @property
    def next_bytes(self) -> int:
        """The first record's."""
        stretch = self.stretches[0]
        return stretch.ends[stretch.position + 1] - stretch.ends[stretch.position]

    @property
    def oldest_ns(self) -> int:
        """When the first of the waiting records was handed over."""
        return self.stretches[0].handover.created_ns

    def arrange(self, led: Mapping[int, Sequence[int]], partition_count: int) -> None:
        """The metadata changed: which partitions each broker leads. The next look tells who is in the account."""
        self.policy.arrange(led, partition_count)
        self.counted.clear()

    def append(self, handover: Handover, rows: Int64 | None) -> None:
        """`rows` (of its columns, ascending; None: all) of the hand-over wait from now on."""
        stretch = Stretch(handover, rows)
        if stretch.count:
            self.stretches.append(stretch)
            self.size_bytes += stretch.ends[stretch.count]
            self.arrived_bytes += stretch.ends[stretch.count]

    def fill(self, batch: Batch, room_bytes: int, ratio: float) -> int:
        """Move records into the empty `batch`: as many as fit `room_bytes`, and one at least; their bytes.

        They are estimated to compress to `ratio`.
        """
        room, waiting_bytes = room_bytes, self.size_bytes
        while self.stretches:
            stretch = self.stretches[0]
            ends, start, stop = stretch.ends, stretch.position, stretch.count
            begin = ends[start]
            size = ends[stop] - begin
            if size > room:
                stop = bisect_right(ends, begin + room, start, stop) - 1
                if stop == start:
                    if batch.count:
                        break
                    stop = start + 1
                size = ends[stop] - begin
            handover = stretch.handover
            estimated = size if ratio == 1.0 else max(int(size * ratio), 1)
            if stretch.order is None:
                batch.add(handover, handover.base + start, handover.base + stop, None, estimated, size)
            else:
                batch.add(handover, start, stop, stretch.order, estimated, size)
            self.size_bytes -= size
            room = max(room - size, 0)
            if stop < stretch.count:
                stretch.position = stop
                break
            self.stretches.popleft()
        return waiting_bytes - self.size_bytes

    def check(self) -> None:
        """The bytes that wait are those of the records that do; CheckFailed if not."""
        left = [stretch.ends[stretch.count] - stretch.ends[stretch.position] for stretch in self.stretches]
        same("bytes of records that wait for a broker", self.size_bytes, sum(left))
        holds("a stretch waits that is used up", all(0 <= stretch.position < stretch.count for stretch in self.stretches))
        holds("more waits than ever arrived", self.size_bytes <= self.arrived_bytes)
        self.policy.check()

    def take_older(self, than_ns: int) -> list[Stretch]:
        """The stretches handed over at `than_ns` or before; they wait no longer."""
        taken: list[Stretch] = []
        while self.stretches and self.oldest_ns <= than_ns:
            stretch = self.stretches.popleft()
            self.size_bytes -= stretch.ends[stretch.count] - stretch.ends[stretch.position]
            taken.append(stretch)
        return taken
