"""`lab spark` without Spark: what counts and what does not, who is left out and why, latencies, and
memory by process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.cli.lab_spark import options_of
from fairlead_kafka.lab import maven, spark, spark_latency
from fairlead_kafka.lab.maven import Unavailable
from fairlead_kafka.lab.process_tree import Watch
from fairlead_kafka.lab.processes import descendants

ROWS = 2_000


class FakeSystem:
    """Does what a Spark session would, with our own client; `loses` rows in each write."""

    def __init__(self, system: str, heap: str = "1g") -> None:
        if system == "missing":
            raise Unavailable("there is none")
        self.system = system
        self._loses = 1 if system == "careless" else 0
        self._ended = Event()
        self.asked: list[tuple[str, dict[str, Any]]] = []
        systems[system] = self

    def __enter__(self) -> FakeSystem:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def kind_of(self, process_id: int) -> str | None:
        return None

    def ask(self, job: str, **arguments: Any) -> dict[str, Any]:
        self.asked.append((job, arguments))
        servers = arguments.get("bootstrap_servers", "")
        if job == "digest":
            return {"seconds": 1.0, "rows": spark.records_of(servers, arguments["topic"]), "checksum": 0}
        if job in ("write", "copy"):
            spark.fill(servers, arguments.get("sink", arguments["topic"]), ROWS - self._loses, 8)
        if job == "stream_begins":
            Thread(
                target=self._forward, args=(servers, arguments["topic"], arguments["sink"]), daemon=True
            ).start()
        if job == "stream_ends":
            self._ended.set()
        return {"seconds": 0.5, "batches": 1}

    def _forward(self, servers: str, source: str, sink: str) -> None:
        with (
            fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer,
            fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer,
        ):
            consumer.assign(
                [fairlead_kafka.TopicPartition(source, number) for number in range(spark_latency.PARTITIONS)]
            )
            consumer.seek_to_beginning()
            while not self._ended.is_set():
                for record in consumer.poll(0.1):
                    producer.send(sink, record.value)


systems: dict[str, FakeSystem] = {}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """`measured(jobs, peers)`: the rows of a run with fake sessions on an embedded cluster."""

    @contextmanager
    def target(name: str) -> Iterator[str]:
        if name == "apache-kafka":
            raise Unavailable("no Java")
        with fairlead_kafka.Cluster(brokers=1) as cluster:
            yield cluster.bootstrap_servers

    monkeypatch.setattr(spark, "target", target)
    monkeypatch.setattr(spark, "SparkSystem", FakeSystem)
    monkeypatch.setattr(spark_latency, "WARM_UP_S", 0.1)

    def run(
        jobs: list[str], peers: list[str], targets: tuple[str, ...] = ("fairlead",), **more: Any
    ) -> list[dict[str, Any]]:
        return spark.run(
            lambda what: None,
            targets=targets,
            peers=peers,
            jobs=jobs,
            rows=ROWS,
            record_sizes=[8],
            rounds=1,
            **more,
        )

    yield run
    systems.clear()


def test_each_job_of_each_system_gives_a_row_with_its_rate(measured: Any) -> None:
    rows = measured(["read", "read_value", "write", "copy"], ["fairlead", "spark-sql-kafka"])
    assert [(row["job"], row["system"]) for row in rows] == [
        (job, system)
        for job in ("read", "read_value", "write", "copy")
        for system in ("fairlead", "spark-sql-kafka")
    ]
    assert {(row["target"], row["record_size"], row["rows_per_s"]) for row in rows} == {
        ("fairlead", 8, ROWS * 2)
    }


def test_systems_take_turns_job_by_job_and_options_are_for_ours_alone(measured: Any) -> None:
    measured(["read", "read_value"], ["fairlead", "spark-sql-kafka"], options={"kafka.linger.ms": "1"})
    reads = {
        name: [arguments for job, arguments in system.asked if job == "read"]
        for name, system in systems.items()
    }
    assert [one["columns"] for one in reads["fairlead"]] == [[], ["value"]] * 2
    assert [one["options"] for one in reads["fairlead"][:2]] == [
        {"kafka.linger.ms": "1"},
        {"kafka.linger.ms": "1", "columns": "value"},
    ]
    assert {str(one["options"]) for one in reads["spark-sql-kafka"]} == {"{}"}


def test_a_system_that_loses_rows_has_no_figure(measured: Any) -> None:
    careless, careful = measured(["write"], ["careless", "fairlead"])
    assert f"{ROWS - 1} rows of {ROWS}" in careless["skipped"]
    assert careful["rows_per_s"] == ROWS * 2


def test_what_cannot_be_had_is_said(measured: Any) -> None:
    rows = measured(["read"], ["missing", "fairlead"], targets=("apache-kafka", "fairlead"))
    assert [(row["target"], row["system"], row.get("skipped")) for row in rows] == [
        ("apache-kafka", "missing", "no Java"),
        ("apache-kafka", "fairlead", "no Java"),
        ("fairlead", "missing", "there is none"),
        ("fairlead", "fairlead", None),
    ]


def test_latencies_are_those_of_records_that_came_through_after_the_warm_up(
    measured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(spark.PROFILES, "quick", spark.Profile(ROWS, 1, (8,), 3.0))
    (row,) = measured(["latency"], ["fairlead"])
    assert 0 < row["p50_ms"] <= row["p95_ms"] <= row["p99_ms"]
    assert row["batches"] == 1


def test_a_stream_that_gives_nothing_is_a_failure(measured: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_latency, "FIRST_RECORD_S", 0.1)
    monkeypatch.setattr(spark_latency, "LAST_RECORD_S", 0.1)
    monkeypatch.setattr(FakeSystem, "_forward", lambda *_: None)
    (row,) = measured(["latency"], ["fairlead"])
    assert "0 of" in row["skipped"]


def test_a_plot_has_a_panel_for_each_target_and_size(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    rows = [
        {"system": system, "target": "fairlead", "job": job, "record_size": size, "rows_per_s": 1000}
        for system in ("fairlead", "spark-sql-kafka")
        for job in ("read", "latency")
        for size in (100, 512)
    ]
    spark.plot(rows, tmp_path / "plot.svg")
    text = (tmp_path / "plot.svg").read_text()
    assert "fairlead, 100 B" in text
    assert "fairlead, 512 B" in text


def test_options_are_names_and_values() -> None:
    assert options_of(["kafka.linger.ms=5", "columns=value"]) == {"kafka.linger.ms": "5", "columns": "value"}
    with pytest.raises(ConfigError, match="must be NAME=VALUE"):
        options_of(["linger"])


def test_without_maven_there_are_no_jars_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(maven, "share_folder", lambda name: tmp_path / name)
    monkeypatch.setattr(maven.shutil, "which", lambda name: None)
    with pytest.raises(Unavailable, match="no mvn on the PATH"):
        maven.fetch_jars("peer", ["group:artifact:1"])


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="read from /proc")
def test_a_watch_sees_what_a_process_below_this_one_takes() -> None:
    script = (
        "import sys; taken = b'x' * (64 << 20); sum(range(10**6)); print('taken', flush=True); del "
        "taken; sys.stdin.read()"
    )
    with (
        Watch(os.getpid(), lambda process_id: None if process_id == os.getpid() else "child") as watch,
        subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process,
    ):
        assert process.stdout is not None
        process.stdout.readline()
        watch.look()
        process.communicate()
    assert watch.peak_rss_mb("child") > 64
    assert watch.cpu_s("child") > 0
    assert watch.peak_rss_mb("other") == 0


def test_what_a_process_took_before_is_not_counted_even_if_it_was_overlooked_then() -> None:
    script = (
        "import time\nwhile time.process_time() < 0.5: pass\nprint('taken', flush=True)\nimport sys; "
        "sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        overlooked = [True]  # as the kernel's list may, at times
        watch = Watch(
            os.getpid(),
            lambda process_id: "child" if process_id == process.pid else None,
            below=lambda process_id: [process_id] if overlooked else descendants(process_id),
        )
        watch.__enter__()
        overlooked.clear()
        watch.look()
        assert watch.cpu_s("child") < 0.25
        watch.__exit__()
        process.communicate()
