"""Committed offsets: written before they are answered, there after a restart, taken back when their
time is over."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.coordinator import CommittedOffset, home_partition, java_hash
from fairlead_kafka.broker.coordinator.group import topics_of_subscription
from fairlead_kafka.broker.coordinator.offset_records import (
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)
from fairlead_kafka.broker.internal import ProducerIdentity
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce, subscription

ORDERS, OTHER_ORDERS = TopicPartition("orders", 0), TopicPartition("orders", 1)
PAYMENTS = TopicPartition("payments", 3)
DAY_MS = 86_400_000


def code_of(call: object, *arguments: object) -> int:
    with pytest.raises(BrokerError) as caught:
        call(*arguments)  # type: ignore[operator]
    return caught.value.code


# --- Home and bytes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("polygenelubricants", -(2**31)),
        ("äöü€", 228 * 31**3 + 246 * 31**2 + 252 * 31 + 8364),
        ("😀", 1772899),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value


def test_the_smallest_hash_is_at_home_in_partition_0() -> None:
    assert home_partition("polygenelubricants", 50) == 0
    assert home_partition("hello", 50) == 99162322 % 50


def test_records_are_kafkas_to_the_byte() -> None:
    key = OffsetKey("g", TopicPartition("t1", 7))
    assert encode_key(key) == bytes.fromhex("0001 0001 67 0002 7431 00000007")
    committed = CommittedOffset(258, 3, "m", 1)
    fields = "0004 0000000000000102 00000003 02 6d 0000000000000001"
    assert encode_value(committed) == bytes.fromhex(f"{fields} 00")
    told = encode_value(replace(committed, topic_id=UUID(int=9)))
    assert told == bytes.fromhex(f"{fields} 01 00 10 {9:032x}"), "the topic's id is tagged field 0"


@pytest.mark.parametrize(
    ("data", "committed"),
    [
        ("0000 0000000000000005 0001 6d 0000000000000009", CommittedOffset(5, -1, "m", 9, 4)),
        ("0001 0000000000000005 0000 0000000000000009 00000000000000ff", CommittedOffset(5, -1, "", 9, 4)),
        ("0002 0000000000000005 0000 0000000000000009", CommittedOffset(5, -1, "", 9, 4)),
        ("0003 0000000000000005 00000001 0000 0000000000000009", CommittedOffset(5, 1, "", 9, 4)),
    ],
)
def test_values_of_older_kafkas_are_read(data: str, committed: CommittedOffset) -> None:
    assert decode_value(bytes.fromhex(data), 4) == committed


def test_records_of_other_kinds_are_told_apart_and_newer_values_refused() -> None:
    assert decode_key(bytes.fromhex("0002 0001 67")) is None
    with pytest.raises(DecodeError, match="version 5"):
        decode_value(bytes.fromhex("0005 0000000000000005"), 0)


@given(
    key=st.builds(
        OffsetKey,
        st.text(max_size=20),
        st.builds(TopicPartition, st.text(max_size=20), st.integers(0, 2**31 - 1)),
    ),
    committed=st.builds(
        CommittedOffset,
        st.integers(0, 2**63 - 1),
        st.integers(-1, 2**31 - 1),
        st.text(max_size=20),
        st.integers(0, 2**62),
        st.just(3),
        st.uuids(),
    ),
)
def test_records_survive_a_round_trip(key: OffsetKey, committed: CommittedOffset) -> None:
    assert decode_key(encode_key(key)) == key
    assert decode_value(encode_value(committed), 3) == committed


@given(st.binary(max_size=60))
def test_garbage_raises_one_type_of_error(data: bytes) -> None:
    for decoder in (decode_key, lambda garbage: decode_value(garbage, 0)):
        try:
            decoder(data)
        except DecodeError:
            continue
    topics_of_subscription(data)


def test_a_subscription_tells_its_topics() -> None:
    assert topics_of_subscription(subscription("a", "bc", user_data=b"xyz")) == ["a", "bc"]
    assert topics_of_subscription(b"\x00\x00\x00\x00\x00\x05") is None


# --- Committing and fetching


def test_an_offset_is_answered_and_fetched_once_it_is_written() -> None:
    rig = GroupRig()
    rig.broker.held = []
    answered = rig.commit({ORDERS: 5})
    assert answered == {}
    assert rig.fetch() == {}
    rig.broker.held[0]()
    assert answered == {ORDERS: ErrorCode.NONE}
    assert rig.fetch() == {ORDERS: 5}


def test_offsets_are_there_after_a_restart() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 5, PAYMENTS: 6})
    rig.commit({ORDERS: 7})
    rig.commit({ORDERS: 1}, group_id="other")
    again = rig.restart()
    assert again.fetch() == {ORDERS: 7, PAYMENTS: 6}
    assert again.fetch("other") == {ORDERS: 1}
    assert again.coordinator.offsets.fetch(GROUP, [TopicPartition("orders", 3)]) == {
        TopicPartition("orders", 3): None
    }


def test_a_group_may_go_back() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 7})
    rig.commit({ORDERS: 2})
    assert rig.restart().fetch() == {ORDERS: 2}


def test_a_member_commits_in_its_generation_only() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    assert rig.commit({ORDERS: 1}, member.generation, member.member_id) == {ORDERS: ErrorCode.NONE}
    assert (
        code_of(rig.commit, {ORDERS: 2}, member.generation - 1, member.member_id)
        == ErrorCode.ILLEGAL_GENERATION
    )
    assert code_of(rig.commit, {ORDERS: 2}, member.generation, "nobody") == ErrorCode.UNKNOWN_MEMBER_ID
    assert code_of(rig.commit, {ORDERS: 2}) == ErrorCode.UNKNOWN_MEMBER_ID
    assert rig.fetch() == {ORDERS: 1}


def test_a_member_commits_before_it_joins_again_and_not_between_join_and_sync() -> None:
    rig = GroupRig()
    first = RigMember(rig)
    quiesce(first)
    RigMember(rig).join()
    assert rig.commit({ORDERS: 1}, first.generation, first.member_id) == {ORDERS: ErrorCode.NONE}
    first.join()
    assert (
        code_of(rig.commit, {ORDERS: 2}, first.generation, first.member_id) == ErrorCode.REBALANCE_IN_PROGRESS
    )


def test_a_commit_with_a_generation_needs_a_group() -> None:
    assert code_of(GroupRig().commit, {ORDERS: 2}, 3, "m") == ErrorCode.ILLEGAL_GENERATION


def test_a_commit_keeps_a_session_alive() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    for offset in range(5):
        rig.broker.advance(9_000)
        rig.commit({ORDERS: offset}, member.generation, member.member_id)
    assert member.heartbeat() == ErrorCode.NONE


def test_long_metadata_is_refused_by_itself() -> None:
    rig = GroupRig({"offset.metadata.max.bytes": 3})
    assert rig.commit({ORDERS: 1}, metadata="four") == {ORDERS: ErrorCode.OFFSET_METADATA_TOO_LARGE}
    assert rig.commit({ORDERS: 1}, metadata="abc") == {ORDERS: ErrorCode.NONE}


@pytest.mark.parametrize(
    ("append_error", "told"),
    [
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_COORDINATOR),
        (ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.INVALID_COMMIT_OFFSET_SIZE),
        (ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    ],
)
def test_what_cannot_be_written_is_told_in_the_groups_words(append_error: int, told: int) -> None:
    rig = GroupRig()
    rig.broker.append_error = append_error
    assert rig.commit({ORDERS: 1}) == {ORDERS: told}
    assert rig.fetch() == {}


def test_a_large_commit_is_written_in_several_batches_and_answered_once() -> None:
    rig = GroupRig()
    offsets = {TopicPartition("orders", number): number for number in range(2_000)}
    answered = rig.commit(offsets, metadata="x" * 500)
    assert set(answered) == set(offsets)
    assert sum(len(log.batches) for log in rig.broker.partitions.values()) > 1
    assert rig.restart().fetch() == offsets


def test_a_coordinator_that_is_reading_says_so() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    shard = rig.coordinator.shards.led(home_partition(GROUP, 5))
    shard.loaded = False
    assert code_of(rig.coordinator.offsets.fetch, GROUP, None) == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert rig.coordinator.groups()[1]


# --- Taking back


def test_offsets_of_a_deleted_topic_are_taken_back() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1, PAYMENTS: 2})
    rig.controller.delete_topic("orders")
    rig.broker.advance(0)
    assert rig.fetch() == {PAYMENTS: 2}
    assert rig.restart().fetch() == {PAYMENTS: 2}


def test_a_topic_that_is_made_again_has_no_offsets_of_the_one_before() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1, OTHER_ORDERS: 2})
    rig.controller.delete_topic("orders")
    rig.controller.create_topic("orders", 4)
    assert rig.fetch() == {}, "also before the log has it"
    rig.commit({ORDERS: 3})
    rig.broker.advance(0)
    assert rig.fetch() == {ORDERS: 3}, "what is committed for the new one stays"
    assert rig.again().fetch() == {ORDERS: 3}


def test_offsets_of_the_topic_before_are_taken_back_on_reading() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    rig.coordinator.stop()
    rig.controller.delete_topic("orders")  # while the group is at home nowhere
    rig.controller.create_topic("orders", 4)
    again = rig.again()
    assert again.fetch() == {}
    assert again.coordinator.describe(GROUP).offsets == {}  # type: ignore[union-attr]


def test_an_offset_in_a_transaction_for_the_new_topic_outlives_the_old_topic() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    rig.controller.delete_topic("orders")
    rig.controller.create_topic("orders", 4)
    producer = ProducerIdentity(7, 0)
    rig.commit_in_transaction(producer, {ORDERS: 5})
    rig.broker.advance(0)
    assert rig.fetch() == {}
    rig.end_transaction(producer, True)
    assert rig.fetch() == {ORDERS: 5}


def test_offsets_of_a_topic_deleted_meanwhile_are_taken_back_on_reading() -> None:
    rig = GroupRig()
    rig.commit({TopicPartition("gone", 0): 1, PAYMENTS: 2})
    assert rig.restart().fetch() == {PAYMENTS: 2}


def test_offsets_expire_some_time_after_the_last_member_left() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    rig.commit({ORDERS: 1}, member.generation, member.member_id)
    for _ in range(200):
        rig.broker.advance(9_000)
        member.heartbeat()
    member.leave()
    rig.broker.advance(7 * DAY_MS - 900_000)
    assert rig.fetch() == {ORDERS: 1}
    rig.broker.advance(1_800_000)
    assert rig.fetch() == {}
    assert rig.state() is None
    assert rig.restart().fetch() == {}


def test_offsets_do_not_expire_while_someone_may_be_reading_the_topic() -> None:
    rig = GroupRig({"offsets.retention.minutes": 1, "offsets.retention.check.interval.ms": 10_000})
    member = RigMember(rig, ["orders"])
    quiesce(member)
    rig.commit({ORDERS: 1, PAYMENTS: 2}, member.generation, member.member_id)
    for _ in range(12):
        rig.broker.advance(9_000)
        member.heartbeat()
    assert rig.fetch() == {ORDERS: 1}


def test_a_commit_under_way_is_not_taken_back_by_retention() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    rig.broker.held = []
    rig.broker.advance(7 * DAY_MS - 1_000)
    rig.commit({ORDERS: 2})
    rig.broker.advance(700_000)
    while rig.broker.held:
        rig.broker.held.pop(0)()
    assert rig.fetch() == {ORDERS: 2}


def test_retention_counts_on_through_a_restart() -> None:
    rig = GroupRig()
    rig.commit({ORDERS: 1})
    rig.broker.advance(6 * DAY_MS)
    again = rig.restart()
    assert again.fetch() == {ORDERS: 1}
    again.broker.advance(2 * DAY_MS)
    assert again.fetch() == {}


def test_a_restart_remembers_since_when_a_group_is_empty() -> None:
    rig = GroupRig({"group.max.session.timeout.ms": 4 * DAY_MS})
    member = RigMember(rig)
    member.session_ms = 4 * DAY_MS
    quiesce(member)
    rig.commit({ORDERS: 1}, member.generation, member.member_id)
    rig.broker.advance(3 * DAY_MS)
    member.leave()
    rig.broker.advance(3 * DAY_MS)
    again = rig.restart()
    again.broker.advance(3 * DAY_MS)
    assert again.fetch() == {ORDERS: 1}, "six days after the last member left"
    again.broker.advance(2 * DAY_MS)
    assert again.fetch() == {}
    assert again.state() is None
    assert again.restart().state() is None


def test_a_group_is_deleted_with_its_offsets_once_it_is_empty() -> None:
    rig = GroupRig()
    member = RigMember(rig)
    quiesce(member)
    rig.commit({ORDERS: 1}, member.generation, member.member_id)
    assert code_of(rig.coordinator.delete_group, GROUP, lambda _: None) == ErrorCode.NON_EMPTY_GROUP
    member.leave()
    answers: list[int] = []
    rig.broker.held = []
    rig.coordinator.delete_group(GROUP, answers.append)
    assert answers == []
    rig.broker.held[0]()
    assert answers == [ErrorCode.NONE]
    assert rig.state() is None
    assert rig.restart().fetch() == {}
    assert code_of(rig.coordinator.delete_group, "other", lambda _: None) == ErrorCode.NOT_COORDINATOR


def test_a_group_that_never_was_cannot_be_deleted() -> None:
    assert code_of(GroupRig().coordinator.delete_group, GROUP, lambda _: None) == ErrorCode.GROUP_ID_NOT_FOUND


def test_single_offsets_are_taken_back_unless_a_member_reads_the_topic() -> None:
    rig = GroupRig()
    member = RigMember(rig, ["orders"])
    quiesce(member)
    rig.commit({ORDERS: 1, PAYMENTS: 2}, member.generation, member.member_id)
    answers: dict[TopicPartition, int] = {}
    rig.coordinator.offsets.delete(GROUP, [ORDERS, PAYMENTS], answers.update)
    assert answers == {ORDERS: ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC, PAYMENTS: ErrorCode.NONE}
    assert rig.fetch() == {ORDERS: 1}
