"""Placing of a submission: spans of its rows, each for a partition. Only policies' states
change."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from fairlead_kafka.base.errors import FairleadError, InvalidRecord
from fairlead_kafka.partitioning import (
    LatePolicy,
    OpenBatches,
    Placement,
    Runs,
    assign_partitions,
    counting_sort,
    expand,
    place_unkeyed,
)
from fairlead_kafka.producer.queues import TopicBuffer
from fairlead_kafka.producer.settings import ProducerSettings
from fairlead_kafka.producer.share import Share
from fairlead_kafka.producer.spans import Span, Sums, prefix_sums
from fairlead_kafka.producer.submission import Int32, Int64, Submission


class Bound(NamedTuple):
    """A span of records that are bound to one partition."""

    partition: int
    span: Span
    by_policy: bool
    """The unkeyed policy chose it, so the policy knows already of batches that they open."""


class Refused(NamedTuple):
    """Rows of the submission (None: all) that fail, why, and their partition (-1: none)."""

    rows: Int64 | None
    error: Exception
    partition: int


class Placed(NamedTuple):
    """A submission placed: each of its rows is in one of `refused`, `unbound` and `bound`."""

    refused: list[Refused]
    unbound: Span | None
    """Records that get their partition when a broker is ready to take them."""
    bound: list[Bound]
    runs: Runs | None
    """The policy's runs, if `bound` is these: as it goes from one to the next, what is left behind
    does not linger."""


class Placer:
    """Places submissions of all topics."""

    def __init__(self, settings: ProducerSettings, share: Share) -> None:
        self._settings = settings
        self._share = share

    def place(self, topic: TopicBuffer, submission: Submission) -> Placed:
        """Place each row by its own partition, its key, or the topic's policy.

        The result is to be carried out before the next submission is placed.
        """
        refused: list[Refused] = []
        explicit, kept = _existing(topic, submission, refused)
        sizes = submission.sizes_bytes()
        scaled = np.maximum((sizes * topic.ratio).astype(np.int64), 1) if topic.compressed else sizes
        try:
            assigned, placement = self._partitions(topic, submission, explicit, scaled)
        except FairleadError as error:
            return Placed([*refused, Refused(kept, error, -1)], None, [], None)
        except KeyboardInterrupt:  # in a virtual host
            raise
        except BaseException as error:
            # A custom partitioner may raise anything, and call sys.exit: its records fail, the
            # producer goes on.
            text = (
                f"the partitioner failed for {submission.columns.count} records of topic {topic.name!r}: "
                f"{error!r}"
            )
            return Placed([*refused, Refused(kept, InvalidRecord(text), -1)], None, [], None)
        unbound = None
        if topic.late is not None:
            unbound, kept = _split_unkeyed(submission, assigned, kept)
        if placement is None:
            return Placed(refused, unbound, [], None)
        if isinstance(placement, Runs) and self._share.limit_bytes is not None:
            placement = expand(placement, submission.columns.count)
        if isinstance(placement, Runs):
            ends = placement.ends if scaled is sizes else prefix_sums(sizes)
            return Placed(refused, unbound, _by_runs(submission, placement, ends), placement)
        for rows, exhausted in self._share.refused(topic, placement, kept, sizes):
            kept = np.setdiff1d(
                np.arange(len(placement), dtype=np.int64) if kept is None else kept, rows, assume_unique=True
            )
            refused.append(Refused(rows, exhausted, -1))
        return Placed(
            refused,
            unbound,
            _by_groups(submission, placement, kept, assigned, topic.load.partition_count),
            None,
        )

    def _partitions(
        self, topic: TopicBuffer, submission: Submission, explicit: Int32 | None, scaled: Int64
    ) -> tuple[Int32 | None, Placement | None]:
        """The partitions that were asked for or follow from keys, and the placement that has the
        policy's choice too.

        Under `late` both are the same: None if no row has a partition yet.
        """
        custom = self._settings.partitioner.custom
        assigned = assign_partitions(
            submission.columns,
            explicit,
            topic.load.partition_count,
            topic=topic.name,
            ignore_keys=self._settings.partitioner.ignore_keys,
            custom=custom,
            keyed=self._settings.partitioner.keyed,
            batches=OpenBatches(scaled, topic.room_bytes, topic.batch_limit_bytes)
            if custom is not None
            else None,
        )
        if isinstance(topic.policy, LatePolicy):
            return assigned, assigned
        return assigned, place_unkeyed(assigned, scaled, topic.policy, topic.load)


def _existing(
    topic: TopicBuffer, submission: Submission, refused: list[Refused]
) -> tuple[Int32 | None, Int64 | None]:
    """The explicit partitions, and the rows whose partition exists (None: all). The other rows are
    added to `refused`."""
    explicit = submission.partitions
    if explicit is None or not len(explicit):
        return None, None
    bad = (explicit < -1) | (explicit >= topic.load.partition_count)
    if not bad.any():
        return explicit, None
    rows = np.flatnonzero(bad)
    for partition in np.unique(explicit[rows]).tolist():
        there = f"partitions 0 to {topic.load.partition_count - 1}"
        error = InvalidRecord(
            f"topic {topic.name!r} has {there}, not {partition}; send to one of those, or to None"
        )
        refused.append(Refused(rows[explicit[rows] == partition], error, partition))
    return np.where(bad, np.int32(0), explicit), np.flatnonzero(~bad)


def _split_unkeyed(
    submission: Submission, assigned: Int32 | None, kept: Int64 | None
) -> tuple[Span | None, Int64 | None]:
    """The records without a partition, and the rows of the others (None: all)."""
    sizes = submission.sizes_bytes()
    if assigned is None:
        return Span(submission, prefix_sums(sizes), 0, len(sizes)) if len(sizes) else None, kept
    unkeyed = assigned < 0
    if not unkeyed.any():
        return None, kept
    rows = np.flatnonzero(unkeyed)
    span = Span(submission, prefix_sums(sizes[rows]), 0, len(rows), rows + submission.base)
    return span, np.flatnonzero(~unkeyed) if kept is None else kept[~unkeyed[kept]]


def _by_runs(submission: Submission, runs: Runs, ends: Sums) -> list[Bound]:
    """The records bound to partitions by runs of consecutive records; `ends` is the prefix sum of
    their sizes."""
    bound, start = [], 0
    for partition, stop in runs:
        bound.append(Bound(partition, Span(submission, ends, start, stop), True))
        start = stop
    return bound


def _by_groups(
    submission: Submission, placement: Int32, kept: Int64 | None, assigned: Int32 | None, partition_count: int
) -> list[Bound]:
    """The records bound to one partition after the other, each partition's in their order of
    arrival."""
    order, bounds = counting_sort(placement if kept is None else placement[kept], partition_count)
    if kept is not None:
        order = kept[order]
    if not len(order):
        return []
    ends = prefix_sums(submission.sizes_bytes()[order])
    rows = order + submission.base if submission.base else order
    partitions = np.flatnonzero(np.diff(bounds))
    positions = bounds[np.append(partitions, partitions[-1] + 1)].tolist()
    return [
        Bound(
            partition,
            Span(submission, ends, start, stop, rows),
            assigned is None or int(assigned[order[start]]) < 0,
        )
        for (start, stop), partition in zip(pairwise(positions), partitions.tolist(), strict=True)
    ]
