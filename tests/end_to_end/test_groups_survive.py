"""Groups and their offsets outlive the brokers that keep them: coordinators killed and stopped,
logs compacted, clusters started again."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.testing import Cluster
from tests.support.group_clients import PATIENCE_S, Member, poll_until, wait_assigned

PARTITIONS = 4
OFFSETS_TOPIC = "__consumer_offsets"
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]


@pytest.fixture
def three() -> Iterator[Cluster]:
    """Three brokers, and a topic with three replicas of each of its four partitions."""
    with Cluster(brokers=3, config={"group.min.session.timeout.ms": 100}) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("t", partitions=PARTITIONS, replication_factor=3)])
        yield cluster


def fill(cluster: Cluster, count: int = 40) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        for number in range(count):
            producer.send("t", b"%d" % number, partition=number % PARTITIONS)


def coordinator(cluster: Cluster, group: str) -> int:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        partitions = admin.describe_topics([OFFSETS_TOPIC])[OFFSETS_TOPIC].partitions
    return partitions[home_partition(group, len(partitions))].leader


def committed(cluster: Cluster, group: str) -> dict[TopicPartition, int]:
    with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        return {of: one.offset for of, one in admin.list_group_offsets([group])[group].items()}


@pytest.mark.parametrize("end", ["kill", "stop"])
def test_members_go_on_with_the_next_coordinator_without_a_rebalance(three: Cluster, end: str) -> None:
    fill(three)
    members = [Member(three.bootstrap_servers, "g", ["t"], session_timeout_ms=30_000) for _ in range(2)]
    wait_assigned(members, PARTITIONS)
    poll_until(members, lambda: sum(len(member.records) for member in members) == 40)
    heard = [member.heard.signs() for member in members]
    for rounds in (1, 2):
        for member in members:
            member.consumer.commit()
        leader = coordinator(three, "g")
        getattr(three.broker(leader), end)()
        assert coordinator(three, "g") != leader
        assert committed(three, "g") == dict.fromkeys(ALL, 10 * rounds)
        fill(three)
        poll_until(
            members, lambda rounds=rounds: sum(len(member.records) for member in members) == 40 * (rounds + 1)
        )  # type: ignore[misc]
        three.broker(leader).start()
    for member in members:
        member.consumer.commit()
    assert [member.heard.signs() for member in members] == heard
    assert committed(three, "g") == dict.fromkeys(ALL, 30)
    for member in members:
        member.close()


def test_a_member_that_dies_with_the_coordinator_is_missed_by_the_next_one(three: Cluster) -> None:
    fill(three)
    members = [Member(three.bootstrap_servers, "g", ["t"], session_timeout_ms=2_000) for _ in range(2)]
    wait_assigned(members, PARTITIONS)
    gone, left = members
    three.broker(coordinator(three, "g")).kill()
    gone.kill()
    poll_until([left], lambda: left.partitions == list(range(PARTITIONS)))
    left.close()


def test_offsets_survive_compaction_and_a_restart_of_the_cluster(tmp_path: Path) -> None:
    config = {"log.cleaner.backoff.ms": 50, "log.segment.bytes": 1 << 20}
    with (
        Cluster(brokers=1, data_dir=tmp_path, config=config) as cluster,
        fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin,
    ):
        admin.create_topics([fairlead_kafka.NewTopic("t", partitions=PARTITIONS)])
        for offset in range(150):
            admin.alter_group_offsets("g", dict.fromkeys(ALL, offset))
        _until_compacted(cluster, TopicPartition(OFFSETS_TOPIC, home_partition("g", 50)))
    with Cluster(brokers=1, data_dir=tmp_path, config=config) as again:
        assert committed(again, "g") == dict.fromkeys(ALL, 149)


def _until_compacted(cluster: Cluster, of: TopicPartition) -> None:
    deadline = time.monotonic() + PATIENCE_S
    with fairlead_kafka.Consumer({"bootstrap.servers": cluster.bootstrap_servers}) as consumer:
        end = consumer.end_offsets([of])[of]
        while True:
            assert time.monotonic() < deadline, "the offsets were not compacted"
            tables = list(consumer.read_range(of, 0, end))
            if sum(table.num_rows for table in tables) < end // 2:
                return
