"""The interface of policies: their input (`TopicLoad`), answer (`Placement`), and protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

PartitionArray = npt.NDArray[np.int32]
SizeArray = npt.NDArray[np.int64]


class Partitions(Protocol):
    """A set of partitions, used only for `in` and its truth value: false if it is known to be
    empty."""

    def __contains__(self, partition: int, /) -> bool: ...


@dataclass(slots=True)
class TopicLoad:
    """One topic's partitions as the accumulator sees them; valid for one call of a policy.

    A policy takes the load as a snapshot: it never looks at `queued_batches` again for what it
    places in the same call, as Kafka's producer computes its weights once per quantum of the sender
    and not per record.
    """

    partition_count: int
    """Partitions of the topic, 1 or more; they are numbered 0 to `partition_count - 1`."""
    available: Sequence[int]
    """Partitions whose leader is known and not dead, ascending."""
    queued_batches: Sequence[int]
    """Per partition (length `partition_count`): batches, open or closed, that were not yet drained.
    Those in flight do not count."""
    unready: Partitions
    """Partitions whose leader took no data for longer than `partitioner.availability.timeout.ms`;
    empty when that is 0."""
    room_bytes: Callable[[int], int]
    """Record bytes that still fit the partition's open batch, by the same sizes that `place` is
    given; 0: none is open, or it is full."""


class Runs(list[tuple[int, int]]):
    """Contiguous runs `(partition, stop)`: the first starts at record 0, each next one where the
    last stopped, the last stops at n.

    No run is empty, and neighbouring runs are of different partitions: quanta that follow each
    other on one partition are one run.
    """

    __slots__ = ("ended", "ends")

    def __init__(self, runs: Sequence[tuple[int, int]] = ()) -> None:
        super().__init__(runs)
        self.ends: Sequence[int] = (0,)
        """Prefix sums, from 0, of the sizes that were placed."""
        self.ended = False
        """The policy leaves the last run's partition: no more records will join it soon."""


Placement = Runs | PartitionArray
"""The partitions of records: runs, or an int32 array with one partition per record."""


def expand(placement: Placement, count: int) -> PartitionArray:
    """`placement` of `count` records as an int32 array [count] of partitions. ValueError if the
    runs cover another number of records."""
    if not isinstance(placement, Runs):
        return placement
    stops = np.fromiter((stop for _, stop in placement), np.int64, len(placement))
    partitions = np.fromiter((partition for partition, _ in placement), np.int32, len(placement))
    spread = np.repeat(partitions, np.diff(stops, prepend=0))
    if len(spread) != count:
        raise ValueError(f"the runs cover {len(spread)} records, not {count}")
    return spread


class UnkeyedPolicy(Protocol):
    """Chooses partitions for the records of one topic that have none yet; one object per producer
    and topic, for one thread at a time."""

    name: str
    """Name in `partitioner.class`: round_robin, sticky, uniform, uniform.kafka or adaptive."""
    binds_at: Literal["append", "drain"]
    """When a record gets its partition: on submission (policies of the KIPs), or when a broker is
    ready to take it."""

    def place(self, sizes_bytes: SizeArray, load: TopicLoad) -> Placement:
        """Partitions for n records in order of arrival; `sizes_bytes` is int64[n], what each will
        take in a batch.

        If the accumulator estimates compression, it scales `sizes_bytes` and `load.room_bytes`
        alike, as KIP-794 asks. The records must be appended as answered before `place` is called
        again. Raises nothing.
        """
        ...

    def on_new_batch(self, partition: int, load: TopicLoad) -> None:
        """KIP-480's `onNewBatch`: an explicit, keyed or custom-partitioned record is about to open
        a batch on `partition`.

        Not to be called for batches which records placed by `place` open: `place` has accounted for
        those already.
        """
        ...


def candidates(load: TopicLoad) -> Sequence[int]:
    """Partitions to choose among: those with a live leader, else all (KIP-480, KIP-794:
    `availablePartitionsForTopic`)."""
    return load.available if len(load.available) else range(load.partition_count)
