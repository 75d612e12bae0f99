"""Rules of replication, as pure functions: where a follower's log diverges from its leader's, and
the high watermark.

Sources: KIP-101, KIP-279 and KIP-320 (truncation by epoch), Kafka's
`Partition.maybeIncrementLeaderHW`, `Partition.isFollowerInSync`,
`AbstractFetcherThread.getOffsetTruncationState`.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

UNKNOWN_EPOCH = -1


class Step(IntEnum):
    """The step that a follower has to take before it can get the next batches."""

    FOLLOW = 0
    """Nothing: its log is the beginning of the leader's."""
    TRUNCATE = 1
    """Cut its log by the epoch and end offset given, and come again."""
    RESTART = 2
    """Drop everything, begin at the offset given, and come again: the leader's log starts behind
    its end."""


class LogMatch(NamedTuple):
    """How a follower's log fits its leader's, as the leader answers. `epoch` and `offset` belong to
    `TRUNCATE`; `offset` to `RESTART`."""

    step: Step
    epoch: int = UNKNOWN_EPOCH
    offset: int = -1


FOLLOW = LogMatch(Step.FOLLOW)


class LeaderLog(NamedTuple):
    """The leader's log as far as a follower must fit it.

    `first_offset` is where its first batch begins, at most `log_start`; `epoch` is the leader's
    greatest leader epoch that is not greater than the follower's last one, and `epoch_end` its end;
    (-1, -1) if there is none.
    """

    log_start: int
    first_offset: int
    log_end: int
    epoch: int
    epoch_end: int


def match_log(leader: LeaderLog, log_end: int, last_epoch: int) -> LogMatch:
    """How a follower whose log ends at `log_end` with a batch of `last_epoch` (-1: it has none)
    fits `leader`."""
    restarted = (
        log_end == leader.first_offset and last_epoch == UNKNOWN_EPOCH
    )  # where the leader's log starts within a batch
    if log_end < leader.log_start and not restarted:
        return LogMatch(Step.RESTART, offset=leader.first_offset)
    if last_epoch == UNKNOWN_EPOCH or leader.epoch == UNKNOWN_EPOCH:
        # Nothing to compare: as Kafka after OFFSET_OUT_OF_RANGE, a log that is too long ends where
        # the leader's does.
        return LogMatch(Step.TRUNCATE, offset=leader.log_end) if log_end > leader.log_end else FOLLOW
    if leader.epoch < last_epoch or leader.epoch_end < log_end:
        return LogMatch(Step.TRUNCATE, leader.epoch, leader.epoch_end)
    return FOLLOW


def truncation_point(log_match: LogMatch, own_epoch: int, own_end: int, log_end: int) -> int:
    """The offset at which a follower truncates its log. (`own_epoch`, `own_end`) is its own
    greatest epoch that is not greater than the leader's answer, and its end. If that is an older
    epoch it truncates at the end of that one, with which it meets the leader next."""
    if log_match.epoch == UNKNOWN_EPOCH or own_epoch == UNKNOWN_EPOCH:
        return min(log_match.offset, log_end)
    if own_epoch != log_match.epoch:
        return min(own_end, log_end)
    return min(log_match.offset, own_end, log_end)


def replicated_end(leader_end: int, follower_ends: Iterable[int]) -> int:
    """The high watermark that the replicas allow: the least of their ends."""
    return min((leader_end, *follower_ends))


def may_join(follower_end: int, high_watermark: int, epoch_start: int) -> bool:
    """True if a follower may come into sync: it has all records below the high watermark, and all
    before the start of this leader epoch."""
    return follower_end >= high_watermark and follower_end >= epoch_start


def in_time(behind_since_ns: int | None, now_ns: int, lag_max_ns: int) -> bool:
    """True if a follower has been behind for no longer than `replica.lag.time.max.ms`; None: it is
    not behind."""
    return behind_since_ns is None or now_ns - behind_since_ns <= lag_max_ns


def effective_min_isr(configured: int, replica_count: int) -> int:
    """`min.insync.replicas` as it holds for a partition: never more than it has replicas."""
    return min(configured, replica_count)
