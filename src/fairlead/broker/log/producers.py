"""What a partition remembers of idempotent and transactional producers: their last five batches, to tell duplicates from gaps (KIP-98).

Rules and their order are those of Kafka's `ProducerStateManager` and `ProducerAppendInfo`. The state is rebuilt from the
batches at recovery.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container
from typing import NamedTuple

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.base.limits import BROKER_BATCH_WINDOW, SEQUENCE_MAX
from fairlead.records import BatchHeader


class KnownBatch(NamedTuple):
    """One batch remembered: enough to answer a duplicate with what the first writing was answered."""

    base_sequence: int
    last_sequence: int
    base_offset: int
    last_offset: int
    log_append_time_ms: int


class ProducerEntry:
    """One producer id in one partition."""

    __slots__ = ("batches", "coordinator_epoch", "epoch", "touched_ms")

    def __init__(self, epoch: int, coordinator_epoch: int = -1) -> None:
        self.epoch = epoch
        self.coordinator_epoch = coordinator_epoch
        """That of the last marker; -1: none came yet."""
        self.batches: deque[KnownBatch] = deque(maxlen=BROKER_BATCH_WINDOW)
        self.touched_ms = 0


def sequence_after(sequence: int) -> int:
    """The sequence that follows; 0 after 2**31 - 1."""
    return 0 if sequence == SEQUENCE_MAX else sequence + 1


class ProducerStates:
    """All producers of one partition, by producer id."""

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: dict[int, ProducerEntry] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def items(self) -> list[tuple[int, ProducerEntry]]:
        """Every producer: (producer id, entry)."""
        return list(self._entries.items())

    def check_epoch(self, producer_id: int, epoch: int) -> ProducerEntry | None:
        """The producer's entry, None if it is new. BrokerError INVALID_PRODUCER_EPOCH for an older epoch than one seen."""
        entry = self._entries.get(producer_id)
        if entry is not None and epoch < entry.epoch:
            raise BrokerError(
                ErrorCode.INVALID_PRODUCER_EPOCH,
                f"producer {producer_id} wrote with epoch {epoch}, but epoch {entry.epoch} was seen here",
            )
        return entry

    def check_marker(self, producer_id: int, epoch: int, coordinator_epoch: int) -> None:
        """BrokerError for a marker of the past: INVALID_PRODUCER_EPOCH, or TRANSACTION_COORDINATOR_FENCED for an old coordinator's."""
        entry = self.check_epoch(producer_id, epoch)
        if entry is not None and coordinator_epoch < entry.coordinator_epoch:
            raise BrokerError(
                ErrorCode.TRANSACTION_COORDINATOR_FENCED,
                f"a coordinator of epoch {coordinator_epoch} ended a transaction of producer {producer_id}, "
                f"but one of epoch {entry.coordinator_epoch} was seen here",
            )

    def check(self, header: BatchHeader) -> KnownBatch | None:
        """None if the batch may be appended; the batch written before if this one is its duplicate.

        Raises BrokerError: INVALID_PRODUCER_EPOCH (an older epoch than one seen) or OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        entry = self.check_epoch(header.producer_id, header.producer_epoch)
        if entry is None:
            return None
        if header.producer_epoch > entry.epoch:
            if header.base_sequence != 0:
                raise BrokerError(
                    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                    f"producer {header.producer_id} began epoch {header.producer_epoch} with sequence {header.base_sequence}, not 0",
                )
            return None
        last_sequence = header.last_sequence
        for known in entry.batches:
            if known.base_sequence == header.base_sequence and known.last_sequence == last_sequence:
                return known
        # No batch: a marker came with a new epoch, which begins its sequences anew.
        expected = sequence_after(entry.batches[-1].last_sequence) if entry.batches else 0
        if header.base_sequence != expected:
            raise BrokerError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id}, epoch {entry.epoch}: sequence {header.base_sequence} came where {expected} was expected",
            )
        return None

    def record(self, header: BatchHeader, base_offset: int, log_append_time_ms: int, touched_ms: int) -> None:
        """Remember a batch that was appended at `base_offset`."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            coordinator_epoch = -1 if entry is None else entry.coordinator_epoch
            entry = self._entries[header.producer_id] = ProducerEntry(header.producer_epoch, coordinator_epoch)
        last_offset = base_offset + header.last_offset_delta
        entry.batches.append(KnownBatch(header.base_sequence, header.last_sequence, base_offset, last_offset, log_append_time_ms))
        entry.touched_ms = touched_ms

    def record_marker(self, header: BatchHeader, coordinator_epoch: int, touched_ms: int) -> None:
        """Remember a marker that was appended; one of a new epoch fences what the producer wrote before."""
        entry = self._entries.get(header.producer_id)
        if entry is None or entry.epoch != header.producer_epoch:
            entry = self._entries[header.producer_id] = ProducerEntry(header.producer_epoch)
        entry.coordinator_epoch = coordinator_epoch
        entry.touched_ms = touched_ms

    def expire(self, before_ms: int, open_ids: Container[int] = ()) -> None:
        """Forget producers that wrote nothing since `before_ms` (`producer.id.expiration.ms`), save those with an open transaction."""
        past = [key for key, entry in self._entries.items() if entry.touched_ms < before_ms and key not in open_ids]
        for producer_id in past:
            del self._entries[producer_id]
