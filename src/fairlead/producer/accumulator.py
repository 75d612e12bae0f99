"""From hand-overs to batches: placing records on partitions, filling batches, and giving up what waited too long."""

from __future__ import annotations

from bisect import bisect
from collections import deque
from collections.abc import Callable

import numpy as np

from fairlead.base.codes import policy
from fairlead.base.errors import BrokerError, FairleadError, InvalidRecord, TimedOut
from fairlead.core.machine import Dice
from fairlead.core.metadata import Metadata, TopicMetadata
from fairlead.partitioning import BrokerAvailability, Runs, assign_partitions, counting_sort, make_policy, place_unkeyed
from fairlead.producer.batch import Batch
from fairlead.producer.handover import Handover, Int32, Int64
from fairlead.producer.ledger import Ledger
from fairlead.producer.queues import PartitionQueue, TopicQueue
from fairlead.producer.schedule import Schedule
from fairlead.producer.settings import ProducerSettings
from fairlead.records import Compression

COMPRESSION_MARGIN = 1.05
"""Batches are closed as if they compressed 5 % worse than estimated (Kafka's `COMPRESSION_RATE_ESTIMATION_FACTOR`)."""
_EXPIRIES_SLACK = 4096


class Accumulator:
    """All topics that were sent to. Everything here is per hand-over, run or batch; a record is only touched inside NumPy."""

    def __init__(self, settings: ProducerSettings, metadata: Metadata, schedule: Schedule, ledger: Ledger, dice: Dice) -> None:
        self._settings = settings
        self._metadata = metadata
        self._schedule = schedule
        self._ledger = ledger
        self._dice = dice
        self._compressed = settings.compression is not Compression.none
        self._expiries: deque[Batch] = deque()  # by deadline
        self._compact_at = _EXPIRIES_SLACK
        self.availability = BrokerAvailability(settings.availability_timeout_ns)
        self.topics: dict[str, TopicQueue] = {}
        self._waiting: dict[str, TopicQueue] = {}  # topics with unbound hand-overs

    def accept(self, handover: Handover, now_ns: int) -> None:
        """Take a hand-over: into batches, or into its topic's unbound queue if the metadata is not here yet."""
        topic = self.topics.get(handover.topic)
        if topic is None:
            made = make_policy(self._settings.partitioner, batch_size_bytes=self._settings.batch_size_bytes, dice=self._dice)
            topic = TopicQueue(handover.topic, made, self.availability, self._settings.batch_limit_bytes)
            self.topics[handover.topic] = topic
        self._metadata.want(topic.name, now_ns)
        topic.unbound.append(handover)
        self._bind(topic, now_ns)

    def metadata_changed(self, now_ns: int) -> None:
        """Bind what waited for metadata, and follow leaders."""
        for topic in list(self._waiting.values()):
            self._bind(topic, now_ns)
        for name in {queue.topic.name: None for queue in self._schedule.active}:
            known = self._metadata.topic(name)
            if known is not None and known.partitions:
                self.topics[name].refresh(known, self._metadata.version)
        self._schedule.leaders_changed(now_ns)
        if self._waiting or self._schedule.leaderless:
            self._metadata.request_update()

    def next_ns(self) -> int | None:
        """When something expires."""
        self._trim_expiries()
        dues = [self._expiries[0].deadline_ns] if self._expiries else []
        dues += [topic.unbound[0].created_ns + self._settings.max_block_ns for topic in self._waiting.values()]
        return min(dues, default=None)

    def expire(self, now_ns: int, trouble: Callable[[], str]) -> list[Batch]:
        """Fail hand-overs whose topic stayed unknown for max.block.ms; give the batches past delivery.timeout.ms, still open."""
        for topic in list(self._waiting.values()):
            while topic.unbound and topic.unbound[0].created_ns + self._settings.max_block_ns <= now_ns:
                handover = topic.unbound.popleft()
                problem = self._metadata.topic(topic.name)
                reason = policy(problem.error_code).meaning if problem is not None and problem.error_code else trouble()
                self._ledger.fail_rows(
                    handover,
                    None,
                    TimedOut(f"topic {topic.name!r}: no metadata within max.block.ms={self._settings.max_block_ms}; {reason}"),
                )
            if not topic.unbound:
                self._waiting.pop(topic.name, None)
        expired = []
        self._trim_expiries()
        while self._expiries and self._expiries[0].deadline_ns <= now_ns:
            expired.append(self._expiries.popleft())
            self._trim_expiries()
        return expired

    def batches(self) -> list[Batch]:
        """Every batch that is not settled."""
        return [batch for batch in self._expiries if not batch.done]

    def unbound(self) -> list[Handover]:
        """Every hand-over that has no partitions yet; they are forgotten here."""
        found = [handover for topic in self._waiting.values() for handover in topic.unbound]
        for topic in self._waiting.values():
            topic.unbound.clear()
        self._waiting.clear()
        return found

    def watch(self, batch: Batch) -> None:
        """Expire the batch at its deadline unless it is settled by then."""
        if not self._expiries or self._expiries[-1].deadline_ns <= batch.deadline_ns:
            self._expiries.append(batch)
        else:  # rare: a part of a batch that was split, or records that waited for metadata
            self._expiries.insert(bisect(self._expiries, batch.deadline_ns, key=lambda each: each.deadline_ns), batch)
        if len(self._expiries) > self._compact_at:
            # One partition that is stuck must not keep the entries of all batches that were settled behind it.
            self._expiries = deque(each for each in self._expiries if not each.done)
            self._compact_at = 2 * len(self._expiries) + _EXPIRIES_SLACK

    # Binding

    def _bind(self, topic: TopicQueue, now_ns: int) -> None:
        known = self._metadata.topic(topic.name)
        if known is not None and known.partitions:
            if topic.metadata_version != self._metadata.version:
                topic.refresh(known, self._metadata.version)
            while topic.unbound:
                if self._lacks_partition(topic.unbound[0]):
                    break
                self._place(topic, topic.unbound.popleft(), now_ns)
        elif known is not None and known.error_code and not policy(known.error_code).retriable:
            while topic.unbound:
                self._ledger.fail_rows(topic.unbound.popleft(), None, BrokerError(known.error_code, f"topic {topic.name!r}"))
        if topic.unbound:
            self._waiting[topic.name] = topic
            self._want_again(known)
        else:
            self._waiting.pop(topic.name, None)

    def _want_again(self, known: TopicMetadata | None) -> None:
        if known is not None:  # answered, but not with what we need
            self._metadata.request_update()

    def _lacks_partition(self, handover: Handover) -> bool:
        """True if an explicit partition is not in the metadata, which should be asked for once more: the topic may have grown."""
        explicit = handover.partitions
        known = self._metadata.topic(handover.topic)
        if explicit is None or known is None or not len(explicit) or int(explicit.max()) < len(known.partitions):
            return False
        if handover.metadata_version < 0:
            handover.metadata_version = self._metadata.version
        return self._metadata.version == handover.metadata_version

    def _place(self, topic: TopicQueue, handover: Handover, now_ns: int) -> None:
        columns, partition_count = handover.columns, topic.load.partition_count
        explicit, kept = self._checked(topic, handover)
        sizes = handover.sizes_bytes()
        scaled = sizes
        if self._compressed:
            scaled = np.maximum((sizes * (topic.compression_ratio * COMPRESSION_MARGIN)).astype(np.int64), 1)
        try:
            assigned = assign_partitions(
                columns,
                explicit,
                partition_count,
                topic=topic.name,
                ignore_keys=self._settings.partitioner.ignore_keys,
                custom=self._settings.partitioner.custom,
            )
            placement = place_unkeyed(assigned, scaled, topic.policy, topic.load)
        except Exception as error:  # a custom partitioner may raise anything; its records fail, the producer goes on
            if not isinstance(error, FairleadError):
                error = InvalidRecord(f"the partitioner failed for {columns.count} records of topic {topic.name!r}: {error!r}")
            self._ledger.fail_rows(handover, kept, error)
            return
        filler = _Filler(self, topic, handover, now_ns)
        if isinstance(placement, Runs):
            filler.fill_runs(placement, sizes, scaled)
        else:
            filler.fill_groups(placement, kept, sizes, scaled, assigned)

    def _checked(self, topic: TopicQueue, handover: Handover) -> tuple[Int32 | None, Int64 | None]:
        """The explicit partitions, and the rows whose partition exists (None: all). The others are failed here, alone."""
        explicit = handover.partitions
        if explicit is None or not len(explicit):
            return None, None
        bad = (explicit < -1) | (explicit >= topic.load.partition_count)
        if not bad.any():
            return explicit, None
        rows = np.flatnonzero(bad)
        for partition in np.unique(explicit[rows]).tolist():
            there = f"partitions 0 to {topic.load.partition_count - 1}"
            error = InvalidRecord(f"topic {topic.name!r} has {there}, not {partition}; send to one of those, or to None")
            self._ledger.fail_rows(handover, rows[explicit[rows] == partition], error, partition)
        return np.where(bad, np.int32(0), explicit), np.flatnonzero(~bad)

    def new_batch(self, queue: PartitionQueue, handover: Handover) -> Batch:
        """An empty batch at the end of `queue`."""
        batch = Batch(queue, handover.created_ns, handover.created_ns + self._settings.delivery_timeout_ns)
        queue.batches.append(batch)
        queue.topic.queued_batches[queue.partition] += 1
        self.watch(batch)
        return batch

    def grew(self, queue: PartitionQueue, now_ns: int) -> None:
        """Records were appended to `queue`."""
        self._schedule.grew(queue, now_ns)

    def _trim_expiries(self) -> None:
        while self._expiries and self._expiries[0].done:
            self._expiries.popleft()


class _Filler:
    """Appends one hand-over's records to batches, by prefix sums of their sizes."""

    __slots__ = ("_accumulator", "_handover", "_limit", "_now_ns", "_topic")

    def __init__(self, accumulator: Accumulator, topic: TopicQueue, handover: Handover, now_ns: int) -> None:
        self._accumulator = accumulator
        self._topic = topic
        self._handover = handover
        self._limit = topic.batch_limit_bytes
        self._now_ns = now_ns

    def fill_runs(self, runs: Runs, sizes: Int64, scaled: Int64) -> None:
        """Append runs of consecutive records, closing the batches that the policy saw overflow."""
        ends, held = _prefix_sums(sizes, scaled)
        stops = [stop for _, stop in runs]
        at = ends[stops].tolist()
        closes = iter(runs.closes)
        close_run, close_partition = next(closes, (-1, -1))
        topic, grew, now_ns = self._topic, self._accumulator.grew, self._now_ns
        start = begin = 0
        for number, (partition, stop) in enumerate(runs):
            while close_run == number:
                self._close(close_partition)
                close_run, close_partition = next(closes, (-1, -1))
            queue = topic.queue(partition)
            self.append(queue, start, stop, None, at[number] - begin, ends, held)
            grew(queue, now_ns)
            start, begin = stop, at[number]

    def fill_groups(self, placement: Int32, kept: Int64 | None, sizes: Int64, scaled: Int64, assigned: Int32 | None) -> None:
        """Append records one partition after the other, each partition's in their order of arrival."""
        topic, handover = self._topic, self._handover
        order, bounds = counting_sort(placement if kept is None else placement[kept], topic.load.partition_count)
        if kept is not None:
            order = kept[order]
        if not len(order):
            return
        ends, held = _prefix_sums(sizes[order], scaled[order])
        rows = order + handover.base if handover.base else order
        partitions = np.flatnonzero(np.diff(bounds))
        edges = bounds[np.append(partitions, partitions[-1] + 1)]
        positions, at = edges.tolist(), ends[edges].tolist()
        for number, partition in enumerate(partitions.tolist()):
            queue = topic.queue(partition)
            start, stop = positions[number], positions[number + 1]
            opened = len(queue.batches)
            self.append(queue, start, stop, rows, at[number + 1] - at[number], ends, held)
            if len(queue.batches) > opened and assigned is not None and assigned[order[start]] >= 0:
                topic.policy.on_new_batch(partition, topic.load)
            self._accumulator.grew(queue, self._now_ns)

    def append(self, queue: PartitionQueue, start: int, stop: int, order: Int64 | None, size: int, ends: Int64, held: Int64) -> None:
        """Append rows `order[start:stop]` of the source, which take `size` bytes; `ends` and `held` are prefix sums of the same stretch.

        Without order: rows `start` to `stop` of the hand-over.

        A record joins the open batch if it fits; a batch that a record did not fit is closed; a new one takes at least one.
        """
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
                taken = size if cut == stop else int(ends[cut] - ends[start])
                batch.add(handover, base + start, base + cut, order, taken, taken if held is ends else int(held[cut] - held[start]))
                size -= taken
                if batch.size_bytes >= limit:
                    batch.closed = True
                if cut == stop:
                    return
                start = cut
            batch.closed = True

    def _close(self, partition: int) -> None:
        queue = self._topic.queue(partition)
        if queue.batches and not queue.batches[-1].closed:
            queue.batches[-1].closed = True
            self._accumulator.grew(queue, self._now_ns)


def _prefix_sums(sizes: Int64, scaled: Int64) -> tuple[Int64, Int64]:
    """Prefix sums, starting at 0, of the sizes in a batch and of the sizes in memory: one array if they are the same."""
    ends = np.zeros(len(scaled) + 1, np.int64)
    np.cumsum(scaled, out=ends[1:])
    if sizes is scaled:
        return ends, ends
    held = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=held[1:])
    return ends, held


def _last_fitting(ends: Int64, start: int, room: int) -> int:
    """How far the records from `start` on fit `room`."""
    return int(ends.searchsorted(ends[start] + room, "right")) - 1
