"""Plans of moves: spread evenly, over racks, and nothing moved that need not move."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.reassign_plan import moved, plan_text, read_plan, shown, spread


def current(count: int, *replicas: int) -> dict[TopicPartition, tuple[int, ...]]:
    return {TopicPartition("t", number): replicas for number in range(count)}


@pytest.mark.parametrize("count", [1, 2, 7, 30])
@pytest.mark.parametrize("factor", [1, 2, 3])
def test_leaders_and_replicas_are_spread_to_within_one(count: int, factor: int) -> None:
    plan = spread(current(count, *range(factor)), dict.fromkeys(range(5)))
    leads = Counter(replicas[0] for replicas in plan.values())
    has = Counter(node for replicas in plan.values() for node in replicas)
    for counts, total in ((leads, count), (has, count * factor)):
        assert sum(counts.values()) == total
        spread_over = [counts[node] for node in range(5)]
        assert max(spread_over) - min(spread_over) <= 1
    assert all(len(set(replicas)) == factor for replicas in plan.values())


def test_replicas_stand_in_different_racks_as_far_as_there_are() -> None:
    racks = {0: "a", 1: "a", 2: "b", 3: "b"}
    plan = spread(current(8, 0, 1), racks)
    assert all({racks[node] for node in replicas} == {"a", "b"} for replicas in plan.values())
    three = spread(current(2, 0, 1, 2), racks)
    assert all({racks[node] for node in replicas} == {"a", "b"} for replicas in three.values())
    half_known = spread(current(2, 0, 1), {0: "a", 1: None})
    assert all(sorted(replicas) == [0, 1] for replicas in half_known.values())


def test_what_is_even_already_stays() -> None:
    even = {TopicPartition("t", number): (number % 3,) for number in range(6)}
    assert moved(even, spread(even, dict.fromkeys(range(3)))) == {}


def test_too_few_brokers_are_named() -> None:
    with pytest.raises(UsageError, match="t-0 has 3 replicas, and there are 2 brokers for them"):
        spread(current(1, 0, 1, 2), dict.fromkeys((0, 1)))


def test_a_plan_is_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    plan = {TopicPartition("b", 1): (3,), TopicPartition("a", 0): (1, 2)}
    path.write_text(plan_text(plan))
    assert read_plan(path) == plan
    assert path.read_text().startswith('{"version": 1, "partitions": [{"topic": "a", "partition": 0,')
    assert shown((1, 2), (2, 3)) == "1, 2 → 2, 3"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"version": ' + "9" * 5000 + "}"])
def test_a_plan_beyond_what_json_can_be_read_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(ConfigError, match=r"plan\.json: no plan: "):
        read_plan(tmp_path / "plan.json")
