"""World `producer` (real producers, model brokers): fixed seeds. `fairlead simulate` looks for new
ones."""

from __future__ import annotations

import pytest

from fairlead_kafka.simulation.world_producer import run_seed

SEEDS = 105
BLOCK = 15


@pytest.mark.parametrize("first", range(0, SEEDS, BLOCK))
def test_nothing_is_lost_repeated_reordered_or_left_open(first: int) -> None:
    outcomes = [run_seed(seed) for seed in range(first, first + BLOCK)]
    assert not [str(outcome) for outcome in outcomes if outcome.violations]
    assert (
        sum(outcome.acknowledged for outcome in outcomes) > sum(outcome.records for outcome in outcomes) / 2
    )


def test_a_partition_that_is_not_known_is_looked_for_in_metadata_that_were_asked_for_since() -> None:
    """Found by seed 684: what was known changed, for a topic was forgotten, and that was taken for
    an answer."""
    outcome = run_seed(684)
    assert not outcome.violations, str(outcome)
