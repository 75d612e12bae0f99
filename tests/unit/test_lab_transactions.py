"""`lab transactions`: its plan, its arithmetic, and rows for what could not be measured."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_kafka.lab import experiment, transactions
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.peers import committing
from fairlead_kafka.lab.peers.committing import VALUE, Committing, Job
from fairlead_kafka.lab.transactions import PROFILES, Cell

MARKS = {
    "first_s": 0.31234, "cold_s": 1.5, "cold_cpu_s": 0.75, "warm_transactions": 400, "warm_s": 2.0,
    "warm_cpu_s": 0.8, "p50_ms": 4.333, "p99_ms": 9.87654, "transactions": 700, "rss_mb": 60,
}  # fmt: skip
JOB = Job(
    system="fairlead.send",
    bootstrap_servers="127.0.0.1:1",
    topic="t",
    partitions=3,
    records=1,
    transactions=2,
    warm_after_s=0.0,
    warm_s=0.0,
    started_s=0.0,
)


def _cell() -> Cell:
    return Cell("fairlead", "127.0.0.1:1", "v2", "batch", PROFILES["quick"])


def test_figures_are_per_second_and_per_thousand() -> None:
    assert transactions.figures(MARKS) == {
        "first_s": 0.312,
        "cold_s": 1.5,
        "cold_cpu_s": 0.75,
        "transactions_per_s": 200.0,
        "p50_ms": 4.33,
        "p99_ms": 9.88,
        "cpu_s_per_1000": 2.0,
        "rss_mb": 60,
    }


def test_a_plan_is_cold_then_waits_and_is_warm_then() -> None:
    plan = Committing(Job(**{**JOB, "started_s": time.monotonic() - 5}))  # type: ignore[typeddict-item]
    assert [plan.goes_on(seconds) for seconds in (0.1, 0.2, 0.003)] == [True, True, False]
    assert (plan.marks["warm_transactions"], plan.marks["transactions"]) == (1, 3)
    assert plan.marks["p50_ms"] == plan.marks["p99_ms"] == 3.0
    assert 5 < plan.marks["first_s"] <= plan.marks["cold_s"]


def test_begin_send_and_commit_come_in_turn() -> None:
    said: list[str] = []
    committing.follow(
        Committing(JOB),
        lambda: said.append("begin"),
        lambda: said.append("send"),
        lambda: said.append("commit"),
    )
    assert said == ["begin", "send", "commit"] * 3


def test_every_system_has_a_program_that_reads_its_command() -> None:
    assert set(committing.PROGRAMS) == set(transactions.SYSTEMS) - {"java"}
    job = json.loads(transactions.command_of("aiokafka", _cell(), "topic")[-1])
    assert job.keys() == Job.__annotations__.keys()
    assert (job["records"], job["partitions"], Committing(job).config["transactional.id"]) == (
        1_000,
        3,
        "committing-topic",
    )


def test_java_makes_what_the_others_make() -> None:
    source = (Path(committing.__file__).parent / "Committing.java").read_text()
    told = source.split("VALUE = (")[1].split(").getBytes")[0].replace('"\n            + "', "")
    assert told.strip('"').encode() == VALUE
    assert all(f'\\"{name}\\"' in source for name in MARKS)


def test_what_cannot_be_measured_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unavailable(name: str, brokers: int, properties: Mapping[str, object]) -> Iterator[None]:
        raise Unavailable(f"no {name} here")
        yield None

    monkeypatch.setattr(transactions, "target", unavailable)
    rows = transactions.run(lambda _: None, targets=["apache-kafka"], peers=["java"])
    assert rows == [{"system": "java", "target": "apache-kafka", "skipped": "no apache-kafka here"}]
    monkeypatch.setattr(experiment, "find_spec", lambda _: None)
    assert transactions.run_system("aiokafka", _cell(), "t") == {
        "skipped": "aiokafka is not installed; pip install 'fairlead-kafka[lab]'"
    }

    def no_jars() -> Path:
        raise Unavailable("there is no java")

    monkeypatch.setattr(transactions, "jars", no_jars)
    assert transactions.run_system("java", _cell(), "t") == {"skipped": "there is no java"}


def test_the_plot_has_a_panel_for_each_target_load_and_figure(tmp_path: Path) -> None:
    rows = [
        {
            "system": system,
            "target": "fairlead",
            "protocol": protocol,
            "load": load,
            "transactions_per_s": 5.0,
            "p99_ms": 2.0,
        }
        for system in ("java", "aiokafka")
        for protocol in ("v1", "v2")
        for load in ("record", "batch")
    ]
    transactions.plot(rows, tmp_path / "plot.svg")
    said = (tmp_path / "plot.svg").read_text()
    assert said.count("fairlead, record") == said.count("fairlead, batch") == 2
