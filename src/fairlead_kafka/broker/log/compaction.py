"""Rules of compaction, without files: which records of a compacted partition stay. Source: Kafka's
`Cleaner` and `CleanedTransactionMetadata`.

Of each key the newest record stays; a record without a value (a tombstone) goes as well, once it
has been compacted for `delete.retention.ms`; records without a key, and those of aborted
transactions, go at once. A batch keeps its first and last offset and its sequences whatever it
loses. A batch without records left is removed, except the newest of its producer, from which
another replica learns the next sequence number. The marker of a transaction is removed like a
tombstone, once no record of the transaction is left.

Kafka (KIP-534) writes the time at which tombstones may be removed into each batch. Here the
partition keeps its passes, (offset, ms since 1970), which is equivalent for all batches at once:
tombstones below a pass that ended `delete.retention.ms` ago may be removed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import numpy as np

from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.log.index import CONTROL, MARK, MARKER, PRODUCER, SIZE, TIMESTAMP, TRANSACTIONAL
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import BatchHeader, DecodedRecords, decode, keep
from fairlead_kafka.records.arrays import Bools, Int64
from fairlead_kafka.records.columns import all_null

KEY_OVERHEAD_BYTES = 120
"""Bytes that a key costs in a dictionary beside its own, about."""
PASSES_IN_RETENTION = 8
"""Passes of compaction told apart within `delete.retention.ms`."""


class Due(NamedTuple):
    """A partition to be compacted: records from `dirty_start` to `stop` are new since the last
    pass; `dirtiness` is their share."""

    partition: Partition
    dirty_start: int
    stop: int
    dirtiness: float


def due(partition: Partition, now_ms: int) -> Due | None:
    """The compaction that a partition needs now; None: there is too little to compact. The newest
    batch is never rewritten: it shows other replicas where the log ends."""
    index, limits = partition.index, partition.limits
    if not limits.compact or len(index) < 2:
        return None
    passed, newest = partition.passes[-1][0] if partition.passes else 0, index.base_offset(len(index) - 1)
    if passed >= newest:
        return None
    stop = min(partition.last_stable_offset, newest)
    numbers = index.below(stop)
    if limits.min_compaction_lag_ms > 0:
        young = np.flatnonzero(index.column(TIMESTAMP, 0, numbers) > now_ms - limits.min_compaction_lag_ms)
        if len(young):
            numbers = int(young[0])
            stop = index.base_offset(numbers)
    dirty_start = max(partition.log_start, passed)
    first = index.first_reaching(dirty_start)
    if first >= numbers:
        return None
    sizes = index.column(SIZE, 0, numbers)
    dirtiness = float(sizes[first:].sum() / sizes.sum())
    lag_exceeded = now_ms - index.max_timestamp_ms(first) > limits.max_compaction_lag_ms
    return (
        Due(partition, dirty_start, stop, dirtiness)
        if lag_exceeded or dirtiness > limits.min_cleanable_ratio
        else None
    )


def horizon(partition: Partition, now_ms: int) -> int:
    """The offset below which tombstones and markers may be removed: an earlier pass had reached it
    at least `delete.retention.ms` before `now_ms`."""
    latest_ms = now_ms - partition.limits.delete_retention_ms
    return max((end for end, at_ms in partition.passes if at_ms <= latest_ms), default=0)


def passes_after(partition: Partition, end: int, now_ms: int) -> tuple[tuple[int, int], ...]:
    """The passes, (end offset, time in ms) each, to remember after one that reached `end`. Passes
    that do not matter any more are dropped, and so is one that came soon after the pass before it:
    its end counts as the new one's. So some tombstones stay a little longer, and the list stays
    short however often a partition is compacted."""
    if partition.passes and partition.passes[-1][0] >= end:
        return partition.passes
    past = horizon(partition, now_ms)
    # A clock that went back must not make a later pass look older than an earlier one, nor keep
    # tombstones for as long as it was ahead.
    latest_ms = now_ms + partition.limits.delete_retention_ms
    passes = [(end, min(at_ms, latest_ms)) for end, at_ms in partition.passes]
    at_ms = max([now_ms, *(at_ms for _end, at_ms in passes)])
    kept = [one for one in passes if one[0] >= past]
    while (
        len(kept) > 1
        and kept[-1][1] - kept[-2][1] < partition.limits.delete_retention_ms / PASSES_IN_RETENTION
    ):
        del kept[-1]
    return (*kept, (end, at_ms))


def _in_parts(
    data: bytes, from_offset: int, end_offset: int, aborted: Sequence[tuple[int, int]] = ()
) -> Iterator[DecodedRecords]:
    """The records of batches, from `from_offset` to before `end_offset`: all at once, or in parts
    where they inflate to more than `decode` takes."""
    while from_offset < end_offset:
        records = decode(data, from_offset=from_offset, aborted=aborted, want_headers=False, check_crcs=False)
        yield records
        if records.next_offset <= from_offset:
            return  # compaction left no batch behind it
        from_offset = records.next_offset


@dataclass
class Latest:
    """Key → offset of its newest record, up to `limit_bytes` of memory."""

    limit_bytes: int
    offsets: dict[bytes, int] = field(default_factory=dict)
    size_bytes: int = 0

    @hook("compaction: the newest offset of each key")
    def add(self, data: bytes, aborted: list[tuple[int, int]], from_offset: int, end_offset: int) -> None:
        """Take the batches in `data`, offsets `from_offset` to before `end_offset`; batches of
        `aborted` transactions (producer id, first offset) are left out."""
        for records in _in_parts(data, from_offset, end_offset, aborted):
            if records.keys is None or not records.count:
                continue
            before = len(self.offsets)
            self.offsets.update(zip(records.keys.to_list(), records.offsets.tolist(), strict=True))  # type: ignore[arg-type]
            self.offsets.pop(None, None)  # type: ignore[call-overload]
            # New keys are taken to be as long as those of this part are on average.
            added = len(self.offsets) - before
            self.size_bytes += added * (KEY_OVERHEAD_BYTES + len(records.keys.data) // records.count)

    @property
    def full(self) -> bool:
        """True if no more keys should be added."""
        return self.size_bytes >= self.limit_bytes


class Compacted(NamedTuple):
    """A batch to be rewritten as `data`, with `max_timestamp_ms`; None: it is removed."""

    header: BatchHeader
    data: bytes | None
    max_timestamp_ms: int


class BatchCompactor:
    """Decides which records of each batch below `stop` stay."""

    def __init__(self, partition: Partition, latest: Latest, stop: int, now_ms: int) -> None:
        self._partition = partition
        self._latest = latest.offsets
        self._horizon = horizon(partition, now_ms)
        self._aborted = partition.aborted(partition.log_start, stop)

    def batch(self, data: Buffer, header: BatchHeader) -> Compacted | None:
        """The rewritten batch; None: it stays as it is."""
        newest_of_producer = header.producer_id >= 0 and self._is_newest(header)
        if header.control:
            gone = (
                header.last_offset < self._horizon
                and not newest_of_producer
                and self._is_empty_transaction(header)
            )
            return Compacted(header, None, 0) if gone else None
        if not header.count:
            return None if newest_of_producer else Compacted(header, None, 0)
        if header.transactional and self._is_aborted(header):
            kept, timestamps_ms = np.zeros(header.count, np.bool_), np.empty(0, np.int64)
        else:
            kept, timestamps_ms = self._kept(bytes(data), header)
        if kept.all():
            return None
        if not kept.any():
            return Compacted(
                header,
                keep(data, header, kept, header.max_timestamp_ms) if newest_of_producer else None,
                header.max_timestamp_ms,
            )
        newest_ms = header.max_timestamp_ms if header.timestamp_type else int(timestamps_ms[kept].max())
        return Compacted(header, keep(data, header, kept, newest_ms), newest_ms)

    def _kept(self, data: bytes, header: BatchHeader) -> tuple[Bools, Int64]:
        """Which records of a batch stay, bool[count], and their timestamps, int64[count]."""
        newest_of = cast("Callable[[bytes | None, int], int]", self._latest.get)
        stays, timestamps_ms = [], []
        for records in _in_parts(data, header.base_offset, header.last_offset + 1):
            keys = all_null(records.count) if records.keys is None else records.keys
            newest = np.fromiter(
                map(newest_of, keys.to_list(), records.offsets.tolist()), np.int64, records.count
            )
            kept = newest <= records.offsets
            if keys.valid is not None:
                kept &= keys.valid
            if header.last_offset < self._horizon and records.values.valid is not None:
                kept &= records.values.valid
            stays.append(kept)
            timestamps_ms.append(records.timestamps_ms)
        return np.concatenate(stays), np.concatenate(timestamps_ms)

    def _is_newest(self, header: BatchHeader) -> bool:
        """True if the producer's epoch and next sequence would be unknown without this batch
        (Kafka's `isBatchLastRecordOfProducer`)."""
        entry = self._partition.producers.get(header.producer_id)
        if entry is None:
            return False
        if entry.batches:
            return entry.batches[-1].last_offset == header.last_offset
        return header.control and entry.last_offset == header.last_offset

    def _is_aborted(self, header: BatchHeader) -> bool:
        return any(
            one.producer_id == header.producer_id and one.first_offset <= header.base_offset < one.last_offset
            for one in self._aborted
        )

    def _is_empty_transaction(self, marker: BatchHeader) -> bool:
        """True if no batch of the transaction that the marker ends is left."""
        index = self._partition.index
        before = index.below(marker.base_offset)
        marks = index.column(MARK, 0, before)
        own = (index.column(PRODUCER, 0, before) == marker.producer_id) & ((marks & TRANSACTIONAL) != 0)
        last = np.flatnonzero(own)
        return not len(last) or bool(marks[last[-1]] & (MARKER | CONTROL))
