"""KIP-578 point by point: what the limits count, where they hold, and what they leave alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import LONG_MAX
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import (
    AlterOperation,
    ConfigAlteration,
    ConfigSource,
    Controller,
    NewTopic,
    ProposedIsr,
    Reassignment,
)
from fairlead_kafka.broker.controller.placement import fitted
from tests.support.controllers import make_controller

BROKER = "max.broker.partitions"
CLUSTER = "max.partitions"


def limited(key: str, value: int, brokers: int = 3) -> Controller:
    return make_controller(brokers=brokers, config={key: value})


def lower(controller: Controller, key: str, value: int | None, name: str = "") -> None:
    operation = AlterOperation.DELETE if value is None else AlterOperation.SET
    controller.alter_broker_configs(
        name, [ConfigAlteration(key, operation, None if value is None else str(value))]
    )


def refused(call: Callable[[], object]) -> BrokerError:
    with pytest.raises(BrokerError) as caught:
        call()
    assert caught.value.code == ErrorCode.POLICY_VIOLATION
    return caught.value


def counted(controller: Controller) -> dict[int, int]:
    return dict(Counter(replica for _, _, one in controller.image.partitions() for replica in one.replicas))


# --- The configs themselves


@pytest.mark.parametrize("key", [BROKER, CLUSTER])
def test_both_are_long_and_unlimited_by_default_and_told_by_describe_configs(key: str) -> None:
    controller = make_controller()
    (config,) = [one for one in controller.describe_broker_configs("0") if one.key.name == key]
    assert (config.value, config.source, config.read_only) == (str(LONG_MAX), ConfigSource.DEFAULT, False)
    assert config.key.type.value == "long"
    lower(controller, key, 5_000_000_000)
    lower(controller, key, 7, "1")
    (wide,) = controller.describe_broker_configs("")
    assert (wide.value, wide.source) == ("5000000000", ConfigSource.DYNAMIC_CLUSTER)
    told = {
        name: [one.value for one in controller.describe_broker_configs(name) if one.key.name == key]
        for name in ("0", "1")
    }
    assert told == {"0": ["5000000000"], "1": ["7"]}


@pytest.mark.parametrize("key", [BROKER, CLUSTER])
@pytest.mark.parametrize("value", ["-1", "many", str(LONG_MAX + 1)])
def test_what_is_no_limit_is_refused(key: str, value: str) -> None:
    with pytest.raises(BrokerError, match=key) as caught:
        make_controller().alter_broker_configs("", [ConfigAlteration(key, AlterOperation.SET, value)])
    assert caught.value.code == ErrorCode.INVALID_REQUEST


# --- Where they hold

GROWTH: dict[str, Callable[[Controller], object]] = {
    "CreateTopics": lambda controller: controller.create_topic("b", 4, 3),
    "CreateTopics with an assignment": lambda controller: controller.create_topic(
        "b", assignments={n: [0, 1, 2] for n in range(4)}
    ),
    "CreateTopics, validated only": lambda controller: controller.create_topic("b", 4, 3, validate_only=True),
    "CreatePartitions": lambda controller: controller.create_partitions("a", 6),
    "CreatePartitions with an assignment": lambda controller: controller.create_partitions(
        "a", 6, [[0, 1, 2]] * 4
    ),
    "CreatePartitions, validated only": lambda controller: controller.create_partitions(
        "a", 6, validate_only=True
    ),
}


@pytest.mark.parametrize("grow", GROWTH.values(), ids=GROWTH)
@pytest.mark.parametrize(("key", "enough"), [(BROKER, 6), (CLUSTER, 18)])
def test_growth_is_refused_one_replica_above_the_limit_and_taken_at_it(
    grow: Callable[[Controller], object], key: str, enough: int
) -> None:
    controller = limited(key, enough - 1)
    controller.create_topic("a", 2, 3)
    before = counted(controller)
    refused(lambda: grow(controller))
    assert counted(controller) == before
    lower(controller, key, enough)
    grow(controller)


@pytest.mark.parametrize(("key", "enough"), [(BROKER, 2), (CLUSTER, 3)])
def test_a_move_counts_what_it_adds_from_its_beginning(key: str, enough: int) -> None:
    controller = limited(key, enough - 1, brokers=2)
    controller.create_topic("a", assignments={0: [0]})
    controller.create_topic("b", assignments={0: [1]})
    (error,) = controller.alter_reassignments([Reassignment("a", 0, [1])])
    assert error is not None
    assert error.code == ErrorCode.POLICY_VIOLATION
    assert key in error.context
    lower(controller, key, enough)
    assert controller.alter_reassignments([Reassignment("a", 0, [1])]) == [None]
    refused(lambda: controller.create_topic("c", assignments={0: [1]}))


def test_a_move_that_is_over_gives_back_what_it_left() -> None:
    controller = limited(BROKER, 1, brokers=3)
    topic = controller.create_topic("a", assignments={0: [0]})
    controller.alter_reassignments([Reassignment("a", 0, [1])])
    refused(lambda: controller.create_topic("b", assignments={0: [0]}))
    one = topic.partitions[0]
    proposal = ProposedIsr(topic.topic_id.hex, 0, one.leader_epoch, one.partition_epoch, (0, 1))
    assert controller.alter_partitions(0, controller.image.brokers[0].epoch, [proposal]) == [0]
    controller.create_topic("b", assignments={0: [0]})


def test_several_requests_of_one_decision_are_counted_together_and_stand_or_fall_alone() -> None:
    controller = limited(CLUSTER, 10)
    first, second, third = controller.create_topics(
        [NewTopic("a", 2, 3), NewTopic("b", 2, 3), NewTopic("c", 4, 1)]
    )
    assert isinstance(second, BrokerError)
    assert second.code == ErrorCode.POLICY_VIOLATION
    assert "hold 6 of 10" in second.context
    assert not isinstance(first, BrokerError)
    assert not isinstance(third, BrokerError)
    assert sorted(controller.image.topics) == ["a", "c"]
    moves = [Reassignment("c", number, [0, 1, 2]) for number in range(4)]
    assert [error is None for error in controller.alter_reassignments(moves)] == [False] * 4
    lower(controller, CLUSTER, 14)
    assert [error is None for error in controller.alter_reassignments(moves)] == [True, True, False, False]


def test_the_more_restrictive_limit_counts() -> None:
    controller = make_controller(config={CLUSTER: 4, BROKER: 100})
    assert CLUSTER in refused(lambda: controller.create_topic("a", 5, 1)).context
    lower(controller, BROKER, 1)
    assert BROKER in refused(lambda: controller.create_topic("a", 4, 1)).context
    controller.create_topic("a", 3, 1)


def test_the_message_says_limit_count_and_request() -> None:
    controller = limited(BROKER, 3)
    controller.create_topic("a", 2, 3)
    message = refused(lambda: controller.create_topic("b", 2, 3)).context
    assert message == (
        "max.broker.partitions: topic 'b' with 2 partitions x 3 asks for 6 more partition replicas, and "
        "broker 0 holds 2 of 3, "
        "broker 1 holds 2 of 3, broker 2 holds 2 of 3 at most: delete topics, ask for less, add brokers, or "
        "raise max.broker.partitions"
    )
    lower(controller, BROKER, None)
    controller = limited(CLUSTER, 7)
    controller.create_topic("a", 2, 3)
    assert refused(lambda: controller.create_partitions("a", 3)).context == (
        "max.partitions: topic 'a' going from 2 to 3 partitions x 3 asks for 3 more partition replicas, and "
        "the brokers hold 6 of 7 at "
        "most: delete topics, ask for less, or raise max.partitions"
    )


# --- What they leave alone


def test_internal_topics_are_neither_refused_nor_counted() -> None:
    controller = make_controller(
        config={
            BROKER: 2,
            CLUSTER: 4,
            "offsets.topic.num.partitions": 9,
            "transaction.state.log.num.partitions": 9,
        }
    )
    controller.create_offsets_topic()
    controller.create_transactions_topic()
    controller.create_topic("a", 4, 1)
    refused(lambda: controller.create_topic("b", 1, 1))
    moves = [Reassignment("__consumer_offsets", number, [0, 1, 2]) for number in range(9)]
    assert controller.alter_reassignments(moves) == [None] * 9


@pytest.mark.parametrize("key", [BROKER, CLUSTER])
def test_a_limit_lowered_below_what_is_there_refuses_growth_and_nothing_else(key: str) -> None:
    controller = make_controller()
    controller.create_topic("a", 6, 3)
    lower(controller, key, 1)
    refused(lambda: controller.create_partitions("a", 7))
    controller.broker_stopped(1)
    assert all(one.leader in (0, 2) for _, _, one in controller.image.partitions())
    fewer = [Reassignment("a", number, [0, 2]) for number in range(6)]
    assert controller.alter_reassignments(fewer) == [None] * 6
    controller.delete_topic("a")


def test_deleting_makes_room() -> None:
    controller = limited(CLUSTER, 6)
    controller.create_topic("a", 2, 3)
    refused(lambda: controller.create_topic("b", 1, 1))
    controller.delete_topic("a")
    controller.create_topic("b", 2, 3)


def test_a_replayed_cluster_counts_as_before() -> None:
    log: list[bytes] = []
    controller = make_controller(log=log)
    controller.create_topic("a", 2, 3)
    lower(controller, CLUSTER, 6)
    again = make_controller(replay=b"".join(log))
    refused(lambda: again.create_topic("b", 1, 1))


# --- Full brokers leave the ring


def test_brokers_at_their_limit_are_passed_over() -> None:
    controller = make_controller(brokers=4)
    lower(controller, BROKER, 2, "1")
    controller.create_topic("a", 9, 2)
    held = counted(controller)
    assert held[1] == 2
    assert sum(held.values()) == 18
    assert all(len(set(one.replicas)) == 2 for _, _, one in controller.image.partitions())


def test_the_value_of_a_broker_counts_for_that_broker_and_the_smallest_of_all_for_the_cluster() -> None:
    controller = make_controller(brokers=2)
    lower(controller, BROKER, 1, "0")
    lower(controller, CLUSTER, 4, "1")
    controller.create_topic("a", 4, 1)
    assert counted(controller) == {0: 1, 1: 3}
    assert CLUSTER in refused(lambda: controller.create_topic("b", 1, 1)).context


@given(data=st.data(), brokers=st.integers(1, 6), count=st.integers(1, 30), start=st.integers(0, 20))
@settings(max_examples=200, deadline=None)
def test_partitions_fit_whenever_they_can(data: st.DataObject, brokers: int, count: int, start: int) -> None:
    factor = data.draw(st.integers(1, brokers))
    room = {broker: data.draw(st.integers(0, count)) for broker in range(brokers) if data.draw(st.booleans())}
    placed = fitted(list(range(brokers)), count, factor, start, room)
    possible = sum(min(room.get(broker, count), count) for broker in range(brokers)) >= count * factor
    assert (placed is not None) == possible
    if placed is not None:
        assert [len(set(replicas)) for replicas in placed] == [factor] * count
        held = Counter(replica for replicas in placed for replica in replicas)
        assert all(held[broker] <= free for broker, free in room.items())
