"""State of idempotent and transactional producers in a partition: their last five batches, to tell
duplicates from gaps (KIP-98).

Rules and their order are those of Kafka's `ProducerStateManager` and `ProducerAppendInfo`. At
recovery the state comes from the checkpoint and the batches behind it; after a truncation, from the
index, which knows who wrote each batch.
"""

from __future__ import annotations

from array import array
from collections.abc import Container
from itertools import islice
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.base.limits import BROKER_BATCH_WINDOW, SEQUENCE_MAX
from fairlead_kafka.broker.log.index import BASE, CONTROL, LAST, MARK, PRODUCER, BatchIndex, unpack_mark
from fairlead_kafka.records import BatchHeader


class KnownBatch(NamedTuple):
    """One batch of a producer, as it is remembered: enough to answer a duplicate as the original
    was answered."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    log_append_time_ms: int


class ProducerEntry:
    """State of one producer id in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "last_offset", "touched_ms")

    def __init__(self, epoch: int, coordinator_epoch: int = -1) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """Coordinator epoch of the last marker; -1: none came yet."""
        self.batches: list[KnownBatch] = []
        """The newest last, BROKER_BATCH_WINDOW at most. No deque: each of those takes 600 bytes."""
        self.last_offset = -1
        """Last offset of the producer's newest batch or marker; -1: none."""
        self.touched_ms = 0
        """When it last wrote here, in ms since 1970 by the broker's clock. A broker that starts
        without a checkpoint counts from then."""


class RefusedBatch(NamedTuple):
    """A batch of a producer that is not known here, which was refused with a retriable error, so
    that it will be sent again."""

    epoch: int
    base_sequence: int
    refused_ms: int
    """When it was refused, in ms since 1970 by the broker's clock."""


def sequence_after(sequence: int) -> int:
    """The sequence that follows; 0 after 2**31 - 1."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


_ENTRY_WORDS = 6
REFUSED_MAX = 1_000
"""Producers of a partition whose refused batch is remembered; beyond that the oldest is forgotten,
whose batches may then be taken out of order."""
_NOBODY: dict[int, ProducerEntry] = {}
"""Shared by all partitions that no idempotent producer has written to, and never changed."""
_NONE_REFUSED: dict[int, RefusedBatch] = {}
"""Shared by all partitions that refused no producer's first batch, and never changed."""


class ProducerStates:
    """The state of all producers of one partition, by producer id."""

    __slots__ = ("_entries", "_packed", "_refused")

    def __init__(self) -> None:
        self._entries = _NOBODY
        self._refused = _NONE_REFUSED
        self._packed = b""
        """The producers as a checkpoint packed them, until somebody asks for one; then empty."""

    def __len__(self) -> int:
        return len(self._all())

    def _all(self) -> dict[int, ProducerEntry]:
        if self._packed:
            words, self._packed = iter(array("q", self._packed)), b""
            self._entries = {}
            for producer_id in words:
                epoch, coordinator_epoch, last_offset, touched_ms, count = islice(words, _ENTRY_WORDS - 1)
                entry = self._entries[producer_id] = ProducerEntry(epoch, coordinator_epoch)
                entry.last_offset, entry.touched_ms = last_offset, touched_ms
                entry.batches.extend(
                    KnownBatch(*islice(words, len(KnownBatch._fields))) for _ in range(count)
                )
        return self._entries

    def packed(self) -> bytes:
        """The state of all producers as 64-bit integers in the machine's byte order, for a
        checkpoint."""
        if self._packed or not self._entries:
            return self._packed
        words = array("q")
        for producer_id, entry in self._entries.items():
            words.extend(
                (
                    producer_id,
                    entry.epoch,
                    entry.coordinator_epoch,
                    entry.last_offset,
                    entry.touched_ms,
                    len(entry.batches),
                )
            )
            for batch in entry.batches:
                words.extend(batch)
        return words.tobytes()

    def restore(self, packed: bytes) -> None:
        """Set the state from bytes that `packed` gave; they are decoded when it is needed."""
        self._packed = packed

    def get(self, producer_id: int) -> ProducerEntry | None:
        """The state of one producer id; None if it is not known here."""
        return self._all().get(producer_id)

    def items(self) -> list[tuple[int, ProducerEntry]]:
        """Every producer: (producer id, entry)."""
        return list(self._all().items())

    def check_epoch(self, producer_id: int, epoch: int) -> ProducerEntry | None:
        """The producer's entry, None if it is new. BrokerError INVALID_PRODUCER_EPOCH for an older
        epoch than its newest."""
        entry = self._all().get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} wrote with epoch {epoch}, but epoch {entry.epoch} was seen here",
            )
        return entry

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """Raise BrokerError for an obsolete marker: INVALID_PRODUCER_EPOCH, or
        TRANSACTION_COORDINATOR_FENCED for that of a former coordinator."""
        entry = self.check_epoch(producer_id, epoch)
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {coordinator_epoch} ended a transaction of producer {producer_id}, "
                f"but one of epoch {entry.coordinator_epoch} was seen here",
            )

    def admit(self, header: BatchHeader) -> KnownBatch | None:
        """None if the batch may be appended; the batch written before if this one is its duplicate.

        Raises BrokerError: INVALID_PRODUCER_EPOCH (an older epoch than one seen) or
        OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        entry = self.check_epoch(header.producer_id, header.producer_epoch)
        if entry is None:
            self._check_first(header)
            return None
        if header.producer_epoch > entry.epoch:
            if header.base_sequence != 0:
                raise BrokerError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} began epoch {header.producer_epoch} with sequence "
                    f"{header.base_sequence}, not 0",
                )
            return None
        last_sequence = header.last_sequence
        for known in entry.batches:
            if known.base_sequence == header.base_sequence and known.last_sequence == last_sequence:
                return known
        # No batch: a marker came with a new epoch, which restarts its sequences.
        expected = sequence_after(entry.batches[-1].last_sequence) if entry.batches else 0
        if header.base_sequence != expected:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {entry.epoch}: sequence {header.base_sequence} came "
                f"where {expected} was expected",
            )
        return None

    @hook("log: a transaction begins with its first batch")
    def check_known(self, header: BatchHeader) -> None:
        """Raise BrokerError OUT_OF_ORDER_SEQUENCE_NUMBER if the producer is not known here."""
        if self.get(header.producer_id) is None:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {header.producer_epoch}: sequence "
                f"{header.base_sequence} came where nothing of its transaction is known",
            )

    def _check_first(self, header: BatchHeader) -> None:
        """Raise BrokerError OUT_OF_ORDER_SEQUENCE_NUMBER for a producer's first batch here if an
        earlier one was refused with a retriable error: that would be written after this one, or
        never."""
        refused = self._refused.get(header.producer_id)
        if (
            refused is not None
            and refused.epoch == header.producer_epoch
            and refused.base_sequence < header.base_sequence
        ):
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {refused.epoch}: sequence {header.base_sequence} came "
                f"where {refused.base_sequence} was refused and is to come again",
            )

    def refuse(self, header: BatchHeader, refused_ms: int) -> None:
        """Remember a batch that was refused with a retriable error. Of several of a producer that
        is not known here the lowest sequence is kept (Kafka's `VerificationStateEntry`, KIP-890).

        (A producer has several batches in flight. If it is not known here its first batch may have
        any sequence, so without this the second could be written before the first.)
        """
        if self.get(header.producer_id) is not None:
            return  # its sequences say what comes next
        known = self._refused.get(header.producer_id)
        if known is not None and (known.epoch, -known.base_sequence) >= (
            header.producer_epoch,
            -header.base_sequence,
        ):
            return
        if self._refused is _NONE_REFUSED:
            self._refused = {}
        elif len(self._refused) >= REFUSED_MAX and known is None:
            del self._refused[next(iter(self._refused))]
        self._refused[header.producer_id] = RefusedBatch(
            header.producer_epoch, header.base_sequence, refused_ms
        )

    @hook("log: a producer's batch is remembered")
    def record(self, header: BatchHeader, base_offset: int, log_append_time_ms: int, touched_ms: int) -> None:
        """Remember a batch that was appended at `base_offset`."""
        last_offset = base_offset + header.last_offset_delta
        known = KnownBatch(
            header.base_sequence, header.last_sequence, base_offset, last_offset, log_append_time_ms
        )
        self.remember(header.producer_id, header.producer_epoch, known, touched_ms)

    def remember(self, producer_id: int, epoch: int, batch: KnownBatch, touched_ms: int) -> None:
        """Remember a batch as the newest of its producer."""
        entry = self._all().get(producer_id)
        if entry is None or entry.epoch != epoch:
            entry = self._enter(
                producer_id, ProducerEntry(epoch, -1 if entry is None else entry.coordinator_epoch)
            )
        entry.batches.append(batch)
        if len(entry.batches) > BROKER_BATCH_WINDOW:
            del entry.batches[0]
        entry.last_offset = batch.last_offset
        entry.touched_ms = touched_ms

    def record_marker(
        self, producer_id: int, epoch: int, coordinator_epoch: int, offset: int, touched_ms: int
    ) -> None:
        """Remember a marker that was appended; one with a new epoch fences the producer's earlier
        epochs."""
        entry = self._all().get(producer_id)
        if entry is None or entry.epoch != epoch:
            entry = self._enter(producer_id, ProducerEntry(epoch))
        entry.coordinator_epoch = coordinator_epoch
        entry.last_offset = offset
        entry.touched_ms = touched_ms

    def _enter(self, producer_id: int, entry: ProducerEntry) -> ProducerEntry:
        if self._entries is _NOBODY:
            self._entries = {}
        if self._refused:
            self._refused.pop(producer_id, None)
        self._entries[producer_id] = entry
        return entry

    def forget_from(self, offset: int) -> list[tuple[int, int]]:
        """Forget producers with batches at `offset` or later, which were removed. Returns (producer
        id, ms since 1970 at which it last wrote) of each."""
        past = [
            (producer_id, entry.touched_ms)
            for producer_id, entry in self._all().items()
            if entry.last_offset >= offset
        ]
        for producer_id, _touched_ms in past:
            del self._all()[producer_id]
        return past

    def expire(self, before_ms: int, open_ids: Container[int] = ()) -> None:
        """Forget producers that wrote nothing since `before_ms` (`producer.id.expiration.ms`),
        except those with an open transaction (`open_ids`).

        Kafka's `ProducerStateManager.isProducerExpired` counts from the newest record's timestamp
        instead, and so forgets a producer of old records that is still writing: its duplicates
        would be appended.
        """
        past = [
            key for key, entry in self._all().items() if entry.touched_ms < before_ms and key not in open_ids
        ]
        for producer_id in past:
            del self._all()[producer_id]
        for producer_id in [key for key, batch in self._refused.items() if batch.refused_ms < before_ms]:
            del self._refused[producer_id]

    def check(self, index: BatchIndex, log_end: int) -> None:
        """Raise CheckFailed unless the state of each producer fits the batches that `index` still
        has of it."""
        if self._packed:  # a copy is looked at: this one stays packed until somebody asks
            other = ProducerStates()
            other.restore(self._packed)
            other._all()
            other.check(index, log_end)
            return
        same("producers known and refused", self._refused.keys() & self._all().keys(), set())
        bases, lasts, marks, producers = (index.column(column) for column in (BASE, LAST, MARK, PRODUCER))
        for producer_id, entry in self._all().items():
            what = f"producer {producer_id}"
            ends = [batch.last_offset for batch in entry.batches]
            holds(
                f"{what}: its batches are in order, {BROKER_BATCH_WINDOW} at most",
                ends == sorted(set(ends))[-BROKER_BATCH_WINDOW:],
            )
            holds(
                f"{what}: its last offset {entry.last_offset} is its last batch's or later",
                entry.last_offset >= max(ends, default=0),
            )
            holds(
                f"{what}: its last offset {entry.last_offset} lies before the log's end {log_end}",
                entry.last_offset < log_end,
            )
            known = {batch.last_offset: batch for batch in entry.batches}
            newest = -1
            for number in np.flatnonzero(producers == producer_id).tolist():
                mark = unpack_mark(int(marks[number]))
                if mark.attributes & CONTROL or mark.epoch != entry.epoch:
                    continue
                newest = int(lasts[number])
                batch = known.get(newest)
                if batch is not None:
                    kept = batch.base_offset, batch.base_sequence
                    same(
                        f"{what}: base offset and sequence of the batch to {newest}",
                        kept,
                        (int(bases[number]), mark.sequence),
                    )
            if newest >= 0:
                same(f"{what}: where its newest batch ends", max(ends, default=-1), newest)
