"""The sticky policy of KIP-480: stay on a partition until a new batch must be created, then go
elsewhere."""

from __future__ import annotations

from bisect import bisect_left
from typing import Literal

from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.machine import Rng
from fairlead_kafka.partitioning.filling import Filling
from fairlead_kafka.partitioning.load import Runs, SizeArray, TopicLoad, candidates


def another_partition(current: int, load: TopicLoad, rng: Rng) -> int:
    """A partition drawn evenly from the available ones without `current`; `current` only if there
    is no other (KIP-480).

    -1 as `current` draws among all. If none is available, all are candidates. Draws once, or not at
    all if nothing is left to draw.
    """
    choices = candidates(load)
    size = len(choices)
    position = bisect_left(choices, current)
    excluded = position < size and choices[position] == current
    if size == 1:
        return choices[0]
    index = rng.randrange(size - excluded)
    return choices[index + (excluded and index >= position)]


class StickyPolicy:
    """KIP-480, as Kafka 2.4 to 3.2 had it by default (`StickyPartitionCache`).

    A record joins the sticky partition's open batch. If none is open there, or the record does not
    fit, then instead of creating a new batch the policy first turns to another available partition
    and the record goes there: into that one's open batch if it fits, else into a new batch, and
    this creation does not turn the policy a second time. A sticky partition that becomes
    unavailable is kept until then. Its known fault is the KIP's own: a slow broker's batches fill
    more before they are left, so it is given more (KAFKA-10888); KIP-794 is the cure.
    """

    name = "sticky"
    binds_at: Literal["append", "drain"] = "append"

    def __init__(self, *, batch_size_bytes: int, rng: Rng) -> None:
        self._limit_bytes = max(batch_size_bytes - BATCH_OVERHEAD_BYTES, 0)
        self._rng = rng
        self.current = -1
        """The sticky partition; -1 before the first record."""

    def place(self, sizes_bytes: SizeArray, load: TopicLoad) -> Runs:
        """The records' partitions as runs that end where batches end. Costs about three
        microseconds for each batch."""
        filling = Filling(sizes_bytes, load, self._limit_bytes)
        count, start, partition = filling.count, 0, self.current
        if not 0 <= partition < load.partition_count:
            partition = -1
        while start < count:
            stop = filling.open_batch_stop(partition, start) if partition >= 0 else start
            new_batch = stop == start
            if new_batch:
                if partition >= 0:
                    filling.overflow(partition)
                partition = another_partition(partition, load, self._rng)
                stop = filling.open_batch_stop(partition, start)
                new_batch = stop == start
                if new_batch:
                    filling.overflow(partition)
                    stop = filling.new_batch_stop(start)
            room = self._limit_bytes if new_batch else filling.room_bytes(partition)
            filling.append(partition, stop, max(room - (filling.ends[stop] - filling.ends[start]), 0))
            start = stop
        self.current = partition
        return filling.runs

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """Change the sticky partition if the batch opens on it, for a keyed or an explicit record.

        A batch that opens on any other partition changes nothing
        (`StickyPartitionCache.nextPartition` compares the same way).
        """
        if partition == self.current:
            self.current = another_partition(partition, load, self._rng)
