"""Finding records by their time: the first at or after one, and the newest.

The index has the newest timestamp of each batch when it was written; only the batch says whether a
record with that timestamp is still there. Compaction may have emptied the batch, the log may start
within it, or the reader's view end there; a producer may have written a wrong maximum. So one batch
is looked into after another, until a record is found or no batch could have one (Kafka's
`FileRecords.searchForTimestamp` and `UnifiedLog.fetchOffsetByTimestamp`).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.hooks import hook
from fairlead_kafka.broker.log.index import LAST, TIMESTAMP, Location
from fairlead_kafka.broker.log.partition import Partition
from fairlead_kafka.broker.log.reader import ReadBatch, ReadDone, readable
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import decode, scan

Int64 = npt.NDArray[np.int64]
Read = Callable[[Sequence[Location], ReadDone], None]
Later = Callable[[Callable[[], None]], object]
_LONG_AGO = -(1 << 63)
LOOKS_PER_STEP = 50
"""Batches looked into before the broker does something else: each takes up to a millisecond, and a
log may have very many that claim a time which none of their records has."""


class TimedRecord(NamedTuple):
    """A record, as ListOffsets reports it."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


Found = Callable[[int, TimedRecord | None], None]
"""Called once: with an error code (CORRUPT_MESSAGE or KAFKA_STORAGE_ERROR), or 0 and the record,
None if there is none."""


class _Search(ABC):
    """One search among the records from the log's start to `end` (excluded). `later(function)`
    calls a function in another step."""

    def __init__(self, partition: Partition, end: int, read: Read, later: Later, done: Found) -> None:
        self._partition = partition
        self._end = end
        self._read = read
        self._later = later
        self._looks = 0
        self._done = done
        index = partition.index
        first, stop = index.first_reaching(partition.log_start), index.below(end)
        self._lasts, self._stamps = index.column(LAST, first, stop), index.column(TIMESTAMP, first, stop)
        self._found: TimedRecord | None = None
        self._over = False
        self._looking = False
        """A read is under way."""
        self._stepping = False
        """True while the answer may come within the call that asks."""

    @abstractmethod
    def next_number(self) -> int | None:
        """The number of the next batch to search, of the batches that there were when the search
        began; None: there is no more."""

    @abstractmethod
    def look(self, offsets: Int64, stamps: Int64) -> int | None:
        """The index in a batch of the record that is sought, by the records' offsets and timestamps
        (ms since 1970); None: there is none, or one found before is the better."""

    def go_on(self) -> None:
        """Search batches until the search is over, or a batch has to be waited for."""
        index, stop = self._partition.index, self._looks + LOOKS_PER_STEP
        while not self._over and not self._looking:
            if self._looks == stop:
                self._later(self.go_on)
                return
            number = self.next_number()
            if number is None:
                self._end_with(ErrorCode.NONE)
                return
            last_offset = int(self._lasts[number])
            place = index.first_reaching(last_offset)
            if place < len(index) and index.last_offset(place) == last_offset:  # not deleted meanwhile
                self._looking = self._stepping = True
                self._read([index.location(place)], self._taken)
                self._stepping = False

    def _taken(self, found: list[ReadBatch]) -> None:
        self._looking = False
        self._looks += 1
        batches, error = readable(found)
        try:
            if not error:
                self._look_into(batches[0])
        except DecodeError:
            error = ErrorCode.CORRUPT_MESSAGE
        if error or not self._goes_on():
            self._end_with(error)
        elif not self._stepping:
            self.go_on()

    def _look_into(self, batch: Buffer) -> None:
        header = scan(batch)[0]
        if header.control:  # a marker counts as a record here, as in Kafka
            offsets, stamps = np.array([header.base_offset]), np.array([header.max_timestamp_ms])
        else:
            records = decode(batch, want_keys=False, want_headers=False)
            offsets, stamps = records.offsets, records.timestamps_ms
        visible = (offsets >= self._start()) & (offsets < self._end)
        offsets, stamps = offsets[visible], stamps[visible]
        number = self.look(offsets, stamps)
        if number is not None:
            self._found = TimedRecord(
                int(offsets[number]), int(stamps[number]), header.partition_leader_epoch
            )

    @hook("log: a log start within a batch")
    def _start(self) -> int:
        """The offset at which the partition's records begin."""
        return self._partition.log_start

    @hook("ListOffsets: go on past an emptied batch")
    def _goes_on(self) -> bool:
        """True if another batch may be looked into, after one that was."""
        return True

    def _end_with(self, error: int) -> None:
        self._over = True
        self._done(error, None if error else self._found)


class _FirstAt(_Search):
    """The first record at or after a time."""

    def __init__(
        self, partition: Partition, timestamp_ms: int, end: int, read: Read, later: Later, done: Found
    ) -> None:
        super().__init__(partition, end, read, later, done)
        self._timestamp_ms = timestamp_ms
        self._numbers = iter(np.flatnonzero(self._stamps >= timestamp_ms).tolist())

    def next_number(self) -> int | None:
        return next(self._numbers, None) if self._found is None else None

    def look(self, offsets: Int64, stamps: Int64) -> int | None:
        late = stamps >= self._timestamp_ms
        return int(late.argmax()) if late.any() else None


class _Newest(_Search):
    """The first record of those with the greatest timestamp."""

    def next_number(self) -> int | None:
        if not len(self._stamps):
            return None
        number, found = int(self._stamps.argmax()), self._found
        claimed = int(self._stamps[number])
        if claimed == _LONG_AGO:
            return None
        if found is not None and (claimed, -int(self._lasts[number])) < (found.timestamp_ms, -found.offset):
            return None
        self._stamps[number] = _LONG_AGO
        return number

    def look(self, offsets: Int64, stamps: Int64) -> int | None:
        number, found = self.newest_of(stamps), self._found
        if number is None or (
            found is not None and (stamps[number], -offsets[number]) < (found.timestamp_ms, -found.offset)
        ):
            return None
        return number

    @hook("ListOffsets: the newest record of a batch, if it has one")
    def newest_of(self, stamps: Int64) -> int | None:
        """The index of the greatest timestamp in `stamps`; None if there is none."""
        return int(stamps.argmax()) if len(stamps) else None


def first_at(
    partition: Partition, timestamp_ms: int, end: int, read: Read, later: Later, done: Found
) -> None:
    """Find the first record at or after a time (`timestamp_ms`, since 1970), among those below
    `end`."""
    _FirstAt(partition, timestamp_ms, end, read, later, done).go_on()


def newest(partition: Partition, end: int, read: Read, later: Later, done: Found) -> None:
    """Find the first record of those with the greatest timestamp, among those below `end`."""
    _Newest(partition, end, read, later, done).go_on()
