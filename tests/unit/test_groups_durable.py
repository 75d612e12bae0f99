"""A committed offset is answered once it is in the file, and on the disk where the flush policy
asks for that."""

from __future__ import annotations

import errno
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import OFFSETS_TOPIC, AlterOperation, ConfigAlteration
from fairlead_kafka.wire import ApiKey, Message
from tests.support.every_api import Tour, commits
from tests.support.virtual_cluster import Asked, VirtualCluster

GROUP, TOPIC = "readers", "events"
SLOW_MS = 50.0
ONE_PARTITION = {"offsets.topic.num.partitions": 1}
SYNCED = {"log.flush.interval.messages": 1}


def cluster_of_one(config: dict[str, Any]) -> VirtualCluster:
    cluster = VirtualCluster(1, ONE_PARTITION | config)
    cluster.topic(TOPIC, 1)
    cluster.controller.create_offsets_topic()
    cluster.host.advance(10)
    return cluster


def committing(cluster: VirtualCluster, offset: int, node_id: int = 0) -> Asked:
    """An OffsetCommit under way."""
    topics = [Message(name=TOPIC, partitions=[Message(partition_index=0, committed_offset=offset)])]
    return cluster.send(
        node_id, ApiKey.OFFSET_COMMIT, 8, group_id=GROUP, generation_id_or_member_epoch=-1, topics=topics
    )


def commit(cluster: VirtualCluster, offset: int, node_id: int = 0) -> None:
    asked = committing(cluster, offset, node_id)
    cluster.host.run_until(lambda: asked.answer is not None)
    assert asked.answer is not None
    assert asked.answer.topics[0].partitions[0].error_code == ErrorCode.NONE


def committed(cluster: VirtualCluster, node_id: int = 0) -> int:
    topics = [Message(name=TOPIC, partition_indexes=[0])]
    answer = cluster.ask(node_id, ApiKey.OFFSET_FETCH, 7, group_id=GROUP, topics=topics)
    return int(answer.topics[0].partitions[0].committed_offset)


def lose(cluster: VirtualCluster, power: bool) -> None:
    """The broker is gone, at times with everything that was not synced; and starts again."""
    cluster.kill(0)
    if power:
        cluster.host.disk.cut_power("/data/0", lambda size_bytes: 0)
    cluster.start(0)


def slow_write(cluster: VirtualCluster) -> None:
    cluster.host.disk.append_ms = SLOW_MS


def slow_sync(cluster: VirtualCluster) -> None:
    cluster.host.disk.sync_ms = SLOW_MS


@pytest.mark.parametrize(
    ("config", "slow"), [({}, slow_write), (SYNCED, slow_sync)], ids=["written", "synced"]
)
def test_a_commit_is_answered_once_it_is_written_and_synced_where_that_is_asked_for(
    config: dict[str, Any], slow: Any
) -> None:
    cluster = cluster_of_one(config)
    commit(cluster, 1)
    slow(cluster)
    asked = committing(cluster, 2)
    cluster.host.advance(SLOW_MS - 1)
    assert asked.answer is None
    cluster.host.advance(2)
    assert asked.answer is not None


def test_a_commit_does_not_wait_for_a_sync_that_nobody_asks_for() -> None:
    cluster = cluster_of_one({})
    slow_sync(cluster)
    asked = committing(cluster, 1)
    cluster.host.advance(1)
    assert asked.answer is not None


@pytest.mark.parametrize(
    ("config", "power", "kept"), [({}, False, 7), ({}, True, -1), (SYNCED, False, 7), (SYNCED, True, 7)]
)
def test_what_is_kept_of_a_commit_is_what_was_promised(
    config: dict[str, Any], power: bool, kept: int
) -> None:
    cluster = cluster_of_one(config)
    commit(cluster, 7)
    lose(cluster, power)
    assert committed(cluster) == kept


def test_a_commit_whose_write_failed_waits_for_replicas_no_more() -> None:
    cluster = cluster_of_one({})
    commit(cluster, 1)
    cluster.host.disk.faults.fail("/data/0", errno.ENOSPC)
    asked = committing(cluster, 2)
    cluster.host.run_until(lambda: asked.answer is not None)
    assert asked.answer is not None
    assert asked.answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR
    broker = cluster.brokers[0]
    partition = broker.log_of(OFFSETS_TOPIC, 0)
    assert not isinstance(partition, int)
    assert len(broker.replication.leading(partition).waiting) == 0
    cluster.host.disk.faults.heal("/data/0")
    cluster.host.advance(5_000)
    commit(cluster, 3)
    assert committed(cluster) == 3


def test_the_offsets_alone_may_be_synced() -> None:
    cluster = cluster_of_one({})
    cluster.controller.alter_topic_configs(
        OFFSETS_TOPIC, [ConfigAlteration("flush.messages", AlterOperation.SET, "1")]
    )
    commit(cluster, 7)
    lose(cluster, power=True)
    assert committed(cluster) == 7


def test_a_shard_whose_work_raised_is_read_anew_and_its_groups_go_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    cluster = VirtualCluster(1, {"group.initial.rebalance.delay.ms": 0, "offsets.topic.num.partitions": 2})
    cluster.topic("a")
    tour = Tour(cluster)
    assert commits(tour, "a")
    broker = cluster.brokers[0]
    shard = next(one for one in broker.coordinator.shards.loaded() if "a" in one.groups)
    broker.call_later(0, lambda: 1 // 0, broker.coordinator.shards.owner(shard))
    broker.wake()
    cluster.host.advance(100)
    assert broker.errors == 1
    assert not broker.coordinator.shards.holds(shard)
    cluster.host.advance(2_000)
    again = next(one for one in broker.coordinator.shards.loaded() if "a" in one.groups)
    assert again is not shard
    assert again.groups["a"].offsets == shard.groups["a"].offsets
    assert commits(tour, "a")
    broker.check()
    cluster.close()


def test_a_commit_that_is_replicated_after_its_shard_was_read_again_is_in_the_new_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("CRITICAL")
    cluster = VirtualCluster(2, ONE_PARTITION | {"replica.lag.time.max.ms": 2_000})
    cluster.topic(TOPIC, 1)
    cluster.controller.create_offsets_topic()
    cluster.host.advance(100)
    image = cluster.controller.image.partition(OFFSETS_TOPIC, 0)
    assert image is not None
    assert len(image.isr) == 2
    leader = image.leader
    commit(cluster, 1, leader)
    cluster.host.link(cluster.handles[0], cluster.handles[1]).cut()
    asked = committing(cluster, 2, leader)
    cluster.host.advance(100)
    broker = cluster.brokers[leader]
    shard = next(iter(broker.coordinator.shards))
    broker.call_later(0, lambda: 1 // 0, broker.coordinator.shards.owner(shard))
    broker.wake()
    cluster.host.advance(1_500)
    assert not broker.coordinator.shards.holds(shard)
    assert asked.answer is None, "a replica in sync does not have it yet"
    cluster.host.run_until(lambda: asked.answer is not None, 20_000)
    assert asked.answer is not None
    assert asked.answer.topics[0].partitions[0].error_code == ErrorCode.NONE
    cluster.host.run_until(lambda: bool(broker.coordinator.shards.loaded()), 5_000)
    assert committed(cluster, leader) == 2
    cluster.close()
