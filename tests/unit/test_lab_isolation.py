"""`lab isolation`: its arithmetic, its rows, and one tiny run of each client that is here."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.lab import isolation
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.isolation import SYSTEMS, command_of, rows_of, run_client
from fairlead_kafka.lab.peers.pressed import MODULES, Phase, Phases, Run, Task
from fairlead_kafka.lab.peers.program import peak_memory_mb

PHASES = Phases(warmup=0.1, baseline=0.2, settling=0.1, fault=0.2)


def _task(system: str = "fairlead", keyed: bool = False, rate: int = 0, **config: Any) -> Task:
    return Task(system, "127.0.0.1:1", "topic", keyed, 6, [0, 3], PHASES, rate=rate, config=config)


def _told(healthy: int, failed: int = 0, p99_ms: float | None = 5.0) -> dict[str, Any]:
    return {"healthy_records_per_s": healthy, "p99_ms": p99_ms, "acked": 3 * healthy, "failed": failed}


def test_rows_begin_with_the_state_before_the_fault_and_compare_each_fault_with_its_own_run() -> None:
    rows = rows_of(
        {
            "slow": {"baseline": _told(1000), "fault": _told(900, failed=7), "rss_mb": 200},
            "dead": {"baseline": _told(3000, p99_ms=15.0), "fault": _told(0, p99_ms=None), "rss_mb": 210},
        }
    )
    assert rows == [
        {
            "fault": "none",
            "healthy_records_per_s": 2000,
            "share": 1.0,
            "p99_ms": 10.0,
            "acked": 12_000,
            "failed": 0,
        },
        {
            "fault": "slow",
            "healthy_records_per_s": 900,
            "share": 0.9,
            "p99_ms": 5.0,
            "acked": 2700,
            "failed": 7,
            "rss_mb": 200,
        },
        {
            "fault": "dead",
            "healthy_records_per_s": 0,
            "share": 0.0,
            "p99_ms": None,
            "acked": 0,
            "failed": 0,
            "rss_mb": 210,
        },
    ]


def test_what_could_not_be_measured_is_a_row_that_says_why() -> None:
    assert rows_of({"slow": {"skipped": "why"}}) == [{"fault": "slow", "skipped": "why"}]
    rows = rows_of(
        {"slow": {"skipped": "why"}, "dead": {"baseline": _told(0), "fault": _told(0), "rss_mb": 1}}
    )
    assert [(row["fault"], row.get("share")) for row in rows] == [
        ("none", 1.0),
        ("slow", None),
        ("dead", None),
    ]


def test_a_target_that_cannot_be_had_gives_a_skipped_row_for_each_system(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @contextmanager
    def unavailable(*_: object) -> Iterator[None]:
        raise Unavailable("no Java here")
        yield

    monkeypatch.setattr(isolation, "faulty_target", unavailable)
    rows = isolation.run(lambda _: None, targets=["apache-kafka"], peers=["fairlead", "java"])
    assert rows == [
        {"system": name, "target": "apache-kafka", "skipped": "no Java here"} for name in ("fairlead", "java")
    ]


def test_a_system_that_is_not_installed_is_skipped_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_jars() -> Path:
        raise Unavailable("no mvn")

    monkeypatch.setattr(isolation, "find_spec", lambda _: None)
    monkeypatch.setattr(isolation, "jars", no_jars)
    assert isolation.missing("aiokafka") == "aiokafka is not installed; pip install 'fairlead-kafka[lab]'"
    assert isolation.missing("java") == "no mvn"
    assert isolation.missing("fairlead") is None


def test_a_phase_counts_by_partition_and_tells_of_the_healthy_ones() -> None:
    phase = Phase(3)
    phase.acked = [500, 20, 40]
    phase.latencies_ms = [float(number) for number in range(100)]
    assert phase.figures(2.0, [1, 2]) == {
        "healthy_records_per_s": 30,
        "p99_ms": 99.0,
        "acked": 560,
        "failed": 0,
    }
    assert Phase(3).figures(2.0, [1, 2])["p99_ms"] is None


def test_latencies_are_sampled_on_healthy_partitions_and_errors_counted() -> None:
    run = Run(_task())
    for _ in range(64):
        run.acked(0, 0)
        run.acked(1, 0)
    run.fail(TimedOut("late"))
    run.fail(TimedOut("later"))
    assert (run.phase.acked, len(run.phase.latencies_ms), run.phase.failed) == ([64, 64, 0, 0, 0, 0], 4, 2)
    assert run.first_error == "late"


def test_keys_go_round_and_a_rate_paces_them() -> None:
    keys = Run(_task(keyed=True)).endless_keys()
    first = [next(keys) for _ in range(3001)]
    assert len(set(first)) == 3000
    assert first[0] == first[3000]
    assert next(Run(_task()).endless_keys()) is None
    paced = Run(_task(rate=1000)).endless_keys()
    assert [next(paced) for _ in range(5)] == [None] * 5


def test_every_client_has_its_script_and_its_command() -> None:
    assert {system.client for system in SYSTEMS.values()} == {*MODULES, "java"}
    task = _task("confluent-kafka", keyed=True, linger=5)
    command = command_of(task)
    assert command[:3] == [sys.executable, "-m", "fairlead_kafka.lab.peers.pressed"]
    assert Task.from_json(command[3]) == task


def test_java_is_told_the_same_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(isolation, "java", lambda: "java")
    monkeypatch.setattr(isolation, "jars", lambda: Path("jars"))
    (
        *_,
        source,
        servers,
        topic,
        load,
        partitions,
        faulty,
        size,
        rate,
        warmup,
        baseline,
        settling,
        fault,
        config,
    ) = command_of(_task("java", keyed=True, **{"linger.ms": 5}))
    assert Path(source).exists()
    assert (servers, topic, load, partitions, faulty, size, rate) == (
        "127.0.0.1:1",
        "topic",
        "keyed",
        "6",
        "0,3",
        "512",
        "0",
    )
    assert (warmup, baseline, settling, fault, config) == ("100", "200", "100", "200", "linger.ms=5")


def _script(text: str) -> list[str]:
    return [sys.executable, "-c", text]


def test_the_broker_breaks_when_the_client_asks_for_it_and_is_healed_when_it_has_told() -> None:
    events = []

    @contextmanager
    def broken() -> Iterator[None]:
        events.append("broken")
        yield
        events.append("healed")

    told = run_client(_script("print('fault', flush=True); print('{\"rss_mb\": 1}')"), 30, broken)
    assert told == {"rss_mb": 1}
    assert events == ["broken", "healed"]


def test_a_client_that_fails_is_skipped_with_its_last_words() -> None:
    assert run_client(
        _script("import sys; sys.exit('first\\nno broker today')"), 30, contextlib.nullcontext
    ) == {"skipped": "failed: no broker today"}
    assert run_client(_script("print('fault')"), 30, contextlib.nullcontext)["skipped"].startswith(
        "failed: it told nothing"
    )

    @contextmanager
    def stuck() -> Iterator[None]:
        raise TimedOut("nobody noticed")
        yield

    assert run_client(_script("print('fault')"), 30, stuck) == {
        "skipped": "the fault could not be made: nobody noticed"
    }


def test_the_plot_has_a_panel_for_each_load(tmp_path: Path) -> None:
    rows = [
        {"system": system, "target": "fairlead", "load": load, "fault": fault, "share": 0.5}
        for system in ("fairlead", "java") for load in ("keyed", "unkeyed") for fault in ("none", "slow",
        "dead")
    ]  # fmt: skip
    isolation.plot(rows, tmp_path / "plot.svg")
    said = (tmp_path / "plot.svg").read_text()
    assert all(said.count(text) == 1 for text in (">keyed load, fairlead<", ">unkeyed load, fairlead<"))
    assert said.count(">one broker slow<") == 2


def test_the_peak_of_memory_is_this_process_s_own() -> None:
    assert 10 < peak_memory_mb() < 10_000
