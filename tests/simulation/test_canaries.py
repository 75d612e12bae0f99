"""Planted bugs: each is noticed. And what a report, a violation and a replay look like."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.hooks import HOOKS
from fairlead_kafka.core.events import Submitted
from fairlead_kafka.simulation.canaries import CANARIES
from fairlead_kafka.simulation.canary import Canary
from fairlead_kafka.simulation.run import catch, simulate
from fairlead_kafka.simulation.world import World
from fairlead_kafka.simulation.world_cluster import ClusterWorld
from fairlead_kafka.simulation.world_producer import ProducerWorld, run_seed
from fairlead_kafka.simulation.world_readers import ReadersWorld


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_a_planted_bug_is_noticed(canary: Canary) -> None:
    assert catch(canary) is not None, canary.went_unnoticed


@pytest.mark.parametrize("canary", CANARIES, ids=lambda canary: canary.name)
def test_a_planted_bug_is_gone_afterwards(canary: Canary) -> None:
    owner, attribute = HOOKS[canary.hook]
    sound = vars(owner)[attribute]
    with canary.planted():
        assert vars(owner)[attribute] is not sound
    assert vars(owner)[attribute] is sound


def test_a_violation_says_how_to_replay_it_and_what_went_wrong() -> None:
    (canary,) = [each for each in CANARIES if each.name == "broker takes duplicates"]
    seed = catch(canary)
    assert seed is not None
    with canary.planted():
        story = str(run_seed(seed))
    assert f"replay: fairlead simulate --world producer --seeds 1 --seed {seed}" in story
    assert "is there twice" in story
    assert "producer 0: {'acks'" in story


@pytest.mark.parametrize(
    ("world", "seed"),
    # The last two have groups, and share groups.
    [(ProducerWorld, 6), (ReadersWorld, 6), (ClusterWorld, 11), (ClusterWorld, 15)],
)
def test_a_seed_tells_the_same_story_every_time(world: type[World], seed: int) -> None:
    def story() -> tuple[list[str], int]:
        made = world(seed)
        events: list[str] = []
        # What is submitted are functions and completions, which tell nothing but where they lie in
        # memory.
        made.host.trace = lambda now_ns, handle, event: events.append(
            f"{now_ns} {handle} {'submitted' if isinstance(event, Submitted) else event}"
        )
        return events, made.run().digest

    first, digest = story()
    assert len(first) > 100
    assert story() == (first, digest)


def test_a_report_counts_everything() -> None:
    told: list[str] = []
    report = simulate("cluster", 2, 5, canaries=False, progress=told.append)
    assert list(report)[:2] == ["world", "seeds"]
    assert (report["world"], report["seeds"], report["first_seed"]) == ("cluster", 2, 5)
    assert (report["violations"], report["canaries"], report["canaries_caught"], report["failures"]) == (
        0,
        0,
        0,
        [],
    )
    assert report["steps"] > 100
    assert told[-1] == "world cluster: 2 of 2 seeds, 0 violated"


def test_an_unknown_world_is_refused() -> None:
    with pytest.raises(ConfigError, match="must be one of producer, cluster, readers"):
        simulate("flat", 1)
