"""`fairlead lab exactly-once`: a short trial with the engine that needs no Spark, and how it
judges."""

from __future__ import annotations

from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.lab import exactly_once
from tests.support.command_line import Run


def test_a_query_whose_driver_and_tasks_are_killed_writes_each_row_once(tmp_path: Path) -> None:
    said: list[str] = []
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        row = exactly_once.trial(said.append, cluster.bootstrap_servers, 2, "processes", 3, tmp_path)
    assert list(row) == ["kills", "rows_in", "rows_out", "lost", "duplicated"]
    assert (row["kills"], row["lost"], row["duplicated"]) == (2, 0, 0)
    assert row["rows_in"] == row["rows_out"] > 0
    assert said[-1].endswith("OPENED 1, TASKS_ENDED 1")


def test_steps_are_those_of_the_protocol() -> None:
    from fairlead_kafka.spark.exactly_once.driver import Step
    from fairlead_kafka.spark.exactly_once.task import TaskStep

    assert ("TASKS_ENDED", *Step.__members__) == exactly_once.DRIVER_STEPS
    assert tuple(TaskStep.__members__) == exactly_once.TASK_STEPS


def test_what_is_missing_and_what_is_there_twice_is_counted() -> None:
    assert exactly_once.comparison(range(4), [0, 1, 1, 3, 3, 3]) == {
        "rows_in": 4,
        "rows_out": 6,
        "lost": 1,
        "duplicated": 2,
    }
    with pytest.raises(fairlead_kafka.FairleadError, match="1 rows came out that never went in, such as 9"):
        exactly_once.comparison(range(4), [0, 9])


def test_a_wrong_engine_is_named(run_at: Run) -> None:
    ran = run_at("lab", "exactly-once", "--engine", "flink")
    assert ran.code != 0
    assert "spark, processes" in ran.err or "spark" in ran.err
