"""Static members (KIP-345): known by their instance id, they may come back without the others
noticing."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from tests.support.group_rig import GroupRig, RigMember, quiesce


def test_a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() -> None:
    rig = GroupRig()
    leader = RigMember(rig)
    quiesce(leader)
    member = RigMember(rig, instance_id="one").join()
    quiesce(leader, member)
    assert rig.state() == "Stable"
    restarted = RigMember(rig, instance_id="one")
    assert restarted.join_once() == ErrorCode.NONE
    assert rig.state() == "Stable"
    assert restarted.member_id != member.member_id
    assert restarted.generation == 2
    assert member.heartbeat(generation=2) == ErrorCode.FENCED_INSTANCE_ID
    assert restarted.sync() == ErrorCode.NONE
    assert restarted.synced is not None
    assert restarted.synced.assignment == b"1"


@pytest.mark.parametrize(("version", "skips"), [(5, False), (9, True)])
def test_a_static_leader_that_comes_back_does_not_assign_again(version: int, skips: bool) -> None:
    rig = GroupRig()
    leader = RigMember(rig, instance_id="one", version=version)
    quiesce(leader)
    restarted = RigMember(rig, instance_id="one", version=version)
    assert restarted.join_once() == ErrorCode.NONE
    assert restarted.joined is not None
    assert restarted.joined.skip_assignment is skips
    assert restarted.leads is skips
    assert restarted.sync() == ErrorCode.NONE
    assert restarted.synced is not None
    assert restarted.synced.assignment == b"0"


def test_a_static_member_with_another_subscription_makes_all_share_anew() -> None:
    rig = GroupRig()
    leader = RigMember(rig)
    quiesce(leader)
    member = RigMember(rig, instance_id="one").join()
    quiesce(leader, member)
    assert RigMember(rig, ["payments"], instance_id="one").join_once() is None
    assert rig.state() == "PreparingRebalance"


def test_a_static_member_keeps_its_place_through_a_rebalance_until_its_session_ends() -> None:
    rig = GroupRig()
    leader = RigMember(rig)
    leader.session_ms = 200_000
    quiesce(leader)
    member = RigMember(rig, instance_id="one")
    member.session_ms = 200_000
    member.join()
    quiesce(leader, member)
    third = RigMember(rig).join()
    leader.join()
    rig.broker.advance(60_000)
    assert third.joined is not None
    assert leader.joined is not None
    assert len(leader.joined.members) == 3


def test_a_static_member_leaves_by_its_instance_id_alone() -> None:
    rig = GroupRig()
    member = RigMember(rig, instance_id="one")
    quiesce(member)
    by_admin = RigMember(rig, instance_id="one")
    assert by_admin.leave() == ErrorCode.NONE
    assert rig.state() == "Empty"


@pytest.mark.parametrize(
    "error",
    [ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.REQUEST_TIMED_OUT],
    ids=["refused at once", "timed out"],
)
@pytest.mark.parametrize("leads", [True, False])
def test_a_static_member_whose_return_could_not_be_written_has_not_returned(leads: bool, error: int) -> None:
    rig = GroupRig()
    static, other = RigMember(rig, instance_id="one"), RigMember(rig)
    quiesce(static if leads else other)
    (other if leads else static).join()
    quiesce(static, other)
    before = static.member_id
    restarted = RigMember(rig, instance_id="one")
    if error == ErrorCode.REQUEST_TIMED_OUT:
        rig.broker.held = []
        restarted.join()
        rig.broker.advance(rig.broker.settings["offsets.commit.timeout.ms"])
    else:
        rig.broker.append_error = error
        restarted.join()
    assert restarted.joined is not None
    assert restarted.joined.error_code == (
        ErrorCode.REBALANCE_IN_PROGRESS if rig.broker.held else ErrorCode.COORDINATOR_NOT_AVAILABLE
    )
    rig.coordinator.check()
    group = rig.coordinator.describe("group")
    assert group is not None
    assert (group.static, group.leader_id == before) == ({"one": before}, leads)
    assert static.heartbeat() == ErrorCode.NONE, "the old process is the member that the log has"
    rig.broker.held, rig.broker.append_error = None, ErrorCode.NONE
    assert RigMember(rig, instance_id="one").join_once() == ErrorCode.NONE
    rig.coordinator.check()
