"""Batches and queues: a topic's records without partition; each partition's records, and batches to
retry.

A batch knows the queue that it goes back to, and a queue its batches and its topic, so these
classes are one module.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from enum import Enum

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_LEADER, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.metadata import TopicMetadata
from fairlead_kafka.partitioning import LatePolicy, TopicLoad, UnkeyedPolicy
from fairlead_kafka.producer.batch_states import TRANSITIONS, BatchState, BatchTrigger
from fairlead_kafka.producer.identity import PartitionSequences
from fairlead_kafka.producer.nodes import Nodes
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.spans import Span, SpanQueue
from fairlead_kafka.producer.submission import Piece, Submission
from fairlead_kafka.producer.tuning import COMPRESSION_MARGIN, GROWTH_BYTES
from fairlead_kafka.records import Compression, Slice


class Batch:
    """Records of one partition that are sent together, and together again if need be. A batch is
    encoded when it is first sent; its bytes then stay as they are, so that a retry repeats them.
    They change only when the batch gets another epoch and sequence (`restamp`), or when it is
    split."""

    __slots__ = (
        "attempts", "base_sequence", "bound_bytes", "buffer", "count", "created_ns", "last_error",
        "leader_epoch", "maybe_written",
        "pieces", "producer_epoch", "producer_id", "queue", "retry_at_ns", "serial", "size_bytes",
        "split_limit_bytes", "state",
        "uncompressed_bytes",
    )  # fmt: skip

    def __init__(
        self,
        queue: PartitionQueue,
        pieces: list[Piece],
        created_ns: int,
        size_bytes: int,
        *,
        bound_bytes: int,
    ) -> None:
        self.queue = queue
        self.pieces = pieces
        self.count = sum([piece.stop - piece.start for piece in pieces])
        self.created_ns = created_ns
        """When its first record was submitted: delivery.timeout.ms counts from here."""
        self.size_bytes = size_bytes
        """Estimated bytes of the records in the batch (after compression), without the header."""
        self.bound_bytes = bound_bytes
        """Bytes of buffer.memory held by records that were bound on submission, by key, partition
        or policy. These records come first; those that `late` bound, as the batch was cut, come
        after them."""
        self.state = BatchState.CUT
        self.buffer: memoryview | None = None
        self.attempts = 0
        self.retry_at_ns = 0
        self.serial = 0
        """Order of first sending, 0 before; retried batches line up by it."""
        self.producer_id = NO_PRODUCER_ID
        self.producer_epoch = NO_PRODUCER_EPOCH
        self.base_sequence = NO_SEQUENCE
        self.leader_epoch = -1
        """The partition's leader epoch when it was last sent."""
        self.maybe_written = False
        """An attempt ended without a clear answer: a broker may have it, whatever another attempt
        is told."""
        self.split_limit_bytes = 0
        """Limit of the split that it is a part of, in record bytes; 0: it is no part of one."""
        self.last_error: Exception | None = None
        self.uncompressed_bytes = 0
        """Size of its buffer if it were not compressed; 0: it is not compressed."""

    @property
    def in_flight(self) -> bool:
        """True if a request with it is not answered."""
        return self.state is BatchState.IN_FLIGHT or self.state is BatchState.ABANDONED

    @property
    def done(self) -> bool:
        """True if the batch's records are completed, whatever may still come from a broker."""
        return self.state is BatchState.DONE or self.state is BatchState.ABANDONED

    @property
    def held_bytes(self) -> int:
        """Bytes of buffer.memory that the batch's records hold."""
        return sum([piece.held_bytes for piece in self.pieces])

    def fire(self, trigger: BatchTrigger) -> None:
        """Change state by the table; UsageError if it has no such row."""
        following = TRANSITIONS.get((self.state, trigger))
        if following is None:
            raise UsageError(f"a batch that is {self.state.name} cannot be {trigger.name}")
        self.state = following
        if trigger is BatchTrigger.COMPLETED:
            self.pieces, self.buffer = [], None

    def slices(self) -> list[Slice]:
        """The batch's records as slices, as `records.encode` takes them."""
        return [Slice(piece.submission.source, piece.start, piece.stop, piece.order) for piece in self.pieces]

    def __str__(self) -> str:
        return f"{self.count} record{'' if self.count == 1 else 's'} for {self.queue}"


class QueueState(Enum):
    """States of a partition's queue; `Schedule.place` sets it from the queue after each change."""

    IDLE = "nothing waits"
    WAITING = "what waits is no full batch, and lingers"
    BACKING_OFF = "the first batch failed and waits before it is sent again"
    READY = "in its node's rotation"
    PARKED = "must not be drained until a batch in flight is answered"
    LEADERLESS = "no leader is known"


class PartitionQueue:
    """The queue of one partition: batches to be sent again, in order, then records never sent."""

    __slots__ = (
        "closed_bytes", "held_bytes", "held_for", "in_flight", "node_id", "partition", "records", "retries",
        "sent_records", "sequences",
        "state", "timer_ns", "topic",
    )  # fmt: skip

    def __init__(self, topic: TopicBuffer, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.retries: deque[Batch] = deque()
        self.records = SpanQueue()
        self.closed_bytes = 0
        """Bytes of the first records, before compression, that do not linger: they are whole
        batches, or were left by the policy."""
        self.in_flight = 0
        """Batches sent and not answered, those that expired meanwhile included."""
        self.sent_records = 0
        """Records ever sent: numbers batches in their order (`Batch.serial`), also through
        splits."""
        self.held_bytes = 0
        """Bytes of buffer.memory that its records hold; counted only if `Share` has a bound."""
        self.held_for = NO_LEADER
        """The broker that `held_bytes` are counted for."""
        self.state = QueueState.IDLE
        self.node_id = NO_LEADER
        """The node in whose structures it is kept."""
        self.timer_ns = 0
        """When the schedule looks at it next; 0: no timer."""
        self.sequences = PartitionSequences()

    @property
    def waits(self) -> bool:
        """True if the queue has anything to send: batches to be sent again, or records."""
        return bool(self.retries) or self.records.count > 0

    @property
    def full(self) -> bool:
        """True if something need not linger: a batch to be sent again, records enough for a batch,
        or an open batch that the policy does not fill any more."""
        return bool(self.retries) or self.closed_bytes > 0 or self.batch_bytes >= self.topic.batch_limit_bytes

    @property
    def batch_bytes(self) -> int:
        """Bytes that the records never sent will take in batches, as estimated."""
        return self._scaled(self.records.size_bytes)

    @property
    def first_bytes(self) -> int:
        """Bytes of a request that the next batch takes, at least."""
        if self.retries:
            return self.retries[0].size_bytes + BATCH_OVERHEAD_BYTES
        least_bytes = self._scaled(self.records.next_bytes)
        return max(min(self.batch_bytes, self.topic.batch_limit_bytes), least_bytes) + BATCH_OVERHEAD_BYTES

    def room_bytes(self) -> int:
        """Record bytes, as estimated, that the open batch has room for; 0: none is open."""
        limit = self.topic.batch_limit_bytes
        return -self._scaled(self.records.size_bytes - self.closed_bytes) % limit if limit else 0

    def close(self) -> None:
        """Close the open batch, so that it does not linger: no more records will join it soon."""
        self.closed_bytes = self.records.size_bytes
        self.changed()

    def append(self, span: Span) -> None:
        """Add records that were bound to the partition."""
        self.records.append(span)
        self.changed()

    def cut(self, room_bytes: int, unbound: SpanQueue | None = None, unbound_bytes: int = 0) -> Batch:
        """Cut a batch: records that fit `room_bytes`, then unbound ones that fit `unbound_bytes`.

        Sizes are before compression. At least one record of each kind that waits is taken.
        """
        sources = [(self.records, room_bytes)] if room_bytes > 0 or unbound is None else []
        sources += [] if unbound is None else [(unbound, unbound_bytes)]
        created_ns = min([records.oldest_ns for records, _ in sources])
        pieces, bound_bytes = [], 0
        for records, most_bytes in sources:
            pieces += records.cut(most_bytes)
            if records is self.records:
                bound_bytes = sum([piece.held_bytes for piece in pieces])
                self.taken(bound_bytes)
        held_bytes = sum([piece.held_bytes for piece in pieces])
        return Batch(self, pieces, created_ns, max(self._scaled(held_bytes), 1), bound_bytes=bound_bytes)

    def taken(self, size_bytes: int) -> None:
        """Note that the first `size_bytes` of the records never sent were taken."""
        self.closed_bytes = max(self.closed_bytes - size_bytes, 0)
        self.changed()

    @hook("producer: a batch goes back into its queue")
    def put_back(self, batch: Batch) -> None:
        """Queue a batch to be sent again, in front of all batches that were first sent after it."""
        batch.fire(BatchTrigger.PUT_BACK)
        retries = self.retries
        position = 0
        while position < len(retries) and retries[position].serial < batch.serial:
            position += 1
        retries.insert(position, batch)
        self.changed()

    def next_retry(self) -> Batch:
        """Take the first batch that is to be sent again off the queue."""
        batch = self.retries.popleft()
        self.changed()
        return batch

    def remove(self, batch: Batch) -> None:
        """Remove a batch that was to be sent again."""
        self.retries.remove(batch)
        self.changed()

    def count_batches(self) -> int:
        """Number of batches of batch.size that the queue holds."""
        limit = self.topic.batch_limit_bytes
        if not limit:
            return self.records.count + len(self.retries)
        closed, opened = (
            self._scaled(self.closed_bytes),
            self._scaled(self.records.size_bytes - self.closed_bytes),
        )
        return -(-closed // limit) - (-opened // limit) + len(self.retries)

    def _scaled(self, size_bytes: int) -> int:
        return int(size_bytes * self.topic.ratio) if self.topic.compressed else size_bytes

    def changed(self) -> None:
        """Update this partition's count of queued batches, which policies read
        (`TopicLoad.queued_batches`)."""
        self.topic.queued_batches[self.partition] = self.count_batches()

    def check(self, incomplete: Sequence[Batch]) -> None:
        """Raise CheckFailed if the queue's state contradicts itself or `incomplete`.

        `incomplete`: the batches of this partition that are neither delivered nor failed.
        """
        queued = self.topic.queued_batches[self.partition]
        if (
            not self.topic.compressed
        ):  # else they are what was estimated when something was last put here, or taken
            same(f"{self}: batches queued", queued, self.count_batches())
        self.records.check(str(self))
        holds(f"{self}: {self.closed_bytes} bytes closed", 0 <= self.closed_bytes <= self.records.size_bytes)
        same(
            f"{self}: batches to be sent again",
            set(self.retries),
            {batch for batch in incomplete if not batch.in_flight},
        )
        holds(
            f"{self}: a batch waits in another state",
            all(batch.state is BatchState.RETRY for batch in self.retries),
        )
        under_way = sum(batch.in_flight for batch in incomplete)
        holds(
            f"{self}: {self.in_flight} batches in flight, {under_way} of them not complete",
            self.in_flight >= under_way,
        )
        serials = [batch.serial for batch in self.retries]
        holds(f"{self}: what is sent again is out of order: {serials}", serials == sorted(serials))
        for batch in incomplete:
            same(f"records of {batch}", batch.count, sum(piece.stop - piece.start for piece in batch.pieces))
        numbered = [batch for batch in incomplete if batch.base_sequence != NO_SEQUENCE]
        self.sequences.check(str(self), numbered)

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.partition}"


class LateQueue(SpanQueue):
    """A topic's records that have no partition yet, under a policy that binds them when a broker is
    ready."""

    __slots__ = ("blocked", "counted", "joining", "kept_ns", "policy")

    def __init__(self, policy: LatePolicy) -> None:
        super().__init__()
        self.policy = policy
        self.counted: dict[int, bool] = {}
        """Broker → True if its partitions were counted at the last look."""
        self.joining: dict[int, None] = {}
        """Partitions that are to become part of the open transaction, so that they can be bound
        to."""
        self.kept_ns = -NS_PER_S * 3600
        """When all records not kept for busy brokers were taken last; linger.ms counts from then
        for later ones."""
        self.blocked: set[int] = set()
        """Partitions that are not counted, as a batch is to be repeated, or its fate is open."""


class _Unready:
    """The partitions led by brokers that took no data for too long, as a container."""

    __slots__ = ("_nodes", "_topic")

    def __init__(self, topic: TopicBuffer, nodes: Nodes) -> None:
        self._topic = topic
        self._nodes = nodes

    def __bool__(self) -> bool:
        return bool(self._nodes.unready)

    def __contains__(self, partition: int) -> bool:
        return self._topic.leaders[partition] in self._nodes.unready


class TopicBuffer:
    """One topic's records that wait. A partition's queue is made when its first record comes, so
    partitions without records cost nothing."""

    __slots__ = (
        "batch_limit_bytes",
        "coalesce_limit_bytes",
        "compressed",
        "compression_ratio",
        "filling",
        "late",
        "leaders",
        "led",
        "linger_ns",
        "load",
        "max_request_bytes",
        "metadata",
        "metadata_version",
        "name",
        "policy",
        "queued_batches",
        "queues",
        "unbound",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        policy: UnkeyedPolicy | LatePolicy,
        nodes: Nodes,
        settings: ProducerSettings,
    ) -> None:
        self.name = name
        self.policy = policy
        self.max_request_bytes = settings.max_request_bytes
        self.batch_limit_bytes = settings.batch_limit_bytes
        """Record bytes of one batch, without its header."""
        self.linger_ns = settings.linger_ns
        """How long an open batch waits for more records (linger.ms), ns."""
        self.coalesce_limit_bytes = settings.coalesce_limit_bytes
        """Record bytes of one batch if more than `batch_limit_bytes` wait; less once a broker found
        a batch too large."""
        self.unbound: deque[Submission] = deque()
        """Submissions that wait for metadata."""
        self.late = LateQueue(policy) if isinstance(policy, LatePolicy) else None
        """Records that wait for a broker, under a policy that binds at drain time."""
        self.filling = -1
        """The partition that the policy gave records to last, and may go on with; -1: none."""
        self.led: dict[int, list[int]] = {}
        """The partitions that each broker leads."""
        self.queues: list[PartitionQueue | None] = []
        self.queued_batches = array("q")
        """Queued batches by partition, for the policy: see `TopicLoad`."""
        self.leaders: list[int] = []
        self.metadata: TopicMetadata | None = None
        self.metadata_version = -1
        self.compressed = settings.compression is not Compression.none
        self.compression_ratio = 1.0
        """Estimated compressed size of a batch as a share of its uncompressed size (Kafka's
        `CompressionRatioEstimator`)."""
        self.load = TopicLoad(1, (), self.queued_batches, _Unready(self, nodes), self.room_bytes)

    @property
    def ratio(self) -> float:
        """Estimated compressed size of a batch as a share of its size before (0 to 1), with a
        margin; 1 without compression."""
        return self.compression_ratio * COMPRESSION_MARGIN if self.compressed else 1.0

    def refresh(self, metadata: TopicMetadata, version: int) -> None:
        """Take over the number of partitions and their leaders from the metadata, of which
        `version` is known."""
        self.metadata_version = version
        if (
            metadata is self.metadata
            and [entry.leader for entry in metadata.partitions] == self.leaders[: len(metadata.partitions)]
        ):
            return
        self.metadata = metadata
        count = len(metadata.partitions)
        missing = count - len(self.queues)
        if missing > 0:
            self.queues += [None] * missing
            self.queued_batches.extend([0] * missing)
        self.leaders = [entry.leader for entry in metadata.partitions] + [NO_LEADER] * -min(missing, 0)
        self.load.partition_count = count
        self.load.available = [entry.partition for entry in metadata.partitions if entry.leader != NO_LEADER]
        self.led = {}
        for partition in self.load.available:
            self.led.setdefault(self.leaders[partition], []).append(partition)
        if self.late is not None:
            self.late.policy.arrange(self.led, count)
            self.late.counted.clear()

    def most_bytes(self, records: SpanQueue, parts: int) -> int:
        """Bytes of `records` for one batch, before compression, if `parts` are to fit a request.

        At most batch.max.size, at least batch.size. The bytes that many records take in one batch
        beyond their sizes are allowed for.
        """
        limit = self.batch_limit_bytes
        coalesced = min(
            self.coalesce_limit_bytes, self.max_request_bytes // max(parts, 1) - BATCH_OVERHEAD_BYTES
        )
        if coalesced > limit and records.size_bytes * self.ratio > limit:
            first = records.spans[0]
            limit = max(
                int(coalesced / (1 + GROWTH_BYTES * (first.stop - first.start) / first.size_bytes)), limit
            )
        return int(limit / self.ratio) if self.compressed else limit

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made if it has none."""
        queue = self.queues[partition]
        if queue is None:
            queue = self.queues[partition] = PartitionQueue(self, partition)
        return queue

    def room_bytes(self, partition: int) -> int:
        """Bytes of records that the partition's open batch has room for; see
        `TopicLoad.room_bytes`."""
        queue = self.queues[partition]
        return 0 if queue is None else queue.room_bytes()

    def quiet(self) -> bool:
        """True if none of its records waits or is in flight."""
        if self.unbound or (self.late is not None and self.late.count):
            return False
        return all(
            not queue.waits and not queue.in_flight and queue.sequences.at_rest for queue in self.used()
        )

    def used(self) -> Sequence[PartitionQueue]:
        """The queues made so far."""
        return [queue for queue in self.queues if queue is not None]
