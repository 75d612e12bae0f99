"""The log that model brokers share: records by partition, and the state that a broker keeps of each
producer.

The rules are Kafka's (KIP-98, `ProducerStateManager`, `ProducerAppendInfo`), written independently
of `broker.log.producers`, so that an error there is found. Batches are kept as they came, and never
decoded.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.ids import NO_SEQUENCE
from fairlead_kafka.base.limits import BROKER_BATCH_WINDOW, SEQUENCE_MAX
from fairlead_kafka.records import BatchHeader
from fairlead_kafka.records.layout import CONTROL_MASK, TRANSACTIONAL_MASK

NOWHERE = -1
_MARKER = TRANSACTIONAL_MASK | CONTROL_MASK
_MARKER_BYTES = 78
"""Size of a marker's batch: its header and one record (KIP-98)."""


@dataclass(slots=True)
class StoredBatch:
    """One batch in a partition, at `base_offset`; `header.base_offset` is the producer's, which
    brokers ignore.

    `data` is None where only sizes are kept.
    """

    base_offset: int
    header: BatchHeader
    data: bytes | None
    committed: bool | None = None
    """For a transaction marker, True: commit, False: abort. None for a producer's batch."""

    @property
    def end_offset(self) -> int:
        """The offset after the batch's last record."""
        return self.base_offset + self.header.count


class ProducerWindow:
    """State that a partition keeps of one producer id."""

    __slots__ = ("batches", "epoch")

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.batches: list[tuple[int, int, int]] = []
        """First and last sequence and base offset of the newest batches, oldest first."""

    def note(self, first: int, last: int, base_offset: int) -> None:
        """Note one more batch of the producer that was written."""
        self.batches.append((first, last, base_offset))
        if len(self.batches) > BROKER_BATCH_WINDOW:
            del self.batches[0]


@dataclass(eq=False)  # not slots=True: that would make a class which its hook does not know
class ModelPartition:
    """One partition of the cluster; its log stays the same when its leader changes."""

    leader: int
    leader_epoch: int = 0
    previous_leader: int = NOWHERE
    moved_ns: int = 0
    """Virtual time of the last leader change, ns; other brokers may learn of it later."""
    end_offset: int = 0
    high_watermark: int = 0
    """Offset after the last acknowledged record: no leader change takes records before it back."""
    size_bytes: int = 0
    """Bytes of all batches ever written, headers included."""
    batches: list[StoredBatch] = field(default_factory=list)
    producers: dict[int, ProducerWindow] = field(default_factory=dict)

    @hook("model broker: sequences are checked")
    def check_sequence(self, header: BatchHeader, *, forgetful: bool) -> tuple[int, int]:
        """Error code and base offset: (0, NOWHERE) to append, (0, offset) for a batch that is here
        already.

        `forgetful`: answer as brokers before Kafka 2.5 to a producer that they do not know, and to
        old duplicates.
        """
        producer_id, epoch, first = header.producer_id, header.producer_epoch, header.base_sequence
        if producer_id < 0:
            return ErrorCode.NONE, NOWHERE
        window = self.producers.get(producer_id)
        if window is None:
            return (ErrorCode.UNKNOWN_PRODUCER_ID if forgetful and first else ErrorCode.NONE), NOWHERE
        if epoch != window.epoch:
            if epoch < window.epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, NOWHERE
            return (ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if first else ErrorCode.NONE), NOWHERE
        last = header.last_sequence
        for known_first, known_last, base_offset in window.batches:
            if known_first == first and known_last == last:
                return ErrorCode.NONE, base_offset
        newest = window.batches[-1][1] if window.batches else -1
        if first == (0 if newest == SEQUENCE_MAX else newest + 1):
            return ErrorCode.NONE, NOWHERE
        if forgetful and last <= newest:
            return ErrorCode.DUPLICATE_SEQUENCE_NUMBER, NOWHERE
        return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, NOWHERE

    def append(self, header: BatchHeader, data: bytes | None) -> int:
        """Write a batch. Returns its base offset."""
        base_offset = self.end_offset
        self.batches.append(StoredBatch(base_offset, header, data))
        self.end_offset = base_offset + header.count
        self.size_bytes += header.size_bytes
        if header.producer_id >= 0:
            self._remember(header, base_offset)
        return base_offset

    def mark(self, producer_id: int, epoch: int, committed: bool) -> None:
        """Write the marker of a transaction that ended, which no change of leader takes back.
        Batches of the producer in older epochs are refused from now on."""
        header = BatchHeader(
            0, _MARKER_BYTES, 0, self.leader_epoch, 0, _MARKER, 0, 0, 0, producer_id, epoch, NO_SEQUENCE, 1
        )
        self.batches.append(StoredBatch(self.end_offset, header, None, committed))
        self.end_offset += 1
        self.high_watermark = self.end_offset
        self._remember(header, self.end_offset - 1)

    def _remember(self, header: BatchHeader, base_offset: int) -> None:
        window = self.producers.get(header.producer_id)
        if window is None or window.epoch != header.producer_epoch:
            window = self.producers[header.producer_id] = ProducerWindow(header.producer_epoch)
        if not header.control:
            window.note(header.base_sequence, header.last_sequence, base_offset)

    def truncate(self) -> int:
        """Remove the records that were never acknowledged, as a new leader that had not replicated
        them would. Returns how many."""
        before = self.end_offset
        while self.batches and self.batches[-1].end_offset > self.high_watermark:
            batch = self.batches.pop()
            self.end_offset = batch.base_offset
            self.size_bytes -= batch.header.size_bytes
        if self.end_offset != before:
            self.producers.clear()
            for batch in self.batches:
                if batch.header.producer_id >= 0:
                    self._remember(batch.header, batch.base_offset)
        return before - self.end_offset

    def lead(self, node_id: int, now_ns: int) -> None:
        """Make `node_id` (or NOWHERE: nobody) the leader, in a newer epoch."""
        self.previous_leader, self.leader = self.leader, node_id
        self.leader_epoch += 1
        self.moved_ns = now_ns


@dataclass(slots=True, eq=False)
class ModelTopic:
    """One topic."""

    name: str
    topic_id: uuid.UUID
    partitions: list[ModelPartition]


class ModelLog:
    """All topics, by name and by id."""

    def __init__(self) -> None:
        self.topics: dict[str, ModelTopic] = {}
        self._by_id: dict[uuid.UUID, ModelTopic] = {}

    def create(self, name: str, leaders: list[int]) -> ModelTopic:
        """A topic with a partition for each of `leaders`; its id follows from its name."""
        topic = ModelTopic(
            name, uuid.uuid5(uuid.NAMESPACE_DNS, name), [ModelPartition(leader) for leader in leaders]
        )
        self.topics[name] = self._by_id[topic.topic_id] = topic
        return topic

    def find(self, name: str, topic_id: uuid.UUID) -> ModelTopic | None:
        """The topic of a request: by name, or by id if it has no name."""
        return self.topics.get(name) if name else self._by_id.get(topic_id)

    def partition(self, name: str, index: int) -> ModelPartition | None:
        """The partition of a topic by name and number; None if there is none."""
        topic = self.topics.get(name)
        return topic.partitions[index] if topic is not None and 0 <= index < len(topic.partitions) else None

    def each(self) -> Iterator[tuple[str, int, ModelPartition]]:
        """Every partition with its topic's name and its number."""
        for topic in self.topics.values():
            for index, partition in enumerate(topic.partitions):
                yield topic.name, index, partition
