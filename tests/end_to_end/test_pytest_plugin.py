"""The pytest plugin: as our own tests use it, and as a project of somebody else would."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey, Message
from tests.support.wire_client import Wire, read, write

HEAVY = ("numpy", "pyarrow", "kio", "fairlead_kafka.broker", "fairlead_kafka.client")
_names: list[str] = []


def partitions(cluster: Cluster, topic: str) -> list[Message]:
    with Wire(cluster.broker(0).address) as wire:
        return list(
            wire.ask(ApiKey.METADATA, 8, topics=[Message(name=topic)], allow_auto_topic_creation=False)
            .topics[0]
            .partitions
        )


def test_a_topic_is_there_and_empty(kafka_cluster: Cluster, kafka_topic: str) -> None:
    _names.append(kafka_topic)
    assert read(kafka_cluster, kafka_topic) == []
    assert write(kafka_cluster, kafka_topic, b"a") == 0


@pytest.mark.parametrize("number", [1, 2])
def test_the_next_test_has_another_topic_and_the_one_before_is_gone(
    kafka_cluster: Cluster, kafka_topic: str, number: int
) -> None:
    assert kafka_topic not in _names
    assert not any(kafka_cluster.has_topic(name) for name in _names)
    _names.append(kafka_topic)


@pytest.mark.kafka_topic(partitions=5, configs={"retention.ms": "1000"})
def test_a_marker_says_what_topic(kafka_cluster: Cluster, kafka_topic: str) -> None:
    assert len(partitions(kafka_cluster, kafka_topic)) == 5


def test_the_cluster_is_one_for_all_and_named_by_its_servers(
    kafka_cluster: Cluster, kafka_bootstrap_servers: str
) -> None:
    assert kafka_bootstrap_servers == kafka_cluster.bootstrap_servers
    assert len(kafka_cluster.brokers) == 3


def test_what_a_test_does_to_brokers(kafka_cluster: Cluster, kafka_topic: str) -> None:
    kafka_cluster.broker(1).kill()
    kafka_cluster.broker(0).slow(latency_ms=1)
    kafka_cluster.broker(0).cut(from_=2)
    kafka_cluster.delete_topic(kafka_topic)


def test_is_undone_before_the_next(kafka_cluster: Cluster, kafka_topic: str) -> None:
    assert all(broker.running for broker in kafka_cluster.brokers)
    assert write(kafka_cluster, kafka_topic, b"a") == 0


def test_a_fault_by_request_that_a_test_leaves(kafka_cluster: Cluster) -> None:
    kafka_cluster.on(ApiKey.PRODUCE).drop()
    kafka_cluster.broker(2).stop()


def test_is_gone_before_the_next_though_there_was_no_topic(kafka_cluster: Cluster) -> None:
    assert kafka_cluster.faults == []
    assert kafka_cluster.broker(2).running


_marked: list[Cluster] = []


@pytest.mark.kafka(brokers=1, config={"num.partitions": 7})
def test_a_marked_cluster_is_as_the_mark_says(kafka_marked_cluster: Cluster, kafka_topic: str) -> None:
    assert len(kafka_marked_cluster.brokers) == 1
    assert len(partitions(kafka_marked_cluster, kafka_topic)) == 7
    kafka_marked_cluster.on(ApiKey.FETCH).drop()
    _marked.append(kafka_marked_cluster)


@pytest.mark.kafka(brokers=1, config={"num.partitions": 7})
def test_the_same_mark_has_the_same_cluster_and_no_fault_is_left(kafka_marked_cluster: Cluster) -> None:
    assert kafka_marked_cluster.faults == []
    assert _marked == [kafka_marked_cluster]


def test_without_a_mark_it_is_the_shared_cluster(
    kafka_marked_cluster: Cluster, kafka_cluster: Cluster
) -> None:
    assert kafka_marked_cluster is kafka_cluster


def run_pytest(
    folder: Path, tests: str, *options: str, settings: str = ""
) -> subprocess.CompletedProcess[str]:
    (folder / "test_theirs.py").write_text(tests)
    (folder / "pytest.ini").write_text(f"[pytest]\n{settings}")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-q", *options]
    # What this run of pytest was told is not meant for that one.
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=500, env=environment)


def test_a_project_of_somebody_else_sets_it_up_in_its_configuration(tmp_path: Path) -> None:
    tests = """
def test_settings(kafka_cluster, kafka_topic):
    assert len(kafka_cluster.brokers) == 2
    assert kafka_cluster.broker(0).pid is None
"""
    ran = run_pytest(
        tmp_path,
        tests,
        settings="kafka_brokers = 2\nkafka_config =\n    num.partitions=4\n    message.max.bytes=70000\n",
    )
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


def test_the_command_line_comes_first_and_a_mistake_is_named(tmp_path: Path) -> None:
    tests = "def test_brokers(kafka_cluster):\n    assert len(kafka_cluster.brokers) == 1\n"
    ran = run_pytest(tmp_path, tests, "--kafka-brokers", "1", settings="kafka_brokers = 2\n")
    assert "1 passed" in ran.stdout, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("kafka_config = num.partitions\n", "ERROR: kafka_config: write KEY=VALUE, got 'num.partitions'"),
        (
            "kafka_config = num.partitons=3\n",
            "ERROR: kafka_config: broker config: num.partitons: unknown; did you mean num.partitions?",
        ),
        ("kafka_brokers = 0\n", "ERROR: kafka_brokers: must be a number from 1 to 1000, got 0"),
        ("kafka_brokers = two\n", "ERROR: kafka_brokers: must be a number, got 'two'"),
        (
            "kafka_processes = perhaps\n",
            "ERROR: kafka_processes: must be true or false (invalid truth value 'perhaps')",
        ),
    ],
)
def test_a_wrong_setting_is_one_line_before_any_test_runs(tmp_path: Path, settings: str, said: str) -> None:
    wrong = run_pytest(tmp_path, "def test_nothing(): pass\n", settings=settings)
    assert (wrong.stdout + wrong.stderr).strip() == said


def test_a_mark_that_cannot_be_met_is_named_in_one_line(tmp_path: Path) -> None:
    tests = """
import pytest

@pytest.mark.kafka_topic(partition=3)
def test_name(kafka_topic): pass

@pytest.mark.kafka_topic(3)
def test_position(kafka_topic): pass

@pytest.mark.kafka_topic(partitions="3")
def test_type(kafka_topic): pass

@pytest.mark.kafka_topic(configs={"retention.mss": "1"})
def test_config(kafka_topic): pass
"""
    ran = run_pytest(tmp_path, tests, "--kafka-brokers", "1")
    assert "4 errors" in ran.stdout, ran.stdout + ran.stderr
    assert (
        "@pytest.mark.kafka_topic takes partitions=..., replication_factor=..., configs=..., not partition=3"
        in ran.stdout
    )
    assert (
        "@pytest.mark.kafka_topic takes partitions=..., replication_factor=..., configs=..., not 3"
        in ran.stdout
    )
    assert (
        "@pytest.mark.kafka_topic(partitions='3'): create_topic: partitions must be a whole number, not '3'"
        in ran.stdout
    )
    assert "@pytest.mark.kafka_topic(configs={'retention.mss': '1'}): " in ran.stdout
    assert "retention.ms" in ran.stdout
    assert "Traceback" not in ran.stdout
    assert ".py:" not in ran.stdout.partition("short test summary")[0]


def test_a_mark_of_a_cluster_that_cannot_be_met_is_named_in_one_line(tmp_path: Path) -> None:
    tests = """
import pytest

@pytest.mark.kafka(broker=1)
def test_name(kafka_marked_cluster): pass

@pytest.mark.kafka(brokers=0)
def test_value(kafka_marked_cluster): pass

@pytest.mark.kafka(brokers=1)
def test_two(kafka_cluster, kafka_marked_cluster): pass
"""
    ran = run_pytest(tmp_path, tests, "--kafka-brokers", "1")
    assert "3 errors" in ran.stdout, ran.stdout + ran.stderr
    for said in (
        "@pytest.mark.kafka takes brokers=..., processes=..., security=..., users=..., racks=..., "
        "config=..., not broker=1",
        "@pytest.mark.kafka(brokers=0): brokers: must be a number from 1 to 1000, got 0",
        "@pytest.mark.kafka describes kafka_marked_cluster; kafka_cluster is another: use one of them",
    ):
        assert said in ran.stdout, ran.stdout
    assert "Traceback" not in ran.stdout


def test_a_run_without_kafka_pays_nothing_for_the_plugin() -> None:
    program = (
        f"import sys, fairlead_kafka.testing.plugin; print([name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
