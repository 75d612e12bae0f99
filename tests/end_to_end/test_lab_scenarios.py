"""Policies under other loads and faults: what happens to brokers in virtual time, and the shape of
the rows."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from fairlead_kafka.cli.lab import app
from fairlead_kafka.lab import scenarios
from fairlead_kafka.lab.experiment import EXPERIMENTS
from fairlead_kafka.lab.kip794_cases import POLICIES
from fairlead_kafka.lab.paced import load_of
from fairlead_kafka.lab.scenarios import SCENARIOS, skew_share
from fairlead_kafka.lab.virtual_load import DEAD, STARTED, BrokerEvent, Stall, VirtualTask, virtual_load
from tests.end_to_end.test_lab_kips import shares, silent


def measured(**more: Any) -> dict[str, Any]:
    """2,000 records a second for 1.5 s, the first half second of them warm-up, to whatever broker
    is ready."""
    return virtual_load(
        VirtualTask(load_of(2_000, 2_000, 512, 0.5), {**POLICIES["late.any"], "linger.ms": 0}, **more)
    )


@pytest.fixture(scope="module")
def healthy() -> dict[str, Any]:
    """A load to three healthy brokers."""
    return measured()


def test_an_event_happens_to_its_broker_when_it_is_due(healthy: dict[str, Any]) -> None:
    late = measured(events=[BrokerEvent(900, 1, "serial", 30)])
    assert healthy["max_ms"] < 10
    assert late["max_ms"] > 30
    assert late["p50_ms"] < 10
    assert shares(late)[1] < 0.32


def test_events_need_not_be_in_order(healthy: dict[str, Any]) -> None:
    """It is healed before the load ends, and all its records are there."""
    figures = measured(events=[BrokerEvent(1_200, 0, STARTED), BrokerEvent(600, 0, DEAD)])
    assert (figures["acked"], figures["failed"]) == (healthy["acked"], 0)


def test_stalls_make_some_requests_late_on_every_broker(healthy: dict[str, Any]) -> None:
    stalled = measured(stall=Stall(0.2, 8))
    assert stalled["p99_ms"] > healthy["p99_ms"] + 7
    assert stalled["p50_ms"] < healthy["p50_ms"] + 1
    assert measured(stall=Stall(0.2, 8)) == stalled
    assert measured(stall=Stall(0.2, 8), seed=2) != stalled


def test_keyed_records_go_where_their_keys_send_them() -> None:
    """A slow broker gets its even part of them, and less of the others."""
    slow = [BrokerEvent(0, 0, "serial", 40)]
    figures = [measured(keyed_share=share, events=slow, partitions=9) for share in (0.0, 1.0)]
    assert shares(figures[0])[0] < 0.2
    assert shares(figures[1])[0] == pytest.approx(1 / 3, abs=0.02)


def test_a_row_for_each_scenario_and_policy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["keyed 10 %", "bursts every 100 ms"]
    for name in names:
        monkeypatch.setitem(SCENARIOS, name, replace(SCENARIOS[name], seconds=1.0))
    rows = scenarios.run(silent, scenarios=names, policies=["adaptive", "late"])
    assert [(row["scenario"], row["policy"]) for row in rows] == [
        (name, policy) for name in names for policy in ("adaptive", "late")
    ]
    assert all(row["failed"] == 0 and row["avg_ms"] < row["p99_ms"] and row["seeds"] == 1 for row in rows)
    assert all(0 <= row["skew_share"] < 2 for row in rows)
    EXPERIMENTS["scenarios"].plot(rows, tmp_path / "rows.svg")
    assert (tmp_path / "rows.svg").stat().st_size > 1_000


def test_skew_is_what_the_largest_has_above_the_mean() -> None:
    assert skew_share({"bytes_broker_0": 120, "bytes_broker_1": 80, "bytes_broker_2": 100}) == pytest.approx(
        0.2
    )
    assert skew_share({"bytes_broker_0": 0, "bytes_broker_1": 0}) == 0


def test_every_scenario_makes_tasks_that_a_producer_takes() -> None:
    for scenario in SCENARIOS.values():
        task = scenario.task("late", seed=3)
        assert task.seed == 3
        assert all(
            0 <= event.broker < task.brokers and event.at_ms <= (scenario.seconds + 1) * 1_000
            for event in task.events
        )


def test_a_name_that_no_scenario_has_is_told_with_those_there_are() -> None:
    result = CliRunner().invoke(app, ["scenarios", "--scenario", "nosuch"])
    assert result.exit_code != 0
    assert "nosuch" in str(result.exception)
    assert "bursts every second" in str(result.exception)
