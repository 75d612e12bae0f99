"""Share groups outlive the brokers that serve them: leaders, share coordinators and group
coordinators killed, and a cluster that starts again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.testing import Cluster
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import IncrementalAlterConfigsRequest
from tests.support.group_clients import PATIENCE_S
from tests.support.wire_client import Wire

PARTITIONS = 3
COUNT = 60
CONFIG = {
    "group.share.heartbeat.interval.ms": 200,
    "group.share.min.heartbeat.interval.ms": 200,
    "group.share.record.lock.duration.ms": 2_000,
    "group.share.min.record.lock.duration.ms": 1_000,
    "share.coordinator.state.topic.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
}
_GROUP_RESOURCE = 32


def prepare(cluster: Cluster, replicas: int) -> None:
    """A topic with records, and a group that reads it from the first one on."""
    change = IncrementalAlterConfigsRequest.AlterableConfig(
        name="share.auto.offset.reset", config_operation=0, value="earliest"
    )
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=_GROUP_RESOURCE, resource_name="g", configs=[change]
    )
    with Wire(cluster.bootstrap_servers.split(",")[0]) as wire:
        asked = {"resources": [resource], "validate_only": False}
        answer = wire.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, **asked)
    assert answer.responses[0].error_code == ErrorCode.NONE
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        topic = fairlead_kafka.NewTopic("t", partitions=PARTITIONS, replication_factor=replicas)
        admin.create_topics([topic])
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(COUNT):
            producer.send("t", b"%d" % number, partition=number % PARTITIONS)


@pytest.fixture
def three() -> Iterator[Cluster]:
    """Three brokers, and a topic with three replicas of each of its partitions."""
    with Cluster(brokers=3, config=CONFIG) as cluster:
        prepare(cluster, 3)
        yield cluster


class Reader:
    """A member that acknowledges each record by itself, and checks that none comes again after
    that."""

    def __init__(self, cluster: Cluster, most: int = 7) -> None:
        self.consumer = fairlead_kafka.ShareConsumer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "group.id": "g",
                "share.acknowledgement.mode": "explicit",
                "share.acquire.mode": "record_limit",
                "max.poll.records": most,
            }
        )
        self.consumer.subscribe(["t"])
        self.accepted: set[tuple[int, int]] = set()

    def once(self) -> None:
        """Poll, accept, and note what is known to be accepted."""
        records = self.consumer.poll(0.5)
        places = {(record.partition, record.offset) for record in records}
        assert not places & self.accepted, "accepted records do not come again"
        for record in records:
            self.consumer.acknowledge(record)
        outcomes = self.consumer.commit(10.0)
        good = {of.partition for of, error in outcomes.items() if error is None}
        self.accepted |= {place for place in places if place[0] in good}

    def until(self, count: int) -> None:
        """Read until so many records are accepted."""
        deadline = time.monotonic() + PATIENCE_S
        while len(self.accepted) < count:
            assert time.monotonic() < deadline, f"{len(self.accepted)} of {count} records"
            self.once()


def test_no_accepted_record_comes_again_and_none_is_lost_while_brokers_are_killed(three: Cluster) -> None:
    reader = Reader(three)
    with reader.consumer:
        for number in range(3):
            reader.until(10 * (number + 1))
            three.broker(number).kill()
            reader.until(10 * (number + 1) + 5)
            three.broker(number).start()
        reader.until(COUNT)
        assert reader.consumer.poll(0.5) == []


def test_a_cluster_that_starts_again_goes_on_where_the_group_was(tmp_path: Path) -> None:
    with Cluster(brokers=1, config=CONFIG, data_dir=tmp_path) as cluster:
        prepare(cluster, 1)
        first = Reader(cluster)
        with first.consumer:
            first.until(20)
    with Cluster(brokers=1, config=CONFIG, data_dir=tmp_path) as cluster:
        second = Reader(cluster)
        second.accepted = set(first.accepted)
        with second.consumer:
            second.until(COUNT)
            assert second.consumer.poll(0.5) == []
