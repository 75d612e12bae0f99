"""From hand-overs to batches: placing records on partitions, filling batches, and giving up what waited too long."""

from __future__ import annotations

from bisect import bisect
from collections import Counter, deque
from collections.abc import Callable, Iterable

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import policy
from fairlead_kafka.base.errors import FairleadError, InvalidRecord, TimedOut
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.machine import Dice
from fairlead_kafka.core.metadata import Metadata, TopicMetadata
from fairlead_kafka.partitioning import (
    BrokerAvailability,
    LatePolicy,
    OpenBatches,
    Placement,
    Runs,
    assign_partitions,
    expand,
    make_policy,
    place_unkeyed,
)
from fairlead_kafka.producer.batch import Batch
from fairlead_kafka.producer.filler import Filler
from fairlead_kafka.producer.handover import Handover, Int32, Int64
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.late import LateQueue
from fairlead_kafka.producer.ledger import Ledger
from fairlead_kafka.producer.queues import PartitionQueue, TopicQueue
from fairlead_kafka.producer.schedule import Schedule
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.share import Share
from fairlead_kafka.producer.transactions import Transactions
from fairlead_kafka.records import Compression

COMPRESSION_MARGIN = 1.05
"""Batches are closed as if they compressed 5 % worse than estimated (Kafka's `COMPRESSION_RATE_ESTIMATION_FACTOR`)."""
_EXPIRIES_SLACK = 4096


class Accumulator:
    """All topics that are sent to. Everything here is per hand-over, run or batch; a record is only touched inside NumPy."""

    def __init__(
        self,
        settings: ProducerSettings,
        metadata: Metadata,
        schedule: Schedule,
        ledger: Ledger,
        transactions: Transactions,
        dice: Dice,
    ) -> None:
        self._settings = settings
        self._transactions = transactions
        self._metadata = metadata
        self._schedule = schedule
        self._ledger = ledger
        self._dice = dice
        self._compressed = settings.compression is not Compression.none
        self._expiries: deque[Batch] = deque()  # by deadline
        self._compact_at = _EXPIRIES_SLACK
        self.share = Share(settings.share_bytes, settings.buffer_memory_bytes)
        if settings.share_bytes is not None:
            ledger.on_settled = self.share.settled
        self.availability = BrokerAvailability(settings.availability_timeout_ns)
        self.topics: dict[str, TopicQueue] = {}
        self._waiting: dict[str, TopicQueue] = {}  # topics with unbound hand-overs
        self.late: dict[str, TopicQueue] = {}
        """Topics with records that wait for a broker."""

    def accept(self, handover: Handover, now_ns: int) -> None:
        """Take a hand-over: into batches, or into its topic's unbound queue if the metadata is not here yet."""
        topic = self.topics.get(handover.topic)
        if topic is None:
            settings = self._settings
            made = make_policy(
                settings.partitioner,
                batch_size_bytes=settings.batch_size_bytes,
                dice=self._dice,
                skew_bytes=settings.skew_bytes,
                together=settings.gather_limit_bytes > settings.batch_limit_bytes,
            )
            topic = TopicQueue(handover.topic, made, self.availability, settings)
            self.topics[handover.topic] = topic
        self._metadata.want(topic.name, now_ns)
        topic.unbound.append(handover)
        self._bind(topic, now_ns)

    def metadata_changed(self, now_ns: int) -> None:
        """Bind what waited for metadata, and follow leaders."""
        for topic in list(self._waiting.values()):
            self._bind(topic, now_ns)
        for name in {queue.topic.name: None for queue in self._schedule.active} | dict.fromkeys(self.late):
            known = self._metadata.topic(name)
            if known is not None and known.partitions:
                self.topics[name].refresh(known, self._metadata.version)
        self._schedule.leaders_changed(now_ns)
        self.share.leaders_changed(self.topics.values())
        late_leaderless = any(len(topic.load.available) < topic.load.partition_count for topic in self.late.values())
        if self._waiting or self._schedule.leaderless or late_leaderless:
            self._metadata.request_update()

    def forget_unused(self, identity: Identity, now_ns: int) -> list[str]:
        """Forget the topics that the metadata forgot (`metadata.max.idle.ms`); their names. One with open records is wanted again."""
        forgotten = []
        for name, topic in list(self.topics.items()):
            if self._metadata.topic(name) is not None:
                continue
            if not topic.quiet():
                self._metadata.want(name, now_ns)
                continue
            sequences = [queue.sequences for queue in topic.used()]
            if all(each.may_forget(identity) for each in sequences):
                for each in sequences:
                    each.forget(identity)
                del self.topics[name]
                forgotten.append(name)
        return forgotten

    def next_ns(self) -> int | None:
        """When something expires."""
        self._trim_expiries()
        dues = [self._expiries[0].deadline_ns] if self._expiries else []
        dues += [topic.unbound[0].created_ns + self._settings.unknown_topic_ns for topic in self._waiting.values()]
        dues += [topic.late.oldest_ns + self._settings.delivery_timeout_ns for topic in self.late.values() if topic.late is not None]
        return min(dues, default=None)

    def expire(self, now_ns: int, trouble: Callable[[], str]) -> list[Batch]:
        """Fail hand-overs whose topic stayed unknown for too long, and records that no broker took for delivery.timeout.ms.

        Gives the batches past delivery.timeout.ms, still open.
        """
        self._expire_late(now_ns, trouble)
        for topic in list(self._waiting.values()):
            while topic.unbound and topic.unbound[0].created_ns + self._settings.unknown_topic_ns <= now_ns:
                handover = topic.unbound.popleft()
                reason = self._why_unknown(topic, trouble)
                limit = self._settings.unknown_topic_limit
                self._ledger.fail_rows(handover, None, TimedOut(f"topic {topic.name!r}: no metadata within {limit}; {reason}"))
            if not topic.unbound:
                self._waiting.pop(topic.name, None)
        expired = []
        self._trim_expiries()
        while self._expiries and self._expiries[0].deadline_ns <= now_ns:
            expired.append(self._expiries.popleft())
            self._trim_expiries()
        return expired

    def why_unplaced(self, name: str | None, trouble: Callable[[], str]) -> str | None:
        """Why records of a topic, or of any, have no partition yet; None if all have one."""
        for topic in self._waiting.values():
            if name in (None, topic.name):
                return f"no metadata of topic {topic.name!r}: {self._why_unknown(topic, trouble)}"
        for topic in self.late.values():
            if name in (None, topic.name):
                return self._why_late(topic, trouble)
        return None

    def _why_unknown(self, topic: TopicQueue, trouble: Callable[[], str]) -> str:
        problem = self._metadata.topic(topic.name)
        return policy(problem.error_code).meaning if problem is not None and problem.error_code else trouble()

    def _why_late(self, topic: TopicQueue, trouble: Callable[[], str]) -> str:
        return f"no broker could take them ({trouble() if topic.led else 'none of its partitions has a leader'})"

    def batches(self) -> list[Batch]:
        """Every batch that is not settled."""
        return [batch for batch in self._expiries if not batch.done]

    def fail_unbound(self, error: Exception) -> dict[str, int]:
        """Fail every record that has no partition yet; how many they were, by topic."""
        failed: dict[str, int] = {}
        for topic in list(self._waiting.values()):
            while topic.unbound:
                handover = topic.unbound.popleft()
                failed[topic.name] = failed.get(topic.name, 0) + handover.rows
                self._ledger.fail_rows(handover, None, error)
        self._waiting.clear()
        for topic in list(self.late.values()):
            count = self._fail_late(topic, NEVER_NS, error)
            failed[topic.name] = failed.get(topic.name, 0) + count
        return failed

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

    def check(self, open_handovers: Iterable[Handover]) -> None:
        """Every row of a hand-over that is not settled waits at one place; queues and schedule agree. CheckFailed if not."""
        unsettled = self.batches()
        deadlines = [batch.deadline_ns for batch in self._expiries]
        holds("batches expire out of order", deadlines == sorted(deadlines))
        same("topics that wait for metadata", set(self._waiting), {name for name, topic in self.topics.items() if topic.unbound})
        late = {name: topic.late for name, topic in self.topics.items() if topic.late is not None}
        same("topics that wait for brokers", set(self.late), {name for name, queue in late.items() if queue.stretches})
        rows: Counter[Handover] = Counter()
        by_queue: dict[PartitionQueue, list[Batch]] = {}
        for batch in unsettled:
            by_queue.setdefault(batch.queue, []).append(batch)
            for handover, start, stop, _, _ in batch.pieces:
                rows[handover] += stop - start
        for handover in (handover for topic in self.topics.values() for handover in topic.unbound):
            rows[handover] += handover.rows
        for queue in late.values():
            queue.check()
            for stretch in queue.stretches:
                rows[stretch.handover] += stretch.count - stretch.position
        for handover in open_handovers:
            same(f"rows of hand-over {handover.serial} that are not settled", handover.rows, rows.pop(handover, 0))
        same("rows that wait and are settled", sum(rows.values()), 0)
        queues = [queue for topic in self.topics.values() for queue in topic.used()]
        for each in queues:
            each.check(by_queue.get(each, ()))
        self._schedule.check(queues)
        self.share.check(self.topics.values(), unsettled)

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
                error = broker_error(known.error_code, f"topic {topic.name!r}", "Write")
                self._ledger.fail_rows(topic.unbound.popleft(), None, error)
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
        late, custom = topic.late, self._settings.partitioner.custom
        try:
            assigned = assign_partitions(
                columns,
                explicit,
                partition_count,
                topic=topic.name,
                ignore_keys=self._settings.partitioner.ignore_keys,
                custom=custom,
                batches=OpenBatches(scaled, topic.room_bytes, topic.batch_limit_bytes) if custom is not None else None,
            )
            placement: Placement | None = assigned
            if not isinstance(topic.policy, LatePolicy):
                placement = place_unkeyed(assigned, scaled, topic.policy, topic.load)
        except Exception as error:  # a custom partitioner may raise anything; its records fail, the producer goes on
            if not isinstance(error, FairleadError):
                error = InvalidRecord(f"the partitioner failed for {columns.count} records of topic {topic.name!r}: {error!r}")
            self._ledger.fail_rows(handover, kept, error)
            return
        if late is not None:
            kept = self._keep_late(topic, late, handover, assigned, kept)
            if placement is None:
                return
        assert placement is not None
        if isinstance(placement, Runs) and self.share.limit_bytes is not None:
            placement = expand(placement, columns.count)
        if not isinstance(placement, Runs):
            kept = self._within_share(topic, handover, placement, kept, sizes)
        filler = Filler(self, topic, handover, now_ns)
        if isinstance(placement, Runs):
            filler.fill_runs(placement, sizes, scaled)
        else:
            filler.fill_groups(placement, kept, sizes, scaled, assigned)

    def _keep_late(
        self, topic: TopicQueue, late: LateQueue, handover: Handover, assigned: Int32 | None, kept: Int64 | None
    ) -> Int64 | None:
        """Records without a partition wait for a broker; the rows of the others (None: all), which are bound now."""
        bound = None
        if assigned is None:
            late.append(handover, None)
        else:
            unkeyed = assigned < 0
            if unkeyed.any():
                late.append(handover, np.flatnonzero(unkeyed))
                bound = np.flatnonzero(~unkeyed)
                if kept is not None:
                    bound = kept[~unkeyed[kept]]
        if late.stretches:
            self.late[topic.name] = topic
        return bound if bound is not None else kept

    def _within_share(self, topic: TopicQueue, handover: Handover, partitions: Int32, kept: Int64 | None, sizes: Int64) -> Int64 | None:
        """Fail the rows for which there is no room in their broker's share of buffer.memory; the others (None: all)."""
        for rows, error in self.share.refused(topic, partitions, kept, sizes):
            kept = np.setdiff1d(np.arange(len(partitions), dtype=np.int64) if kept is None else kept, rows, assume_unique=True)
            self._ledger.fail_rows(handover, rows, error)
        return kept

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

    def new_batch(self, queue: PartitionQueue, handover: Handover, turns: int = 1) -> Batch:
        """An empty batch at the end of `queue`, which is to hold so many turns."""
        batch = Batch(queue, handover.created_ns, handover.created_ns + self._settings.delivery_timeout_ns)
        batch.turns = turns
        queue.batches.append(batch)
        queue.topic.queued_batches[queue.partition] += turns
        self.watch(batch)
        self._transactions.partition_used(queue.topic.name, queue.partition)
        return batch

    def late_batch(self, queue: PartitionQueue, created_ns: int) -> Batch:
        """An empty batch that is about to be sent, of records that waited for a broker."""
        batch = Batch(queue, created_ns, created_ns + self._settings.delivery_timeout_ns)
        batch.bound_early = False
        batch.closed = True  # it is encoded at once: nothing may join it when it waits in the queue to be sent again
        self.watch(batch)
        return batch

    def late_done(self, topic: TopicQueue) -> None:
        """No record of the topic waits for a broker any more."""
        self.late.pop(topic.name, None)

    def ratio(self, topic: TopicQueue) -> float:
        """What a batch is estimated to be compressed to, as a share, with a margin; 1 without compression."""
        return topic.compression_ratio * COMPRESSION_MARGIN if self._compressed else 1.0

    def _expire_late(self, now_ns: int, trouble: Callable[[], str]) -> None:
        limit_ms = self._settings.delivery_timeout_ms
        for topic in list(self.late.values()):
            assert topic.late is not None
            if topic.late.oldest_ns + self._settings.delivery_timeout_ns <= now_ns:
                text = f"records for topic {topic.name!r} were not delivered within delivery.timeout.ms={limit_ms}"
                error = TimedOut(f"{text}: {self._why_late(topic, trouble)}")
                self._fail_late(topic, now_ns - self._settings.delivery_timeout_ns, error)

    def _fail_late(self, topic: TopicQueue, than_ns: int, error: Exception) -> int:
        """Fail the records that were handed over at `than_ns` or before and wait for a broker; how many they were."""
        assert topic.late is not None
        count = 0
        for stretch in topic.late.take_older(than_ns):
            rows = stretch.rows_left()
            count += len(rows)
            self._ledger.fail_rows(stretch.handover, rows, error)
        if not topic.late.stretches:
            self.late_done(topic)
        return count

    def grew(self, queue: PartitionQueue, now_ns: int) -> None:
        """Records were appended to `queue`."""
        self._schedule.grew(queue, now_ns)

    def _trim_expiries(self) -> None:
        while self._expiries and self._expiries[0].done:
            self._expiries.popleft()
