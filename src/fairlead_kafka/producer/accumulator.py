"""The accumulator: places records on partitions, cuts batches, and fails expired records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from fairlead_kafka.base.checks import same
from fairlead_kafka.base.codes import policy
from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.metadata import TopicMetadata
from fairlead_kafka.partitioning import make_policy
from fairlead_kafka.producer.identity import Identity
from fairlead_kafka.producer.parts import Parts
from fairlead_kafka.producer.placing import Placer
from fairlead_kafka.producer.queues import Batch, PartitionQueue, TopicBuffer
from fairlead_kafka.producer.share import Share
from fairlead_kafka.producer.spans import Span, SpanQueue
from fairlead_kafka.producer.submission import Piece, Submission


class Accumulator:
    """All topics that are sent to. Work is done for each submission, run or batch; single records
    are looked at only within NumPy and the kernels."""

    def __init__(self, parts: Parts) -> None:
        self._settings = settings = parts.settings
        self._transactions = parts.transactions
        self._metadata = parts.network.metadata
        self._schedule = parts.schedule
        self._ledger = parts.ledger
        self._rng = parts.rng
        self.share = Share(settings.share_bytes, settings.buffer_memory_bytes)
        if settings.share_bytes is not None:
            parts.ledger.on_completed = self.share.completed
        self._nodes = parts.nodes
        self._placer = Placer(settings, self.share)
        self.topics: dict[str, TopicBuffer] = {}
        self._waiting: dict[str, TopicBuffer] = {}  # topics with unbound submissions
        self.late: dict[str, TopicBuffer] = {}
        """Topics with records that wait for a broker."""

    def accept(self, submission: Submission, now_ns: int) -> None:
        """Take a submission: into batches, or into its topic's unbound queue if the metadata is not
        here yet."""
        topic = self.topics.get(submission.topic)
        if topic is None:
            settings = self._settings
            made = make_policy(
                settings.partitioner,
                batch_size_bytes=settings.batch_size_bytes,
                rng=self._rng,
                skew_bytes=settings.skew_bytes,
                together=settings.coalesce_limit_bytes > settings.batch_limit_bytes,
            )
            topic = TopicBuffer(submission.topic, made, self._nodes, settings)
            self.topics[submission.topic] = topic
        self._metadata.want(topic.name, now_ns)
        topic.unbound.append(submission)
        self._bind(topic, now_ns)

    def metadata_changed(self, now_ns: int) -> None:
        """Bind records that waited for metadata, and move queues whose partitions have new
        leaders."""
        for topic in list(self._waiting.values()):
            self._bind(topic, now_ns)
        for name in {queue.topic.name: None for queue in self._schedule.active} | dict.fromkeys(self.late):
            known = self._metadata.topic(name)
            if known is not None and known.partitions:
                self.topics[name].refresh(known, self._metadata.version)
        self._schedule.leaders_changed(now_ns)
        self.share.leaders_changed(self.topics.values())
        late_leaderless = any(
            len(topic.load.available) < topic.load.partition_count for topic in self.late.values()
        )
        if self._waiting or self._schedule.leaderless or late_leaderless:
            self._metadata.request_update()

    def forget_unused(self, identity: Identity, now_ns: int) -> list[str]:
        """Forget topics that the metadata forgot (`metadata.max.idle.ms`), and return their names.
        A topic with incomplete records is wanted of the metadata again."""
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
        """Monotonic time, ns, at which `expire` has something to do; None: no record waits."""
        dues = [
            topic.unbound[0].created_ns + self._settings.unknown_topic_ns for topic in self._waiting.values()
        ]
        oldest_ns = self._ledger.oldest_ns()
        if oldest_ns is not None:
            dues.append(oldest_ns + self._settings.delivery_timeout_ns)
        return min(dues, default=None)

    def expire(self, now_ns: int, trouble: Callable[[], str]) -> None:
        """Fail expired records: their topic stayed unknown, or no broker took them in time.

        The limits are `unknown_topic_ns` and delivery.timeout.ms.
        """
        for topic in list(self._waiting.values()):
            while topic.unbound and topic.unbound[0].created_ns + self._settings.unknown_topic_ns <= now_ns:
                submission = topic.unbound.popleft()
                reason = self._why_unknown(topic, trouble)
                limit = self._settings.unknown_topic_limit
                self._ledger.fail_rows(
                    submission, None, TimedOut(f"topic {topic.name!r}: no metadata within {limit}; {reason}")
                )
            if not topic.unbound:
                self._waiting.pop(topic.name, None)
        for topic in list(self.late.values()):
            than_ns = now_ns - self._settings.delivery_timeout_ns
            if topic.late is not None and topic.late.oldest_ns <= than_ns:
                limit = f"delivery.timeout.ms={self._settings.delivery_timeout_ms}"
                text = (
                    f"records for topic {topic.name!r} were not delivered within {limit}: "
                    f"{self._why_late(topic, trouble)}"
                )
                self._fail_late(topic, than_ns, TimedOut(text))

    def why_unplaced(self, name: str | None, trouble: Callable[[], str]) -> str | None:
        """Why records of the topic `name` (None: of any) have no partition yet, in words; None if
        all have one."""
        for topic in self._waiting.values():
            if name in (None, topic.name):
                return f"no metadata of topic {topic.name!r}: {self._why_unknown(topic, trouble)}"
        for topic in self.late.values():
            if name in (None, topic.name):
                return self._why_late(topic, trouble)
        return None

    def _why_unknown(self, topic: TopicBuffer, trouble: Callable[[], str]) -> str:
        problem = self._metadata.topic(topic.name)
        return policy(problem.error_code).meaning if problem is not None and problem.error_code else trouble()

    def _why_late(self, topic: TopicBuffer, trouble: Callable[[], str]) -> str:
        return (
            f"no broker could take them ({trouble() if topic.led else 'none of its partitions has a leader'})"
        )

    def fail_unbound(self, error: Exception) -> dict[str, int]:
        """Fail every record that has no partition yet, and return how many they were, by topic."""
        failed: Counter[str] = Counter()
        for topic in list(self._waiting.values()):
            while topic.unbound:
                submission = topic.unbound.popleft()
                failed[topic.name] += submission.rows
                self._ledger.fail_rows(submission, None, error)
        self._waiting.clear()
        for topic in list(self.late.values()):
            failed[topic.name] += self._fail_late(topic, NEVER_NS, error)
        return failed

    def fail_unsent(
        self, queue: PartitionQueue, pieces: Sequence[Piece], error: Exception, now_ns: int
    ) -> None:
        """Fail records that were taken from the queue and are in no batch yet."""
        size_bytes = sum([piece.held_bytes for piece in pieces])
        self.share.bound(queue, -size_bytes)
        self._ledger.fail_pieces(pieces, error, queue.partition)
        queue.taken(size_bytes)
        self._schedule.place(queue, now_ns)

    def check(self, open_submissions: Iterable[Submission]) -> None:
        """Raise CheckFailed unless each incomplete row waits in exactly one place, and queues and
        schedule agree."""
        incomplete = list(self._ledger.batches)
        same(
            "topics that wait for metadata",
            set(self._waiting),
            {name for name, topic in self.topics.items() if topic.unbound},
        )
        late = {name: topic.late for name, topic in self.topics.items() if topic.late is not None}
        same(
            "topics that wait for brokers",
            set(self.late),
            {name for name, queue in late.items() if queue.count},
        )
        rows: Counter[Submission] = Counter()
        by_queue: dict[PartitionQueue, list[Batch]] = {}
        for batch in incomplete:
            by_queue.setdefault(batch.queue, []).append(batch)
            for piece in batch.pieces:
                rows[piece.submission] += piece.stop - piece.start
        for submission in (submission for topic in self.topics.values() for submission in topic.unbound):
            rows[submission] += submission.rows
        for name, each in late.items():
            each.check(f"a broker of topic {name!r}")
            each.policy.check()
        queues = [queue for topic in self.topics.values() for queue in topic.used()]
        for span in (
            span
            for waiting in (*late.values(), *(queue.records for queue in queues))
            for span in waiting.spans
        ):
            rows[span.submission] += span.stop - span.start
        for submission in open_submissions:
            same(
                f"rows of submission {submission.serial} that are not complete",
                submission.rows,
                rows.pop(submission, 0),
            )
        same("rows that wait and are completed", sum(rows.values()), 0)
        for queue in queues:
            queue.check(by_queue.get(queue, ()))
        self._schedule.check(queues)
        self.share.check(self.topics.values(), incomplete)

    # Binding

    def _bind(self, topic: TopicBuffer, now_ns: int) -> None:
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

    def _lacks_partition(self, submission: Submission) -> bool:
        """True if an explicit partition is not in the metadata, which should then be asked for once
        more: the topic may have more partitions by now."""
        explicit = submission.partitions
        known = self._metadata.topic(submission.topic)
        if (
            explicit is None
            or known is None
            or not len(explicit)
            or int(explicit.max()) < len(known.partitions)
        ):
            return False
        if submission.metadata_asked < 0:
            submission.metadata_asked = self._metadata.asked
        return self._metadata.answered(submission.topic) <= submission.metadata_asked

    def _place(self, topic: TopicBuffer, submission: Submission, now_ns: int) -> None:
        """Put each record into its partition's queue, have it wait for a broker, or fail it."""
        refused, unbound, bound, runs = self._placer.place(topic, submission)
        for rows, error, partition in refused:
            self._ledger.fail_rows(submission, rows, error, partition)
        if unbound is not None and topic.late is not None:
            topic.late.append(unbound)
            self.late[topic.name] = topic
        for partition, span, by_policy in bound:
            if runs is not None:
                self._move_on(topic, partition, now_ns)
            before = topic.queued_batches[partition]
            self._append(topic.queue(partition), span, now_ns)
            if not by_policy and topic.queued_batches[partition] > before:
                topic.policy.on_new_batch(partition, topic.load)
        if runs is not None and runs.ended:
            self._move_on(topic, -1, now_ns)

    def _move_on(self, topic: TopicBuffer, partition: int, now_ns: int) -> None:
        """Note that the policy now fills this partition (-1: not known), and close the open batch
        of the one it filled before, which need not linger any more."""
        if topic.filling >= 0 and topic.filling != partition:
            queue = topic.queue(topic.filling)
            queue.close()
            self._schedule.grew(queue, now_ns)
        topic.filling = partition

    def _append(self, queue: PartitionQueue, span: Span, now_ns: int) -> None:
        self.share.bound(queue, span.size_bytes)
        queue.append(span)
        self._transactions.partition_used(queue.topic.name, queue.partition)
        self._schedule.grew(queue, now_ns)

    def cut(
        self, queue: PartitionQueue, room_bytes: int, unbound: SpanQueue | None = None, unbound_bytes: int = 0
    ) -> Batch:
        """Cut a batch that is about to be sent, see `PartitionQueue.cut`."""
        batch = queue.cut(room_bytes, unbound, unbound_bytes)
        self._ledger.watch(batch)
        return batch

    def late_done(self, topic: TopicBuffer) -> None:
        """Note that no record of the topic waits for a broker any more."""
        self.late.pop(topic.name, None)

    def _fail_late(self, topic: TopicBuffer, than_ns: int, error: Exception) -> int:
        """Fail unbound records that were submitted at `than_ns` or before, and return how many they
        were."""
        assert topic.late is not None
        pieces = topic.late.take_older(than_ns)
        self._ledger.fail_pieces(pieces, error)
        if not topic.late.count:
            self.late_done(topic)
        return sum([piece.stop - piece.start for piece in pieces])
