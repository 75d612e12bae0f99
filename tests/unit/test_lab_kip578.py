"""`lab kip578`: who is measured when, the shape of its rows and of its plot, and rows for what
cannot be; on a target of a test's own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.lab import kip578, kip578_load, kip578_targets
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.kip578 import COLUMNS, PROFILES, Case, cases, run
from fairlead_kafka.lab.kip578_targets import Embedded, too_many_for_apache_kafka

KEYS = {"system", "experiment", "partitions", "replication_factor", *COLUMNS}


def silent(_: str) -> None:
    """A status that nobody watches."""


def test_the_systems_take_turns_and_every_size_of_the_issue_is_there() -> None:
    found = list(cases(PROFILES["full"], ["apache-kafka", "fairlead"], ["A1", "A2", "A3"]))
    assert found[:2] == [Case("apache-kafka", "A1", 10), Case("fairlead", "A1", 10)]
    throughput = {(case.partitions, case.replication_factor) for case in found if case.experiment == "A1"}
    assert throughput == {
        (size, factor) for size in (10, 100, 1_000, 5_000, 10_000, 30_000) for factor in (3, 1)
    }
    assert {case.experiment for case in found if case.partitions == 30_000} == {"A1", "A2", "A3"}


def test_only_what_is_asked_for_is_measured() -> None:
    found = list(cases(PROFILES["quick"], ["fairlead"], ["A2"], [20]))
    assert found == [Case("fairlead", "A2", 20)]


def test_a_row_has_every_column() -> None:
    row = Case("fairlead", "A2", 30_000).row(create_s=1.5, files=9)
    assert row.keys() == KEYS
    assert (row["create_s"], row["files"], row["mb_per_s"]) == (1.5, 9, None)
    skipped = Case("fairlead", "A2", 30_000).row(skipped="why")
    assert skipped == {
        "system": "fairlead",
        "experiment": "A2",
        "partitions": 30_000,
        "replication_factor": 3,
        "skipped": "why",
    }


def test_what_this_machine_does_not_allow_apache_kafka_is_said_with_figures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kip578_targets.resource, "getrlimit", lambda _: (1024, 20_000))
    assert too_many_for_apache_kafka(1_000) is None
    why = too_many_for_apache_kafka(30_000)
    assert why is not None
    assert "30,000 logs open" in why
    assert "20,000 files" in why


class FakeTarget:
    """Stands in for a cluster: notes what is done to it."""

    bootstrap_servers = "127.0.0.1:1"

    def __init__(self) -> None:
        self.done: list[Any] = []

    def stop(self) -> None:
        self.done.append("stop")

    def start(self) -> None:
        self.done.append("start")

    def kill(self, node_id: int) -> None:
        self.done.append(("kill", node_id))

    def revive(self, node_id: int) -> None:
        self.done.append(("revive", node_id))

    def rss_mb(self) -> int:
        return 7

    def files(self) -> int:
        return 5


class FakeAdmin:
    """Stands in for an admin client whose cluster takes so many partitions at once, as Apache Kafka
    does."""

    at_once = 10_000
    asked: list[Any]

    def __init__(self, _: Mapping[str, Any]) -> None:
        pass

    def __enter__(self) -> FakeAdmin:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def describe_cluster(self, timeout_s: float) -> None:
        pass

    def create_topics(self, topics: list[Any], timeout_s: float) -> None:
        self.asked.append(("create", topics[0].partitions))
        if topics[0].partitions > self.at_once:
            raise BrokerError(ErrorCode.POLICY_VIOLATION, "too many")

    def create_partitions(self, changes: Mapping[str, Any], timeout_s: float) -> None:
        self.asked += [("grow", change.total) for change in changes.values()]

    def delete_topics(self, names: list[str], timeout_s: float) -> None:
        self.asked.append("delete")

    def describe_topics(self, names: list[str], timeout_s: float) -> Mapping[str, Any]:
        partition = SimpleNamespace(leader=1, replicas=(0, 1, 2), isr=(0, 1, 2))
        return {name: SimpleNamespace(partitions=[partition]) for name in names}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> FakeTarget:
    target = FakeTarget()

    @contextmanager
    def started(name: str, hosting: str) -> Iterator[FakeTarget]:
        if name == "apache-kafka":
            raise Unavailable("no java")
        yield target

    FakeAdmin.asked = []
    monkeypatch.setattr(kip578, "Admin", FakeAdmin)
    monkeypatch.setattr(kip578, "kip_target", started)
    figures = {"mb_per_s": 12.5, "p99_ms": 3.0, "max_ms": 4.0, "acked": 1}
    monkeypatch.setattr(kip578, "load", lambda generator, servers, topic, records: dict(figures))
    return target


def test_all_experiments_give_rows_of_one_shape_and_a_plot(fake: FakeTarget, tmp_path: Path) -> None:
    rows = run(silent, targets=["fairlead", "apache-kafka"], partitions=[20])
    measured = [row for row in rows if "skipped" not in row]
    assert {(row["system"], row["skipped"]) for row in rows if "skipped" in row} == {
        ("apache-kafka", "no java")
    }
    assert all(row.keys() >= KEYS for row in measured)
    loads = [
        (row["load"], row["generator"])
        for row in measured
        if row["experiment"] == "A1" and row["replication_factor"] == 3
    ]
    assert loads == [
        ("first touch", "java"),
        ("steady", "java"),
        ("first touch", "fairlead"),
        ("steady", "fairlead"),
    ]
    assert all(
        (row["mb_per_s"], row["p99_ms"]) == (12.5, 3.0) for row in measured if row["experiment"] == "A1"
    )
    (created,) = [row for row in measured if row["experiment"] == "A2"]
    assert all(isinstance(created[key], float) for key in ("create_s", "delete_s", "restart_s"))
    assert (created["rss_mb"], created["files"]) == (7, 5)
    (failed,) = [row for row in measured if row["experiment"] == "A3"]
    assert failed["failover_s"] >= 0
    assert fake.done == ["stop", "start", ("kill", 0), ("revive", 0)]
    kip578.plot(measured, tmp_path / "plot.svg")
    assert "A2, restart_s" in (tmp_path / "plot.svg").read_text()
    json.dumps(rows)


def test_what_is_refused_whole_is_created_in_parts(fake: FakeTarget) -> None:
    run(silent, targets=["fairlead"], experiments=["A2"], partitions=[12_000])
    assert FakeAdmin.asked == [
        ("create", 12_000),
        ("create", 5_000),
        ("grow", 10_000),
        ("grow", 12_000),
        "delete",
    ]


def test_the_quick_profile_says_what_it_spares_apache_kafka(fake: FakeTarget) -> None:
    rows = run(silent, targets=["apache-kafka"], experiments=["A2"], partitions=[30_000])
    assert "--profile full" in rows[0]["skipped"]


def test_a_load_that_fails_is_a_row_that_says_why(fake: FakeTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kip578, "load", lambda generator, servers, topic, records: {"skipped": "too slow"})
    rows = run(silent, targets=["fairlead"], experiments=["A1"], partitions=[20], generators=["java"])
    assert [row["skipped"] for row in rows] == ["too slow"] * 4


def test_our_brokers_in_a_process_of_their_own_are_killed_and_weighed() -> None:
    with Embedded("thread") as target:
        assert len(target.bootstrap_servers.split(",")) == 3
        assert target.rss_mb() > 20
        assert target.files() >= 1
        target.kill(0)
        target.revive(0)
    assert target.files() == 0


def test_a_load_that_was_stopped_counts_what_it_got_through() -> None:
    said = (
        "30000 records sent, 6000.0 records/sec (2.93 MB/sec), 12.0 ms avg latency, 30.0 ms max latency.\n"
        * 3
    )
    figures = {"mb_per_s": 0.244, "p99_ms": None, "max_ms": None, "acked": 90_000, "failed": 60_000}
    assert kip578_load.unfinished(said, 150_000) == kip578_load.unfinished(said.encode(), 150_000) == figures
    assert kip578_load.unfinished(None, 10)["mb_per_s"] == 0


def test_records_that_expired_are_told_beside_the_throughput_of_the_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rest = "1.0 ms avg latency, 9.0 ms max latency, 1 ms 50th, 2 ms 95th, 3 ms 99th, 4 ms 99.9th."
    summary = f"90 records sent, 900.0 records/sec (0.44 MB/sec), {rest}"
    ran = SimpleNamespace(returncode=1, stdout=summary, stderr="10 records were not delivered")
    monkeypatch.setattr(kip578_load.subprocess, "run", lambda *_, **__: ran)
    found = kip578_load.load("fairlead", "127.0.0.1:1", "t", 100)
    assert found == {"mb_per_s": 0.439, "p99_ms": 3.0, "max_ms": 9.0, "acked": 90, "failed": 10}
    ran.stdout = ""
    assert kip578_load.load("fairlead", "127.0.0.1:1", "t", 100) == {
        "skipped": "failed: 10 records were not delivered"
    }
