"""`lab throughput`: its arithmetic, the shape of its report and of its plot, and rows for what
could not be measured."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from fairlead_kafka.lab import experiment, throughput, whole_process
from fairlead_kafka.lab.apache_kafka import Unavailable, java
from fairlead_kafka.lab.bounded import NotFinished, innermost, run_client
from fairlead_kafka.lab.experiment import EXPERIMENTS, Row, report
from fairlead_kafka.lab.lines import log_lines, values_of_size
from fairlead_kafka.lab.peers import sending
from fairlead_kafka.lab.peers.program import value_of
from fairlead_kafka.lab.peers.sending import COMPLETE, Sending
from fairlead_kafka.lab.peers.tls import settings_of
from fairlead_kafka.lab.targets import Place
from fairlead_kafka.lab.throughput import Cell
from fairlead_kafka.lab.whole_process import Whole

MARKS = {
    "cold_s": 2.5, "first_100000_s": 0.5, "sending_s": 2.0, "cold_acked": 500_000, "cold_cpu_s": 1.5,
    "warm_acked": 900_000, "warm_s": 3.0, "warm_cpu_s": 1.8, "rss_mb": 182,
}  # fmt: skip


def _cell(folder: Path | str = "", keyed: bool = False) -> Cell:
    return Cell(
        "fairlead",
        "plaintext",
        "127.0.0.1:1",
        Place("127.0.0.1:1"),
        100,
        "keyed" if keyed else "unkeyed",
        "none",
        1000,
        0.0,
        0.0,
        str(folder),
    )


def test_figures_are_per_second_and_per_million() -> None:
    assert throughput.figures("aiokafka", MARKS, 100) == {
        "acked": 500_000,
        "cold_s": 2.5,
        "first_100000_s": 0.5,
        "cold_records_per_s": 250_000,
        "cold_cpu_s_per_million": 3.0,
        "records_per_s": 300_000,
        "mb_per_s": 30.0,
        "cpu_s_per_million": 2.0,
        "rss_mb": 182,
    }
    few = {name: value for name, value in MARKS.items() if name != "first_100000_s"} | {
        "cold_acked": 0,
        "warm_acked": 0,
    }
    row = throughput.figures("aiokafka", few, 100)
    assert (row["first_100000_s"], row["cold_records_per_s"], row["records_per_s"]) == (None, 0, 0)


def test_memory_beyond_buffer_memory_is_told_of_clients_that_have_one() -> None:
    assert throughput.figures("fairlead.send", MARKS, 100)["rss_over_buffer_mb"] == 150, (
        "buffer.memory is 32 MiB"
    )
    assert "rss_over_buffer_mb" not in throughput.figures("confluent-kafka.produce", MARKS, 100)


def test_a_report_is_json_of_a_stable_shape() -> None:
    made = json.loads(
        json.dumps(report("throughput", {"peers": ["raw"]}, [{"system": "raw", "records_per_s": 1}]))
    )
    assert list(made) == ["experiment", "version", "environment", "parameters", "rows"]
    assert (made["experiment"], made["version"], made["parameters"]) == ("throughput", 1, {"peers": ["raw"]})
    assert made["rows"] == [{"system": "raw", "records_per_s": 1}]
    assert set(made["environment"]) == {"fairlead", "python", "system", "cpus", "load_average", "libraries"}
    assert made["environment"]["libraries"]["pyarrow"] != "not installed"


def test_every_system_has_a_script_and_every_experiment_its_module() -> None:
    assert set(sending.PROGRAMS) == set(throughput.SYSTEMS) - {"java"}
    assert {name: one.name for name, one in EXPERIMENTS.items()} == {name: name for name in EXPERIMENTS}


def test_a_system_that_is_not_installed_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(experiment, "find_spec", lambda _: None)
    row = throughput.run_system("aiokafka", _cell(), "topic")
    assert row == {"skipped": "aiokafka is not installed; pip install 'fairlead-kafka[lab]'"}


def test_java_is_skipped_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java(*_: object) -> list[str]:
        raise Unavailable("there is no java")

    monkeypatch.setattr(throughput, "java_command", no_java)
    assert throughput.run_system("java", _cell(), "topic") == {"skipped": "there is no java"}
    assert throughput.run_system("java", _cell(keyed=True), "topic") == {
        "skipped": "kafka-producer-perf-test sends no keys"
    }


def test_java_says_how_fast_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    said = (
        "100 records sent, 50.0 records/sec (0.1 MB/sec)\n1000 records sent, 125.5 records/sec (0.1 "
        "MB/sec), 3 ms avg latency\n"
    )
    monkeypatch.setattr(throughput, "java_command", lambda *_: [])
    monkeypatch.setattr(throughput, "run_whole", lambda *_: Whole(0, said, 9.0, 0.5, 300))
    row = throughput.run_system("java", _cell(), "topic")
    assert (row["acked"], row["cold_s"], row["cold_records_per_s"], row["cold_cpu_s_per_million"]) == (
        1000,
        9.0,
        126,
        500.0,
    )
    assert (row["rss_mb"], row["rss_over_buffer_mb"]) == (300, 268)
    monkeypatch.setattr(throughput, "run_whole", lambda *_: Whole(1, "no broker today\n", 9.0, 0.5, 300))
    assert throughput.run_system("java", _cell(), "topic") == {"skipped": "failed: no broker today"}


def test_a_system_that_fails_or_does_not_end_is_skipped_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        whole_process, "run_whole", lambda *_: Whole(1, "first\nno broker today", 9.0, 0.5, 300)
    )
    assert throughput.run_system("raw", _cell(), "topic") == {"skipped": "failed: first\nno broker today"}

    def too_long(*_: object) -> Whole:
        raise NotFinished("not finished within 300 s")

    monkeypatch.setattr(whole_process, "run_whole", too_long)
    assert throughput.run_system("raw", _cell(), "topic") == {"skipped": "not finished within 300 s"}


def test_a_system_that_does_not_end_is_stopped_and_skipped() -> None:
    script = "import threading; threading.Event().wait()"
    assert run_client([sys.executable, "-c", script], 0.5)["skipped"].startswith("not finished within 0.5 s")


def test_over_tls_each_client_is_told_whom_to_trust_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    secured = replace(_cell(), security="ssl", place=Place("localhost:2", "/ca.pem"))
    assert throughput.run_system("raw", secured, "topic") == {
        "skipped": "it has no TLS: what encrypts is what is measured"
    }
    words = {
        "fairlead.send": "ssl.truststore.location",
        "confluent-kafka.async": "ssl.ca.location",
        "java": "ssl.truststore.location",
        "kafka-python": "ssl_cafile",
        "aiokafka": "cafile",
    }
    for system, word in words.items():
        assert settings_of(system, "/ca.pem")[word] == "/ca.pem"
        assert settings_of(system, None) == {}


def test_of_a_dump_the_main_threads_innermost_frame_is_told() -> None:
    other = 'Thread 0x1 (most recent call first):\n  File "/a/b/c.py", line 7 in poll\n'
    main = (
        'Current thread 0x2 (most recent call first):\n  File "/x/kafka/future.py", line 12 in get\n  '
        'File "/x/y.py", line 1 in main\n'
    )
    assert innermost(other + main) == ", in get (kafka/future.py:12)"
    assert innermost("") == ""


def test_a_target_that_cannot_be_had_gives_a_skipped_row_for_each_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def unavailable(name: str, security: str) -> Iterator[None]:
        raise Unavailable(f"no {name} here")
        yield None

    monkeypatch.setattr(throughput, "secured_target", unavailable)
    said: list[str] = []
    rows = throughput.run(said.append, targets=["apache-kafka"], peers=["raw", "java"])
    assert rows == [
        {
            "system": "raw",
            "target": "apache-kafka",
            "security": "plaintext",
            "skipped": "no apache-kafka here",
        },
        {
            "system": "java",
            "target": "apache-kafka",
            "security": "plaintext",
            "skipped": "no apache-kafka here",
        },
    ]
    assert said == ["starting apache-kafka"]


def test_a_row_is_the_median_round_of_its_system(monkeypatch: pytest.MonkeyPatch) -> None:
    speeds = {"raw": iter([30, 10, 20]), "java": iter([1, 3, 2])}
    asked: list[tuple[str, str]] = []

    def measured(system: str, cell: Cell, topic: str) -> Row:
        asked.append((system, topic))
        assert (cell.records, len(Path(cell.file).read_bytes().splitlines())) == (100_000, throughput.VALUES)
        return {"records_per_s" if system == "raw" else "cold_records_per_s": next(speeds[system])}

    class NoAdmin:
        def __init__(self, config: object) -> None: ...
        def __enter__(self) -> NoAdmin:
            return self

        def __exit__(self, *_: object) -> None: ...
        def create_topics(self, topics: object) -> None: ...
        def delete_topics(self, topics: object) -> None: ...

    @contextmanager
    def here(name: str, security: str) -> Iterator[tuple[str, Place]]:
        yield "127.0.0.1:1", Place("127.0.0.1:1")

    monkeypatch.setattr(throughput, "run_system", measured)
    monkeypatch.setattr(throughput, "Admin", NoAdmin)
    monkeypatch.setattr(throughput, "secured_target", here)
    rows = throughput.run(
        lambda _: None, targets=["fairlead"], peers=["raw", "java"], records=100_000, rounds=3
    )
    what = {
        "target": "fairlead",
        "security": "plaintext",
        "record_size": 100,
        "key": "unkeyed",
        "compression": "none",
    }
    assert rows == [
        {"system": "raw", **what, "records_per_s": 20},
        {"system": "java", **what, "cold_records_per_s": 2},
    ]
    assert [system for system, _ in asked] == ["raw", "java"] * 3, "interleaved"
    assert len(set(asked)) == 6, "a topic for each"


def test_profiles_have_their_cells_and_options_make_every_combination() -> None:
    quick, full = throughput.PROFILES["quick"], throughput.PROFILES["full"]
    assert throughput.cells(quick) == [(100, "unkeyed", "none")]
    assert {size for size, _, _ in full.cells} == {10, 100, 512, 1024}
    assert {(key, compression) for size, key, compression in full.cells if size == 512} == {
        *((key, "none") for key in throughput.KEYS),
        *(("unkeyed", compression) for compression in throughput.COMPRESSIONS),
    }
    assert throughput.cells(quick, compressions=["lz4", "zstd"]) == [
        (100, "unkeyed", "lz4"),
        (100, "unkeyed", "zstd"),
    ]
    assert throughput.cells(quick, [10, 20], ["keyed", "unkeyed"], ["none"]) == [
        (10, "keyed", "none"), (10, "unkeyed", "none"), (20, "keyed", "none"), (20, "unkeyed", "none")
    ]  # fmt: skip


def test_the_plot_has_a_panel_for_each_target_key_and_compression(tmp_path: Path) -> None:
    rows = [
        {"system": system, "target": "fairlead", "record_size": size, "key": key, "compression": "none",
        "records_per_s": 10 * size}
        for system in ("raw", "java") for size in (10, 100) for key in ("keyed", "unkeyed")
    ]  # fmt: skip
    throughput.plot(rows, tmp_path / "plot.svg")
    said = (tmp_path / "plot.svg").read_text()
    assert said.count("fairlead, plaintext, keyed") == said.count("fairlead, plaintext, unkeyed") == 1
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
    pattern = re.compile(
        rb'\d+(\.\d+){3} - - \[21/Nov/2026:\d\d:\d\d:\d\d \+0000\] "GET /\S* HTTP/1.1" \d{3} \d+ "-" "[^"]+"'
    )
    assert all(pattern.fullmatch(line) for line in lines)


def test_a_command_has_what_its_program_reads(tmp_path: Path) -> None:
    cell = _cell(tmp_path, keyed=True)
    cell.write_file()
    *_, text = throughput.command_of("fairlead.send", cell, "topic", 1000)
    job = Sending(json.loads(text))
    assert (job.bootstrap_servers, job.topic, job.compression) == ("127.0.0.1:1", "topic", "none")
    pairs = list(job.pairs(1500))
    assert (len({key for key, _ in pairs}), {len(value) for _, value in pairs}) == (1500, {100})
    assert len({value for _, value in pairs}) > 900
    with pa.OSFile(cell.file + ".arrow") as source:
        table = pa.ipc.open_file(source).read_all()
    assert (table.num_rows, table["value"][0].as_py(), table["key"][1].as_py()) == (
        100_000,
        pairs[0][1],
        b"key-1",
    )


def test_a_plan_sends_the_first_records_the_rest_and_then_by_time(tmp_path: Path) -> None:
    cell = _cell(tmp_path)
    cell.write_file()
    *_, text = throughput.command_of("fairlead.send", cell, "topic", 250_000)
    job = Sending(json.loads(text))
    assert [key for key, _ in job.pairs(3)] == [None] * 3
    done: list[int] = []

    def complete() -> int:
        done.append(COMPLETE)
        return sum(done)

    sending.follow(job.plan(), done.append, complete)
    assert done == [100_000, COMPLETE, 150_000, COMPLETE, COMPLETE, COMPLETE], (
        "no time is left for what is warm"
    )
    assert (job.marks["cold_acked"], job.marks["warm_acked"]) == (250_000, 0)
    assert 0 < job.marks["first_100000_s"] <= job.marks["cold_s"]
    few = Sending({**json.loads(text), "records": 1000, "warm_after_s": 0.05, "warm_s": 0.05})
    asyncio.run(_followed(few))
    assert (few.marks["cold_acked"], few.marks["warm_acked"] >= 100_000, "first_100000_s" in few.marks) == (
        1000,
        True,
        False,
    )


async def _followed(job: Sending) -> None:
    done: list[int] = []

    async def send(count: int) -> None:
        done.append(count)

    async def complete() -> int:
        return sum(done)

    await sending.follow_async(job.plan(), send, complete)


def test_java_is_looked_for_in_java_home_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "nowhere")
    with pytest.raises(Unavailable, match="no java"):
        java()
