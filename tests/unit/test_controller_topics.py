"""The controller's topics: names, placement, growth, deletion, leaders, and Kafka's errors for what
cannot be."""

from __future__ import annotations

from collections import Counter
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import (
    OFFSETS_TOPIC,
    PRODUCER_ID_BLOCK,
    Change,
    LeadersChanged,
    NewTopic,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
    round_robin,
)
from tests.support.controllers import make_controller, node


def code_of(call: object, *arguments: object, **named: object) -> int:
    with pytest.raises(BrokerError) as caught:
        call(*arguments, **named)  # type: ignore[operator]
    return caught.value.code


@pytest.mark.parametrize("name", ["", ".", "..", "a" * 250, "a/b", "a b", "naïve", "a\n"])
def test_illegal_names_are_refused(name: str) -> None:
    assert code_of(make_controller().create_topic, name) == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("name", ["a", "a" * 249, "a.b-c_D9", "...", "-"])
def test_legal_names_are_taken(name: str) -> None:
    assert make_controller().create_topic(name).name == name


def test_names_that_differ_in_dots_and_underscores_alone_collide() -> None:
    controller = make_controller()
    controller.create_topic("a.b_c")
    with pytest.raises(BrokerError, match=r"collides with the topic 'a\.b_c'") as caught:
        controller.create_topic("a_b.c")
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    controller.delete_topic("a.b_c")
    assert controller.create_topic("a_b.c").name == "a_b.c"


def test_a_topic_is_created_once() -> None:
    controller = make_controller()
    controller.create_topic("a")
    assert code_of(controller.create_topic, "a") == ErrorCode.TOPIC_ALREADY_EXISTS


def test_minus_one_means_the_brokers_defaults() -> None:
    topic = make_controller(config={"num.partitions": 4}).create_topic("a", -1, -1)
    assert len(topic.partitions) == 4
    assert topic.replication_factor == 1


@pytest.mark.parametrize("partitions", [0, -2, 100_001])
def test_impossible_partition_counts_are_refused(partitions: int) -> None:
    assert code_of(make_controller().create_topic, "a", partitions) == ErrorCode.INVALID_PARTITIONS


@pytest.mark.parametrize("replication_factor", [0, 4, -2])
def test_a_partition_has_a_replica_and_no_more_than_there_are_brokers(replication_factor: int) -> None:
    controller = make_controller()
    assert (
        code_of(controller.create_topic, "a", 1, replication_factor) == ErrorCode.INVALID_REPLICATION_FACTOR
    )
    assert not controller.image.topics


def test_without_a_live_broker_nothing_can_be_placed() -> None:
    assert code_of(make_controller(brokers=0).create_topic, "a") == ErrorCode.INVALID_REPLICATION_FACTOR


def test_many_small_topics_are_spread_as_evenly_as_one_large_one() -> None:
    controller = make_controller()
    for number in range(9):
        controller.create_topic(f"small-{number}", 1)
    controller.create_topic("large", 9)
    leaders = Counter(partition.leader for _, _, partition in controller.image.partitions())
    assert leaders == {0: 6, 1: 6, 2: 6}


@given(brokers=st.integers(1, 7), partitions=st.integers(1, 40), start=st.integers(0, 50), data=st.data())
def test_placement_spreads_leaders_and_replicas_and_names_no_broker_twice(
    brokers: int, partitions: int, start: int, data: st.DataObject
) -> None:
    replication_factor = data.draw(st.integers(1, brokers))
    placed = round_robin(list(range(brokers)), partitions, replication_factor, start)
    assert len(placed) == partitions
    assert all(len(set(replicas)) == replication_factor for replicas in placed)
    leaders = Counter(replicas[0] for replicas in placed)
    assert max(leaders.values()) - min(leaders.get(broker, 0) for broker in range(brokers)) <= 1


def test_validate_only_says_what_would_be_and_changes_nothing() -> None:
    controller = make_controller()
    topic = controller.create_topic("a", 3, configs={"retention.ms": "5"}, validate_only=True)
    assert len(topic.partitions) == 3
    assert not controller.image.topics
    assert code_of(controller.create_topic, "a", 0, validate_only=True) == ErrorCode.INVALID_PARTITIONS


def test_an_assignment_is_followed_to_the_letter() -> None:
    topic = make_controller().create_topic("a", assignments={0: [2], 1: [0], 2: [2]})
    assert [partition.leader for partition in topic.partitions] == [2, 0, 2]


@pytest.mark.parametrize(
    ("assignments", "code"),
    [
        ({0: [9]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [1, 1]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: []}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({1: [0]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ({0: [0, 1], 1: [0]}, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_impossible_assignments_are_refused(assignments: dict[int, list[int]], code: int) -> None:
    assert code_of(make_controller().create_topic, "a", assignments=assignments) == code


def test_an_assignment_and_a_number_of_partitions_contradict_each_other() -> None:
    assert code_of(make_controller().create_topic, "a", 1, assignments={0: [0]}) == ErrorCode.INVALID_REQUEST


def test_a_topic_grows_and_never_shrinks() -> None:
    controller = make_controller()
    controller.create_topic("a", 2)
    controller.create_partitions("a", 5)
    assert len(controller.image.topics["a"].partitions) == 5
    assert code_of(controller.create_partitions, "a", 5) == ErrorCode.INVALID_PARTITIONS
    assert code_of(controller.create_partitions, "a", 1) == ErrorCode.INVALID_PARTITIONS
    assert code_of(controller.create_partitions, "b", 1) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_growth_takes_one_assignment_per_new_partition() -> None:
    controller = make_controller()
    controller.create_topic("a", 1)
    assert code_of(controller.create_partitions, "a", 3, [[1]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    controller.create_partitions("a", 3, [[1], [1]], validate_only=True)
    assert len(controller.image.topics["a"].partitions) == 1
    controller.create_partitions("a", 3, [[1], [1]])
    assert [partition.leader for partition in controller.image.topics["a"].partitions[1:]] == [1, 1]


def test_topics_are_deleted_by_name_and_by_id() -> None:
    controller = make_controller()
    by_name, by_id = controller.create_topic("a"), controller.create_topic("b")
    assert controller.delete_topic("a") is by_name
    assert controller.delete_topic(by_id.topic_id) is by_id
    assert not controller.image.topics
    assert not controller.image.topics_by_id
    assert code_of(controller.delete_topic, "a") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert code_of(controller.delete_topic, UUID(int=5)) == ErrorCode.UNKNOWN_TOPIC_ID


def test_deletion_can_be_forbidden() -> None:
    controller = make_controller(config={"delete.topic.enable": False})
    controller.create_topic("a")
    assert code_of(controller.delete_topic, "a") == ErrorCode.TOPIC_DELETION_DISABLED


def test_a_topic_created_again_has_another_id() -> None:
    controller = make_controller()
    first = controller.create_topic("a").topic_id
    controller.delete_topic("a")
    assert controller.create_topic("a").topic_id != first


def test_internal_topics_belong_to_the_brokers() -> None:
    controller = make_controller()
    assert code_of(controller.create_topic, OFFSETS_TOPIC) == ErrorCode.INVALID_TOPIC_EXCEPTION
    topic = controller.create_offsets_topic()
    assert controller.create_offsets_topic() is topic
    assert topic.internal
    assert Counter(partition.leader for partition in topic.partitions) == {0: 17, 1: 17, 2: 16}
    assert code_of(controller.delete_topic, OFFSETS_TOPIC) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert code_of(controller.create_partitions, OFFSETS_TOPIC, 60) == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert controller.topic_settings(OFFSETS_TOPIC)["retention.ms"] == -1


def test_listeners_hear_of_every_change_after_the_image_has_it() -> None:
    controller = make_controller()
    heard: list[Change] = []
    present: list[bool] = []

    def listen(change: Change) -> None:
        heard.append(change)
        present.append("a" in controller.image.topics)

    unsubscribe = controller.subscribe(listen)
    controller.create_topic("a", 2)
    controller.create_partitions("a", 3)
    controller.broker_stopped(0)
    controller.delete_topic("a")
    unsubscribe()
    controller.create_topic("b")
    assert [type(change).__name__ for change in heard] == [
        "TopicCreated",
        "PartitionsAdded",
        "BrokersChanged",
        "LeadersChanged",
        "TopicDeleted",
    ]
    assert present == [True, True, True, True, False]
    assert isinstance(heard[0], TopicCreated)
    assert isinstance(heard[1], PartitionsAdded)
    assert heard[1].first == 2
    assert isinstance(heard[3], LeadersChanged)
    assert [number for _, number in heard[3].partitions] == [0]
    assert isinstance(heard[4], TopicDeleted)


def test_a_partition_without_its_broker_has_no_leader_and_each_reign_a_new_epoch() -> None:
    controller = make_controller()
    partition = controller.create_topic("a", assignments={0: [1]}).partitions[0]
    assert (partition.leader, partition.leader_epoch) == (1, 0)
    controller.broker_stopped(1)
    assert (partition.leader, partition.leader_epoch, partition.isr) == (-1, 1, (1,))
    controller.broker_stopped(1)
    assert partition.leader_epoch == 1
    controller.broker_started(node(1))
    assert (partition.leader, partition.leader_epoch) == (1, 2)


def test_the_controller_named_is_a_live_broker() -> None:
    controller = make_controller()
    assert controller.image.controller_id() == 0
    controller.broker_stopped(0)
    assert controller.image.controller_id() == 1
    controller.broker_stopped(1)
    controller.broker_stopped(2)
    assert controller.image.controller_id() == -1


def test_producer_ids_are_given_once() -> None:
    controller = make_controller()
    first, second = controller.allocate_producer_ids(0), controller.allocate_producer_ids(1)
    assert len(first) == len(second) == PRODUCER_ID_BLOCK
    assert not set(first) & set(second)
    assert code_of(controller.allocate_producer_ids, 9) == ErrorCode.BROKER_ID_NOT_REGISTERED


@pytest.mark.parametrize(
    ("brokers", "config", "factor", "min_isr"),
    [
        (1, {}, 1, "1"),
        (2, {}, 2, "1"),
        (3, {}, 3, "2"),
        (5, {}, 3, "2"),
        (3, {"transaction.state.log.replication.factor": 2}, 2, "1"),
        (3, {"transaction.state.log.min.isr": 3}, 3, "3"),
        (2, {"transaction.state.log.min.isr": 3}, 2, "2"),
    ],
)
def test_internal_topics_have_three_replicas_or_as_many_as_brokers_are_alive(
    brokers: int, config: dict[str, int], factor: int, min_isr: str
) -> None:
    controller = make_controller(brokers=brokers, config=config)
    topic = controller.create_transactions_topic()
    assert topic.replication_factor == factor
    assert topic.configs["min.insync.replicas"] == min_isr
    assert controller.create_offsets_topic().replication_factor == min(3, brokers)


def test_internal_topics_wait_for_brokers_that_are_about_to_start_but_not_for_ever() -> None:
    controller = make_controller(brokers=0)
    controller.await_brokers(range(3))
    controller.tick(0)
    controller.broker_started(node(0))
    with pytest.raises(BrokerError, match=r"brokers \[1, 2\] too, which are starting") as caught:
        controller.create_offsets_topic()
    assert caught.value.code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    controller.broker_started(node(1))
    controller.tick(9_000_000_000)
    assert controller.create_offsets_topic().replication_factor == 2
    controller.broker_started(node(2))
    assert controller.create_transactions_topic().replication_factor == 3


def test_a_number_of_replicas_that_was_set_is_kept_to() -> None:
    controller = make_controller(brokers=2, config={"offsets.topic.replication.factor": 3})
    assert code_of(controller.create_offsets_topic) == ErrorCode.INVALID_REPLICATION_FACTOR


def test_a_partition_is_not_assigned_to_brokers_of_which_none_can_lead_it() -> None:
    controller = make_controller(3)
    controller.broker_stopped(0)
    controller.broker_stopping(1)
    assert (
        code_of(controller.create_topic, "a", assignments={0: [2, 0], 1: [0, 1]})
        == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    )
    topic = controller.create_topic("a", assignments={0: [0, 2], 1: [1, 2]})
    assert [one.leader for one in topic.partitions] == [2, 2]
    assert code_of(controller.create_partitions, "a", 3, [[0, 1]]) == ErrorCode.INVALID_REPLICA_ASSIGNMENT


def test_brokers_that_are_down_get_the_last_replicas_where_too_few_are_alive() -> None:
    controller = make_controller(brokers=4)
    controller.broker_stopped(0)
    controller.broker_stopped(2)
    placed = controller.create_topic("a", 4, 3).partitions
    assert all({1, 3} == set(one.replicas[:2]) == set(one.isr) for one in placed)
    assert {one.replicas[2] for one in placed} == {0, 2}
    assert all(one.replicas[0] == one.leader for one in placed)


@pytest.mark.parametrize("rack_of", ["xxyyzz", "xyz", "xxxxyz", "xxyy"])
@pytest.mark.parametrize("factor", [2, 3])
def test_replicas_are_in_as_many_racks_as_can_be_and_leaders_are_spread(rack_of: str, factor: int) -> None:
    controller = make_controller(brokers=0)
    for node_id, rack in enumerate(rack_of):
        controller.broker_started(node(node_id)._replace(rack=rack))
    placed = controller.create_topic("a", 2 * len(rack_of), factor).partitions
    assert all(
        len({rack_of[replica] for replica in one.replicas}) == min(factor, len(set(rack_of)))
        for one in placed
    )
    assert set(Counter(one.leader for one in placed).values()) == {2}


def test_racks_that_not_every_broker_tells_are_passed_over() -> None:
    controller = make_controller(brokers=3)
    controller.broker_started(node(3)._replace(rack="x"))
    assert len(controller.create_topic("a", 8, 3).partitions) == 8


def test_one_request_creates_no_more_partitions_than_one_topic_may_have() -> None:
    controller = make_controller()
    wanted = [NewTopic("a", 60_000, 1), NewTopic("b", 50_000, 1)]
    with pytest.raises(BrokerError, match="Excessively large number of partitions") as caught:
        controller.create_topics(wanted)
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    assert not controller.image.topics
