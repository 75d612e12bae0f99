"""What the tests of the command line share: one cluster per module, and a way to run commands
against it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fairlead_kafka.testing import Cluster
from tests.support.command_line import Run, runner

QUICK = {
    "group.share.min.heartbeat.interval.ms": "100",
    "group.share.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "100",
    "group.consumer.heartbeat.interval.ms": "100",
}
"""Members hear of their partitions in moments; Kafka's defaults are 5 seconds."""


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers for all tests of a module."""
    with Cluster(brokers=3, config=QUICK) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command in this process, against the module's cluster."""
    return runner(cluster.bootstrap_servers, capsys, monkeypatch)


@pytest.fixture
def run_at(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command without a cluster."""
    return runner("127.0.0.1:1", capsys, monkeypatch)
