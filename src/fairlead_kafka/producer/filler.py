"""Filling batches: one hand-over's records are appended to their partitions' queues, by prefix sums of their sizes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead_kafka.partitioning import Runs, counting_sort
from fairlead_kafka.producer.batch import GROWTH_BYTES, Batch
from fairlead_kafka.producer.handover import Handover, Int32, Int64
from fairlead_kafka.producer.queues import PartitionQueue, TopicQueue

if TYPE_CHECKING:
    from fairlead_kafka.producer.accumulator import Accumulator

Sums = Sequence[int]
"""Prefix sums, starting at 0."""
REQUEST_PARTS = 4
"""Batches of several turns leave room for so many in a request: fewer and larger ones cost less, but would leave requests half empty."""


class Filler:
    """Appends one hand-over's records to batches, by prefix sums of their sizes."""

    __slots__ = ("_accumulator", "_handover", "_limit", "_now_ns", "_share", "_topic")

    def __init__(self, accumulator: Accumulator, topic: TopicQueue, handover: Handover, now_ns: int) -> None:
        self._accumulator = accumulator
        self._topic = topic
        self._handover = handover
        self._limit = topic.batch_limit_bytes
        self._now_ns = now_ns
        self._share = accumulator.share if accumulator.share.limit_bytes is not None else None

    def fill_runs(self, runs: Runs, sizes: Int64, scaled: Int64) -> None:
        """Append runs of consecutive records, closing the batches that the policy saw overflow."""
        ends = _sums(scaled) if runs.ends is None else runs.ends
        held = ends if sizes is scaled else _sums(sizes)
        closes = iter(runs.closes)
        close_run, close_partition = next(closes, (-1, -1))
        topic, grew, now_ns = self._topic, self._accumulator.grew, self._now_ns
        together_from = len(runs) if runs.together_from is None else runs.together_from
        start = begin = 0
        for number, (partition, stop) in enumerate(runs):
            while close_run == number:
                self._close(close_partition)
                close_run, close_partition = next(closes, (-1, -1))
            queue, end = topic.queue(partition), ends[stop]
            if number < together_from:
                self.append(queue, start, stop, None, end - begin, ends, held)
            else:
                self._append_together(queue, start, stop, ends, held)
            grew(queue, now_ns)
            start, begin = stop, end

    def fill_groups(self, placement: Int32, kept: Int64 | None, sizes: Int64, scaled: Int64, assigned: Int32 | None) -> None:
        """Append records one partition after the other, each partition's in their order of arrival."""
        topic, handover = self._topic, self._handover
        order, bounds = counting_sort(placement if kept is None else placement[kept], topic.load.partition_count)
        if kept is not None:
            order = kept[order]
        if not len(order):
            return
        ends = _sums(scaled[order])
        held = ends if sizes is scaled else _sums(sizes[order])
        rows = order + handover.base if handover.base else order
        partitions = np.flatnonzero(np.diff(bounds))
        positions = bounds[np.append(partitions, partitions[-1] + 1)].tolist()
        for number, partition in enumerate(partitions.tolist()):
            queue = topic.queue(partition)
            start, stop = positions[number], positions[number + 1]
            opened = len(queue.batches)
            self.append(queue, start, stop, rows, ends[stop] - ends[start], ends, held)
            if len(queue.batches) > opened and assigned is not None and assigned[order[start]] >= 0:
                topic.policy.on_new_batch(partition, topic.load)
            self._accumulator.grew(queue, self._now_ns)

    def append(self, queue: PartitionQueue, start: int, stop: int, order: Int64 | None, size: int, ends: Sums, held: Sums) -> None:
        """Append rows `order[start:stop]` of the source, which take `size` bytes; `ends` and `held` are prefix sums of the same stretch.

        Without order: rows `start` to `stop` of the hand-over.

        A record joins the open batch if it fits; a batch that a record did not fit is closed; a new one takes at least one.
        """
        if self._share is not None:
            self._share.bound(queue, held[stop] - held[start])
        batch = queue.batches[-1] if queue.batches else None
        limit, handover = self._limit, self._handover
        base = handover.base if order is None else 0
        while True:
            if batch is None or batch.closed:
                batch = self._accumulator.new_batch(queue, handover)
                cut = stop if size <= limit else max(_last_fitting(ends, start, limit), start + 1)
            else:
                room = limit - batch.size_bytes
                cut = stop if size <= room else _last_fitting(ends, start, room)
            if cut > start:
                taken = size if cut == stop else ends[cut] - ends[start]
                batch.add(handover, base + start, base + cut, order, taken, taken if held is ends else held[cut] - held[start])
                size -= taken
                if batch.size_bytes >= limit:
                    batch.closed = True
                if cut == stop:
                    return
                start = cut
            batch.closed = True

    def _append_together(self, queue: PartitionQueue, start: int, stop: int, ends: Sums, held: Sums) -> None:
        """Append several turns' rows: what the open batch takes, then batches of about one size, none larger than a portion of a request.

        None of them stays open: there is enough in them to leave at once.
        """
        portion_bytes = max(self._topic.portion_bytes(REQUEST_PARTS), self._limit)
        room = queue.room_bytes()
        if room:
            start = self._add_last(queue.batches[-1], start, _last_fitting(ends, start, room), ends, held)
        while start < stop:
            cut = even_cut(ends, start, stop, portion_bytes)
            turns = max((ends[cut] - ends[start]) // max(self._limit, 1), 1)
            start = self._add_last(self._accumulator.new_batch(queue, self._handover, turns), start, cut, ends, held)

    def _add_last(self, batch: Batch, start: int, stop: int, ends: Sums, held: Sums) -> int:
        """These rows, which may be none, are the last of `batch`; gives `stop`."""
        batch.closed = True
        if stop > start:
            base = self._handover.base
            batch.add(self._handover, base + start, base + stop, None, ends[stop] - ends[start], held[stop] - held[start])
        return stop

    def _close(self, partition: int) -> None:
        queue = self._topic.queue(partition)
        if queue.batches and not queue.batches[-1].closed:
            queue.batches[-1].closed = True
            self._accumulator.grew(queue, self._now_ns)


def _sums(sizes: Int64) -> Sums:
    """Prefix sums of the sizes in a batch, or of those in memory; where these are the same, so are the sums."""
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums.data  # hands out Python's integers at a fifth of what an array's items cost


def even_cut(ends: Sums, start: int, stop: int, portion_bytes: int) -> int:
    """Where the first of some batches of one size ends that records `start` to `stop` are cut into, each within `portion_bytes`."""
    parts = -(-(ends[stop] - ends[start] + GROWTH_BYTES * (stop - start)) // portion_bytes)
    if parts == 1:
        return stop
    cut = _last_fitting(ends, start, -(-(ends[stop] - ends[start]) // parts))
    room = portion_bytes - GROWTH_BYTES * (cut - start)  # smaller records come first: there are more of them than an even part has
    return max(min(cut, _last_fitting(ends, start, room)) if room > 0 else start, start + 1)


def _last_fitting(ends: Sums, start: int, room: int) -> int:
    """How far the records from `start` on fit `room`."""
    return bisect_right(ends, ends[start] + room, start) - 1
