"""Groups in the log: whoever coordinates a group next finds its members, and they notice
nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.coordinator.group_records import (
    GroupKey,
    GroupRecord,
    MemberRecord,
    decode_group_key,
    decode_group_value,
    encode_group_key,
    encode_group_value,
)
from fairlead_kafka.broker.home import home_partition
from tests.support.controllers import node
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce

ORDERS = TopicPartition("orders", 0)


def moved(rig: GroupRig, *members: RigMember) -> GroupRig:
    """Another coordinator over the same log, that the members speak to from now on."""
    again = rig.restart()
    for member in members:
        member.rig = again
    return again


def stable_pair(rig: GroupRig, **options: str) -> tuple[RigMember, RigMember]:
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig, **options)  # type: ignore[arg-type]
    second.join()
    quiesce(first, second)
    return first, second


# --- Bytes


def test_records_are_kafkas_to_the_byte() -> None:
    assert encode_group_key(GroupKey("g")) == bytes.fromhex("0002 0001 67")
    record = GroupRecord(
        "consumer", 3, "range", "m", 1, (MemberRecord("m", None, "c", "/h", 2, 4, b"\x01", b"\x02\x03"),)
    )
    assert encode_group_value(record) == bytes.fromhex(
        "0003 0008 636f6e73756d6572 00000003 0005 72616e6765 0001 6d 0000000000000001"
        "00000001 0001 6d ffff 0001 63 0002 2f68 00000002 00000004 00000001 01 00000002 0203"
    )


def test_values_of_older_kafkas_are_read() -> None:
    start = "0008 636f6e73756d6572 00000003 ffff ffff"
    oldest = decode_group_value(
        bytes.fromhex(f"0000 {start} 00000001 0001 6d 0001 63 0002 2f68 00000004 00000000 00000000")
    )
    assert oldest == GroupRecord(
        "consumer", 3, None, None, -1, (MemberRecord("m", None, "c", "/h", 4, 4, b"", b""),)
    )
    assert decode_group_value(bytes.fromhex(f"0002 {start} 0000000000000007 00000000")).since_ms == 7


TEXTS = st.text(max_size=8)
MEMBERS = st.builds(
    MemberRecord,
    TEXTS,
    st.none() | TEXTS,
    TEXTS,
    TEXTS,
    st.integers(0, 2**31 - 1),
    st.integers(0, 2**31 - 1),
    st.binary(max_size=8),
    st.binary(max_size=8),
)


@given(
    st.builds(
        GroupRecord,
        TEXTS,
        st.integers(0, 2**31 - 1),
        st.none() | TEXTS,
        st.none() | TEXTS,
        st.integers(-1, 2**62),
        st.lists(MEMBERS, max_size=3).map(tuple),
    )
)
def test_records_survive_a_round_trip(record: GroupRecord) -> None:
    assert decode_group_value(encode_group_value(record)) == record


@given(st.binary(max_size=60))
def test_garbage_raises_one_type_of_error(data: bytes) -> None:
    for decoder in (decode_group_key, decode_group_value):
        try:
            decoder(data)
        except DecodeError:
            continue


# --- Coordinators that come and go


def test_a_group_goes_on_with_its_next_coordinator_as_if_nothing_had_happened() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    again = moved(rig, first, second)
    assert again.state() == "Stable"
    assert [member.heartbeat() for member in (first, second)] == [ErrorCode.NONE, ErrorCode.NONE]
    assert again.commit({ORDERS: 4}, second.generation, second.member_id) == {ORDERS: ErrorCode.NONE}
    assert second.sync() == ErrorCode.NONE
    assert second.synced is not None
    assert second.synced.assignment == b"1"
    group = again.coordinator.describe(GROUP)
    assert group is not None
    assert (group.leader_id, group.protocol_type, group.protocol_name) == (
        first.member_id,
        "consumer",
        "range",
    )


def test_who_is_not_heard_of_by_the_next_coordinator_loses_its_place() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    again = moved(rig, first, second)
    for _ in range(3):
        again.broker.advance(4_000)
        first.heartbeat()
    assert again.state() == "PreparingRebalance"
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_generation_without_assignment_is_gone_with_its_coordinator() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    assert (first.generation, second.generation) == (2, 2)
    again = moved(rig, first, second)
    assert again.state() == "Stable", "the generation before"
    assert first.heartbeat() == ErrorCode.ILLEGAL_GENERATION
    assert second.heartbeat() == ErrorCode.UNKNOWN_MEMBER_ID
    second.member_id = ""
    second.join()
    first.join()
    quiesce(first, second)
    assert first.generation == second.generation == 2
    assert again.state() == "Stable"


def test_a_static_member_that_came_back_is_known_to_the_next_coordinator() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig, instance_id="one")
    restarted = RigMember(rig, instance_id="one")
    assert restarted.join_once() == ErrorCode.NONE
    moved(rig, first, second, restarted)
    assert restarted.heartbeat() == ErrorCode.NONE
    assert second.heartbeat() == ErrorCode.FENCED_INSTANCE_ID


def test_an_empty_group_keeps_its_generation() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    member.leave()
    again = rig.restart()
    assert again.state() == "Empty"
    newcomer = RigMember(again)
    quiesce(newcomer)
    assert newcomer.generation == 3


def test_a_deleted_group_is_not_found_by_the_next_coordinator() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    member.leave()
    answers: list[int] = []
    rig.coordinator.delete_group(GROUP, answers.append)
    assert answers == [ErrorCode.NONE]
    assert rig.restart().state() is None


# --- The moment of writing


def test_an_assignment_is_told_once_it_is_written() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    rig.broker.held = []
    assert second.sync() is None
    assert first.sync({first.member_id: b"1", second.member_id: b"2"}) is None
    assert rig.state() == "CompletingRebalance"
    rig.broker.held.pop()()
    assert rig.state() == "Stable"
    assert [member.synced and member.synced.assignment for member in (first, second)] == [b"1", b"2"]


@pytest.mark.parametrize(
    ("append_error", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
        (ErrorCode.REQUEST_TIMED_OUT, ErrorCode.REBALANCE_IN_PROGRESS),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.UNKNOWN_SERVER_ERROR),
    ],
)
def test_an_assignment_that_cannot_be_written_makes_all_share_anew(append_error: int, told: int) -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    second = RigMember(rig).join()
    first.join()
    second.sync()
    rig.broker.append_error = append_error  # type: ignore[assignment]
    assert first.sync({first.member_id: b"1"}) == told
    assert second.synced is not None
    assert second.synced.error_code == told
    assert rig.state() == "PreparingRebalance"
    rig.broker.append_error = ErrorCode.NONE
    quiesce(first, second)
    assert rig.state() == "Stable"


def test_an_assignment_of_a_generation_that_is_over_changes_nothing() -> None:
    rig = GroupRig()
    first, second = stable_pair(rig)
    first.join()
    second.join()
    rig.broker.held = []
    first.sync({first.member_id: b"old"})
    RigMember(rig).join()
    assert first.synced is not None
    assert first.synced.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    rig.broker.held.pop()()
    assert rig.state() == "PreparingRebalance"


def test_a_leader_that_brings_its_assignment_twice_has_it_written_once() -> None:
    rig = GroupRig()
    first = RigMember(rig).join()
    rig.broker.held = []
    assert first.sync({first.member_id: b"1"}) is None
    assert first.sync({first.member_id: b"1"}) == ErrorCode.REBALANCE_IN_PROGRESS, (
        "what the first question is told, which nobody reads"
    )
    assert len(rig.broker.held) == 1
    rig.broker.held.pop()()
    assert first.synced is not None
    assert first.synced.assignment == b"1"


def test_what_is_not_committed_in_time_is_told_so_and_may_stand_later() -> None:
    rig = GroupRig()
    rig.broker.held = []
    answered = rig.commit({ORDERS: 5})
    rig.broker.advance(4_999)
    assert answered == {}
    rig.broker.advance(1)
    assert answered == {ORDERS: ErrorCode.COORDINATOR_NOT_AVAILABLE}
    rig.broker.held.pop()()
    assert rig.fetch() == {ORDERS: 5}


def test_a_partition_that_went_and_came_back_is_read_anew() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 5})
    partition = home_partition(GROUP, 5)
    log = rig.broker.partitions[partition]
    elsewhere = GroupRig(logs={partition: log})
    elsewhere.commit({ORDERS: 9})
    rig.controller.broker_stopped(0)
    rig.controller.broker_started(node(0))
    rig.broker.advance(0)
    assert rig.fetch() == {ORDERS: 9}, "what another coordinator wrote meanwhile"
