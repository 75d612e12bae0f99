"""Index of one partition: the place and the producer of each batch; searched by bisection."""

from __future__ import annotations

import struct
from array import array
from bisect import bisect_left, bisect_right
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.checks import holds, same
from fairlead_kafka.records import BatchHeader, EndMarker

LOG_APPEND_TIME, TRANSACTIONAL, CONTROL = 0x08, 0x10, 0x20
"""Bits of a batch's attributes."""
MARKER = 0x2000
COMMITTED = 0x4000
"""Bits beside Kafka's attributes: the batch is the marker that ends a transaction, and it was
committed."""
NOBODY = -1
"""The producer id of batches without one."""
NO_MARK = -1 << 32
"""The mark of a batch without a producer id."""


class Location(NamedTuple):
    """One batch on disk: the number of its file, its position there (behind the entry header) and
    its size in bytes."""

    file: int
    position: int
    size_bytes: int


class Mark(NamedTuple):
    """Fields packed in column MARK: base sequence (of a marker: its coordinator's epoch), producer
    epoch, attributes."""

    sequence: int
    epoch: int
    attributes: int


def pack_mark(header: BatchHeader, marker: EndMarker | None) -> int:
    """The fields of a `Mark` as one number, for a batch with a producer id."""
    sequence, attributes = header.base_sequence, header.attributes & 0xFF
    if marker is not None:
        sequence = marker.coordinator_epoch
        attributes |= MARKER | COMMITTED if marker.committed else MARKER
    return (sequence << 32) | ((header.producer_epoch & 0xFFFF) << 16) | attributes


def unpack_mark(mark: int) -> Mark:
    """The fields that `pack_mark` packed."""
    return Mark(mark >> 32, (mark >> 16) & 0xFFFF, mark & 0xFFFF)


BASE, LAST, FILE, POSITION, SIZE, TIMESTAMP, PRODUCER, MARK = range(8)
"""The columns of the index: base and last offset, file, position and size in bytes, newest
timestamp in ms, producer id, mark."""
WIDTH = 8
ROW_BYTES = 8 * WIDTH
_ROW = struct.Struct(f"={WIDTH}q")


class BatchIndex:
    """The batches of a partition in order of offset: a table of one row of 64 bytes each, in one
    array."""

    __slots__ = ("rows",)

    def __init__(self) -> None:
        self.rows = array("q")
        """The table of batches, row after row."""

    def __len__(self) -> int:
        return len(self.rows) // WIDTH

    def append(
        self,
        base_offset: int,
        last_offset: int,
        file: int,
        position: int,
        size_bytes: int,
        max_timestamp_ms: int,
        producer_id: int = NOBODY,
        mark: int = NO_MARK,
    ) -> None:
        """Add a batch behind the last one."""
        # Three times as fast as `extend` with a tuple.
        self.rows.frombytes(
            _ROW.pack(
                base_offset, last_offset, file, position, size_bytes, max_timestamp_ms, producer_id, mark
            )
        )

    def first_reaching(self, offset: int) -> int:
        """Number of the first batch whose last record is at `offset` or later; len(self) if there
        is none."""
        return self._bisect(LAST, offset)

    def below(self, offset: int) -> int:
        """Number of batches that begin before `offset`."""
        return self._bisect(BASE, offset)

    def _bisect(self, column: int, offset: int) -> int:
        rows = self.rows
        low, high = 0, len(rows) // WIDTH
        if not high or rows[column] >= offset:
            return 0
        if rows[column - WIDTH] < offset:
            return high
        while low < high:
            middle = (low + high) >> 1
            if rows[middle * WIDTH + column] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    def base_offset(self, number: int) -> int:
        """Base offset of batch `number`."""
        return self.rows[number * WIDTH + BASE]

    def last_offset(self, number: int) -> int:
        """Offset of the last record of batch `number`, even if compaction has removed that
        record."""
        return self.rows[number * WIDTH + LAST]

    def size_bytes(self, number: int) -> int:
        """Size of batch `number` in bytes."""
        return self.rows[number * WIDTH + SIZE]

    def max_timestamp_ms(self, number: int) -> int:
        """The newest timestamp in batch `number`, ms since 1970."""
        return self.rows[number * WIDTH + TIMESTAMP]

    def row(self, number: int) -> array[int]:
        """All columns of batch `number`, in their order."""
        return self.rows[number * WIDTH : (number + 1) * WIDTH]

    def location(self, number: int) -> Location:
        """Location of batch `number` in the log files."""
        begin = number * WIDTH
        return Location(*self.rows[begin + FILE : begin + SIZE + 1])

    def select(self, start: int, stop: int, max_bytes: int, at_least_one: bool) -> list[Location]:
        """Locations of the first of batches `start` to `stop` (excluded) that fit into `max_bytes`
        together; the first in any case if `at_least_one`."""
        chosen: list[Location] = []
        rows = self.rows
        for begin in range(start * WIDTH, stop * WIDTH, WIDTH):
            size_bytes = rows[begin + SIZE]
            max_bytes -= size_bytes
            if max_bytes < 0 and not (at_least_one and not chosen):
                break
            chosen.append(
                tuple.__new__(Location, (rows[begin + FILE], rows[begin + POSITION], size_bytes))
            )  # as Location(...), faster
        return chosen

    def column(self, column: int, start: int = 0, stop: int | None = None) -> npt.NDArray[np.int64]:
        """A copy of one column, of batches `start` to `stop` (excluded)."""
        # Never a view: an array whose memory is lent out cannot grow.
        return np.frombuffer(self.rows, np.int64)[column::WIDTH][start:stop].copy()

    def drop(self, start: int, stop: int) -> list[tuple[int, int]]:
        """Forget batches `start` to `stop` (excluded). Returns them as (file, size in bytes)."""
        begin, end = start * WIDTH, stop * WIDTH
        dropped = list(
            zip(self.rows[begin + FILE : end : WIDTH], self.rows[begin + SIZE : end : WIDTH], strict=True)
        )
        del self.rows[begin:end]
        return dropped

    def drop_front(self, count: int) -> list[tuple[int, int]]:
        """Forget the first `count` batches. Returns them as (file, size in bytes)."""
        return self.drop(0, count)

    def move(self, number: int, to: Location, max_timestamp_ms: int) -> tuple[int, int]:
        """Note that batch `number` lies at `to` now, perhaps with fewer records. Returns its former
        (file, size in bytes)."""
        begin = number * WIDTH
        was = self.rows[begin + FILE], self.rows[begin + SIZE]
        self.rows[begin + FILE : begin + TIMESTAMP + 1] = array("q", (*to, max_timestamp_ms))
        return was

    def check(self) -> None:
        """Raise CheckFailed unless the rows are whole, in order, and do not overlap."""
        same("numbers in the index beyond whole rows", len(self.rows) % WIDTH, 0)
        bases, lasts = self.column(BASE), self.column(LAST)
        holds("each batch ends where it begins or later", bool((bases <= lasts).all()))
        holds("each batch begins behind the one before", bool((bases[1:] > lasts[:-1]).all()))
        holds("each batch has bytes", bool((self.column(SIZE) > 0).all()))


EMPTY_INDEX = BatchIndex()
"""Shared by all partitions without a batch, and never changed."""


class LeaderEpochs:
    """The offset at which each leader epoch began (Kafka's `LeaderEpochFileCache`), rebuilt from
    the batches."""

    __slots__ = ("_epochs", "_starts", "latest")

    def __init__(self) -> None:
        self.latest = -1
        """The newest epoch known; -1: none."""
        self._epochs: tuple[int, ...] = ()
        self._starts: tuple[int, ...] = ()

    def assign(self, epoch: int, start_offset: int) -> None:
        """Note that records from `start_offset` on belong to `epoch`; an epoch known already, or an
        older one, changes nothing."""
        if not self._epochs or epoch > self._epochs[-1]:
            self.latest = epoch
            self._epochs += (epoch,)
            self._starts += (start_offset,)

    def truncate(self, end_offset: int) -> None:
        """Forget epochs that began at `end_offset` or later: the log ends there now."""
        kept = bisect_left(self._starts, end_offset)
        self._epochs, self._starts = self._epochs[:kept], self._starts[:kept]
        self.latest = self._epochs[-1] if kept else -1

    def forget_before(self, log_start: int) -> None:
        """Forget epochs that ended at `log_start` or before it; the newest one is kept. Nobody
        reads there any more, and each fail-over begins an epoch."""
        first = max(0, bisect_right(self._starts, log_start) - 1)
        if first:
            self._epochs, self._starts = self._epochs[first:], self._starts[first:]

    def restore(self, epochs: tuple[int, ...], starts: tuple[int, ...]) -> None:
        """Set the epochs, and the offsets at which they began, from a checkpoint."""
        self._epochs, self._starts, self.latest = epochs, starts, epochs[-1]

    def items(self) -> list[tuple[int, int]]:
        """Every epoch: (epoch, where it began)."""
        return list(zip(self._epochs, self._starts, strict=True))

    def of(self, offset: int) -> int:
        """The epoch to which the record at `offset` belongs; -1: it is not known."""
        number = bisect_right(self._starts, offset)
        return self._epochs[number - 1] if number else -1

    def end_offset(self, epoch: int, current_epoch: int, log_end: int) -> tuple[int, int]:
        """(epoch, end offset) for OffsetForLeaderEpoch: the greatest epoch <= `epoch`, and where
        the next one begins.

        (-1, -1) if nothing is known of that epoch, as Kafka answers. `current_epoch` is the
        leader's own.
        """
        if epoch == current_epoch:
            return epoch, log_end
        if epoch > current_epoch or epoch < 0 or not self._epochs:
            return -1, -1
        number = bisect_right(self._epochs, epoch)
        if number == len(self._epochs):
            return self._epochs[-1], log_end
        if number == 0:
            # An epoch older than all that is kept ends where the log begins.
            return epoch, self._starts[0]
        return self._epochs[number - 1], self._starts[number]

    def check(self, log_start: int, log_end: int) -> None:
        """Raise CheckFailed unless epochs and starts rise, none begins at the end of the log or
        behind it, and none but the newest ended before the log's start."""
        same("the latest leader epoch", self.latest, self._epochs[-1] if self._epochs else -1)
        for what, numbers in (("leader epochs", self._epochs), ("starts of leader epochs", self._starts)):
            same(what, list(numbers), sorted(set(numbers)))
        holds("each leader epoch begins before the log ends", all(start < log_end for start in self._starts))
        ends = self._starts[1:]
        holds("each leader epoch ends at the log's start or behind it", all(end >= log_start for end in ends))
