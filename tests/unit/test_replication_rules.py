"""The pure rules of replication: where two logs part, and how far a partition is replicated."""

from __future__ import annotations

import pytest

from fairlead_kafka.broker.log.index import LeaderEpochs
from fairlead_kafka.broker.replication.rules import (
    FOLLOW,
    LeaderLog,
    LogMatch,
    Step,
    effective_min_isr,
    in_time,
    match_log,
    may_join,
    replicated_end,
    truncation_point,
)

History = list[tuple[int, int]]
"""(leader epoch, where it ends), in order: a log in short."""


def epochs_of(history: History) -> LeaderEpochs:
    epochs, start = LeaderEpochs(), 0
    for epoch, end in history:
        epochs.assign(epoch, start)
        start = end
    return epochs


def end_of(history: History) -> int:
    return history[-1][1] if history else 0


def leader_log(history: History, epoch: int, last_epoch: int, log_start: int = 0) -> LeaderLog:
    known, end = epochs_of(history).end_offset(last_epoch, epoch, end_of(history))
    return LeaderLog(log_start, log_start, end_of(history), known, end)


def cut(history: History, offset: int) -> History:
    kept: History = []
    start = 0
    for epoch, end in history:
        if start < offset:
            kept.append((epoch, min(end, offset)))
        start = end
    return kept


def meet(leader: History, epoch: int, follower: History) -> History:
    """The follower's log once it may follow."""
    for _ in range(20):
        last_epoch = follower[-1][0] if follower else -1
        log_match = match_log(leader_log(leader, epoch, last_epoch), end_of(follower), last_epoch)
        if log_match.step is Step.FOLLOW:
            return follower
        own = epochs_of(follower)
        own_epoch, own_end = own.end_offset(log_match.epoch, own.latest, end_of(follower))
        offset = truncation_point(log_match, own_epoch, own_end, end_of(follower))
        assert offset < end_of(follower), "a meeting must bring the two nearer"
        follower = cut(follower, offset)
    raise AssertionError("they never come to terms")


@pytest.mark.parametrize(
    ("leader", "epoch", "follower", "kept"),
    [
        pytest.param([(0, 10)], 0, [(0, 10)], 10, id="level"),
        pytest.param([(0, 10)], 0, [(0, 4)], 4, id="behind"),
        pytest.param([(0, 10)], 0, [], 0, id="empty"),
        pytest.param([], 3, [], 0, id="both empty"),
        pytest.param(
            [(0, 10)], 1, [(0, 14)], 10, id="KIP-101: records of the reign before that the new leader lacks"
        ),
        pytest.param([(0, 10), (1, 12)], 1, [(0, 14)], 10, id="the new leader has written in their place"),
        pytest.param(
            [(0, 10), (2, 20)], 2, [(0, 10), (1, 15)], 10, id="a reign that the leader never heard of"
        ),
        pytest.param([(0, 5), (3, 20)], 4, [(0, 8), (1, 12), (2, 14)], 5, id="KIP-279: several reigns apart"),
        pytest.param(
            [(0, 5), (1, 9), (4, 20)], 4, [(0, 5), (1, 12), (2, 14), (3, 18)], 9, id="cut in two steps"
        ),
        pytest.param([], 5, [(0, 8), (2, 9)], 0, id="an unclean leader that has nothing"),
        pytest.param([(2, 6)], 5, [(1, 4), (2, 9)], 6, id="an unclean leader that has less"),
    ],
)
def test_a_follower_keeps_what_it_has_in_common_with_its_leader(
    leader: History, epoch: int, follower: History, kept: int
) -> None:
    assert end_of(meet(leader, epoch, follower)) == kept


def test_a_follower_that_ends_before_its_leader_begins_starts_there_anew() -> None:
    assert match_log(LeaderLog(50, 48, 90, 0, 90), 30, 0) == LogMatch(Step.RESTART, offset=48)
    assert match_log(LeaderLog(50, 48, 90, -1, -1), 0, -1) == LogMatch(Step.RESTART, offset=48)


def test_a_follower_that_began_anew_where_the_first_batch_does_follows() -> None:
    """The leader's log starts within its first batch. Found by world `readers`, seed 2: it began
    anew for ever, as fast as it could."""
    assert match_log(LeaderLog(50, 48, 90, -1, -1), 48, -1) == FOLLOW
    assert match_log(LeaderLog(50, 48, 90, 0, 90), 48, 0) == LogMatch(
        Step.RESTART, offset=48
    )  # what it has before may be another's
    assert match_log(LeaderLog(50, 48, 90, -1, -1), 49, -1) == LogMatch(Step.RESTART, offset=48)
    assert match_log(LeaderLog(50, 48, 90, 0, 90), 50, 0) == FOLLOW


def test_without_an_epoch_to_compare_a_log_that_is_too_long_ends_where_the_leader_does() -> None:
    log_match = match_log(LeaderLog(0, 0, 10, -1, -1), 15, 2)
    assert log_match == LogMatch(Step.TRUNCATE, -1, 10)
    assert truncation_point(log_match, 2, 15, 15) == 10


def test_the_high_watermark_is_the_least_end() -> None:
    assert replicated_end(10, []) == 10
    assert replicated_end(10, [12, 7, 9]) == 7
    assert replicated_end(3, [12]) == 3
    assert replicated_end(10, [12, -1]) == -1


def test_a_replica_joins_with_all_that_may_be_read_and_all_of_earlier_reigns() -> None:
    assert may_join(10, high_watermark=10, epoch_start=10)
    assert not may_join(9, high_watermark=10, epoch_start=0)
    assert not may_join(12, high_watermark=10, epoch_start=13)


def test_a_replica_may_be_behind_for_a_while() -> None:
    assert in_time(None, 10**12, 1)
    assert in_time(100, 150, 50)
    assert not in_time(100, 151, 50)


def test_min_insync_replicas_is_never_more_than_there_are() -> None:
    assert effective_min_isr(2, 3) == 2
    assert effective_min_isr(2, 1) == 1
