"""Static members (KIP-345): known by their instance id, they may come back without the others noticing."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from tests.support.group_rig import GroupRig, RigMember, settle


def test_a_static_member_comes_back_without_a_rebalance_and_its_old_self_is_fenced() -> None:
    rig = GroupRig()
    leader = RigMember(rig)
    settle(leader)
    member = RigMember(rig, instance_id="one").join()
    settle(leader, member)
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
    settle(leader)
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
    settle(leader)
    member = RigMember(rig, instance_id="one").join()
    settle(leader, member)
    assert RigMember(rig, ["payments"], instance_id="one").join_once() is None
    assert rig.state() == "PreparingRebalance"


def test_a_static_member_keeps_its_place_through_a_rebalance_until_its_session_ends() -> None:
    rig = GroupRig()
    leader = RigMember(rig)
    leader.session_ms = 200_000
    settle(leader)
    member = RigMember(rig, instance_id="one")
    member.session_ms = 200_000
    member.join()
    settle(leader, member)
    third = RigMember(rig).join()
    leader.join()
    rig.broker.advance(60_000)
    assert third.joined is not None
    assert leader.joined is not None
    assert len(leader.joined.members) == 3


def test_a_static_member_leaves_by_its_instance_id_alone() -> None:
    rig = GroupRig()
    member = RigMember(rig, instance_id="one")
    settle(member)
    by_admin = RigMember(rig, instance_id="one")
    assert by_admin.leave() == ErrorCode.NONE
    assert rig.state() == "Empty"
