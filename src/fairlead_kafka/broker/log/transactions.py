"""Transactions in a partition: which are open, which have ended above the high watermark, and which
were aborted.

A transaction begins in a partition with its first batch there and ends with the marker that the
coordinator has written (KIP-98). The last stable offset is where the oldest incomplete one begins:
open, or ended by a marker that the high watermark has not passed yet. Below it every transaction
has ended, and the list of aborted transactions says which batches to leave out (Kafka's
`ProducerStateManager` and `TransactionIndex`).

All of it follows from the batches that the index has: `PartitionTransactions.of`. Appending keeps
it up to date; whatever takes batches away (compaction, retention, a truncation) and a start from a
checkpoint have the state read from the index again. So a transaction without batches in the log is
neither open nor aborted, both before and after a restart. A partition without transactions has no
such state.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.checks import same
from fairlead_kafka.broker.log.index import (
    BASE,
    COMMITTED,
    CONTROL,
    MARK,
    MARKER,
    PRODUCER,
    TRANSACTIONAL,
    BatchIndex,
)

EPOCH_PER_TRANSACTION = 2
"""The `transaction.version` from which a transaction's end raises its producer's epoch
(KIP-890)."""


class AbortedRange(NamedTuple):
    """One aborted transaction: its batches lie from `first_offset` on, its marker at `last_offset`.

    `stable_offset` is where the oldest transaction open at that moment began: transactions aborted
    later begin there or behind.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class PartitionTransactions:
    """The open and aborted transactions of one partition."""

    __slots__ = ("_aborted", "_ending", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """Producer id → offset of its transaction's first batch; in order of these offsets, the
        order of beginning."""
        self._ending: deque[tuple[int, int]] = deque()
        """(offset of the marker, first offset) of transactions whose marker may not be written yet,
        in order of the markers."""
        self._aborted: list[AbortedRange] = []
        """Aborted transactions, in order of their markers."""

    @classmethod
    def of(cls, index: BatchIndex, high_watermark: int) -> PartitionTransactions:
        """Rebuild the transactions from the batches in `index`."""
        made = cls()
        open_first, ended = _transactions_in(index)
        made.open = open_first
        # Whatever ends later began before this marker, or begins behind it.
        began = min(open_first.values(), default=1 << 62)
        for producer_id, first_offset, marker_offset, committed in reversed(ended):
            if not committed:
                made._aborted.append(
                    AbortedRange(producer_id, first_offset, marker_offset, min(began, marker_offset + 1))
                )
            if marker_offset >= high_watermark:
                made._ending.appendleft((marker_offset, first_offset))
            began = min(began, first_offset)
        made._aborted.reverse()
        return made

    def begin(self, producer_id: int, first_offset: int) -> None:
        """Called when a transactional batch was appended; only the first of a transaction
        counts."""
        self.open.setdefault(producer_id, first_offset)

    def end(self, producer_id: int, marker_offset: int, committed: bool, high_watermark: int) -> None:
        """Called when a marker was appended. A marker without a batch of its transaction before it
        ends nothing."""
        # Here too, for of a replica that follows nobody asks what is stable.
        self._forget_ended(high_watermark)
        first_offset = self.open.pop(producer_id, None)
        if first_offset is None:
            return
        self._ending.append((marker_offset, first_offset))
        if not committed:
            stable_offset = next(iter(self.open.values()), marker_offset + 1)
            self._aborted.append(AbortedRange(producer_id, first_offset, marker_offset, stable_offset))

    def stable_offset(self, high_watermark: int) -> int:
        """First offset of the oldest incomplete transaction, at most `high_watermark`."""
        self._forget_ended(high_watermark)
        stable = min(high_watermark, next(iter(self.open.values()), high_watermark))
        return min(stable, min((first_offset for _marker, first_offset in self._ending), default=stable))

    def _forget_ended(self, high_watermark: int) -> None:
        """Forget ended transactions whose markers lie below the high watermark."""
        while self._ending and self._ending[0][0] < high_watermark:
            self._ending.popleft()

    def aborted(self, start: int, stop: int) -> list[AbortedRange]:
        """The aborted transactions with batches in `start` to `stop` (excluded), by first
        offset."""
        found = []
        first = bisect_left(self._aborted, start, key=lambda aborted: aborted.last_offset)
        for number in range(first, len(self._aborted)):
            aborted = self._aborted[number]
            if aborted.first_offset < stop:
                found.append(aborted)
            if aborted.stable_offset >= stop:
                break
        return sorted(found, key=lambda aborted: aborted.first_offset)

    def check(self, index: BatchIndex, high_watermark: int) -> None:
        """Raise CheckFailed unless the open and aborted transactions are those that `index` has."""
        computed = PartitionTransactions.of(index, high_watermark)
        same("what is open, by producer", list(self.open.items()), list(computed.open.items()))
        same("what was aborted", self._aborted, computed._aborted)
        same(
            "markers that are not written yet",
            [one for one in self._ending if one[0] >= high_watermark],
            list(computed._ending),
        )


class _Ended(NamedTuple):
    """A transaction that was ended by the marker at `marker_offset`."""

    producer_id: int
    first_offset: int
    marker_offset: int
    committed: bool


def _transactions_in(index: BatchIndex) -> tuple[dict[int, int], list[_Ended]]:
    """Open transactions (producer id → first offset, in order of these), and those that ended, in
    order of their markers.

    A transaction is a producer's batches up to its next marker; a marker without a batch before it
    ends nothing.
    """
    marks = index.column(MARK)
    rows = np.flatnonzero(
        ((marks & TRANSACTIONAL) != 0) & (((marks & MARKER) != 0) | ((marks & CONTROL) == 0))
    )
    if not len(rows):
        return {}, []
    marks, producers, bases = marks[rows], index.column(PRODUCER)[rows], index.column(BASE)[rows]
    order = np.argsort(producers, kind="stable")
    marks, producers, bases = marks[order], producers[order], bases[order]
    is_marker = (marks & MARKER) != 0
    changes = producers[1:] != producers[:-1]
    begins = np.concatenate(([True], changes | is_marker[:-1]))
    first = np.maximum.accumulate(np.where(begins, np.arange(len(bases)), 0))
    ends = np.flatnonzero(is_marker & ~begins)
    ends = ends[np.argsort(bases[ends])]
    committed = (marks[ends] & COMMITTED) != 0
    ended = map(
        _Ended,
        producers[ends].tolist(),
        bases[first[ends]].tolist(),
        bases[ends].tolist(),
        committed.tolist(),
    )
    open_rows = np.flatnonzero(np.concatenate((changes, [True])) & ~is_marker)
    open_first = sorted(zip(bases[first[open_rows]].tolist(), producers[open_rows].tolist(), strict=True))
    return {producer_id: first_offset for first_offset, producer_id in open_first}, list(ended)
