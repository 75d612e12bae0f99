"""`fairlead simulate`: its table, its report, its exit codes, and a violation told so that it can
be replayed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from fairlead_kafka.simulation import run as simulation
from fairlead_kafka.simulation.canaries import CANARIES
from tests.support.command_line import Run, runner

KEYS = {"world", "seeds", "steps", "faults", "violations", "canaries_caught", "canaries", "seconds"}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner("", capsys, monkeypatch)


def test_a_replay_of_one_seed_reports_it(run: Run) -> None:
    ran = run("simulate", "--world", "producer", "--seeds", "1", "--seed", "4", "--json", "-")
    report = json.loads(ran.out)
    assert ran.code == 0
    assert report.keys() >= KEYS
    assert (report["world"], report["seeds"], report["first_seed"], report["violations"]) == (
        "producer",
        1,
        4,
        0,
    )
    assert (report["canaries"], report["canaries_caught"]) == (0, 0)
    assert report["steps"] > 100


def test_without_a_world_all_of_them_are_run_and_summed(run: Run, tmp_path: Path) -> None:
    ran = run("simulate", "--seeds", "1", "--json", str(tmp_path / "report.json"))
    report = json.loads((tmp_path / "report.json").read_text())
    assert ran.code == 0
    assert report.keys() >= KEYS
    assert (report["world"], report["seeds"]) == ("all", 4)
    assert [each["world"] for each in report["worlds"]] == ["producer", "cluster", "readers", "transactions"]
    assert report["steps"] == sum(each["steps"] for each in report["worlds"])
    assert "cluster" in ran.out
    assert ran.out.rstrip().endswith("4 worlds simulated, all held")


def test_five_seeds_are_five_seeds_and_bugs_are_planted_only_if_asked_for(run: Run) -> None:
    ran = run("simulate", "--world", "producer", "--seeds", "5", "--jobs", "1")
    assert ran.code == 0
    assert ran.out.rstrip().endswith("5 worlds simulated, all held")


def test_a_violation_is_told_in_full_and_ends_with_exit_code_1(run: Run) -> None:
    (canary,) = [each for each in CANARIES if each.name == "broker answers without writing"]
    seed = simulation.catch(canary)
    with canary.planted():
        ran = run("simulate", "--world", "producer", "--seeds", "1", "--seed", str(seed), "--jobs", "1")
    assert ran.code == 1
    assert f"world producer, seed {seed}: " in ran.err
    assert f"replay: fairlead simulate --world producer --seeds 1 --seed {seed}" in ran.err
    assert "was acknowledged in" in ran.err
    assert ran.out.rstrip().endswith(
        "1 world simulated, 1 did not hold: their stories are above, with the commands that replay them"
    )


def test_a_planted_bug_that_nobody_noticed_ends_with_exit_code_1(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulation, "canaries_of", lambda world: CANARIES[:1])
    monkeypatch.setattr(simulation, "catch", lambda canary, seeds: None)
    ran = run("simulate", "--world", "producer", "--seeds", "2", "--canaries", "--jobs", "1")
    assert ran.code == 1
    assert "2 worlds simulated, all held; of 1 planted bugs 0 were noticed" in ran.out
    assert f"world producer: the planted bug {CANARIES[0].name!r} went unnoticed from seed" in ran.err


@pytest.mark.parametrize("seed", [3, 4])
def test_a_planted_bug_that_takes_more_seeds_than_before_ends_with_exit_code_1(
    run: Run, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    canary = replace(CANARIES[0], first_seed=1, seeds_max=3)
    monkeypatch.setattr(simulation, "canaries_of", lambda world: [canary])
    monkeypatch.setattr(simulation, "catch", lambda canary, seeds: seed)
    ran = run("simulate", "--world", "producer", "--seeds", "1", "--canaries", "--jobs", "1")
    assert f"{canary.name} 1 {seed} 3" in " ".join(ran.out.split())
    assert (ran.code, "went unnoticed from seed 1 on for 3" in ran.err) == (int(seed > 3), seed > 3)


def test_a_world_that_does_not_exist_is_refused(run: Run) -> None:
    ran = run("simulate", "--world", "flat")
    assert ran.code == 1
    assert "--world flat: must be one of producer, cluster, readers" in ran.err
