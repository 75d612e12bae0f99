"""Partitions on the move (KIP-455): how a move begins, ends, changes and is taken back."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import Controller, PartitionImage, ProposedIsr, Reassignment
from tests.support.controllers import make_controller, node


def rig(replicas: tuple[int, ...] = (0, 1)) -> tuple[Controller, PartitionImage]:
    controller = make_controller(brokers=5)
    return controller, controller.create_topic("a", assignments={0: replicas}).partitions[0]


def move(
    controller: Controller, *replicas: int, partition: int = 0, may_change_factor: bool = True
) -> BrokerError | None:
    (outcome,) = controller.alter_reassignments(
        [Reassignment("a", partition, list(replicas))], may_change_factor
    )
    return outcome


def cancel(controller: Controller) -> BrokerError | None:
    (outcome,) = controller.alter_reassignments([Reassignment("a", 0, None)])
    return outcome


def in_sync(controller: Controller, *isr: int) -> int:
    topic = controller.image.topics["a"]
    one = topic.partitions[0]
    proposal = ProposedIsr(topic.topic_id.hex, 0, one.leader_epoch, one.partition_epoch, isr)
    (code,) = controller.alter_partitions(one.leader, controller.image.brokers[one.leader].epoch, [proposal])
    return code


def seen(
    one: PartitionImage,
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], int]:
    return one.replicas, one.isr, one.adding, one.removing, one.leader


def test_replicas_are_added_come_into_sync_and_the_old_ones_go() -> None:
    controller, one = rig()
    assert move(controller, 2, 3) is None
    assert seen(one) == ((2, 3, 0, 1), (0, 1), (2, 3), (0, 1), 0)
    assert in_sync(controller, 0, 1, 2) == 0
    assert seen(one) == ((2, 3, 0, 1), (0, 1, 2), (2, 3), (0, 1), 0)
    reign = one.leader_epoch
    assert in_sync(controller, 0, 1, 2, 3) == 0
    assert seen(one) == ((2, 3), (2, 3), (), (), 2)
    assert one.leader_epoch == reign + 1


def test_the_leader_stays_if_it_may() -> None:
    controller, one = rig()
    move(controller, 2, 0)
    in_sync(controller, 0, 1, 2)
    assert seen(one) == ((2, 0), (0, 2), (), (), 0)
    assert one.leader_epoch == 1  # broker 1 is gone and must not speak any more


def test_more_replicas_are_added_and_none_goes() -> None:
    controller, one = rig()
    move(controller, 0, 1, 4)
    assert seen(one) == ((0, 1, 4), (0, 1), (4,), (), 0)
    in_sync(controller, 0, 1, 4)
    assert seen(one) == ((0, 1, 4), (0, 1, 4), (), (), 0)
    assert one.leader_epoch == 0


@pytest.mark.parametrize(
    ("wanted", "after"),
    [
        ((1, 0), ((1, 0), (0, 1), (), (), 0)),
        ((1,), ((1,), (1,), (), (), 1)),
        ((0, 1), ((0, 1), (0, 1), (), (), 0)),
    ],
)
def test_a_move_that_adds_nobody_is_over_at_once(
    wanted: tuple[int, ...],
    after: tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...], int],
) -> None:
    controller, one = rig()
    assert move(controller, *wanted) is None
    assert seen(one) == after


def test_a_move_to_where_it_is_changes_nothing() -> None:
    controller, one = rig()
    epoch = one.partition_epoch
    assert move(controller, 0, 1) is None
    assert one.partition_epoch == epoch


def test_fewer_replicas_must_be_in_sync_before_the_others_go() -> None:
    controller, one = rig()
    controller.broker_stopped(1)
    controller.broker_started(node(1))
    assert move(controller, 1) is None
    assert seen(one) == ((1, 0), (0,), (), (0,), 0)
    in_sync(controller, 0, 1)
    assert seen(one) == ((1,), (1,), (), (), 1)


def test_no_partition_is_left_to_a_broker_that_is_only_awaited_while_others_are_in_sync() -> None:
    """It counts as in sync, and may not come back."""
    log: list[bytes] = []
    make_controller(brokers=3, log=log).create_topic("a", assignments={0: [0, 1, 2]})
    controller = make_controller(brokers=0, replay=b"".join(log))
    for node_id in (1, 2):
        controller.broker_started(node(node_id))
    refused = move(controller, 0)
    assert refused is not None
    assert refused.code == ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    assert "brokers [0] now" in refused.context
    controller.broker_started(node(0))
    assert move(controller, 0) is None
    assert seen(controller.image.topics["a"].partitions[0]) == ((0,), (0,), (), (), 0)


def test_a_move_is_cancelled() -> None:
    controller, one = rig()
    move(controller, 2, 3)
    in_sync(controller, 0, 1, 2)
    assert cancel(controller) is None
    assert seen(one) == ((0, 1), (0, 1), (), (), 0)
    refused = cancel(controller)
    assert refused is not None
    assert refused.code == ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_a_move_is_not_cancelled_where_that_would_lose_records_unless_that_is_allowed() -> None:
    controller, one = rig()
    move(controller, 2, 3)
    in_sync(controller, 0, 1, 2)
    controller.broker_stopped(0)
    controller.broker_stopped(1)
    assert (one.isr, one.leader) == ((2,), 2)
    refused = cancel(controller)
    assert refused is not None
    assert refused.code == ErrorCode.INVALID_REPLICA_ASSIGNMENT
    assert "unclean.leader.election.enable" in refused.context
    assert one.adding == (2, 3)


def test_a_move_may_change_its_mind() -> None:
    controller, one = rig()
    move(controller, 2, 3)
    in_sync(controller, 0, 1, 2)
    assert move(controller, 2, 4) is None
    assert seen(one) == ((2, 4, 0, 1, 3), (0, 1, 2), (2, 4), (0, 1, 3), 0)
    in_sync(controller, 0, 1, 2, 4)
    assert seen(one) == ((2, 4), (2, 4), (), (), 2)


def test_a_move_may_turn_back() -> None:
    controller, one = rig()
    move(controller, 2, 3)
    assert move(controller, 0, 1) is None
    assert seen(one) == ((0, 1), (0, 1), (), (), 0)


@pytest.mark.parametrize(
    ("wanted", "partition", "may_change_factor", "code"),
    [
        ((), 0, True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 1), 0, True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 9), 0, True, ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((1, 2, 3), 0, False, ErrorCode.INVALID_REPLICATION_FACTOR),
        ((1,), 0, False, ErrorCode.INVALID_REPLICATION_FACTOR),
        ((1, 2), 7, True, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_moves_that_cannot_be(
    wanted: tuple[int, ...], partition: int, may_change_factor: bool, code: int
) -> None:
    controller, one = rig()
    before = seen(one)
    refused = move(controller, *wanted, partition=partition, may_change_factor=may_change_factor)
    assert refused is not None
    assert refused.code == code
    assert seen(one) == before


def test_a_topic_on_the_move_grows_by_the_replicas_it_will_have() -> None:
    controller, _ = rig()
    move(controller, 2, 3, 4)
    controller.create_partitions("a", 2)
    assert len(controller.image.topics["a"].partitions[1].replicas) == 3


def test_the_last_replica_in_sync_is_a_broker_on_its_way_out_until_another_is() -> None:
    controller, one = rig((0,))
    move(controller, 1)
    controller.broker_stopped(0)
    assert (one.isr, one.leader) == ((0,), -1)
    controller.broker_started(node(0))
    assert one.leader == 0
    in_sync(controller, 0, 1)
    assert seen(one) == ((1,), (1,), (), (), 1)
