"""Elections, moves and partition limits in every version, through the wire's bytes."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration, ProposedIsr
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import call, versions
from tests.support.controllers import node
from tests.support.group_rig import GroupRig


def three_brokers(limit: tuple[str, int] | None = None) -> GroupRig:
    rig = GroupRig()
    for node_id in (1, 2):
        rig.controller.broker_started(node(node_id))
    rig.controller.create_topic("a", assignments={0: [0, 1], 1: [1, 2]})
    if limit is not None:
        key, value = limit
        rig.controller.alter_broker_configs("", [ConfigAlteration(key, AlterOperation.SET, str(value))])
    return rig


def come_back(rig: GroupRig, node_id: int) -> None:
    """The broker stops, starts, and its leaders let it in again."""
    controller = rig.controller
    controller.broker_stopped(node_id)
    controller.broker_started(node(node_id))
    for topic, number, one in list(controller.image.partitions()):
        if node_id in one.replicas and node_id not in one.isr:
            proposal = ProposedIsr(
                topic.topic_id.hex, number, one.leader_epoch, one.partition_epoch, (*one.isr, node_id)
            )
            controller.alter_partitions(one.leader, controller.image.brokers[one.leader].epoch, [proposal])


@pytest.mark.parametrize("version", versions(ApiKey.ELECT_LEADERS))
def test_preferred_leaders_are_elected_where_they_are_asked_for(version: int) -> None:
    rig = three_brokers()
    come_back(rig, 0)
    asked = [Message(topic="a", partitions=[0, 1, 7]), Message(topic="missing", partitions=[0])]
    answer = call(
        rig, ApiKey.ELECT_LEADERS, version, election_type=0, topic_partitions=asked, timeout_ms=1000
    )
    told = {
        (one.topic, row.partition_id): row.error_code
        for one in answer.replica_election_results
        for row in one.partition_result
    }
    assert told == {
        ("a", 0): ErrorCode.NONE,
        ("a", 1): ErrorCode.ELECTION_NOT_NEEDED,
        ("a", 7): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("missing", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert rig.controller.image.topics["a"].partitions[0].leader == 0


@pytest.mark.parametrize("version", versions(ApiKey.ELECT_LEADERS))
def test_an_election_of_all_tells_of_those_that_needed_one(version: int) -> None:
    rig = three_brokers()
    come_back(rig, 0)
    answer = call(rig, ApiKey.ELECT_LEADERS, version, election_type=0, topic_partitions=None, timeout_ms=1000)
    told = [
        (one.topic, row.partition_id, row.error_code)
        for one in answer.replica_election_results
        for row in one.partition_result
    ]
    assert ("a", 0, ErrorCode.NONE) in told
    assert ("a", 1) not in [(topic, number) for topic, number, _ in told]


@pytest.mark.parametrize("version", [1, 2])
def test_an_unclean_election_leads_what_nobody_in_sync_can(version: int) -> None:
    rig = three_brokers()
    rig.controller.broker_stopped(2)
    rig.controller.broker_stopped(1)
    rig.controller.broker_started(node(2))
    assert rig.controller.image.topics["a"].partitions[1].leader == -1
    asked = [Message(topic="a", partitions=[1])]
    answer = call(
        rig, ApiKey.ELECT_LEADERS, version, election_type=1, topic_partitions=asked, timeout_ms=1000
    )
    assert answer.error_code == ErrorCode.NONE
    assert rig.controller.image.topics["a"].partitions[1].leader == 2
    refused = call(
        rig, ApiKey.ELECT_LEADERS, version, election_type=7, topic_partitions=asked, timeout_ms=1000
    )
    ((row,),) = [one.partition_result for one in refused.replica_election_results]
    assert refused.error_code == row.error_code == ErrorCode.INVALID_REQUEST


def moves(*wanted: tuple[str, int, list[int] | None]) -> list[Message]:
    by_topic: dict[str, list[Message]] = {}
    for topic, number, replicas in wanted:
        by_topic.setdefault(topic, []).append(Message(partition_index=number, replicas=replicas))
    return [Message(name=topic, partitions=partitions) for topic, partitions in by_topic.items()]


@pytest.mark.parametrize("version", versions(ApiKey.ALTER_PARTITION_REASSIGNMENTS))
def test_moves_begin_are_listed_and_are_cancelled(version: int) -> None:
    rig = three_brokers()

    def alter(*wanted: tuple[str, int, list[int] | None], may_change_factor: bool = True) -> list[int]:
        answer = call(
            rig,
            ApiKey.ALTER_PARTITION_REASSIGNMENTS,
            version,
            timeout_ms=1000,
            allow_replication_factor_change=may_change_factor,
            topics=moves(*wanted),
        )
        assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
        return [row.error_code for one in answer.responses for row in one.partitions]

    def listed(
        topics: list[Message] | None = None,
    ) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
        answer = call(rig, ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, timeout_ms=1000, topics=topics)
        assert answer.error_code == ErrorCode.NONE
        return {
            (one.name, row.partition_index): (
                list(row.replicas),
                list(row.adding_replicas),
                list(row.removing_replicas),
            )
            for one in answer.topics
            for row in one.partitions
        }

    assert listed() == {}
    assert alter(("a", 0, [2, 1]), ("a", 9, [0]), ("missing", 0, [0])) == [
        0,
        *[ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2,
    ]
    expected = {("a", 0): ([2, 1, 0], [2], [0])}
    assert listed() == expected
    assert (
        listed(
            [Message(name="a", partition_indexes=[0, 1, 9]), Message(name="missing", partition_indexes=[0])]
        )
        == expected
    )
    assert listed([Message(name="a", partition_indexes=[1])]) == {}
    assert alter(("a", 1, [0]), ("a", 1, [2])) == [ErrorCode.INVALID_REQUEST] * 2
    assert alter(("a", 0, None), ("a", 1, None)) == [ErrorCode.NONE, ErrorCode.NO_REASSIGNMENT_IN_PROGRESS]
    assert listed() == {}
    if version >= 1:
        assert alter(("a", 0, [0, 1, 2]), may_change_factor=False) == [ErrorCode.INVALID_REPLICATION_FACTOR]


@pytest.mark.parametrize("limit", ["max.partitions", "max.broker.partitions"])
def test_every_way_to_grow_meets_the_limits(limit: str) -> None:
    rig = three_brokers((limit, 1))
    before = len(list(rig.controller.image.partitions()))
    new = Message(name="b", num_partitions=1, replication_factor=3, assignments=[], configs=[])
    (created,) = call(rig, ApiKey.CREATE_TOPICS, 7, topics=[new], timeout_ms=1000, validate_only=False).topics
    (checked,) = call(rig, ApiKey.CREATE_TOPICS, 7, topics=[new], timeout_ms=1000, validate_only=True).topics
    more = [Message(name="a", count=3, assignments=None)]
    (grown,) = call(
        rig, ApiKey.CREATE_PARTITIONS, 3, topics=more, timeout_ms=1000, validate_only=False
    ).results
    moved = call(
        rig, ApiKey.ALTER_PARTITION_REASSIGNMENTS, 1, timeout_ms=1000, topics=moves(("a", 0, [0, 1, 2]))
    )
    ((move,),) = [one.partitions for one in moved.responses]
    for row in (created, checked, grown, move):
        assert row.error_code == ErrorCode.POLICY_VIOLATION
        assert row.error_message.startswith(f"{limit}: ")
    asked = [Message(name="c")]
    (auto,) = call(rig, ApiKey.METADATA, 12, topics=asked, allow_auto_topic_creation=True).topics
    assert (auto.error_code, list(auto.partitions)) == (ErrorCode.POLICY_VIOLATION, [])
    assert len(list(rig.controller.image.partitions())) == before


def test_a_partition_of_the_metadata_says_who_is_down() -> None:
    rig = three_brokers()
    rig.controller.broker_stopped(1)
    (topic,) = call(
        rig, ApiKey.METADATA, 12, topics=[Message(name="a")], allow_auto_topic_creation=False
    ).topics
    rows = [
        (row.leader_id, list(row.replica_nodes), list(row.isr_nodes), list(row.offline_replicas))
        for row in topic.partitions
    ]
    assert rows == [(0, [0, 1], [0], [1]), (2, [1, 2], [2], [1])]
    rig.controller.broker_stopped(2)
    (topic,) = call(
        rig, ApiKey.METADATA, 12, topics=[Message(name="a")], allow_auto_topic_creation=False
    ).topics
    assert [row.error_code for row in topic.partitions] == [ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE]
