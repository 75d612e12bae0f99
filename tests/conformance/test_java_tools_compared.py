"""Kafka's own tools, each asked the same of Apache Kafka and of our cluster: what they print is the
same, but for what a system makes up."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from fairlead_kafka.lab.apache_kafka import ApacheKafka
from fairlead_kafka.testing import Cluster
from tests.support.java_tools import JavaTools

CONFIG = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
}
T = "compared"
OF_TOPIC = ("configs", "--entity-type", "topics", "--entity-name", T)
OF_BROKER = ("configs", "--entity-type", "brokers", "--entity-name", "0")
OF_ALL_BROKERS = ("configs", "--entity-type", "brokers", "--entity-default")
ROWS: list[tuple[int, tuple[str, ...]]] = [
    (0, ("topics", "--create", "--topic", T, "--partitions", "2", "--config", "segment.ms=3600000")),
    (1, ("topics", "--create", "--topic", T)),
    (0, ("topics", "--create", "--topic", T, "--if-not-exists")),
    (0, ("topics", "--list", "--exclude-internal")),
    (0, ("topics", "--describe", "--topic", T)),
    (1, ("topics", "--describe", "--topic", "missing")),
    (0, ("topics", "--alter", "--topic", T, "--partitions", "3")),
    (1, ("topics", "--alter", "--topic", T, "--partitions", "1")),
    (1, ("topics", "--alter", "--topic", T, "--partitions", "3")),
    (1, ("topics", "--delete", "--topic", "missing")),
    (
        0,
        (
            "configs",
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            T,
            "--add-config",
            "preallocate=true",
        ),
    ),
    (0, (*OF_TOPIC, "--describe")),
    (
        0,
        (
            "configs",
            "--alter",
            "--entity-type",
            "topics",
            "--entity-name",
            T,
            "--delete-config",
            "preallocate",
        ),
    ),
    (
        0,
        (
            "configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "0",
            "--add-config",
            "log.roll.ms=9",
        ),
    ),
    (0, (*OF_BROKER, "--describe")),
    (
        0,
        (
            "configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-default",
            "--add-config",
            "num.io.threads=9",
        ),
    ),
    (
        0,
        (
            "configs",
            "--alter",
            "--entity-type",
            "brokers",
            "--entity-name",
            "0",
            "--delete-config",
            "log.roll.ms",
        ),
    ),
    (0, ("client-metrics", "--alter", "--name", "all", "--metrics", "a.b", "--interval", "5000")),
    (0, ("client-metrics", "--list")),
    (0, ("client-metrics", "--describe", "--name", "all")),
    (0, ("client-metrics", "--delete", "--name", "all")),
    (0, ("offsets", "--topic", T)),
    (0, ("offsets", "--topic", T, "--time", "earliest")),
    (0, ("offsets", "--topic", T, "--time", "max-timestamp")),
    (0, ("list-groups", "--list")),
    (0, ("groups", "--list")),
    (0, ("leader-election", "--election-type", "preferred", "--all-topic-partitions")),
    (0, ("transactions", "list")),
    (0, ("transactions", "describe-producers", "--topic", T, "--partition", "0")),
]
"""Status that a tool ends with, and what it is asked."""
_MADE_UP = [
    # ours tells also in another unit where a topic's value would come from
    (re.compile(r"(segment\.ms=\d+), DEFAULT_CONFIG:log\.roll\.hours=168"), r"\1"),
    (re.compile(r"min\.insync\.replicas=1,?"), ""),  # Apache Kafka sets it by itself (KIP-966)
    (re.compile(r"TopicId: \S+"), "TopicId: ID"),
    (re.compile(r"Elr: ?\tLastKnownElr: ?"), ""),
    (re.compile(r"\[?\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d+\]?"), "TIME"),
]


@pytest.fixture(scope="module")
def both(kafka_jars: str) -> Iterator[dict[str, str]]:
    with (
        Cluster(brokers=1, config=CONFIG) as ours,
        ApacheKafka(heap="512m", properties=CONFIG) as kafka,
    ):
        yield {"ours": ours.bootstrap_servers, "Apache Kafka": kafka.bootstrap_servers}


def said(tools: JavaTools, servers: str, status: int, asked: tuple[str, ...]) -> list[str]:
    tool, *arguments = asked
    if tool == "transactions":
        text = tools.run(tool, "--bootstrap-server", servers, *arguments, status=status)
    else:
        text = tools.run(tool, *arguments, "--bootstrap-server", servers, status=status)
    for pattern, name in _MADE_UP:
        text = pattern.sub(name, text)
    lines = (" ".join(line.split()) for line in text.splitlines() if not line.lstrip().startswith("at "))
    return sorted(line for line in lines if line)


def test_tools_print_the_same_of_both(tools: JavaTools, both: dict[str, str]) -> None:
    unlike = {}
    for status, asked in ROWS:
        ours, theirs = (said(tools, servers, status, asked) for servers in both.values())
        if ours != theirs:
            unlike[" ".join(asked)] = (ours, theirs)
    assert unlike == {}


def test_tools_that_tell_of_the_system_itself_run(
    tools: JavaTools, both: dict[str, str], tmp_path: Path
) -> None:
    """What these print differs by its nature: folders, ids, versions."""
    plan = tmp_path / "records.json"
    rows = [{"topic": T, "partition": 0, "offset": 0}]
    plan.write_text(json.dumps({"version": 1, "partitions": rows}))
    for servers in both.values():
        where = ("--bootstrap-server", servers)
        assert "Cluster ID" in tools.run("cluster", "cluster-id", *where)
        assert "transaction.version" in tools.run("features", *where, "describe")
        assert '"logDirs"' in tools.run("log-dirs", *where, "--describe", "--broker-list", "0")
        assert "DescribeTopicPartitions" in tools.run("api-versions", *where)
        assert "LeaderId" in tools.run("quorum", *where, "describe", "--status")
        assert "low_watermark" in tools.run("delete-records", *where, "--offset-json-file", str(plan))
        assert "No partition reassignments found" in tools.run("reassign", *where, "--list")
