"""`fairlead lab replication` and `fairlead lab kip578`, small, from the command line."""

from __future__ import annotations

import json

import pytest

from fairlead_kafka.lab import replication
from tests.support.command_line import Run, runner


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    return runner("", capsys, monkeypatch)


def test_the_first_scenario_of_replication_loses_nothing(run: Run) -> None:
    ran = run("lab", "replication", "--scenario", "1", "--json", "-")
    assert ran.code == 0, ran.err
    rows = json.loads(ran.out)["rows"]
    assert [row["scenario"] for row in rows] == [1, 1, 1]
    first, lost, back = rows
    assert set(first["isr"]) == set(back["isr"]) == set(first["replicas"])
    assert lost["leader"] not in (-1, first["leader"])
    assert lost["leader_epoch"] > first["leader_epoch"]
    assert first["leader"] not in lost["isr"]
    assert f"Leader: {lost['leader']}" in lost["describe"][1]
    assert all(len(row["producer"]) == sends for row, sends in zip(rows, (2, 2, 1), strict=True))
    assert back["comparison"].endswith("nothing acknowledged was lost")


def test_too_few_in_sync_and_unclean_election_are_told_step_by_step(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replication, "DELIVERY_MS", 4_000)  # which each send waits for that may not be taken
    ran = run("lab", "replication", "--scenario", "3")
    assert ran.code == 0, ran.err
    assert "NOT_ENOUGH_REPLICAS" in ran.out
    assert "Leader: none" in ran.out
    assert "nothing acknowledged was lost" in ran.out
    assert "acknowledged and gone" in ran.out


def test_an_unknown_scenario_is_refused(run: Run) -> None:
    ran = run("lab", "replication", "--scenario", "4")
    assert (ran.code, ran.out) == (1, "")
    assert "--scenario 4: must be one of 1, 2, 3" in ran.err


def test_partitions_are_created_restarted_and_deleted(run: Run) -> None:
    ran = run(
        "lab", "kip578", "--target", "fairlead", "--experiment", "A2", "--partitions", "50", "--json", "-"
    )
    assert ran.code == 0, ran.err
    (row,) = json.loads(ran.out)["rows"]
    assert (row["system"], row["experiment"], row["partitions"], row["replication_factor"]) == (
        "fairlead",
        "A2",
        50,
        3,
    )
    assert all(row[key] > 0 for key in ("create_s", "delete_s", "restart_s", "rss_mb", "files")), row
