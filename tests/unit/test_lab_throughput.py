"""`lab throughput`: its arithmetic, the shape of its report, and rows for what could not be measured."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairlead.lab import throughput
from fairlead.lab.apache_kafka import Unavailable, java
from fairlead.lab.experiment import EXPERIMENTS, Row, report
from fairlead.lab.peers.run import MODULES, value_of


def test_figures_are_per_second_and_per_million() -> None:
    assert throughput.figures(acked=500_000, seconds=2.0, cpu_s=1.5, size=100) == {
        "records_per_s": 250_000,
        "mb_per_s": 25.0,
        "cpu_s_per_million": 3.0,
        "acked": 500_000,
    }
    assert throughput.figures(acked=0, seconds=1.0, cpu_s=1.0, size=100)["records_per_s"] == 0


def test_a_report_is_json_of_a_stable_shape() -> None:
    made = json.loads(json.dumps(report("throughput", {"peers": ["raw"]}, [{"system": "raw", "records_per_s": 1}])))
    assert list(made) == ["experiment", "version", "environment", "parameters", "rows"]
    assert (made["experiment"], made["version"], made["parameters"]) == ("throughput", 1, {"peers": ["raw"]})
    assert made["rows"] == [{"system": "raw", "records_per_s": 1}]
    assert set(made["environment"]) == {"fairlead", "python", "system", "cpus", "load_average", "libraries"}
    assert made["environment"]["libraries"]["pyarrow"] != "not installed"


def test_every_system_has_a_script_and_every_experiment_its_module() -> None:
    assert set(MODULES) == set(throughput.SYSTEMS) - {"java"}
    assert {name: one.name for name, one in EXPERIMENTS.items()} == {name: name for name in EXPERIMENTS}


def test_a_system_that_is_not_installed_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throughput, "find_spec", lambda _: None)
    row = throughput.run_system("aiokafka", "127.0.0.1:1", "topic", 1000, 100, "none")
    assert row == {"skipped": "aiokafka is not installed; pip install 'fairlead[lab]'"}


def test_java_is_skipped_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(*_: object) -> list[str]:
        raise Unavailable("there is no java")

    monkeypatch.setattr(throughput, "java_command", no_java)
    assert throughput.run_system("java", "127.0.0.1:1", "topic", 1000, 100, "none") == {"skipped": "there is no java"}


def test_a_system_that_fails_is_skipped_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; sys.exit('first\\nno broker today')"
    monkeypatch.setattr(throughput.sys, "executable", sys.executable)
    run = throughput.subprocess.run
    monkeypatch.setattr(throughput.subprocess, "run", lambda command, **rest: run([command[0], "-c", script], **rest))
    assert throughput.run_system("raw", "127.0.0.1:1", "topic", 1000, 100, "none") == {"skipped": "failed: no broker today"}


def test_a_target_that_cannot_be_had_gives_a_skipped_row_for_each_system(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextmanager
    def unavailable(name: str, brokers: int = 1) -> Iterator[str]:
        raise Unavailable(f"no {name} here")
        yield ""

    monkeypatch.setattr(throughput, "target", unavailable)
    said: list[str] = []
    rows = throughput.run(said.append, targets=["apache-kafka"], peers=["raw", "java"])
    assert rows == [
        {"system": "raw", "target": "apache-kafka", "skipped": "no apache-kafka here"},
        {"system": "java", "target": "apache-kafka", "skipped": "no apache-kafka here"},
    ]
    assert said == ["starting apache-kafka"]


def test_a_row_is_the_median_round_of_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {"raw": iter([30, 10, 20]), "java": iter([1, 3, 2])}
    asked: list[tuple[str, int]] = []

    def measured(system: str, servers: str, topic: str, records: int, size: int, compression: str) -> Row:
        asked.append((system, records))
        return {"records_per_s": next(speeds[system])}

    class NoAdmin:
        def __init__(self, config: object) -> None: ...
        def __enter__(self) -> NoAdmin:
            return self

        def __exit__(self, *_: object) -> None: ...
        def create_topics(self, topics: object) -> None: ...
        def delete_topics(self, topics: object) -> None: ...

    @contextmanager
    def here(name: str, brokers: int = 1) -> Iterator[str]:
        yield "127.0.0.1:1"

    monkeypatch.setattr(throughput, "run_system", measured)
    monkeypatch.setattr(throughput, "Admin", NoAdmin)
    monkeypatch.setattr(throughput, "target", here)
    monkeypatch.setitem(throughput.PROFILES, "quick", {"records": 100_000, "record_sizes": (100,), "rounds": 3})
    rows = throughput.run(lambda _: None, targets=["fairlead"], peers=["raw", "java"])
    assert [(row["system"], row["target"], row["record_size"], row["records_per_s"]) for row in rows] == [
        ("raw", "fairlead", 100, 20),
        ("java", "fairlead", 100, 2),
    ]
    assert asked[:2] == [("raw", 100_000), ("java", 50_000)], "interleaved, each with its share of the records"


def test_values_have_the_size_asked_for_and_are_always_the_same() -> None:
    assert value_of(100) == value_of(100)
    assert len(value_of(100)) == 100
    assert len(set(value_of(1000))) == 26


def test_java_is_looked_for_in_java_home_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    with pytest.raises(Unavailable, match="no java"):
        java()
