"""Groups, member by member: joining, sharing, time running out, leaving, and being fenced."""

from __future__ import annotations

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.coordinator import TRANSITIONS, GroupState
from tests.support.controllers import node
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce, subscription


def stable_pair(rig: GroupRig) -> tuple[RigMember, RigMember]:
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig)
    second.join()
    quiesce(first, second)
    assert rig.state() == "Stable"
    return first, second


def test_the_table_of_states_is_complete_and_dead_is_the_end() -> None:
    assert set(TRANSITIONS) == set(GroupState)
    assert not TRANSITIONS[GroupState.DEAD]
    assert all(GroupState.DEAD in TRANSITIONS[state] for state in GroupState if state is not GroupState.DEAD)


def test_a_newcomer_is_first_given_an_id_and_then_leads_alone() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    assert member.join_once() == ErrorCode.MEMBER_ID_REQUIRED
    assert member.joined is not None
    member.member_id = member.joined.member_id
    assert member.member_id.startswith("client-")
    assert member.join_once() == ErrorCode.NONE
    assert (member.generation, member.leads, member.joined.protocol_name) == (1, True, "range")
    assert member.joined.members == [(member.member_id, None, subscription("orders"))]
    assert rig.state() == "CompletingRebalance"
    assert member.sync({member.member_id: b"all"}) == ErrorCode.NONE
    assert member.synced is not None
    assert member.synced.assignment == b"all"
    assert rig.state() == "Stable"


def test_an_older_client_joins_without_being_given_an_id_first() -> None:
    member = RigMember(GroupRig(), version=3)
    assert member.join_once() == ErrorCode.NONE
    assert member.generation == 1


def test_a_second_member_waits_until_the_first_has_joined_again() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    assert second.joined is None
    assert rig.state() == "PreparingRebalance"
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    first.join()
    assert first.joined is not None
    assert second.joined is not None
    assert first.generation == second.generation == 2
    assert first.leads
    assert not second.leads
    assert len(first.joined.members) == 2
    assert second.joined.members == []


def test_a_follower_waits_for_the_leaders_assignment() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    assert second.sync() is None
    assert second.heartbeat() == ErrorCode.NONE
    assert first.sync({first.member_id: b"1", second.member_id: b"2"}) == ErrorCode.NONE
    assert first.synced is not None
    assert second.synced is not None
    assert (first.synced.assignment, second.synced.assignment) == (b"1", b"2")


def test_a_follower_that_asks_late_gets_its_assignment_at_once() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    first.sync({second.member_id: b"2"})
    assert second.sync() == ErrorCode.NONE
    assert second.synced is not None
    assert second.synced.assignment == b"2"


def test_a_rebalance_sends_back_who_waits_for_an_assignment() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    assert second.sync() is None
    RigMember(rig).join()
    assert second.synced is not None
    assert second.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS


def test_who_does_not_join_in_time_is_left_behind() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    first.session_ms = 100_000
    quiesce(first)
    second = RigMember(rig).join()
    rig.broker.advance(59_000)
    assert second.joined is None
    rig.broker.advance(1_000)
    assert second.joined is not None
    assert second.leads
    assert second.generation == 2
    assert first.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_who_is_not_heard_of_loses_its_place() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    for _ in range(3):
        rig.broker.advance(4_000)
        first.heartbeat()
    assert rig.state() == "PreparingRebalance"
    first.join()
    assert first.joined is not None
    assert [member_id for member_id, _, _ in first.joined.members] == [first.member_id]
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_heartbeats_keep_a_place_for_ever() -> None:
    rig = GroupRig()
    pair = stable_pair(rig)
    for _ in range(50):
        rig.broker.advance(9_000)
        assert [member.heartbeat() for member in pair] == [ErrorCode.NONE, ErrorCode.NONE]


def test_a_member_does_not_expire_while_it_waits_for_us() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    third = RigMember(rig).join()
    first.join()
    for _ in range(6):
        rig.broker.advance(9_000)
        second.heartbeat()
    assert first.joined is None
    second.join()
    assert first.joined is not None
    assert third.joined is not None
    assert len(first.joined.members) == 3


def test_who_joins_and_never_asks_for_its_assignment_is_dropped() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    idle = RigMember(rig)
    idle.session_ms = 300_000
    idle.join()
    quiesce(first)
    for _ in range(6):
        assert rig.state() == "Stable"
        rig.broker.advance(9_000)
        first.heartbeat()
    rig.broker.advance(6_000)
    assert rig.state() == "PreparingRebalance"
    assert idle.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_for_who_was_just_given_an_id() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    coming = RigMember(rig)
    assert coming.join_once() == ErrorCode.MEMBER_ID_REQUIRED
    assert coming.joined is not None
    third = RigMember(rig).join()
    first.join()
    assert third.joined is None
    coming.member_id = coming.joined.member_id
    coming.join_once()
    assert first.joined is not None
    assert len(first.joined.members) == 3


def test_leaving_makes_the_others_share_anew_and_the_last_leaves_it_empty() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    assert second.leave() == ErrorCode.NONE
    assert second.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert first.heartbeat() == ErrorCode.REBALANCE_IN_PROGRESS
    quiesce(first)
    assert first.leave() == ErrorCode.NONE
    assert rig.state() == "Empty"


def test_an_id_that_was_given_can_be_given_back_or_runs_out() -> None:
    rig = GroupRig()
    quiesce(RigMember(rig))
    for give_back in (True, False):
        member = RigMember(rig)
        assert member.join_once() == ErrorCode.MEMBER_ID_REQUIRED
        assert member.joined is not None
        member.member_id = member.joined.member_id
        if give_back:
            assert member.leave() == ErrorCode.NONE
        else:
            rig.broker.advance(10_000)
        assert member.join_once() == ErrorCode.UNKNOWN_MEMBER_ID


def test_old_generations_and_strangers_are_told_so() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    assert second.heartbeat(generation=1) == ErrorCode.ILLEGAL_GENERATION
    assert second.sync(generation=1) == ErrorCode.ILLEGAL_GENERATION
    stranger = RigMember(rig)
    stranger.member_id = "nobody"
    assert stranger.join_once() == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.heartbeat(generation=2) == ErrorCode.UNKNOWN_MEMBER_ID
    assert stranger.leave() == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.state() == "Stable"
    assert first.leads


def test_a_follower_that_repeats_its_join_gets_the_same_generation_again() -> None:
    rig = GroupRig()
    _, second = stable_pair(rig)
    assert second.join_once() == ErrorCode.NONE
    assert second.generation == 2
    assert rig.state() == "Stable"


def test_a_leader_or_changed_subscription_that_joins_again_makes_all_share_anew() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    assert first.join_once() is None
    assert rig.state() == "PreparingRebalance"
    quiesce(first, second)
    second.protocols = [("range", subscription("payments"))]
    assert second.join_once() is None
    assert rig.state() == "PreparingRebalance"


def test_the_protocol_is_what_all_offer_and_most_prefer() -> None:
    rig = GroupRig()
    offers = (["a", "b", "c"], ["b", "a"], ["b", "a", "d"])
    members = []
    for names in offers:
        member = RigMember(rig)
        member.protocols = [(name, name.encode()) for name in names]
        members.append(member)
        quiesce(*members)
    assert members[0].joined is not None
    assert members[0].joined.protocol_name == "b"
    assert {metadata for _, _, metadata in members[0].joined.members} == {b"b"}


@pytest.mark.parametrize(
    ("protocol_type", "protocols", "code"),
    [
        ("consumer", [("roundrobin", b"")], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("connect", [("range", b"")], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("consumer", [], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ("", [("range", b"")], ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
    ],
)
def test_a_member_that_shares_no_protocol_stays_outside(
    protocol_type: str, protocols: list[tuple[str, bytes]], code: int
) -> None:
    rig = GroupRig()
    quiesce(RigMember(rig))
    outsider = RigMember(rig)
    outsider.protocol_type, outsider.protocols = protocol_type, protocols
    assert outsider.join_once() == code
    assert rig.state() == "Stable"


@pytest.mark.parametrize("session_ms", [5_999, 1_800_001])
def test_sessions_are_neither_too_short_nor_too_long(session_ms: int) -> None:
    rig = GroupRig()
    member = RigMember(rig)
    member.session_ms = session_ms
    assert member.join_once() == ErrorCode.INVALID_SESSION_TIMEOUT
    assert rig.state() is None


def test_a_group_has_a_largest_size() -> None:
    rig = GroupRig({"group.max.size": 1})
    quiesce(RigMember(rig))
    assert RigMember(rig).join_once() == ErrorCode.GROUP_MAX_SIZE_REACHED


def test_an_empty_group_waits_for_more_members_if_told_to() -> None:
    rig = GroupRig({"group.initial.rebalance.delay.ms": 3_000})
    first, second = RigMember(rig).join(), RigMember(rig).join()
    rig.broker.advance(3_000)
    assert first.joined is None, "the second one came meanwhile: it waits once more (KIP-134)"
    rig.broker.advance(3_000)
    assert first.joined is not None
    assert second.joined is not None
    assert first.generation == second.generation == 1
    assert len(first.joined.members) == 2


def test_a_new_group_that_keeps_growing_waits_no_longer_than_its_rebalance_timeout() -> None:
    rig = GroupRig({"group.initial.rebalance.delay.ms": 3_000})
    first = RigMember(rig)
    first.rebalance_ms = 8_000
    first.join()
    for _ in range(3):
        newcomer = RigMember(rig)
        newcomer.rebalance_ms = 8_000
        newcomer.join()
        rig.broker.advance(2_500)
    assert first.joined is None
    rig.broker.advance(500)
    assert first.joined is not None
    assert len(first.joined.members) == 4


def test_when_the_coordinator_stops_whoever_waits_is_sent_elsewhere() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    rig.coordinator.stop()
    assert second.joined is not None
    assert second.joined.error_code == ErrorCode.NOT_COORDINATOR
    assert first.heartbeat() == ErrorCode.NOT_COORDINATOR


def test_when_leadership_of_its_partition_goes_the_group_goes_with_it() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    rig.commit({TopicPartition("orders", 0): 5}, first.generation, first.member_id)
    rig.controller.broker_stopped(0)
    rig.broker.advance(0)
    assert first.heartbeat() == ErrorCode.NOT_COORDINATOR
    rig.controller.broker_started(node(0))
    rig.broker.advance(0)
    assert first.heartbeat() == ErrorCode.NONE, "its record in the log has brought it along"
    assert rig.fetch() == {TopicPartition("orders", 0): 5}
    assert rig.state(GROUP) == "Stable"
