"""Consumer groups on brokers that are killed: the next coordinator goes on with what was
answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import OFFSETS_TOPIC
from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.wire import ApiKey, Message
from tests.support.virtual_cluster import VirtualCluster

GROUP, TOPIC = "readers", "events"
COMING = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
)


@pytest.fixture
def cluster() -> Iterator[VirtualCluster]:
    running = VirtualCluster(3, {"offsets.topic.num.partitions": 1})
    running.topic(TOPIC, 6)
    running.controller.create_offsets_topic()
    running.host.advance(100)
    yield running
    running.close()


def coordinator(cluster: VirtualCluster) -> int:
    topic = cluster.controller.image.topics[OFFSETS_TOPIC]
    return topic.partitions[home_partition(GROUP, len(topic.partitions))].leader


def beat(cluster: VirtualCluster, member_id: str, epoch: int, **fields: Any) -> Message:
    """A heartbeat, sent again until a coordinator is there."""
    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": [TOPIC], "topic_partitions": []}
    told = {"group_id": GROUP, "member_id": member_id, "member_epoch": epoch} | (joins if epoch == 0 else {})
    for _ in range(100):
        node = coordinator(cluster)
        if node in cluster.brokers:
            answer = cluster.ask(node, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, **told | fields)
            if answer.error_code not in COMING:
                return answer
        cluster.host.advance(100)
    raise AssertionError("no coordinator came")


def owned(answer: Message) -> list[tuple[UUID, int]]:
    assert answer.assignment is not None
    return [(one.topic_id, number) for one in answer.assignment.topic_partitions for number in one.partitions]


def test_members_go_on_at_their_epochs_with_the_next_coordinator(cluster: VirtualCluster) -> None:
    first = beat(cluster, "first", 0)
    assert (first.error_code, len(owned(first))) == (0, 6)
    beat(cluster, "second", 0)
    asked = beat(cluster, "first", first.member_epoch)
    kept = owned(asked)
    cluster.kill(coordinator(cluster))
    rows = [Message(topic_id=kept[0][0], partitions=[number for _, number in kept])]
    gave = beat(cluster, "first", asked.member_epoch, topic_partitions=rows)
    assert (gave.error_code, gave.member_epoch) == (0, asked.member_epoch + 1)
    for _ in range(2):
        second = beat(cluster, "second", gave.member_epoch)
        if second.assignment is not None:
            break
    assert sorted(kept + owned(second)) == [(kept[0][0], number) for number in range(6)]
    node = coordinator(cluster)
    group = cluster.brokers[node].coordinator.consumer.existing(GROUP)
    assert group.state.value == "Stable"
    cluster.brokers[node].check()


def test_what_was_answered_outlives_all_coordinators(cluster: VirtualCluster) -> None:
    epoch = beat(cluster, "m", 0, instance_id="static").member_epoch
    for node in (0, 1, 2):
        cluster.kill(node)
        cluster.host.advance(50)
        cluster.start(node)
        cluster.host.advance(2_000)
        again = beat(cluster, "m", epoch, instance_id="static")
        assert (again.error_code, again.member_epoch) == (0, epoch)
    cluster.host.advance(46_000)
    gone = beat(cluster, "m", epoch, instance_id="static")
    assert gone.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_is_deleted_once_all_replicas_have_it(cluster: VirtualCluster) -> None:
    epoch = beat(cluster, "m", 0).member_epoch
    node = coordinator(cluster)
    refused = cluster.ask(node, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP])
    assert refused.results[0].error_code == ErrorCode.NON_EMPTY_GROUP
    assert beat(cluster, "m", -1).error_code == 0
    deleted = cluster.ask(node, ApiKey.DELETE_GROUPS, 2, groups_names=[GROUP])
    assert deleted.results[0].error_code == 0
    assert cluster.ask(node, ApiKey.LIST_GROUPS, 5).groups == []
    cluster.kill(node)
    assert beat(cluster, "m", epoch).error_code == ErrorCode.GROUP_ID_NOT_FOUND
