"""`lab throughput`: its arithmetic, the shape of its report and of its plot, and rows for what could not be measured."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from fairlead_kafka.lab import experiment, throughput
from fairlead_kafka.lab.apache_kafka import Unavailable, java
from fairlead_kafka.lab.bounded import innermost, run_client
from fairlead_kafka.lab.experiment import EXPERIMENTS, Row, report
from fairlead_kafka.lab.lines import log_lines, values_of_size
from fairlead_kafka.lab.peers.run import MODULES, Job, value_of


def _job(system: str, keyed: bool = False) -> Job:
    return Job(system, "127.0.0.1:1", "topic", records=1000, size=100, keyed=keyed)


def test_figures_are_per_second_and_per_million() -> None:
    assert throughput.figures(_job("aiokafka"), acked=500_000, seconds=2.0, cpu_s=1.5, rss_mb=90) == {
        "records_per_s": 250_000,
        "mb_per_s": 25.0,
        "cpu_s_per_million": 3.0,
        "acked": 500_000,
        "rss_mb": 90,
    }
    assert throughput.figures(_job("aiokafka"), acked=0, seconds=1.0, cpu_s=1.0, rss_mb=90)["records_per_s"] == 0


def test_memory_beyond_buffer_memory_is_told_of_clients_that_have_one() -> None:
    assert throughput.figures(_job("fairlead.send"), 1, 1.0, 1.0, rss_mb=182)["rss_over_buffer_mb"] == 150, "buffer.memory is 32 MiB"
    assert "rss_over_buffer_mb" in throughput.figures(_job("java"), 1, 1.0, 1.0, rss_mb=300)
    assert "rss_over_buffer_mb" not in throughput.figures(_job("confluent-kafka.produce"), 1, 1.0, 1.0, rss_mb=300)


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
    monkeypatch.setattr(experiment, "find_spec", lambda _: None)
    row = throughput.run_system(_job("aiokafka"))
    assert row == {"skipped": "aiokafka is not installed; pip install 'fairlead-kafka[lab]'"}


def test_java_is_skipped_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(*_: object) -> list[str]:
        raise Unavailable("there is no java")

    monkeypatch.setattr(throughput, "java_command", no_java)
    assert throughput.run_system(_job("java")) == {"skipped": "there is no java"}
    assert throughput.run_system(_job("java", keyed=True)) == {"skipped": "kafka-producer-perf-test sends no keys"}


def test_a_system_that_fails_is_skipped_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    script = "import sys; sys.exit('first\\nno broker today')"
    monkeypatch.setattr(throughput, "run_client", lambda _, limit_s: run_client([sys.executable, "-c", script], limit_s))
    assert throughput.run_system(_job("raw")) == {"skipped": "failed: no broker today"}


def test_a_system_that_does_not_end_is_stopped_and_skipped() -> None:
    script = "import threading; threading.Event().wait()"
    assert run_client([sys.executable, "-c", script], 0.5)["skipped"].startswith("not finished within 0.5 s")


def test_of_a_dump_the_main_threads_innermost_frame_is_told() -> None:
    other = 'Thread 0x1 (most recent call first):\n  File "/a/b/c.py", line 7 in poll\n'
    main = 'Current thread 0x2 (most recent call first):\n  File "/x/kafka/future.py", line 12 in get\n  File "/x/y.py", line 1 in main\n'
    assert innermost(other + main) == ", in get (kafka/future.py:12)"
    assert innermost("") == ""


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

    def measured(job: Job) -> Row:
        asked.append((job.system, job.records))
        return {"records_per_s": next(speeds[job.system])}

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
    rows = throughput.run(lambda _: None, targets=["fairlead"], peers=["raw", "java"], records=100_000, rounds=3)
    what = {"target": "fairlead", "record_size": 100, "key": "unkeyed", "compression": "none"}
    assert rows == [{"system": "raw", **what, "records_per_s": 20}, {"system": "java", **what, "records_per_s": 2}]
    assert asked[:2] == [("raw", 100_000), ("java", 50_000)], "interleaved, each with its share of the records"


def test_profiles_have_their_cells_and_options_make_every_combination() -> None:
    quick, full = throughput.PROFILES["quick"], throughput.PROFILES["full"]
    assert throughput.cells(quick) == [(100, "unkeyed", "none")]
    assert {size for size, _, _ in full.cells} == {10, 100, 512, 1024}
    assert {(key, compression) for size, key, compression in full.cells if size == 512} == {
        *((key, "none") for key in throughput.KEYS),
        *(("unkeyed", compression) for compression in throughput.COMPRESSIONS),
    }
    assert throughput.cells(quick, compressions=["lz4", "zstd"]) == [(100, "unkeyed", "lz4"), (100, "unkeyed", "zstd")]
    assert throughput.cells(quick, [10, 20], ["keyed", "unkeyed"], ["none"]) == [
        (10, "keyed", "none"), (10, "unkeyed", "none"), (20, "keyed", "none"), (20, "unkeyed", "none")
    ]  # fmt: skip


def test_the_plot_has_a_panel_for_each_target_key_and_compression(tmp_path: Path) -> None:
    rows = [
        {"system": system, "target": "fairlead", "record_size": size, "key": key, "compression": "none", "records_per_s": 10 * size}
        for system in ("raw", "java") for size in (10, 100) for key in ("keyed", "unkeyed")
    ]  # fmt: skip
    throughput.plot(rows, tmp_path / "plot.svg")
    said = (tmp_path / "plot.svg").read_text()
    assert said.count("fairlead, keyed") == said.count("fairlead, unkeyed") == 1
    assert said.count(">100 B<") == 2


def test_values_have_the_size_asked_for_and_are_always_the_same() -> None:
    assert value_of(100) == value_of(100)
    assert len(value_of(100)) == 100
    assert len(set(value_of(1000))) == 26
    values = values_of_size(512, 50)
    assert values == values_of_size(512, 50)
    assert {len(value) for value in values} == {512}
    assert len(set(values)) == 50
    assert values_of_size(1, 3) == [values[0][at : at + 1] for at in range(3)]


def test_lines_are_those_of_an_access_log() -> None:
    lines = log_lines(200)
    assert lines == log_lines(200) != log_lines(200, seed=2)
    pattern = re.compile(rb'\d+(\.\d+){3} - - \[21/Nov/2026:\d\d:\d\d:\d\d \+0000\] "GET /\S* HTTP/1.1" \d{3} \d+ "-" "[^"]+"')
    assert all(pattern.fullmatch(line) for line in lines)


def test_a_job_goes_through_the_command_line_and_has_its_records() -> None:
    job = Job(**json.loads(_job("raw", keyed=True).to_json()))
    assert job == _job("raw", keyed=True)
    pairs = list(job.pairs())
    assert len(pairs) == 1000
    assert len({key for key, _ in pairs}) == 1000
    assert [key for key, _ in _job("raw").pairs()] == [None] * 1000


def test_java_is_looked_for_in_java_home_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    with pytest.raises(Unavailable, match="no java"):
        java()
