"""What a partition remembers of transactions: which are open, which have ended too lately to be safe, and which were aborted.

A transaction begins in a partition with its first batch there and ends with the marker that the coordinator has written (KIP-98).
The last stable offset is where the oldest begins whose end is not settled: open, or ended by a marker that the high watermark has not
passed yet. Below it every batch has its verdict, and the list of aborted transactions says which to leave out (Kafka's
`ProducerStateManager` and `TransactionIndex`). All of it is rebuilt from the index at recovery and after a truncation; a partition that
never saw a transaction has none of it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from typing import NamedTuple


class AbortedRange(NamedTuple):
    """One aborted transaction: its batches lie from `first_offset` on, its marker at `last_offset`.

    `stable_offset` is where the oldest transaction open at that moment began: whatever was aborted later begins there or behind.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    stable_offset: int


class PartitionTransactions:
    """The transactions of one partition."""

    __slots__ = ("_aborted", "_ending", "open")

    def __init__(self) -> None:
        self.open: dict[int, int] = {}
        """Producer id → offset of its transaction's first batch; in order of these offsets, the order of beginning."""
        self._ending: deque[tuple[int, int]] = deque()
        """(offset of the marker, first offset) of those whose marker may not be written yet, in order of the markers."""
        self._aborted: list[AbortedRange] = []
        """In order of the markers."""

    def begin(self, producer_id: int, first_offset: int) -> None:
        """A transactional batch was appended; only the first of a transaction counts."""
        self.open.setdefault(producer_id, first_offset)

    def end(self, producer_id: int, marker_offset: int, committed: bool) -> None:
        """A marker was appended. One without a batch before it ends nothing."""
        first_offset = self.open.pop(producer_id, None)
        if first_offset is None:
            return
        self._ending.append((marker_offset, first_offset))
        if not committed:
            stable_offset = next(iter(self.open.values()), marker_offset + 1)
            self._aborted.append(AbortedRange(producer_id, first_offset, marker_offset, stable_offset))

    def stable_offset(self, high_watermark: int) -> int:
        """Where the oldest unsettled transaction begins; `high_watermark` if there is none below it."""
        while self._ending and self._ending[0][0] < high_watermark:
            self._ending.popleft()
        stable = min(high_watermark, next(iter(self.open.values()), high_watermark))
        return min(stable, min((first_offset for _marker, first_offset in self._ending), default=stable))

    def aborted(self, start: int, stop: int) -> list[AbortedRange]:
        """The aborted transactions with batches in `start` to `stop` (excluded), by first offset."""
        found = []
        first = bisect_left(self._aborted, start, key=lambda aborted: aborted.last_offset)
        for number in range(first, len(self._aborted)):
            aborted = self._aborted[number]
            if aborted.first_offset < stop:
                found.append(aborted)
            if aborted.stable_offset >= stop:
                break
        return sorted(found, key=lambda aborted: aborted.first_offset)

    def trim(self, log_start: int) -> None:
        """The log begins at `log_start` now: what was aborted before it is of no use to anybody."""
        del self._aborted[: bisect_left(self._aborted, log_start, key=lambda aborted: aborted.last_offset)]
