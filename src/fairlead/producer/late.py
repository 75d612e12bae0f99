"""The queue of a topic's records that have no partition yet, under a policy that binds them when a broker is ready."""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.partitioning import LatePolicy
from fairlead.producer.batch import GROWTH_BYTES
from fairlead.producer.handover import Handover, Int64

if TYPE_CHECKING:
    from fairlead.producer.batch import Batch


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
            np.cumsum(sizes, out=ends[1:])
            self.ends = ends.data  # hands out Python's integers at a fifth of what NumPy's cost

    def rows_left(self) -> Int64:
        """The rows of the hand-over's columns that still wait."""
        if self.order is None:
            return np.arange(self.position, self.count, dtype=np.int64)
        left: Int64 = self.order[self.position :] - self.handover.base
        return left


class LateQueue:
    """First in, first out. All sizes are of records, in bytes before compression, without headers of batches."""

    __slots__ = ("arrived_bytes", "counted", "joining", "policy", "portions", "size_bytes", "stretches", "troubled")

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
        self.portions: dict[int, tuple[int, int]] = {}
        """By broker that lags: `arrived_bytes` at its last turn, and what comes from turn to turn, on average of the last few."""
        self.troubled: set[int] = set()
        """Partitions that are out of it for reasons of their own."""

    @property
    def growth_ratio(self) -> float:
        """What the next records may come to in a batch of many, by what they take one by one (`GROWTH_BYTES`)."""
        stretch = self.stretches[0]
        return 1 + GROWTH_BYTES * stretch.count / stretch.ends[stretch.count]

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

    def take_older(self, than_ns: int) -> list[Stretch]:
        """The stretches handed over at `than_ns` or before; they wait no longer."""
        taken: list[Stretch] = []
        while self.stretches and self.oldest_ns <= than_ns:
            stretch = self.stretches.popleft()
            self.size_bytes -= stretch.ends[stretch.count] - stretch.ends[stretch.position]
            taken.append(stretch)
        return taken


class Portions:
    """How much each broker may take from one queue in one round.

    The others wait for a broker that lags, at the lead ahead of it. What it takes now, x, they may take too, partition for partition:
    first what it leaves of W, all that waits, then of what comes, A, until it is back. If it takes too much, they leave it nothing for
    its next turn; if too little, they are held up early, and all wait for it. That it finds its even part of A then, of which it has
    the share f by its partitions, makes x = f W + (1 - f) f A, if as much comes until its next turn as came since its last.

    While they will not reach the lead before it is back, nobody waits for it, and it need take no more than its part of what waits.
    """

    __slots__ = ("_late", "_left", "_most_bytes", "_most_lagging_bytes", "_whole")

    def __init__(self, late: LateQueue, lagging: Mapping[int, float], full_bytes: int, even_part_bytes: int) -> None:
        self._late = late
        self._most_bytes = max(full_bytes, even_part_bytes, 1)
        self._most_lagging_bytes = max(2 * full_bytes, even_part_bytes, 1)  # it may need more than a full batch to keep up
        self._whole = {node_id: self._whole_bytes(node_id, share) for node_id, share in lagging.items()}
        self._left = dict(self._whole)

    def room_bytes(self, node_id: int) -> int:
        """For the broker's next batch; 0 or less: it had its portion."""
        left = self._left.get(node_id)
        return self._most_bytes if left is None else min(left, self._most_lagging_bytes)

    def took(self, node_id: int, size_bytes: int) -> None:
        """A batch of so many bytes was cut for the broker."""
        if node_id in self._left:
            self._left[node_id] -= size_bytes

    def note(self) -> None:
        """The round is over: these are turns if something was taken."""
        for node_id, whole in self._whole.items():
            if self._left[node_id] < whole:
                self._late.portions[node_id] = (self._late.arrived_bytes, self._coming_bytes(node_id))

    def _whole_bytes(self, node_id: int, share: float) -> int:
        waiting_bytes, coming_bytes = self._late.size_bytes, self._coming_bytes(node_id)
        if coming_bytes < self._late.policy.room_bytes():
            coming_bytes = 0
        # One record at least: the others may be waiting for it to take that.
        return max(int(share * (waiting_bytes + (1 - share) * coming_bytes)), 1)

    def _coming_bytes(self, node_id: int) -> int:
        """What is expected to come until the broker's next turn: midway between what came since the last, and what was expected then."""
        late = self._late
        then_bytes, expected_bytes = late.portions.get(node_id, (late.arrived_bytes - late.size_bytes, late.size_bytes))
        return (late.arrived_bytes - then_bytes + expected_bytes) // 2
