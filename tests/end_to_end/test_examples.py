"""The programs and notebooks of `examples/` run, and print what they are about. Those with Spark
are in `tests/spark/test_examples.py`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlead_kafka
from tests.support.examples import EXAMPLES, run_notebook, run_program
from tests.support.schema_registry import schema_registry

QUICK = {"group.share.heartbeat.interval.ms": 500, "group.share.min.heartbeat.interval.ms": 500}


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with fairlead_kafka.Cluster(config=QUICK) as cluster:
        yield cluster.bootstrap_servers


def test_producer(servers: str) -> None:
    printed = run_program("producer.py", servers).splitlines()
    assert len(printed) == 10
    assert all(line.startswith("greetings partition") for line in printed)


def test_keyed(servers: str) -> None:
    printed = run_program("keyed.py", servers).splitlines()
    assert len(printed) == 5
    assert all(re.fullmatch(r"customer \d: partition \[\d\]", line) for line in printed)


def test_asynchronous(servers: str) -> None:
    printed = run_program("asynchronous.py", servers).splitlines()
    assert sorted(printed) == [f"b'tick {number}'" for number in range(5)]


def test_group(servers: str) -> None:
    assert "20 payments booked\n" in run_program("group.py", servers)


def test_transactions(servers: str) -> None:
    assert run_program("transactions.py", servers) == "10 words in transactions\n"


def test_share_consumer(servers: str) -> None:
    printed = run_program("share_consumer.py", servers).splitlines()
    assert "later: b'busy'" in printed
    assert "given up: b'nonsense'" in printed
    assert {line for line in printed if line.startswith("done")} == {
        "done: b'add' try 1",
        "done: b'busy' try 2",
    }


def test_admin(servers: str) -> None:
    assert run_program("admin.py", servers) == "partitions: 4\nrecords behind: 80\ngroups: ['dashboard']\n"


def test_tables(servers: str) -> None:
    written, *counts = run_program("tables.py", servers).splitlines()
    assert written.startswith("written: 10000")
    assert sum(int(line.split()[-1]) for line in counts) == 10_000


def test_registry(servers: str) -> None:
    with schema_registry() as running:
        printed = run_program("registry.py", servers, running.url).splitlines()
    assert printed == [
        "{'host': 'a.example.com', 'bytes': 512}",
        "{'host': 'b.example.com', 'bytes': None}",
        "{'host': 'c.example.com', 'bytes': 7}",
    ]


def test_the_test_suite_of_the_examples_passes(tmp_path: Path) -> None:
    (tmp_path / "test_faults.py").write_text((EXAMPLES / "test_faults.py").read_text(encoding="utf-8"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    ran = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=dict(os.environ), check=False
    )
    assert "2 passed" in ran.stdout, ran.stdout


def test_the_tour_of_partitioning(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    printed, names = run_notebook("partitioning.ipynb")
    assert printed.count("2000 records in") == 5
    assert "partitions of each key: {1}" in printed
    # Which policy has more batches is a matter of the machine's pace here; virtual time tells.
    assert len(names["found"]) == 5
    assert all(names["found"].values())
    assert names["figure"].axes


def test_the_investigation_of_skew(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setenv("MPLBACKEND", "agg")
    printed, names = run_notebook("skew.ipynb")
    assert "customer 1" in names["hot"]
    before, after = (names["largest_by_mean"](names[sizes]) for sizes in ("before", "after"))
    assert before > 1.5 * after, printed


def test_every_example_is_listed_and_tested() -> None:
    text = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    there = {
        path.relative_to(EXAMPLES).as_posix()
        for path in EXAMPLES.rglob("*")
        if path.suffix in (".py", ".ipynb")
    }
    assert there == set(re.findall(r"\]\(([^)]*)\)", text))
    tests = Path(__file__).read_text(encoding="utf-8")
    tests += (Path(__file__).parents[1] / "spark" / "test_examples.py").read_text(encoding="utf-8")
    assert not [name for name in there if Path(name).name not in tests]


def test_notebooks_are_kept_without_their_outputs() -> None:
    for path in (EXAMPLES / "notebooks").glob("*.ipynb"):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")], path
