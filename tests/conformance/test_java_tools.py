"""Kafka's own Java tools, unmodified, against a cluster that replicates: topics, groups, configs,
elections, reassignments, loads."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.lab.apache_kafka import java_command
from fairlead_kafka.testing import Cluster
from tests.support.java_tools import JavaTools
from tests.support.waiting import PATIENCE_S

VERIFIABLE = 1_500

pytestmark = pytest.mark.usefixtures("kafka_jars")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, config={"offsets.topic.num.partitions": 3}) as running:
        yield running


class Tool:
    """The tools, pointed at a cluster."""

    def __init__(self, tools: JavaTools, servers: str) -> None:
        self._tools, self._servers = tools, servers

    def __call__(self, tool: str, *arguments: str, status: int = 0) -> str:
        return self._tools.run(tool, "--bootstrap-server", self._servers, *arguments, status=status)

    def produce(self, topic: str, records: int, *more: str) -> str:
        load = ("--topic", topic, "--num-records", str(records), "--record-size", "100", "--throughput", "-1")
        return self._tools.run(
            "produce", *load, *more, "--producer-props", f"bootstrap.servers={self._servers}", "acks=all"
        )


@pytest.fixture
def tool(tools: JavaTools, cluster: Cluster) -> Tool:
    return Tool(tools, cluster.bootstrap_servers)


@pytest.fixture
def topic(tool: Tool) -> str:
    """A topic of four partitions with three replicas each."""
    name = f"tools-{next(_numbers)}"
    created = tool("topics", "--create", "--topic", name, "--partitions", "4", "--replication-factor", "3")
    assert f"Created topic {name}" in created
    return name


def until(look: Callable[[], str], met: Callable[[str], bool]) -> str:
    """Look until it is as it should be; what was seen last if it never is."""
    deadline_s = time.monotonic() + PATIENCE_S
    seen = look()
    while not met(seen):
        assert time.monotonic() < deadline_s, seen
        seen = look()
    return seen


def replicas(described: str) -> list[tuple[int, list[int], list[int]]]:
    """(leader, replicas, in sync) of each partition, as TopicCommand prints them."""
    rows = re.findall(r"Partition: \d+\tLeader: (\S+)\tReplicas: ([\d,]+)\tIsr: ([\d,]+)", described)
    return [
        (int(leader), sorted(map(int, all_of.split(","))), sorted(map(int, isr.split(","))))
        for leader, all_of, isr in rows
    ]


def test_topic_command_creates_describes_alters_and_deletes_replicated_topics(tool: Tool, topic: str) -> None:
    described = tool("topics", "--describe", "--topic", topic)
    assert "PartitionCount: 4\tReplicationFactor: 3" in described
    assert [(of, isr) for _, of, isr in replicas(described)] == [([0, 1, 2], [0, 1, 2])] * 4
    assert {leader for leader, _, _ in replicas(described)} == {0, 1, 2}
    tool("topics", "--alter", "--topic", topic, "--partitions", "6")
    assert len(replicas(tool("topics", "--describe", "--topic", topic))) == 6
    refused = tool("topics", "--create", "--topic", f"{topic}-wide", "--replication-factor", "4", status=1)
    assert "INVALID_REPLICATION_FACTOR" in refused or "InvalidReplicationFactor" in refused
    assert topic in tool("topics", "--list").split()
    tool("topics", "--delete", "--topic", topic)
    assert topic not in tool("topics", "--list").split()


def test_topic_command_shows_what_is_under_replicated_while_a_broker_is_down(
    cluster: Cluster, tool: Tool, topic: str
) -> None:
    under = ("topics", "--describe", "--topic", topic, "--under-replicated-partitions")
    assert replicas(tool(*under)) == []
    cluster.broker(2).kill()
    lost = replicas(until(lambda: tool(*under), lambda seen: len(replicas(seen)) == 4))
    assert [isr for _, _, isr in lost] == [[0, 1]] * 4
    assert "2" not in {leader for leader, _, _ in lost}
    cluster.broker(2).start()
    until(lambda: tool(*under), lambda seen: replicas(seen) == [])


def test_leader_election_command_gives_partitions_back_to_their_preferred_leaders(
    cluster: Cluster, tool: Tool, topic: str
) -> None:
    before = replicas(tool("topics", "--describe", "--topic", topic))
    cluster.broker(1).stop()
    cluster.broker(1).start()
    until(
        lambda: tool("topics", "--describe", "--topic", topic),
        lambda seen: all(len(isr) == 3 for _, _, isr in replicas(seen)),
    )
    assert 1 not in {leader for leader, _, _ in replicas(tool("topics", "--describe", "--topic", topic))}
    said = tool("leader-election", "--election-type", "preferred", "--all-topic-partitions")
    assert "Successfully completed leader election (PREFERRED)" in said
    assert replicas(tool("topics", "--describe", "--topic", topic)) == before


def test_reassign_partitions_command_moves_replicas(tool: Tool, topic: str, tmp_path: Path) -> None:
    assert "500 records sent" in tool.produce(topic, 500)
    moves = [
        {"topic": topic, "partition": number, "replicas": [(number + 1) % 3, number % 3]}
        for number in range(4)
    ]
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": moves}))
    assert "Successfully started partition reassignments" in tool(
        "reassign", "--reassignment-json-file", str(plan), "--execute"
    )
    until(
        lambda: tool("reassign", "--reassignment-json-file", str(plan), "--verify"),
        lambda seen: seen.count("is completed") == len(moves),
    )
    found = replicas(
        until(
            lambda: tool("topics", "--describe", "--topic", topic),
            lambda seen: "ReplicationFactor: 2" in seen,
        )
    )
    assert [of for _, of, _ in found] == [sorted(move["replicas"]) for move in moves]  # type: ignore[type-var]
    assert "No partition reassignments found" in tool("reassign", "--list")
    ends = tool("offsets", "--topic", topic)
    assert sum(int(line.rsplit(":", 1)[1]) for line in ends.splitlines() if line.startswith(topic)) == 500


def test_performance_tools_and_the_group_command(tool: Tool, topic: str) -> None:
    assert "2000 records sent" in tool.produce(topic, 2000)
    group = f"group-of-{topic}"
    said = tool(
        "consume",
        "--topic",
        topic,
        "--num-records",
        "2000",
        "--group",
        group,
        "--timeout",
        "100000",
        "--hide-header",
    )
    figures = [part.strip() for line in said.splitlines() if line.count(",") > 6 for part in line.split(",")]
    assert figures[4] == "2000"
    assert "300 records sent" in tool.produce(topic, 300)
    assert group in tool("groups", "--list").split()
    rows = [
        line.split()
        for line in tool("groups", "--describe", "--group", group).splitlines()
        if line.startswith(group)
    ]
    assert sorted(row[2] for row in rows) == ["0", "1", "2", "3"]
    assert sum(int(row[5]) for row in rows) == 300, "the lag"
    assert "Empty" in tool("groups", "--describe", "--group", group, "--state")
    tool("groups", "--group", group, "--topic", topic, "--reset-offsets", "--to-earliest", "--execute")
    rows = [
        line.split()
        for line in tool("groups", "--describe", "--group", group).splitlines()
        if line.startswith(group)
    ]
    assert sum(int(row[5]) for row in rows) == 2300
    assert "was successful" in tool("groups", "--delete", "--group", group)
    assert group not in tool("groups", "--list").split()


def test_config_command_sets_and_shows_configs_of_topics_and_brokers(tool: Tool, topic: str) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tool("configs", *of_topic, "--alter", "--add-config", "retention.ms=100000,min.insync.replicas=2")
    shown = tool("configs", *of_topic, "--describe")
    assert "retention.ms=100000" in shown
    assert "min.insync.replicas=2" in shown
    tool("configs", *of_topic, "--alter", "--delete-config", "retention.ms")
    assert "retention.ms" not in tool("configs", *of_topic, "--describe")
    every_broker = ("--entity-type", "brokers", "--entity-default")
    tool("configs", *every_broker, "--alter", "--add-config", "max.broker.partitions=20000")
    assert "max.broker.partitions=20000" in tool("configs", *every_broker, "--describe")
    tool("configs", *every_broker, "--alter", "--delete-config", "max.broker.partitions")
    assert "log.retention.hours" in tool(
        "configs", "--entity-type", "brokers", "--entity-name", "0", "--describe", "--all"
    )


def _send_verifiably(servers: str, topic: str) -> str:
    """In a Java of its own: it tells the rest when that ends."""
    load = ("--topic", topic, "--max-messages", str(VERIFIABLE), "--throughput", "1000", "--acks", "-1")
    command = java_command("org.apache.kafka.tools.VerifiableProducer", "--bootstrap-server", servers, *load)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout


def test_verifiable_producer_loses_nothing_when_a_leader_is_killed(
    cluster: Cluster, tool: Tool, topic: str
) -> None:
    tool(
        "configs",
        "--entity-type",
        "topics",
        "--entity-name",
        topic,
        "--alter",
        "--add-config",
        "min.insync.replicas=2",
    )
    partitions = [TopicPartition(topic, number) for number in range(4)]
    with (
        fairlead_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer,
        ThreadPoolExecutor(1) as pool,
    ):
        sending = pool.submit(_send_verifiably, cluster.bootstrap_servers, topic)
        until(
            lambda: str(sum(consumer.end_offsets(partitions).values())),
            lambda seen: int(seen) > 100 or sending.done(),
        )
        cluster.broker(0).kill()
        said = [json.loads(line) for line in sending.result(PATIENCE_S).splitlines()]
        cluster.broker(0).start()
        acked = {
            (row["partition"], row["offset"]): row["value"]
            for row in said
            if row["name"] == "producer_send_success"
        }
        # The tool sets retries=0: what was on its way to the leader that died fails, and is told.
        failed = sum(row["name"] == "producer_send_error" for row in said)
        assert len(acked) + failed == VERIFIABLE, said[-1]
        assert len(acked) > 100
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        read = {}
        while len(read) < sum(ends.values()):
            read.update(
                {
                    (record.partition, record.offset): record.value.decode()
                    for record in consumer.poll(PATIENCE_S)
                }
            )
    assert {place: read.get(place) for place in acked} == acked
