"""One partition's part of the shared log: its offsets, its index, and what it remembers of producers and epochs."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from fairlead.base.codes import ErrorCode
from fairlead.base.config import Settings
from fairlead.base.errors import BrokerError
from fairlead.broker.log.index import BatchIndex, LeaderEpochs, Location
from fairlead.broker.log.producers import KnownBatch, ProducerStates
from fairlead.broker.log.transactions import AbortedRange, PartitionTransactions
from fairlead.records import BatchHeader, EndMarker


@dataclass(slots=True)
class TopicLimits:
    """A topic's settings as the log needs them, shared by its partitions and updated in place."""

    max_message_bytes: int
    segment_bytes: int
    flush_messages: int
    log_append_time: bool
    retention_ms: int
    retention_bytes: int

    @classmethod
    def of(cls, settings: Settings) -> TopicLimits:
        """From settings of scope "topic"."""
        limits = cls(0, 0, 0, False, 0, 0)
        limits.update(settings)
        return limits

    def update(self, settings: Settings) -> None:
        """Take over changed settings."""
        self.max_message_bytes = settings["max.message.bytes"]
        self.segment_bytes = settings["segment.bytes"]
        self.flush_messages = settings["flush.messages"]
        self.log_append_time = settings["message.timestamp.type"] == "LogAppendTime"
        self.retention_ms = settings["retention.ms"]
        self.retention_bytes = settings["retention.bytes"]


class Partition:
    """A partition hosted by this broker. Offsets: log_start <= high_watermark <= log_end (the next to be given)."""

    __slots__ = (
        "_unsynced_count",
        "epochs",
        "high_watermark",
        "index",
        "limits",
        "log_end",
        "log_start",
        "partition",
        "producers",
        "size_bytes",
        "topic",
        "topic_id",
        "topic_id_bytes",
        "transactions",
    )

    def __init__(self, topic: str, topic_id: uuid.UUID, partition: int, limits: TopicLimits) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.topic_id_bytes = topic_id.bytes
        self.partition = partition
        self.limits = limits
        self.log_start = 0
        self.high_watermark = 0
        self.log_end = 0
        self.size_bytes = 0
        self.index = BatchIndex()
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates()
        self.transactions: PartitionTransactions | None = None
        """None: no transaction was ever seen here."""
        self._unsynced_count = 0

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def record(self, header: BatchHeader, base_offset: int, leader_epoch: int, file: int, position: int, timestamp_ms: int) -> None:
        """Enter an appended or recovered batch; `timestamp_ms` is its newest record's, or the time now if it carries none."""
        last_offset = base_offset + header.last_offset_delta
        self.index.append(base_offset, last_offset, file, position, header.size_bytes, timestamp_ms)
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        self.log_end = last_offset + 1
        self.size_bytes += header.size_bytes

    def record_producer(
        self, header: BatchHeader, base_offset: int, marker: EndMarker | None, log_append_time_ms: int, touched_ms: int
    ) -> None:
        """Remember who wrote a batch, and what it means for a transaction; `marker` is what a control batch says."""
        if marker is not None:
            self.producers.record_marker(header, marker.coordinator_epoch, touched_ms)
            if self.transactions is not None:
                self.transactions.end(header.producer_id, base_offset, marker.committed)
            return
        self.producers.record(header, base_offset, log_append_time_ms, touched_ms)
        if header.transactional:
            if self.transactions is None:
                self.transactions = PartitionTransactions()
            self.transactions.begin(header.producer_id, base_offset)

    def check_producer(self, header: BatchHeader) -> KnownBatch | None:
        """None if a batch with a producer id may be appended; the batch written before if this one is its duplicate.

        Raises BrokerError: see `ProducerStates.check`; INVALID_TXN_STATE for a batch outside the transaction that its producer has open.
        """
        duplicate = self.producers.check(header)
        if duplicate is None and not header.transactional and self.in_transaction(header.producer_id):
            raise BrokerError(ErrorCode.INVALID_TXN_STATE, f"{self}: producer {header.producer_id} has a transaction open here")
        return duplicate

    @property
    def last_stable_offset(self) -> int:
        """Below it lies nothing of a transaction that is not settled; readers of committed records go no further."""
        if self.transactions is None:
            return self.high_watermark
        return max(self.log_start, self.transactions.stable_offset(self.high_watermark))

    def aborted(self, start: int, stop: int) -> list[AbortedRange]:
        """The aborted transactions with batches in `start` to `stop` (excluded), by first offset."""
        return [] if self.transactions is None else self.transactions.aborted(start, stop)

    def in_transaction(self, producer_id: int) -> bool:
        """True if the producer has an open transaction with batches here."""
        return self.transactions is not None and producer_id in self.transactions.open

    def needs_sync(self, count: int) -> bool:
        """Count `count` more records; True if `flush.messages` asks for a sync now (and the count begins anew)."""
        self._unsynced_count += count
        if self._unsynced_count < self.limits.flush_messages:
            return False
        self._unsynced_count = 0
        return True

    def select(self, offset: int, limit_offset: int, max_bytes: int, at_least_one: bool) -> list[Location]:
        """The batches that hold `offset` and what follows below `limit_offset`, within `max_bytes` (one in any case if asked)."""
        index = self.index
        return index.select(index.first_reaching(offset), index.below(limit_offset), max_bytes, at_least_one)

    def available_bytes(self, offset: int, limit_offset: int, enough_bytes: int) -> int:
        """Bytes of batches from `offset` to `limit_offset`; counting ends once `enough_bytes` are there."""
        if offset >= limit_offset:
            return 0
        index = self.index
        total_bytes = 0
        for number in range(index.first_reaching(offset), index.below(limit_offset)):
            total_bytes += index.sizes_bytes[number]
            if total_bytes >= enough_bytes:
                break
        return total_bytes

    def move_start(self, offset: int) -> list[tuple[int, int]]:
        """Raise the log's start to `offset`; the batches wholly below it, as (file, size in bytes), are forgotten."""
        self.log_start = max(self.log_start, offset)
        if offset > self.log_end:
            self.log_end = self.high_watermark = offset
        if self.transactions is not None:
            self.transactions.trim(self.log_start)
        dropped = self.index.drop_front(self.index.first_reaching(self.log_start))
        self.size_bytes -= sum(size_bytes for _file, size_bytes in dropped)
        return dropped

    def drop_all(self) -> list[tuple[int, int]]:
        """Forget every batch (the topic was deleted); what is forgotten as (file, size in bytes)."""
        self.size_bytes = 0
        return self.index.drop_front(len(self.index))

    def expired_start(self, now_ms: int) -> int:
        """Where the log would start by `retention.ms` and `retention.bytes`; whole batches below the high watermark only.

        As Kafka's `UnifiedLog.deleteOldSegments`, with batches in place of segments: from the front, as long as the oldest
        one is past its time, or the rest without it still has `retention.bytes`.
        """
        index, limits = self.index, self.limits
        stop = index.below(self.high_watermark)
        number, rest_bytes = 0, self.size_bytes
        if limits.retention_ms >= 0:
            while number < stop and now_ms - index.max_timestamps_ms[number] > limits.retention_ms:
                rest_bytes -= index.sizes_bytes[number]
                number += 1
        if limits.retention_bytes >= 0:
            while number < stop and rest_bytes - index.sizes_bytes[number] >= limits.retention_bytes:
                rest_bytes -= index.sizes_bytes[number]
                number += 1
        if number == 0:
            return self.log_start
        return max(self.log_start, index.last_offsets[number - 1] + 1)
