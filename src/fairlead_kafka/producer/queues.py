"""What waits where: a topic's queue of records without partition, and a queue of batches for each partition that has any."""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Sequence
from enum import Enum
from typing import Any

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_LEADER, NO_SEQUENCE
from fairlead_kafka.base.limits import BATCH_OVERHEAD_BYTES
from fairlead_kafka.core.metadata import TopicMetadata
from fairlead_kafka.partitioning import BrokerAvailability, LatePolicy, TopicLoad, UnkeyedPolicy
from fairlead_kafka.producer.batch import GROWTH_BYTES, Batch
from fairlead_kafka.producer.handover import Handover
from fairlead_kafka.producer.identity import PartitionSequences
from fairlead_kafka.producer.late import LateQueue
from fairlead_kafka.producer.settings import ProducerSettings


class QueueState(Enum):
    """Where a partition's queue is kept; `Schedule.place` decides it anew from the queue whenever something happened to it."""

    IDLE = "no batch waits"
    WAITING = "the first batch lingers"
    BACKING_OFF = "the first batch failed and waits before it is sent again"
    READY = "in its node's rotation"
    PARKED = "must not be drained until a batch in flight is answered"
    LEADERLESS = "no leader is known"


class PartitionQueue:
    """The batches of one partition that are not in flight, oldest first. Retried ones come first, in the order they were drained."""

    __slots__ = (
        "batches",
        "drained_records",
        "held_bytes",
        "held_for",
        "in_flight",
        "node_id",
        "partition",
        "sequences",
        "state",
        "timer_ns",
        "topic",
    )

    def __init__(self, topic: TopicQueue, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.batches: deque[Batch] = deque()
        self.in_flight = 0
        """Batches sent and not answered, those that expired meanwhile included."""
        self.drained_records = 0
        """Records ever drained: numbers batches in their order (`Batch.serial`), also through splits."""
        self.held_bytes = 0
        """What its records hold of buffer.memory, if `Share` has a bound to watch over."""
        self.held_for = NO_LEADER
        """The broker that these are counted for."""
        self.state = QueueState.IDLE
        self.node_id = NO_LEADER
        """The node in whose structures it is kept."""
        self.timer_ns = 0
        """When the schedule looks at it next; 0: no timer."""
        self.sequences = PartitionSequences()

    def room_bytes(self) -> int:
        """Record bytes that the open batch still takes; 0 if none is open."""
        if not self.batches or self.batches[-1].closed:
            return 0
        return max(self.topic.batch_limit_bytes - self.batches[-1].size_bytes, 0)

    @hook("producer: a batch goes back into its queue")
    def put_back(self, batch: Batch) -> None:
        """A batch that was drained waits again: before all that was drained after it, and before what never was."""
        batches = self.batches
        position = 0
        while position < len(batches) and 0 < batches[position].serial < batch.serial:
            position += 1
        batches.insert(position, batch)
        self.topic.queued_batches[self.partition] += batch.turns

    def pop(self, limit_bytes: int = 0) -> Batch:
        """The first batch leaves the queue; with it, in it, the full ones behind it that fit `limit_bytes` and were not sent either."""
        batches = self.batches
        batch = batches.popleft()
        batch.closed = True
        if not batch.serial:
            limit_bytes = min(limit_bytes, self.topic.gather_limit_bytes)
            while batches and batches[0].closed:
                behind = batches[0]
                if batch.size_bytes + behind.size_bytes + GROWTH_BYTES * (batch.count + behind.count) > limit_bytes:
                    break
                batch.absorb(batches.popleft())
        self.topic.queued_batches[self.partition] -= batch.turns
        return batch

    def remove(self, batch: Batch) -> None:
        """A waiting batch leaves the queue, wherever it is."""
        self.batches.remove(batch)
        self.topic.queued_batches[self.partition] -= batch.turns

    def check(self, unsettled: Sequence[Batch]) -> None:
        """`unsettled`: the batches of this partition that are neither delivered nor failed. CheckFailed if something differs."""
        same(f"{self}: turns queued", self.topic.queued_batches[self.partition], sum(batch.turns for batch in self.batches))
        same(f"{self}: batches that wait", set(self.batches), {batch for batch in unsettled if not batch.in_flight})
        under_way = sum(batch.in_flight for batch in unsettled)
        holds(f"{self}: {self.in_flight} batches in flight, {under_way} of them not settled", self.in_flight >= under_way)
        serials = [batch.serial for batch in self.batches if batch.serial]
        holds(f"{self}: what is sent again is out of order: {serials}", serials == sorted(serials))
        holds(f"{self}: a new batch before one that is sent again", all(batch.serial for batch in [*self.batches][: len(serials)]))
        for batch in unsettled:
            same(f"records of {batch}", batch.count, sum(stop - start for _, start, stop, _, _ in batch.pieces))
        numbered = [batch for batch in unsettled if batch.base_sequence != NO_SEQUENCE]
        self.sequences.check(str(self), numbered)

    def __str__(self) -> str:
        return f"{self.topic.name}-{self.partition}"


class _Unready:
    """The partitions led by brokers that took no data for too long, as a container."""

    __slots__ = ("_availability", "_topic")

    def __init__(self, topic: TopicQueue, availability: BrokerAvailability) -> None:
        self._topic = topic
        self._availability = availability

    def __bool__(self) -> bool:
        return bool(self._availability.unready())

    def __contains__(self, partition: Any) -> bool:
        return self._availability.is_unready(self._topic.leaders[partition])


class TopicQueue:
    """One topic. Partitions cost nothing until they have records: their queues are made on first use."""

    __slots__ = (
        "batch_limit_bytes",
        "compression_ratio",
        "gather_limit_bytes",
        "late",
        "leaders",
        "led",
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
        availability: BrokerAvailability,
        settings: ProducerSettings,
    ) -> None:
        self.name = name
        self.policy = policy
        self.max_request_bytes = settings.max_request_bytes
        self.batch_limit_bytes = settings.batch_limit_bytes
        """Record bytes of one batch, without its header."""
        self.gather_limit_bytes = settings.gather_limit_bytes
        """Record bytes of a batch gathered from several that waited; less once a broker found one too large."""
        self.unbound: deque[Handover] = deque()
        """Hand-overs that wait for metadata, each with its time of arrival."""
        self.late = LateQueue(policy) if isinstance(policy, LatePolicy) else None
        """Records that wait for a broker, under a policy that binds at drain time."""
        self.led: dict[int, list[int]] = {}
        """The partitions that each broker leads."""
        self.queues: list[PartitionQueue | None] = []
        self.queued_batches = array("q")
        """By partition, for the policy: see `TopicLoad`."""
        self.leaders: list[int] = []
        self.metadata: TopicMetadata | None = None
        self.metadata_version = -1
        self.compression_ratio = 1.0
        """Estimated compressed size of a batch as a share of its uncompressed size (Kafka's `CompressionRatioEstimator`)."""
        self.load = TopicLoad(1, (), self.queued_batches, _Unready(self, availability), self.room_bytes)

    def refresh(self, metadata: TopicMetadata, version: int) -> None:
        """Follow the metadata: the number of partitions and their leaders."""
        self.metadata_version = version
        if metadata is self.metadata and [entry.leader for entry in metadata.partitions] == self.leaders[: len(metadata.partitions)]:
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
            self.late.arrange(self.led, count)

    def portion_bytes(self, parts: int | None = None) -> int:
        """Record bytes that a batch is gathered of at most: batch.max.size, and a portion of max.request.size.

        That is an even one of all partitions that a broker leads, or of so many if these are more.
        """
        led = max(map(len, self.led.values()), default=1)
        return min(self.gather_limit_bytes, self.max_request_bytes // (led if parts is None else min(led, parts)) - BATCH_OVERHEAD_BYTES)

    def queue(self, partition: int) -> PartitionQueue:
        """The queue of `partition`, made if it has none."""
        queue = self.queues[partition]
        if queue is None:
            queue = self.queues[partition] = PartitionQueue(self, partition)
        return queue

    def room_bytes(self, partition: int) -> int:
        """See `TopicLoad.room_bytes`."""
        queue = self.queues[partition]
        return 0 if queue is None else queue.room_bytes()

    def quiet(self) -> bool:
        """True if nothing of it waits or is under way."""
        if self.unbound or (self.late is not None and self.late.stretches):
            return False
        return all(not queue.batches and not queue.in_flight and queue.sequences.settled for queue in self.used())

    def used(self) -> Sequence[PartitionQueue]:
        """The queues made so far."""
        return [queue for queue in self.queues if queue is not None]
