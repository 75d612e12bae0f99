"""One partition's part of the shared log: its offsets, its index, and its state of producers and
leader epochs."""

from __future__ import annotations

import uuid

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import SEQUENCE_MAX
from fairlead_kafka.broker.log.index import (
    CONTROL,
    EMPTY_INDEX,
    FILE,
    LOG_APPEND_TIME,
    MARKER,
    NO_MARK,
    PRODUCER,
    SIZE,
    WIDTH,
    BatchIndex,
    LeaderEpochs,
    Location,
    pack_mark,
    unpack_mark,
)
from fairlead_kafka.broker.log.limits import TopicLimits
from fairlead_kafka.broker.log.producers import KnownBatch, ProducerEntry, ProducerStates
from fairlead_kafka.broker.log.transactions import EPOCH_PER_TRANSACTION, AbortedRange, PartitionTransactions
from fairlead_kafka.records import BatchHeader, EndMarker


class Partition:
    """A partition hosted by this broker.

    Offsets: log_start <= high_watermark <= written_end <= log_end. `log_end` is the next offset to
    be given; batches below `written_end` are in the file, and synced if the topic asks for it;
    `high_watermark` is for replication to set, and with one replica it is `written_end`.
    """

    __slots__ = (
        "_transactions",
        "_transactions_known",
        "_unsynced_count",
        "cuts",
        "epochs",
        "high_watermark",
        "index",
        "limits",
        "log_end",
        "log_start",
        "partition",
        "passes",
        "producers",
        "size_bytes",
        "topic",
        "topic_id",
        "topic_id_bytes",
        "written_end",
    )

    def __init__(self, topic: str, topic_id: uuid.UUID, partition: int, limits: TopicLimits) -> None:
        self.topic = topic
        self.topic_id = topic_id
        self.topic_id_bytes = topic_id.bytes
        self.partition = partition
        self.limits = limits
        self.log_start = 0
        self.high_watermark = 0
        self.written_end = 0
        self.log_end = 0
        self.size_bytes = 0
        self.index = EMPTY_INDEX
        self.epochs = LeaderEpochs()
        self.producers = ProducerStates()
        self._transactions: PartitionTransactions | None = None
        self._transactions_known = True
        """False: they are read from the index when somebody asks."""
        self.passes: tuple[tuple[int, int], ...] = ()
        """Passes of compaction: (the offset it came to, when in milliseconds since 1970), in order
        of both."""
        self._unsynced_count = 0
        self.cuts = 0
        """How many times offsets were taken back, to be given to other records."""

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def record(
        self,
        header: BatchHeader,
        base_offset: int,
        leader_epoch: int,
        location: Location,
        timestamp_ms: int,
        marker: EndMarker | None,
        touched_ms: int,
    ) -> None:
        """Enter an appended or recovered batch, and update the state of its producer and
        transaction.

        `timestamp_ms` is its newest record's, or the time now if it carries none; `marker` is the
        content of a control batch.
        """
        last_offset = base_offset + header.last_offset_delta
        index = self.index
        if index is EMPTY_INDEX:
            index = self.index = BatchIndex()
        producer_id = header.producer_id
        mark = pack_mark(header, marker) if producer_id >= 0 else NO_MARK
        index.append(base_offset, last_offset, *location, timestamp_ms, producer_id, mark)
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, base_offset)
        self.log_end = last_offset + 1
        self.size_bytes += location.size_bytes
        if producer_id < 0 or (header.control and marker is None):
            return
        if marker is not None:
            self.producers.record_marker(
                producer_id, header.producer_epoch, marker.coordinator_epoch, base_offset, touched_ms
            )
            if self.transactions is not None:
                self.transactions.end(producer_id, base_offset, marker.committed, self.high_watermark)
            return
        self.producers.record(header, base_offset, timestamp_ms if header.timestamp_type else -1, touched_ms)
        if header.transactional:
            transactions = self.transactions
            if transactions is None:
                transactions = self._transactions = PartitionTransactions()
            transactions.begin(producer_id, base_offset)

    def newest_timestamp_ms(self, producer_id: int, entry: ProducerEntry) -> int:
        """Greatest timestamp of a producer's newest batch or marker, in ms since 1970: what Kafka's
        `ProducerStateEntry.lastTimestamp` holds. If that batch is not in the log any more, the time
        at which it was appended."""
        index = self.index
        number = index.first_reaching(entry.last_offset)
        if number < len(index):
            _base, last, _file, _position, _size, max_timestamp_ms, wrote, _mark = index.row(number)
            if (last, wrote) == (entry.last_offset, producer_id):
                return max_timestamp_ms
        return entry.touched_ms

    def _recall(self, number: int, touched_ms: int) -> None:
        """Set the producer's state again from batch `number` of the index."""
        base_offset, last_offset, _file, _position, _size, max_timestamp_ms, producer_id, mark = (
            self.index.row(number)
        )
        sequence, epoch, attributes = unpack_mark(mark)
        if attributes & MARKER:
            self.producers.record_marker(producer_id, epoch, sequence, base_offset, touched_ms)
        elif not attributes & CONTROL:
            last_sequence = (sequence + last_offset - base_offset) & SEQUENCE_MAX if sequence >= 0 else -1
            append_time_ms = max_timestamp_ms if attributes & LOG_APPEND_TIME else -1
            known = KnownBatch(sequence, last_sequence, base_offset, last_offset, append_time_ms)
            self.producers.remember(producer_id, epoch, known, touched_ms)

    @property
    def transactions(self) -> PartitionTransactions | None:
        """State of this partition's transactions; None: none was ever seen here."""
        if not self._transactions_known:
            self._transactions = PartitionTransactions.of(self.index, self.high_watermark)
            self._transactions_known = True
        return self._transactions

    def recall_transactions(self) -> None:
        """Forget the state of transactions, which is read from the index again when it is
        needed."""
        self._transactions, self._transactions_known = None, False

    @hook("log: what compaction removed ends what was aborted")
    def _some_are_gone(self) -> None:
        """Called when batches were removed from the index: the state of transactions is read again
        from the rest."""
        if self._transactions is not None:
            self.recall_transactions()

    def truncate(self, end_offset: int) -> list[tuple[int, int]]:
        """Remove all batches that reach `end_offset` or beyond. Returns them as (file, size in
        bytes). A batch with `end_offset` in its middle is removed whole, and the log then ends
        where that batch began."""
        index = self.index
        first = index.first_reaching(end_offset)
        end = min(end_offset, index.base_offset(first)) if first < len(index) else end_offset
        self.cuts += end < self.log_end
        self.log_end = end
        self.written_end = min(self.written_end, end)
        self.high_watermark = min(self.high_watermark, end)
        self.log_start = min(self.log_start, end)
        self.epochs.truncate(end)
        self.passes = tuple((min(passed, end), at_ms) for passed, at_ms in self.passes)
        if first == len(index):
            return []
        dropped = index.drop(first, len(index))
        self.size_bytes -= sum(size_bytes for _file, size_bytes in dropped)
        for producer_id, touched_ms in self.producers.forget_from(end):
            for number in np.flatnonzero(index.column(PRODUCER) == producer_id).tolist():
                self._recall(number, touched_ms)
        if self._transactions is not None:
            self.recall_transactions()
        return dropped

    def restart(self, start_offset: int) -> list[tuple[int, int]]:
        """Remove all batches; the log begins and ends at `start_offset`. Returns them as (file,
        size in bytes)."""
        dropped = self.drop_all()
        self.log_start = self.high_watermark = self.written_end = self.log_end = start_offset
        self.epochs, self.producers, self.passes = LeaderEpochs(), ProducerStates(), ()
        return dropped

    def epoch_end(self, epoch: int) -> tuple[int, int]:
        """(epoch, end offset) of the greatest leader epoch in this log that is <= `epoch`, as
        OffsetForLeaderEpoch answers.

        (-1, -1) if the log knows no epoch, or `epoch` is newer than all of its epochs.
        """
        return (
            self.epochs.end_offset(epoch, self.epochs.latest, self.log_end)
            if self.epochs.latest >= 0
            else (-1, -1)
        )

    def check_producer(self, header: BatchHeader) -> KnownBatch | None:
        """None if a batch with a producer id may be appended; the batch written before if this one
        is its duplicate.

        Raises BrokerError: see `ProducerStates.admit`; INVALID_TXN_STATE for a batch outside the
        transaction that its producer has open.
        """
        duplicate = self.producers.admit(header)
        if duplicate is None and not header.transactional and self.in_transaction(header.producer_id):
            raise BrokerError(
                ErrorCode.INVALID_TXN_STATE,
                f"{self}: producer {header.producer_id} has a transaction open here",
            )
        return duplicate

    def check_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, transaction_version: int
    ) -> None:
        """Raise BrokerError for an obsolete marker: see `ProducerStates.check_marker`.

        If each transaction has an epoch of its own (version 2), its marker has the next epoch: a
        marker with the epoch of the open transaction came late (KIP-1228; INVALID_PRODUCER_EPOCH).
        """
        self.producers.check_marker(producer_id, epoch, coordinator_epoch)
        if transaction_version >= EPOCH_PER_TRANSACTION and self.in_transaction(producer_id, epoch):
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"{self}: the transaction of producer {producer_id} in epoch {epoch} is ended by a marker "
                "of the next epoch",
            )

    @property
    def last_stable_offset(self) -> int:
        """Last stable offset: all transactions below it are complete; read_committed ends there."""
        transactions = self._transactions if self._transactions_known else self.transactions
        if transactions is None:
            return self.high_watermark
        return max(self.log_start, transactions.stable_offset(self.high_watermark))

    def aborted(self, start: int, stop: int) -> list[AbortedRange]:
        """The aborted transactions with batches in `start` to `stop` (excluded), by first
        offset."""
        return [] if self.transactions is None else self.transactions.aborted(start, stop)

    @hook("log: which epoch a transaction is open in")
    def in_transaction(self, producer_id: int, epoch: int | None = None) -> bool:
        """True if the producer has an open transaction with batches here, begun in `epoch` if that
        is given: a transaction of an earlier epoch is ending, and gets no more batches."""
        if self.transactions is None or producer_id not in self.transactions.open:
            return False
        entry = self.producers.get(producer_id)
        return epoch is None or (entry is not None and entry.epoch == epoch)

    def needs_sync(self, count: int) -> bool:
        """Count `count` records; True, and the count restarts, if `flush.messages` asks to sync."""
        self._unsynced_count += count
        if self._unsynced_count < self.limits.flush_messages:
            return False
        self._unsynced_count = 0
        return True

    def select(self, offset: int, limit_offset: int, max_bytes: int, at_least_one: bool) -> list[Location]:
        """Locations of the batches from the one that holds `offset` on, below `limit_offset` and
        within `max_bytes`; the first in any case if `at_least_one`."""
        index = self.index
        return index.select(index.first_reaching(offset), index.below(limit_offset), max_bytes, at_least_one)

    def available_bytes(self, offset: int, limit_offset: int, enough_bytes: int) -> int:
        """Bytes of batches from `offset` to `limit_offset`; counting ends once `enough_bytes` are
        there."""
        if offset >= limit_offset:
            return 0
        index = self.index
        total_bytes = 0
        for number in range(index.first_reaching(offset), index.below(limit_offset)):
            total_bytes += index.size_bytes(number)
            if total_bytes >= enough_bytes:
                break
        return total_bytes

    def move_start(self, offset: int) -> list[tuple[int, int]]:
        """Raise the log's start to `offset`. Returns the batches wholly below it, which are
        forgotten, as (file, size in bytes)."""
        self.log_start = max(self.log_start, offset)
        self.high_watermark = max(self.high_watermark, self.log_start)
        if offset > self.log_end:
            self.log_end = self.written_end = self.high_watermark = offset
        self.epochs.forget_before(self.log_start)
        count = self.index.first_reaching(self.log_start)
        if count == 0:
            return []
        dropped = self.index.drop_front(count)
        self._some_are_gone()
        self.size_bytes -= sum(size_bytes for _file, size_bytes in dropped)
        return dropped

    def place_of(self, base_offset: int, last_offset: int) -> Location | None:
        """Location of the batch at exactly these offsets; None if there is none."""
        index = self.index
        number = index.first_reaching(last_offset)
        if number == len(index) or (index.base_offset(number), index.last_offset(number)) != (
            base_offset,
            last_offset,
        ):
            return None
        return index.location(number)

    def move(
        self, base_offset: int, last_offset: int, to: Location, max_timestamp_ms: int
    ) -> tuple[int, int] | None:
        """Note that the batch at these offsets lies at `to` now, perhaps with fewer records.
        Returns its former (file, size in bytes). None if there is no such batch any more, so that
        its copy is not live."""
        if self.place_of(base_offset, last_offset) is None:
            return None
        number = self.index.first_reaching(last_offset)
        was = self.index.move(number, to, max_timestamp_ms)
        self.size_bytes += to.size_bytes - was[1]
        return was

    def remove(self, base_offset: int, last_offset: int) -> list[tuple[int, int]]:
        """Remove the batches within these offsets, which have no records any more. Returns them as
        (file, size in bytes)."""
        first, stop = self.index.below(base_offset), self.index.below(last_offset + 1)
        if first == stop:
            return []
        dropped = self.index.drop(first, stop)
        self._some_are_gone()
        self.size_bytes -= sum(size_bytes for _file, size_bytes in dropped)
        return dropped

    def drop_all(self) -> list[tuple[int, int]]:
        """Remove all batches, for the topic was deleted. Returns them as (file, size in bytes)."""
        self.cuts += 1
        self.size_bytes = 0
        self._transactions, self._transactions_known = None, True
        index, self.index = self.index, EMPTY_INDEX
        return list(zip(index.rows[FILE::WIDTH], index.rows[SIZE::WIDTH], strict=True))

    def expired_start(self, now_ms: int) -> int:
        """Log start offset by `retention.ms` and `retention.bytes`; only whole batches below the
        high watermark are deleted.

        Source: Kafka's `UnifiedLog.deleteOldSegments`, with batches in place of segments: from the
        front, as long as the oldest one is past its time, or the rest without it still has
        `retention.bytes`.
        """
        index, limits = self.index, self.limits
        if not limits.delete:
            return self.log_start
        stop = index.below(self.high_watermark)
        number, rest_bytes = 0, self.size_bytes
        if limits.retention_ms >= 0:
            while number < stop and now_ms - index.max_timestamp_ms(number) > limits.retention_ms:
                rest_bytes -= index.size_bytes(number)
                number += 1
        if limits.retention_bytes >= 0:
            while number < stop and rest_bytes - index.size_bytes(number) >= limits.retention_bytes:
                rest_bytes -= index.size_bytes(number)
                number += 1
        if number == 0:
            return self.log_start
        return max(self.log_start, index.last_offset(number - 1) + 1)

    def check(self) -> None:
        """Raise CheckFailed unless the offsets are in order and all other state agrees with the
        index."""
        index, offsets = self.index, (self.log_start, self.high_watermark, self.written_end, self.log_end)
        holds(
            f"{self}: start, high watermark, written end and end {offsets} are in order",
            list(offsets) == sorted(offsets),
        )
        same("the index that all empty partitions share", len(EMPTY_INDEX), 0)
        index.check()
        if len(index):
            holds(f"{self}: the first batch reaches the log's start", index.last_offset(0) >= self.log_start)
            holds(
                f"{self}: the last batch lies before the log's end",
                index.last_offset(len(index) - 1) < self.log_end,
            )
        same(f"{self}: bytes", self.size_bytes, int(index.column(SIZE).sum()))
        same(f"{self}: passes of compaction", list(self.passes), sorted(self.passes))
        self.epochs.check(self.log_start, self.log_end)
        self.producers.check(index, self.log_end)
        (self.transactions or PartitionTransactions()).check(index, self.high_watermark)
