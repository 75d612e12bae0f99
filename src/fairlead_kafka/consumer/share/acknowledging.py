"""Acknowledgements of records, as columns: an offset and a type each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from typing import NamedTuple, TypeAlias
from uuid import UUID

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.records.arrays import Bools, Int64

Int8: TypeAlias = npt.NDArray[np.int8]
Place: TypeAlias = tuple[UUID, int]
"""A partition by its topic's id, as share sessions name it."""

UNDECIDED = -1
"""Not acknowledged yet; never sent."""
GAP = 0
"""Acknowledges an acquired offset at which there is no record, as after compaction."""


class AcknowledgeType(IntEnum):
    """Outcome of a record's delivery; Kafka's `AcknowledgeType`."""

    ACCEPT = 1
    """It was processed, and is not delivered again."""
    RELEASE = 2
    """It was not processed, and may be delivered again, here or to another consumer."""
    REJECT = 3
    """It cannot be processed, and is not delivered again."""
    RENEW = 4
    """It is being processed still: its lock begins again, and the next poll gives it again
    (KIP-1222)."""


class Acks(NamedTuple):
    """Acknowledgements of records of one delivery, all of one partition: `offsets` ascend, `types`
    has a type for each."""

    number: int
    """The delivery's, given by the client class."""
    partition: TopicPartition
    topic_id: UUID
    node_id: int
    """The broker that the records were acquired at."""
    session: int
    """The share session they were acquired in; in another, locks are others."""
    offsets: Int64
    types: Int8

    @property
    def place(self) -> Place:
        """Topic id and partition number, as requests name the partition."""
        return self.topic_id, self.partition.partition

    @property
    def renews(self) -> bool:
        """True if a lock is to be renewed."""
        return bool((self.types == AcknowledgeType.RENEW).any())

    def where(self, chosen: Bools) -> Acks:
        """The acknowledgements in the rows where `chosen` (bool[]) is true."""
        return self._replace(offsets=self.offsets[chosen], types=self.types[chosen])


class AckResult(NamedTuple):
    """Outcome of acknowledgements; `error` None: the broker has them."""

    acks: Acks
    error: Exception | None


class AckBatch(NamedTuple):
    """One range of offsets as requests have it; if there is only one type it is that of all."""

    first_offset: int
    last_offset: int
    types: list[int]


def batches_of(acks: Sequence[Acks]) -> Iterator[AckBatch]:
    """Ranges of the acknowledgements of one partition, in the order of offsets.

    No offset may be in two of them: a delivery is acknowledged once.
    """
    offsets = np.concatenate([each.offsets for each in acks])
    types = np.concatenate([each.types for each in acks])
    if len(acks) > 1:
        order = np.argsort(offsets, kind="stable")
        offsets, types = offsets[order], types[order]
    ends = np.flatnonzero(np.diff(offsets) != 1) + 1
    for first, last in zip([0, *ends.tolist()], [*ends.tolist(), len(offsets)], strict=True):
        if first < last:
            part = types[first:last]
            same = bool((part == part[0]).all())
            yield AckBatch(
                int(offsets[first]), int(offsets[last - 1]), [int(part[0])] if same else part.tolist()
            )


class Acquired(NamedTuple):
    """A range of offsets that a broker has locked for this consumer, both ends included."""

    first: int
    last: int
    delivery_count: int


def apart(ranges: Iterable[Acquired]) -> list[Acquired]:
    """Ranges in the order of their offsets, each offset in one of them alone.

    (Brokers send them so. Overlapping ranges would have records delivered twice at once.)
    """
    found: list[Acquired] = []
    end = -1
    for each in sorted(ranges):
        if each.last > end:
            found.append(each._replace(first=max(each.first, end + 1)))
            end = each.last
    return found


def within(offsets: Int64, ranges: Iterable[Acquired]) -> Bools:
    """bool[n]: for each offset, whether one of the ranges holds it."""
    found = np.zeros(len(offsets), np.bool_)
    for first, last, _ in ranges:
        found |= (offsets >= first) & (offsets <= last)
    return found


def offsets_of(ranges: Sequence[Acquired]) -> Int64:
    """Every offset of the ranges, which ascend and do not overlap."""
    if len(ranges) == 1:
        return np.arange(ranges[0].first, ranges[0].last + 1, dtype=np.int64)
    return np.concatenate([np.arange(first, last + 1, dtype=np.int64) for first, last, _ in ranges])


def counts_of(ranges: Sequence[Acquired]) -> npt.NDArray[np.int16]:
    """The delivery count of every offset of the ranges, in the order of `offsets_of`."""
    sizes = [last - first + 1 for first, last, _ in ranges]
    return np.repeat(np.array([count for _, _, count in ranges], np.int16), sizes)
