"""The lab's scripts for each client, run against our cluster for a moment: they send, they count,
and they tell what the rows need."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import nullcontext
from importlib.util import find_spec
from pathlib import Path

import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client import Admin, NewTopic
from fairlead_kafka.core.partition_offsets import LATEST
from fairlead_kafka.lab import consume, first_second, isolation, throughput, transactions
from fairlead_kafka.lab.peers import sent_to_polled
from fairlead_kafka.lab.peers.pressed import Phases
from fairlead_kafka.lab.whole_process import marks_of, run_program
from fairlead_kafka.testing import Cluster

ISOLATION_ROW = {
    "system",
    "target",
    "load",
    "fault",
    "healthy_records_per_s",
    "share",
    "p99_ms",
    "acked",
    "failed",
    "rss_mb",
}
THROUGHPUT_ROW = {
    "acked", "cold_s", "first_100000_s", "cold_records_per_s", "cold_cpu_s_per_million",
    "records_per_s", "mb_per_s", "cpu_s_per_million", "rss_mb",
}  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=1) as made:
        yield made


@pytest.mark.parametrize(
    "system", ["fairlead", "fairlead.share", "confluent-kafka", "kafka-python", "aiokafka"]
)
def test_a_moment_of_isolation_gives_its_rows(system: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip(isolation.SYSTEMS[system].module or "fairlead_kafka")
    monkeypatch.setitem(
        isolation.PROFILES, "quick", Phases(warmup=0.3, baseline=1.5, settling=0.3, fault=1.5)
    )
    rows = isolation.run(lambda _: None, peers=[system], loads=["keyed"], faults=["slow"], rate=1000)
    assert [(row["system"], row["target"], row["load"], row["fault"]) for row in rows] == [
        (system, "fairlead", "keyed", fault) for fault in ("none", "slow")
    ]
    assert set(rows[1]) == ISOLATION_ROW
    assert rows[0]["acked"] + rows[1]["acked"] > 0, json.dumps(rows)


@pytest.mark.parametrize("keyed", [False, True], ids=["unkeyed", "keyed"])
@pytest.mark.parametrize("system", [system for system in throughput.SYSTEMS if system != "java"])
def test_every_system_of_throughput_delivers_all_it_was_given(
    cluster: Cluster, system: str, keyed: bool, tmp_path: Path
) -> None:
    pytest.importorskip(throughput.SYSTEMS[system][0] or "fairlead_kafka")
    topic = f"{system}-{keyed}"
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=throughput.PARTITIONS)])
    key, codec, records = ("keyed", "lz4", 5_000) if keyed else ("unkeyed", "none", 5_000)
    asked = int(records / throughput.SYSTEMS[system][1])
    cell = throughput.Cell(
        "fairlead",
        "plaintext",
        cluster.bootstrap_servers,
        throughput.Place(cluster.bootstrap_servers),
        100,
        key,
        codec,
        asked,
        0.0,
        0.1,
        str(tmp_path),
    )
    cell.write_file()
    row = throughput.run_system(system, cell, topic)
    assert set(row) - {"rss_over_buffer_mb"} == THROUGHPUT_ROW, row
    assert row["acked"] == records or system == "raw", "raw sends full requests only"
    assert min(row["acked"], row["records_per_s"]) > 0


@pytest.mark.parametrize("system", [system for system in transactions.SYSTEMS if system != "java"])
def test_every_system_of_transactions_commits_what_it_sends(cluster: Cluster, system: str) -> None:
    pytest.importorskip(transactions.SYSTEMS[system] or "fairlead_kafka")
    topic = f"transactions-{system}"
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=transactions.BROKERS)])
        cell = transactions.Cell(
            "fairlead", cluster.bootstrap_servers, "v2", "record", transactions.Profile(3, 1, 0.0, 0.05)
        )
        marks = run_program(transactions.command_of(system, cell, topic), 60.0)
        assert "skipped" not in marks, marks
        assert all(value > 0 for value in transactions.figures(marks_of(marks)).values()), marks
        ends = admin.list_offsets({TopicPartition(topic, number): LATEST for number in range(3)})
    # A record and a marker of each transaction.
    assert {end.offset for end in ends.values() if end is not None} == {2 * marks["transactions"]}


def test_every_system_of_first_second_does_what_it_is_measured_for(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    systems = [
        system
        for system, module in first_second.SYSTEMS.items()
        if system != "java" and (module is None or find_spec(module))
    ]
    monkeypatch.setattr(first_second, "target", lambda _: nullcontext(cluster.bootstrap_servers))
    monkeypatch.setattr(first_second, "FILLED", 1_000)
    monkeypatch.setitem(first_second.PROFILES, "quick", first_second.Profile(1, (1,), warmups=0))
    rows = first_second.run(lambda _: None, targets=["fairlead"], peers=systems)
    place = first_second._Place(cluster.bootstrap_servers, "")
    rows += [
        {"system": "fairlead", **first_second.measure_once("fairlead", task, 500, place)[0]}
        for task in ("send", "read")
    ]
    assert not [row for row in rows if "skipped" in row]
    assert all(row["seconds"] > 0 and row["cpu_s"] > 0 and 5 < row["rss_mb"] < 1_000 for row in rows), rows
    found = {(row["system"], row["what"]) for row in rows}
    assert {(system, "first record acknowledged") for system in systems} <= found
    assert {
        ("fairlead", what) for what in ("import", "client made", "sent", "read", "cluster started, 3 brokers")
    } <= found


@pytest.mark.parametrize("how", ["assigned", "group"])
def test_every_system_of_consume_reads_all_and_goes_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Each process takes a second or so: assigned, one of each kind; in a group, ours; latency,
    ours."""
    kinds = [
        "raw",
        "fairlead.poll_table",
        "fairlead.poll",
        "confluent-kafka.consume",
        "kafkarrow",
        "aiokafka",
    ]
    systems = [
        system for system in kinds if (module := consume.SYSTEMS[system][0]) is None or find_spec(module)
    ]
    if how == "group":
        systems = ["fairlead.async.poll_table", "fairlead.poll"]
    servers = cluster.bootstrap_servers
    monkeypatch.setattr(
        consume, "secured_target", lambda name, security: nullcontext((servers, consume.Place(servers)))
    )
    monkeypatch.setattr(consume, "FILLED", 2_000)
    monkeypatch.setattr(
        sent_to_polled, "PROGRAMS", {"fairlead.poll": sent_to_polled.PROGRAMS["fairlead.poll"]}
    )
    monkeypatch.setitem(
        consume.PROFILES, "quick", consume.Profile(2_000, 0.0, 0.1, (consume.Cell(how=how),), 1.0)
    )
    rows = consume.run(lambda _: None, targets=["fairlead"], peers=systems, latency=how == "group")
    assert not [row for row in rows if "skipped" in row], rows
    read = [row for row in rows if row["how"] == how]
    assert [row["system"] for row in read] == systems
    assert all(row["cold_records_per_s"] > 0 and row["rss_mb"] > 5 for row in read), read
    latencies = [row for row in rows if row["how"] == "latency"]
    assert [0 < row["p50_ms"] <= row["p99_ms"] for row in latencies] == [True] * (how == "group")


def test_every_system_of_consume_reads_over_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """From our own cluster in a process of its own, that listens in plaintext too."""
    kinds = [
        "raw",
        "fairlead.poll_table",
        "fairlead.async.poll",
        "confluent-kafka.consume",
        "aiokafka",
        "kafka-python",
    ]
    systems = [
        system for system in kinds if (module := consume.SYSTEMS[system][0]) is None or find_spec(module)
    ]
    monkeypatch.setattr(consume, "FILLED", 2_000)
    monkeypatch.setitem(
        consume.PROFILES, "quick", consume.Profile(2_000, 0.0, 0.1, (consume.Cell(security="ssl"),), 0.3)
    )
    rows = consume.run(lambda _: None, targets=["fairlead"], peers=systems, latency=False)
    assert [(row["system"], row["security"]) for row in rows] == [(system, "ssl") for system in systems]
    assert all(row.get("cold_records_per_s", 0) > 0 for row in rows), rows
