"""Groups of the consumer protocol on a coordinator driven by hand: epochs, fencing, static members,
expressions, time, offsets, other coordinators."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.consumer_groups import ConsumerGroupState, MemberState
from fairlead_kafka.broker.controller import AlterOperation, ConfigAlteration
from fairlead_kafka.core.consumer_protocol import Assignment, encode_assignment
from tests.support.consumer_group_rig import KipMember, group_of, quiesce, shares
from tests.support.group_rig import GROUP, GroupRig, RigMember

ORDERS = TopicPartition("orders", 0)


def pair(rig: GroupRig) -> tuple[KipMember, KipMember]:
    """Two members that share four partitions."""
    first, second = KipMember(rig, "first"), KipMember(rig, "second")
    first.beat()
    first.reconcile()
    second.beat()
    quiesce(first, second)
    assert shares(first, second) == [2, 2]
    return first, second


def check_the_silent_one_is_fenced(rig: GroupRig, first: KipMember, second: KipMember) -> None:
    """Fails unless `first`, which goes on for 50 s, has all partitions, and `second` is fenced."""
    for _ in range(10):
        rig.broker.advance(5_000)
        first.beat()
        first.reconcile()
    assert shares(first) == [4]
    assert second.beat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_partition_is_given_up_before_it_is_given_away() -> None:
    rig = GroupRig()
    first, second = KipMember(rig, "first"), KipMember(rig, "second")
    assert first.beat() == 0
    assert (first.epoch, group_of(rig).state) == (2, ConsumerGroupState.STABLE)
    first.reconcile()
    second.beat()
    assert (second.epoch, second.told) == (3, {})
    assert group_of(rig).members["second"].current.state is MemberState.UNRELEASED_PARTITIONS
    assert group_of(rig).state is ConsumerGroupState.RECONCILING
    first.beat()
    assert first.epoch == 2, "it stays until it has given up"
    second.beat()
    assert second.told == {}, "nothing is free yet"
    first.reconcile()
    first.beat()
    assert first.epoch == 3
    second.beat()
    second.reconcile()
    assert shares(first, second) == [2, 2]
    assert group_of(rig).state is ConsumerGroupState.STABLE


def test_a_group_that_cannot_become_a_classic_one_loses_its_silent_member_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> bool:
        raise BrokerError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a member's metadata cannot be read")

    rig = GroupRig()
    first, second = pair(rig)
    monkeypatch.setattr(rig.coordinator.consumer, "downgrades", refuse)
    check_the_silent_one_is_fenced(rig, first, second)


def test_an_answer_that_was_lost_is_given_again_and_other_epochs_are_fenced() -> None:
    rig = GroupRig()
    first, _ = pair(rig)
    assert first.epoch == 3
    assert first.beat(epoch=2) == 0, "the epoch before, with no more than it has"
    assert first.beat(epoch=9) == ErrorCode.FENCED_MEMBER_EPOCH
    assert first.beat() == 0, "and joins again with nothing"
    assert first.beat(epoch=1) == ErrorCode.FENCED_MEMBER_EPOCH


def test_a_member_that_falls_silent_is_fenced_and_the_others_have_all() -> None:
    rig = GroupRig()
    first, second = pair(rig)
    check_the_silent_one_is_fenced(rig, first, second)
    assert not list(rig.coordinator.consumer.members.watched(GROUP))[1:]


def test_a_member_that_does_not_give_up_in_time_is_fenced() -> None:
    rig = GroupRig()
    first, second = KipMember(rig, "first", rebalance_timeout_ms=12_000), KipMember(rig, "second")
    first.beat()
    first.reconcile()
    second.beat()
    for _ in range(3):
        first.beat()  # it hears of it, and keeps all
        rig.broker.advance(5_000)
        second.beat()
        second.reconcile()
    assert first.beat() == ErrorCode.UNKNOWN_MEMBER_ID
    quiesce(second)
    assert shares(second) == [4]


def test_a_member_has_the_whole_time_for_each_change_that_it_is_to_make() -> None:
    rig = GroupRig()
    first = KipMember(rig, "first", rebalance_timeout_ms=12_000)
    quiesce(first)
    for names in (["second"], ["third", "fourth"]):
        for name in names:
            KipMember(rig, name).beat()
        assert first.beat() == 0
        rig.broker.advance(8_000)
        first.reconcile()
    assert first.beat() == 0
    assert shares(first) == [1]


def test_a_static_member_that_comes_again_has_what_it_had_and_nobody_else_notices() -> None:
    rig = GroupRig()
    first, second = KipMember(rig, "a", instance_id="one"), KipMember(rig, "b", instance_id="two")
    quiesce(first, second)
    before, epoch = second.partitions, group_of(rig).epoch
    third = KipMember(rig, "c", instance_id="two")
    assert third.beat() == ErrorCode.UNRELEASED_INSTANCE_ID
    second.leave(-2)
    assert group_of(rig).members["b"].epoch == -2
    assert third.beat() == 0
    third.reconcile()
    assert (third.partitions, group_of(rig).epoch) == (before, epoch)
    assert second.beat(epoch=3) == ErrorCode.FENCED_INSTANCE_ID
    third.leave()
    quiesce(first)
    assert shares(first) == [4]


def test_expressions_are_resolved_by_the_coordinator_and_again_when_a_topic_is_new() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m", topics=(), pattern="(orders|pay.*|new-.*)")
    member.beat()
    assert member.told == {}, "first it is written down"
    rig.broker.advance(1)
    quiesce(member, rounds=2)
    assert shares(member) == [8]
    rig.controller.create_topic("new-one", 3)
    rig.broker.advance(10_001)  # not oftener
    quiesce(member, rounds=1)
    rig.broker.advance(1)
    quiesce(member, rounds=2)
    assert shares(member) == [11]
    assert KipMember(rig, "n", topics=(), pattern="(a").beat() == ErrorCode.INVALID_REGULAR_EXPRESSION


def test_expressions_are_resolved_again_if_the_log_did_not_take_what_they_stand_for() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m", topics=(), pattern="new-.*")
    quiesce(member, rounds=2)
    rig.broker.advance(10_001)
    rig.controller.create_topic("new-one", 3)
    member.beat()
    rig.broker.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    rig.broker.advance(1)
    rig.broker.append_error = ErrorCode.NONE
    quiesce(member, rounds=1)
    rig.broker.advance(1)
    quiesce(member, rounds=2)
    assert shares(member) == [3]


def test_topics_that_appear_grow_and_go_are_shared_anew() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m", topics=["orders", "later"])
    quiesce(member)
    assert shares(member) == [4]
    rig.controller.create_topic("later", 2)
    quiesce(member, rounds=2)
    assert shares(member) == [6]
    rig.controller.create_partitions("orders", 6)
    quiesce(member, rounds=2)
    assert shares(member) == [8]
    rig.controller.delete_topic("later")
    quiesce(member, rounds=2)
    assert shares(member) == [6]


def test_targets_are_computed_once_in_an_interval() -> None:
    rig = GroupRig({"group.consumer.assignment.interval.ms": 1_000})
    rig.controller.alter_broker_configs(
        "", [ConfigAlteration("group.consumer.assignment.interval.ms", AlterOperation.SET, "1000")]
    )
    first, second = KipMember(rig, "first"), KipMember(rig, "second")
    first.beat()
    second.beat()
    assert group_of(rig).state is ConsumerGroupState.ASSIGNING
    rig.broker.advance(1_000)
    quiesce(first, second)
    assert shares(first, second) == [2, 2]


def test_targets_are_not_waited_for_that_a_wrong_clock_dated_ahead() -> None:
    rig = GroupRig()
    rig.controller.alter_broker_configs(
        "", [ConfigAlteration("group.consumer.assignment.interval.ms", AlterOperation.SET, "1000")]
    )
    rig.broker.wall_ms += 3_600_000
    first, second = KipMember(rig, "first"), KipMember(rig, "second")
    first.beat()
    rig.broker.wall_ms -= 3_600_000
    quiesce(first, second)
    assert shares(first, second) == [2, 2]


def test_no_more_members_than_may_be() -> None:
    rig = GroupRig({"group.consumer.max.size": 1})
    first = KipMember(rig, "first")
    assert first.beat() == 0
    assert KipMember(rig, "second").beat() == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert first.beat() == 0


def test_the_assignor_that_most_members_name() -> None:
    rig = GroupRig()
    both = ["orders", "payments"]
    first, second = (KipMember(rig, name, both, assignor="range") for name in ("a", "b"))
    third = KipMember(rig, "c", both, assignor="uniform")
    quiesce(first, second, third)
    assert group_of(rig).assignor("uniform") == "range"
    assert shares(first, second, third) == [4, 2, 2]
    assert KipMember(rig, "d", assignor="odd").beat() == ErrorCode.UNSUPPORTED_ASSIGNOR


# --- Offsets


def committed(rig: GroupRig, epoch: int, member_id: str, topic: str = "orders", partition: int = 0) -> int:
    of = TopicPartition(topic, partition)
    try:
        return rig.commit({of: 7}, epoch, member_id)[of]
    except BrokerError as error:
        return error.code


def test_offsets_are_taken_of_a_member_that_has_the_partition() -> None:
    rig = GroupRig()
    first, second = pair(rig)
    mine = sorted(number for _, number in first.partitions)
    other = sorted(number for _, number in second.partitions)
    assert committed(rig, first.epoch, "first", partition=mine[0]) == 0
    assert committed(rig, first.epoch - 1, "first", partition=mine[0]) == 0, "it has had it since then"
    assert committed(rig, second.epoch - 1, "second", partition=other[0]) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(rig, first.epoch - 1, "first", partition=other[0]) == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(rig, first.epoch + 1, "first") == ErrorCode.STALE_MEMBER_EPOCH
    assert committed(rig, 1, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert committed(rig, -1, "") == ErrorCode.UNKNOWN_MEMBER_ID
    check = rig.coordinator.consumer.check_reader
    check(GROUP, "first", first.epoch)
    check(GROUP, None, -1)
    for member_id, epoch in (("first", 1), ("nobody", 1)):
        with pytest.raises(BrokerError):
            check(GROUP, member_id, epoch)


def test_a_fenced_member_commits_nothing() -> None:
    rig = GroupRig()
    first, second = pair(rig)
    epoch = second.epoch
    rig.broker.advance(30_000)
    first.beat()
    rig.broker.advance(20_000)
    assert "second" not in group_of(rig).members
    for number in range(4):
        assert committed(rig, epoch, "second", partition=number) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.fetch() == {}


def test_a_group_without_members_keeps_its_offsets_until_it_is_deleted() -> None:
    rig = GroupRig()
    first, second = pair(rig)
    number = min(number for _, number in first.partitions)
    assert committed(rig, first.epoch, "first", partition=number) == 0
    codes: list[int] = []
    with pytest.raises(BrokerError, match="has members"):
        rig.coordinator.delete_group(GROUP, codes.append)
    first.leave()
    second.leave()
    assert group_of(rig).state is ConsumerGroupState.EMPTY
    assert rig.fetch() == {TopicPartition("orders", number): 7}
    rig = rig.again()
    assert rig.fetch() == {TopicPartition("orders", number): 7}
    rig.coordinator.delete_group(GROUP, codes.append)
    assert codes == [0]
    assert rig.coordinator.describe(GROUP) is None
    assert rig.again().coordinator.describe(GROUP) is None


def test_what_is_past_retention_goes_and_the_group_with_it() -> None:
    rig = GroupRig({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 1_000})
    member = KipMember(rig, "m")
    quiesce(member)
    assert committed(rig, member.epoch, "m") == 0
    for _ in range(30):
        rig.broker.advance(5_000)
        member.beat()
    assert rig.fetch() == {ORDERS: 7}, "a member reads it"
    member.leave()
    rig.broker.advance(70_000)
    assert rig.coordinator.describe(GROUP) is None
    rig.coordinator.check()


# --- Logs and other coordinators


def test_a_log_that_takes_nothing_stops_retention_and_no_group() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m")
    quiesce(member)
    member.leave()
    rig.broker.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    rig.broker.advance(11 * 60_000)
    assert rig.broker.guard.errors == 0
    assert group_of(rig).state is ConsumerGroupState.EMPTY
    rig.broker.append_error = ErrorCode.NONE
    rig.broker.advance(11 * 60_000)
    assert rig.coordinator.consumer.consumer_group(GROUP) is None


def test_the_next_coordinator_goes_on_where_the_log_is() -> None:
    rig = GroupRig()
    first, second = pair(rig)
    before = group_of(rig)
    again = rig.again()
    after = group_of(again)
    for name in ("epoch", "metadata_hash", "target_epoch", "assigned_ms", "members", "targets", "static"):
        assert getattr(after, name) == getattr(before, name), name
    again.coordinator.check()
    epochs = first.epoch, second.epoch
    first.rig = second.rig = again
    quiesce(first, second)
    assert (first.epoch, second.epoch) == epochs, "nobody notices"
    again.broker.advance(50_000)
    assert not group_of(again).members, "and who is not heard of is missed"


def test_nobody_is_answered_before_the_log_has_it_not_even_by_another_heartbeat() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m")
    rig.broker.held = []
    assert member.beat() is None
    assert member.beat() is None, "it rests on what is under way"
    for written in rig.broker.held:
        written()
    rig.broker.held = None
    assert member.error == 0
    assert member.told is not None
    rig.coordinator.check()


def test_a_log_that_takes_nothing_changes_nothing() -> None:
    rig = GroupRig()
    member = KipMember(rig, "m")
    rig.broker.append_error = ErrorCode.NOT_ENOUGH_REPLICAS
    assert member.beat() == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert rig.coordinator.describe(GROUP) is None
    rig.broker.append_error = ErrorCode.NONE
    assert member.beat() == 0
    rig.coordinator.check()


def test_a_groups_own_configs_stand_over_the_brokers() -> None:
    rig = GroupRig()

    def alter(key: str, value: str) -> None:
        rig.controller.alter_group_configs(GROUP, [ConfigAlteration(key, AlterOperation.SET, value)])

    alter("consumer.session.timeout.ms", "50000")
    first, second = pair(rig)
    rig.broker.advance(46_000)
    assert set(group_of(rig).members) == {first.member_id, second.member_id}
    rig.broker.advance(5_000)
    assert not group_of(rig).members
    for key, value in (("consumer.session.timeout.ms", "1"), ("consumer.heartbeat.interval.ms", "99999")):
        with pytest.raises(BrokerError, match="must be between"):
            alter(key, value)


# --- Members of the classic protocol


def test_a_classic_group_is_upgraded_and_comes_back() -> None:
    rig = GroupRig({"group.initial.rebalance.delay.ms": 0})
    old = RigMember(rig).join()
    assert old.sync({old.member_id: b""}) == 0
    new = KipMember(rig, "new")
    assert new.beat() == 0
    group = group_of(rig)
    assert {member_id: member.classic for member_id, member in group.members.items()} == {
        old.member_id: True,
        "new": False,
    }
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.join_once()
    assert old.joined is not None
    assert (old.joined.error_code, old.generation, old.joined.leader_id) == (0, new.epoch, "")
    assert old.sync() == 0
    rig.coordinator.check()
    rig = new.rig = old.rig = rig.again()
    assert rig.coordinator.consumer.consumer_group(GROUP) is not None
    new.leave()
    assert rig.coordinator.consumer.consumer_group(GROUP) is None
    assert rig.state() == "PreparingRebalance"
    assert old.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    old.join_once()
    assert old.leads
    rig.coordinator.check()


def test_an_upgrade_within_a_rebalance_leaves_members_what_they_may_still_have() -> None:
    """Members of a cooperative assignor keep their partitions while they join."""
    rig = GroupRig({"group.initial.rebalance.delay.ms": 0})
    old = RigMember(rig).join()
    mine = encode_assignment(Assignment(tuple(TopicPartition("orders", number) for number in range(4))))
    assert old.sync({old.member_id: mine}) == 0
    RigMember(rig).join()
    assert rig.state() == "PreparingRebalance"
    new = KipMember(rig, "new")
    assert new.beat() == 0
    assert new.told == {}, "all of it is with the member that has not joined again yet"
    held = group_of(rig).members[old.member_id].current.assigned
    assert [sorted(numbers) for numbers in held.values()] == [[0, 1, 2, 3]]
    rig.coordinator.check()


def test_an_upgrade_before_the_first_generation_gives_no_member_epoch_0() -> None:
    """The static member that waits for the first rebalance is replaced by one of the consumer
    protocol."""
    rig = GroupRig({"group.initial.rebalance.delay.ms": 3_000})
    old = RigMember(rig, instance_id="one")
    assert old.join_once() is None
    new = KipMember(rig, "new", instance_id="one")
    assert new.beat() == 0
    assert (new.epoch, group_of(rig).epoch >= 1) == (group_of(rig).target_epoch, True)
    new.reconcile()
    assert new.beat() == 0
    quiesce(new)
    assert shares(new) == [4]
    rig.coordinator.check()


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_a_classic_group_with_members_is_upgraded_only_where_that_is_allowed(policy: str) -> None:
    rig = GroupRig({"group.initial.rebalance.delay.ms": 0, "group.consumer.migration.policy": policy})
    old = RigMember(rig).join()
    assert old.sync({old.member_id: b""}) == 0
    new = KipMember(rig, "new")
    assert new.beat() == ErrorCode.GROUP_ID_NOT_FOUND
    assert old.leave() == 0
    assert new.beat() == 0, "an empty one is nobody's"
    assert RigMember(rig).join_once() == (
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL if policy == "disabled" else ErrorCode.MEMBER_ID_REQUIRED
    )
    new.leave()
    assert RigMember(rig).join().joined is not None
    assert rig.coordinator.consumer.consumer_group(GROUP) is None
    rig.coordinator.check()
