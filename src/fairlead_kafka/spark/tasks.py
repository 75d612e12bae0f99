"""Division of ranges of offsets into tasks: as many as Spark's connector makes, or of about equal
weight."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from math import ceil

from fairlead_kafka.base.units import MIB
from fairlead_kafka.consumer import NO_END
from fairlead_kafka.spark.offsets import OffsetRange, split_ranges
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.reading import TaskRanges
from fairlead_kafka.spark.volume import Volume

TASK_MIN_BYTES = 4 * MIB
"""Ranges share a task up to this size, for a task costs about as much as reading so much;
`minPartitions` goes over it."""


SLACK = 0.2
"""By how much of its share a task may have more or less, where that spares a cut."""


def plan_tasks(ranges: Iterable[OffsetRange], options: ReadOptions, volume: Volume) -> list[TaskRanges]:
    """The tasks that read `ranges`. Sizes in bytes are looked up only if an option needs them."""
    wanted = [one for one in ranges if one.size > 0]
    if options.balance_by == "bytes":
        volume.learn(wanted)
        return _balanced(wanted, options, volume)
    if options.max_bytes_per_partition is not None:
        volume.learn(wanted)
        wanted = [piece for one in wanted for piece in _cut(one, options.max_bytes_per_partition, volume)]
    return [
        TaskRanges((one,))
        for one in split_ranges(wanted, options.min_partitions, options.max_records_per_partition)
    ]


def _balanced(ranges: list[OffsetRange], options: ReadOptions, volume: Volume) -> list[TaskRanges]:
    """Tasks of about equal bytes: ranges are laid end to end and cut where a task has its share. A
    range is not cut for the sake of a few bytes, so that most stay whole."""
    total = sum(volume.size_bytes(one) for one in ranges)
    if options.min_partitions is not None:
        size = total / max(options.min_partitions, len(ranges))
    else:
        size = max(total / max(1, len(ranges)), float(TASK_MIN_BYTES))
    size = max(1.0, min(size, options.max_bytes_per_partition or size))
    share = _Share(total, max(1, ceil(total / size - 0.01)))
    records_max = options.max_records_per_partition or NO_END
    tasks: list[list[OffsetRange]] = [[]]
    records = 0
    for one in ranges:
        while one.size > 0:
            end = (
                one.end
                if share.fits(volume.size_bytes(one))
                else max(one.start + 1, volume.offset_after(one, share.room))
            )
            taken = replace(one, end=min(one.end, end, one.start + records_max - records))
            tasks[-1].append(taken)
            records += taken.size
            if share.is_had(volume.size_bytes(taken)) or records >= records_max:
                tasks.append([])
                records = 0
                share.next_task()
            one = replace(one, start=taken.end)
    return [TaskRanges(tuple(task)) for task in tasks if task]


def _cut(one: OffsetRange, size_bytes: float, volume: Volume) -> list[OffsetRange]:
    """The range in pieces of about the same size, none much larger than `size_bytes`."""
    total = volume.size_bytes(one)
    count = min(one.size, ceil(total / size_bytes - 0.01))
    if count < 2:
        return [one]
    bounds = [
        one.start,
        *(volume.offset_after(one, total * number / count) for number in range(1, count)),
        one.end,
    ]
    return [OffsetRange(one.partition, start, end) for start, end in pairwise(bounds) if start < end]


class _Share:
    """The share, in bytes, of each task in turn: of the bytes that are left. So if one task has too
    much or too little, the others make up for it."""

    def __init__(self, total: float, tasks: int) -> None:
        self._left, self._tasks = total, tasks
        self.next_task()

    def next_task(self) -> None:
        """Begin the next task: its share is what is left, divided by the tasks that are left."""
        self._size = self.room = max(1.0, self._left / max(1, self._tasks))
        self._tasks -= 1

    def fits(self, size_bytes: float) -> bool:
        """Whether the task may have all of it; the last one may have all."""
        return self._tasks <= 0 or size_bytes <= self.room + SLACK * self._size

    def is_had(self, size_bytes: float) -> bool:
        """Give the task `size_bytes`; True if it has its share then."""
        self._left -= size_bytes
        self.room -= size_bytes
        return self._tasks > 0 and self.room <= SLACK * self._size
