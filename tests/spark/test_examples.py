"""The programs and the notebook of `examples/` that use Spark, in the session that all tests
share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.examples import run_notebook, run_program
from tests.support.spark_workers import workers_start


def test_batch_job(spark: Any, servers: str) -> None:
    printed = run_program("spark_batch.py", servers).splitlines()
    assert sorted(printed) == ["page 0 10", "page 1 10", "page 2 10"]


def test_stream_that_writes_exactly_once(spark: Any, servers: str, tmp_path: Path) -> None:
    arguments = ("spark_exactly_once.py", servers, str(tmp_path / "checkpoint"))
    with workers_start():
        assert run_program(*arguments) == "rows: 20\n"
        assert run_program(*arguments) == "rows: 40\n"


def test_notebook_of_exactly_once(spark: Any) -> None:
    printed, _names = run_notebook("exactly_once.ipynb")
    assert printed.splitlines() == [
        "rows: 200",
        "rows: 100",
        "rows of two days: 200",
        "failed: True",
        "rows: 200",
    ]
