"""World `cluster` (real producers, replicating brokers, networks and disks that fail): fixed seeds.
`fairlead simulate` looks for new ones."""

from __future__ import annotations

import pytest

from fairlead_kafka.simulation.world_cluster import run_seed

SEEDS = 16
BLOCK = 8


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_what_was_acknowledged_survives_kills_and_power_cuts(first: int) -> None:
    outcomes = [run_seed(seed) for seed in range(first, first + BLOCK)]
    assert not [str(outcome) for outcome in outcomes if outcome.violations]
    assert (
        sum(outcome.acknowledged for outcome in outcomes) > sum(outcome.records for outcome in outcomes) / 2
    )


def test_a_leader_that_wrote_and_was_deposed_answers_like_one_that_never_was_leader() -> None:
    """Found by seed 63: NOT_LEADER_OR_FOLLOWER does not say that nothing was written."""
    outcome = run_seed(63)
    assert not outcome.violations, str(outcome)


def test_a_new_leader_that_writes_what_its_follower_has_already_raises_the_high_watermark_at_once() -> None:
    """Found by seed 279, by check(): nothing raised it before the follower asked again, half a
    second later."""
    outcome = run_seed(279)
    assert not outcome.violations, str(outcome)


def test_a_follower_that_has_what_its_new_leader_is_writing_is_not_behind() -> None:
    """Found by seed 385: it left those in sync, of an idle partition for good."""
    outcome = run_seed(385)
    assert not outcome.violations, str(outcome)


def test_a_replica_that_was_away_for_longer_than_tombstones_are_kept_may_miss_one() -> None:
    """Found by seed 659: the tombstone was gone when the replica came back, as in Kafka."""
    outcome = run_seed(659)
    assert not outcome.violations, str(outcome)


def test_targets_are_computed_by_a_clock_that_was_far_ahead() -> None:
    """Found by seed 267: a consumer group got no targets for ten minutes."""
    outcome = run_seed(267)
    assert not outcome.violations, str(outcome)


def test_a_classic_member_of_a_group_of_both_protocols_comes_back_under_its_id() -> None:
    """Found by seed 211; as in Kafka."""
    outcome = run_seed(211)
    assert not outcome.violations, str(outcome)


def test_no_change_of_a_share_partitions_state_is_compacted_away() -> None:
    """Found by seed 34: changes since a snapshot have one key, and `__share_group_state` was
    compacted."""
    outcome = run_seed(34)
    assert not outcome.violations, str(outcome)


@pytest.mark.parametrize("seed", [1018, 1257])
def test_the_state_of_a_share_partition_is_begun_once(seed: int) -> None:
    """Found by these seeds: the coordinator of the group asked again, seconds later, and what had
    been accepted meanwhile was forgotten."""
    outcome = run_seed(seed)
    assert not outcome.violations, str(outcome)


def test_targets_of_a_share_group_are_computed_by_a_clock_that_was_far_ahead() -> None:
    """Found by seed 1061: its members got no partitions for ten minutes."""
    outcome = run_seed(1061)
    assert not outcome.violations, str(outcome)


def test_a_deposed_coordinator_may_say_again_what_was_committed() -> None:
    """Found by seed 171: it did not know that another one coordinated, as in Kafka."""
    outcome = run_seed(171)
    assert not outcome.violations, str(outcome)
