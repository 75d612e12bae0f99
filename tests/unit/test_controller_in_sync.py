"""What leaders may say of the replicas in sync (AlterPartition, KIP-497 and KIP-903), as a table of
answers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller import Controller, PartitionImage, ProposedIsr
from tests.support.controllers import make_controller, node

NOWHERE = "00000000000000000000000000000009"


class Rig:
    """Partition 0 of topic a on brokers 0, 1, 2, led by 0; broker 3 holds nothing, broker 2 is
    down."""

    def __init__(self) -> None:
        self.log: list[bytes] = []
        self.controller: Controller = make_controller(brokers=4, log=self.log)
        self.topic = self.controller.create_topic("a", assignments={0: [0, 1, 2]})
        self.partition: PartitionImage = self.topic.partitions[0]
        self.controller.broker_stopped(2)

    def proposal(self, *isr: int) -> ProposedIsr:
        one = self.partition
        return ProposedIsr(self.topic.topic_id.hex, 0, one.leader_epoch, one.partition_epoch, isr)

    def say(self, *proposals: ProposedIsr, leader: int = 0, epoch: int | None = None) -> list[int]:
        epoch = self.controller.image.brokers[leader].epoch if epoch is None else epoch
        return self.controller.alter_partitions(leader, epoch, proposals)


def test_a_leader_drops_who_lags_and_takes_back_who_has_caught_up() -> None:
    rig = Rig()
    one = rig.partition
    reign = one.leader_epoch
    assert rig.say(rig.proposal(0)) == [ErrorCode.NONE]
    assert (one.isr, one.leader, one.leader_epoch) == ((0,), 0, reign)
    rig.controller.broker_started(node(2))
    assert rig.say(rig.proposal(0, 2)) == [ErrorCode.NONE]
    assert rig.say(rig.proposal(0, 2, 1)) == [ErrorCode.NONE]
    assert (one.isr, one.leader_epoch) == ((0, 2, 1), reign)


@pytest.mark.parametrize(
    ("isr", "changed", "leader", "code"),
    [
        ((0, 1), {"topic_id": NOWHERE}, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ((0, 1), {"topic_id": "no id at all"}, 0, ErrorCode.UNKNOWN_TOPIC_ID),
        ((0, 1), {"partition": 1}, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((0, 1), {"partition": -1}, 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ((0,), {"leader_epoch": 8}, 0, ErrorCode.NOT_CONTROLLER),
        ((0,), {"partition_epoch": 8}, 0, ErrorCode.NOT_CONTROLLER),
        ((0,), {"leader_epoch": -1}, 0, ErrorCode.FENCED_LEADER_EPOCH),
        ((0,), {"partition_epoch": 0}, 0, ErrorCode.INVALID_UPDATE_VERSION),
        ((1,), {}, 1, ErrorCode.INVALID_REQUEST),
        ((1,), {}, 0, ErrorCode.INVALID_REQUEST),
        ((), {}, 0, ErrorCode.INVALID_REQUEST),
        ((0, 0), {}, 0, ErrorCode.INVALID_REQUEST),
        ((0, 3), {}, 0, ErrorCode.INVALID_REQUEST),
        ((0, 2), {}, 0, ErrorCode.INELIGIBLE_REPLICA),
        ((0, 1), {"isr_epochs": (-1, 99)}, 0, ErrorCode.INELIGIBLE_REPLICA),
        ((0, 1), {"isr_epochs": (-1, -1)}, 0, ErrorCode.NONE),
    ],
)
def test_what_a_leader_cannot_say(
    isr: tuple[int, ...], changed: dict[str, object], leader: int, code: int
) -> None:
    rig = Rig()
    before = replace(rig.partition)
    assert rig.say(rig.proposal(*isr)._replace(**changed), leader=leader) == [code]  # type: ignore[arg-type]
    assert rig.partition == before


def test_a_replica_that_is_about_to_stop_is_not_taken_in() -> None:
    rig = Rig()
    rig.controller.broker_stopping(1)
    assert rig.partition.isr == (0,)
    assert rig.say(rig.proposal(0, 1)) == [ErrorCode.INELIGIBLE_REPLICA]


def test_a_replica_is_taken_in_only_in_the_life_that_its_leader_saw() -> None:
    rig = Rig()
    old = rig.controller.image.brokers[1].epoch
    new = rig.controller.broker_started(node(1))
    assert rig.say(rig.proposal(0, 1)._replace(isr_epochs=(-1, old))) == [ErrorCode.INELIGIBLE_REPLICA]
    assert rig.say(rig.proposal(0, 1)._replace(isr_epochs=(-1, new))) == [ErrorCode.NONE]


def test_a_leader_of_an_earlier_life_says_nothing() -> None:
    rig = Rig()
    with pytest.raises(BrokerError, match="broker 0 has epoch") as caught:
        rig.say(rig.proposal(0), epoch=rig.controller.image.brokers[0].epoch - 1)
    assert caught.value.code == ErrorCode.STALE_BROKER_EPOCH
    with pytest.raises(BrokerError, match="broker 9 never started") as caught:
        rig.controller.alter_partitions(9, 0, [])
    assert caught.value.code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_what_is_so_already_is_taken_and_costs_nothing() -> None:
    rig = Rig()
    lines, epoch = len(rig.log), rig.partition.partition_epoch
    assert rig.say(rig.proposal(1, 0)) == [ErrorCode.NONE]
    assert (len(rig.log), rig.partition.partition_epoch) == (lines, epoch)


def test_proposals_stand_and_fall_one_by_one_in_one_decision() -> None:
    rig = Rig()
    lines = len(rig.log)
    good = rig.proposal(0)
    assert rig.say(good._replace(partition=5), good, good) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
        ErrorCode.INVALID_UPDATE_VERSION,
    ]
    assert len(rig.log) == lines + 1
    assert rig.partition.isr == (0,)
