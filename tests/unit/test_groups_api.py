"""The group APIs in every version, through the wire's bytes."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import call, versions
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce, subscription


def join(rig: GroupRig, version: int, member_id: str = "", instance_id: str | None = None) -> Message:
    protocols = [Message(name="range", metadata=subscription("orders"))]
    fields: dict[str, Any] = {
        "group_id": GROUP,
        "session_timeout_ms": 10_000,
        "member_id": member_id,
        "protocol_type": "consumer",
    }
    if version >= 1:
        fields["rebalance_timeout_ms"] = 20_000
    if version >= 5:
        fields["group_instance_id"] = instance_id
    return call(rig, ApiKey.JOIN_GROUP, version, **fields, protocols=protocols)


def joined(rig: GroupRig, version: int = 9) -> Message:
    answer = join(rig, version)
    if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
        answer = join(rig, version, answer.member_id)
    assert answer.error_code == ErrorCode.NONE
    return answer


def synced(rig: GroupRig, version: int = 5) -> Message:
    member = joined(rig)
    assignments = [Message(member_id=member.member_id, assignment=b"mine")]
    protocol = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}
    answer = call(
        rig,
        ApiKey.SYNC_GROUP,
        version,
        **protocol,
        group_id=GROUP,
        generation_id=member.generation_id,
        member_id=member.member_id,
        assignments=assignments,
    )
    assert (answer.error_code, bytes(answer.assignment)) == (ErrorCode.NONE, b"mine")
    return member


@pytest.mark.parametrize("version", versions(ApiKey.JOIN_GROUP))
def test_a_member_joins(version: int) -> None:
    rig = GroupRig()
    first = join(rig, version)
    assert (first.error_code == ErrorCode.MEMBER_ID_REQUIRED) == (version >= 4)
    answer = join(rig, version, first.member_id) if version >= 4 else first
    assert (answer.generation_id, answer.protocol_name, answer.leader) == (1, "range", answer.member_id)
    assert [(one.member_id, bytes(one.metadata)) for one in answer.members] == [
        (answer.member_id, subscription("orders"))
    ]
    group = rig.coordinator.describe(GROUP)
    assert group is not None
    assert group.rebalance_timeout_ms() == (20_000 if version else 10_000)
    assert join(rig, version, "nobody").error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", versions(ApiKey.SYNC_GROUP))
def test_a_leader_assigns_itself(version: int) -> None:
    synced(GroupRig(), version)


def test_a_member_that_speaks_of_another_protocol_is_told_so() -> None:
    rig = GroupRig()
    member = joined(rig)
    told = {"group_id": GROUP, "generation_id": 1, "member_id": member.member_id, "assignments": []}
    answer = call(rig, ApiKey.SYNC_GROUP, 5, **told, protocol_type="consumer", protocol_name="sticky")
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", versions(ApiKey.HEARTBEAT))
def test_a_member_is_alive(version: int) -> None:
    rig = GroupRig()
    member = synced(rig)
    told = {"group_id": GROUP, "member_id": member.member_id}
    assert call(rig, ApiKey.HEARTBEAT, version, **told, generation_id=1).error_code == ErrorCode.NONE
    assert (
        call(rig, ApiKey.HEARTBEAT, version, **told, generation_id=0).error_code
        == ErrorCode.ILLEGAL_GENERATION
    )


@pytest.mark.parametrize("version", versions(ApiKey.LEAVE_GROUP))
def test_members_leave(version: int) -> None:
    rig = GroupRig()
    member = synced(rig)
    if version < 3:
        assert (
            call(rig, ApiKey.LEAVE_GROUP, version, group_id=GROUP, member_id=member.member_id).error_code
            == ErrorCode.NONE
        )
        assert (
            call(rig, ApiKey.LEAVE_GROUP, version, group_id=GROUP, member_id="nobody").error_code
            == ErrorCode.UNKNOWN_MEMBER_ID
        )
    else:
        members = [Message(member_id=one, group_instance_id=None) for one in (member.member_id, "nobody")]
        answer = call(rig, ApiKey.LEAVE_GROUP, version, group_id=GROUP, members=members)
        assert answer.error_code == ErrorCode.NONE
        assert [row.error_code for row in answer.members] == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert rig.state() == "Empty"


@pytest.mark.parametrize("version", [2, 5])
def test_when_the_group_is_not_here_the_whole_leave_is_told_so(version: int) -> None:
    rig = GroupRig()
    rig.coordinator.stop()
    who = {"member_id": "m"} if version < 3 else {"members": [Message(member_id="m", group_instance_id=None)]}
    assert (
        call(rig, ApiKey.LEAVE_GROUP, version, group_id=GROUP, **who).error_code == ErrorCode.NOT_COORDINATOR
    )


def committed(rig: GroupRig, version: int, **more: Any) -> list[Message]:
    orders = rig.controller.image.topics["orders"].topic_id
    rows = [
        Message(partition_index=number, committed_offset=5 + number, committed_metadata="m")
        for number in (0, 99)
    ]
    known = {"topic_id": orders} if version >= 10 else {"name": "orders"}
    unknown = {"topic_id": UUID(int=9)} if version >= 10 else {"name": "missing"}
    topics = [Message(**known, partitions=rows), Message(**unknown, partitions=rows[:1])]
    fields = {
        "group_id": GROUP,
        "generation_id_or_member_epoch": -1,
        "member_id": "",
        "topics": topics,
    } | more
    return call(rig, ApiKey.OFFSET_COMMIT, version, **fields).topics


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_COMMIT))
def test_offsets_are_committed_where_there_is_a_partition(version: int) -> None:
    rig = GroupRig()
    known, unknown = committed(rig, version)
    assert [row.error_code for row in known.partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    missing = ErrorCode.UNKNOWN_TOPIC_ID if version >= 10 else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [row.error_code for row in unknown.partitions] == [missing]
    assert rig.fetch() == {TopicPartition("orders", 0): 5}


@pytest.mark.parametrize(
    ("version", "code"), [(8, ErrorCode.ILLEGAL_GENERATION), (9, ErrorCode.GROUP_ID_NOT_FOUND)]
)
def test_a_commit_that_fails_fails_for_every_partition_that_there_is(version: int, code: int) -> None:
    rig = GroupRig()
    topics = committed(rig, version, generation_id_or_member_epoch=3, member_id="m")
    missing = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert [row.error_code for topic in topics for row in topic.partitions] == [code, missing, missing]


def test_a_commit_with_a_retention_of_its_own_is_refused() -> None:
    topics = committed(GroupRig(), 4, retention_time_ms=1_000)
    assert {row.error_code for topic in topics for row in topic.partitions} == {ErrorCode.INVALID_REQUEST}


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
@pytest.mark.parametrize("everything", [False, True])
def test_offsets_are_fetched(version: int, everything: bool) -> None:
    if everything and version < 2:
        pytest.skip("all partitions at once can be asked for from version 2 on")
    rig = GroupRig()
    rig.commit({TopicPartition("orders", 2): 7}, metadata="note")
    named = (
        {"topic_id": rig.controller.image.topics["orders"].topic_id} if version >= 10 else {"name": "orders"}
    )
    topics = None if everything else [Message(**named, partition_indexes=[1, 2])]
    if version >= 8:
        (answer,) = call(
            rig, ApiKey.OFFSET_FETCH, version, groups=[Message(group_id=GROUP, topics=topics)]
        ).groups
    else:
        answer = call(rig, ApiKey.OFFSET_FETCH, version, group_id=GROUP, topics=topics)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.topics
    rows = [
        (row.partition_index, row.committed_offset, row.metadata, row.error_code) for row in topic.partitions
    ]
    found = [(2, 7, "note", ErrorCode.NONE)]
    assert rows == (found if everything else [(1, -1, "", ErrorCode.NONE), *found])


@pytest.mark.parametrize("version", versions(ApiKey.OFFSET_FETCH))
def test_a_fetch_from_the_wrong_broker_is_told_so(version: int) -> None:
    rig = GroupRig()
    rig.coordinator.stop()
    named = (
        {"topic_id": rig.controller.image.topics["orders"].topic_id} if version >= 10 else {"name": "orders"}
    )
    topics = [Message(**named, partition_indexes=[1])]
    if version >= 8:
        (answer,) = call(
            rig, ApiKey.OFFSET_FETCH, version, groups=[Message(group_id=GROUP, topics=topics)]
        ).groups
    else:
        answer = call(rig, ApiKey.OFFSET_FETCH, version, group_id=GROUP, topics=topics)
    if version >= 2:
        assert answer.error_code == ErrorCode.NOT_COORDINATOR
    else:
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_COORDINATOR


@pytest.mark.parametrize("version", versions(ApiKey.FIND_COORDINATOR))
def test_a_coordinator_is_found_unless_it_is_down(version: int) -> None:
    rig = GroupRig()
    asked = {"coordinator_keys": [GROUP]} if version >= 4 else {"key": GROUP}

    def find(**more: int) -> Message:
        answer = call(rig, ApiKey.FIND_COORDINATOR, version, **asked, **more)
        return answer.coordinators[0] if version >= 4 else answer

    assert (find().error_code, find().node_id, find().port) == (ErrorCode.NONE, 0, 9092)
    if version >= 1:
        refused = find(key_type=2)
        assert (refused.error_code, refused.node_id) == (ErrorCode.INVALID_REQUEST, -1)
        assert ("version" in refused.error_message) == (version < 6)
    rig.controller.broker_stopped(0)
    assert (find().error_code, find().node_id) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)


@pytest.mark.parametrize("version", versions(ApiKey.DESCRIBE_GROUPS))
def test_groups_are_described(version: int) -> None:
    rig = GroupRig()
    member = joined(rig)
    (rebalancing,) = call(rig, ApiKey.DESCRIBE_GROUPS, version, groups=[GROUP]).groups
    assert (rebalancing.group_state, rebalancing.protocol_data, rebalancing.members[0].member_metadata) == (
        "CompletingRebalance",
        "",
        b"",
    )
    told = {
        "generation_id": 1,
        "member_id": member.member_id,
        "assignments": [Message(member_id=member.member_id, assignment=b"mine")],
    }
    call(rig, ApiKey.SYNC_GROUP, 4, group_id=GROUP, **told)
    stable, missing = call(rig, ApiKey.DESCRIBE_GROUPS, version, groups=[GROUP, "missing"]).groups
    assert (stable.group_state, stable.protocol_type, stable.protocol_data) == ("Stable", "consumer", "range")
    (one,) = stable.members
    assert (one.client_id, one.client_host, bytes(one.member_assignment)) == ("client", "/127.0.0.1", b"mine")
    if missing.error_code == ErrorCode.NONE:
        assert missing.group_state == "Dead"
    else:
        assert missing.error_code in (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.NOT_COORDINATOR)


@pytest.mark.parametrize("version", versions(ApiKey.LIST_GROUPS))
def test_groups_are_listed_by_state_and_type(version: int) -> None:
    rig = GroupRig()
    synced(rig)
    rig.commit({TopicPartition("orders", 0): 1}, group_id="other")

    def listed(**filters: list[str]) -> list[str]:
        return sorted(row.group_id for row in call(rig, ApiKey.LIST_GROUPS, version, **filters).groups)

    assert listed() == [GROUP, "other"]
    if version >= 4:
        assert listed(states_filter=["stable"]) == [GROUP]
        assert listed(states_filter=["Empty", "Dead"]) == ["other"]
    if version >= 5:
        assert listed(types_filter=["Classic"]) == [GROUP, "other"]
        assert listed(types_filter=["consumer"]) == []


@pytest.mark.parametrize("version", versions(ApiKey.DELETE_GROUPS))
def test_groups_are_deleted(version: int) -> None:
    rig = GroupRig()
    synced(rig)
    rig.commit({TopicPartition("orders", 0): 1}, group_id="other")
    rows = call(rig, ApiKey.DELETE_GROUPS, version, groups_names=[GROUP, "other", "missing"]).results
    assert [(row.group_id, row.error_code) for row in rows] == [
        (GROUP, ErrorCode.NON_EMPTY_GROUP),
        ("other", ErrorCode.NONE),
        ("missing", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert call(rig, ApiKey.DELETE_GROUPS, version, groups_names=[]).results == []


def test_single_offsets_are_taken_back() -> None:
    rig = GroupRig()
    rig.commit({TopicPartition("orders", 0): 1, TopicPartition("orders", 1): 1})
    topics = [Message(name="orders", partitions=[Message(partition_index=number) for number in (1, 99)])]
    answer = call(rig, ApiKey.OFFSET_DELETE, 0, group_id=GROUP, topics=topics)
    assert [row.error_code for row in answer.topics[0].partitions] == [
        ErrorCode.NONE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert rig.fetch() == {TopicPartition("orders", 0): 1}
    assert (
        call(rig, ApiKey.OFFSET_DELETE, 0, group_id="missing", topics=topics).error_code
        == ErrorCode.GROUP_ID_NOT_FOUND
    )


def test_a_static_member_that_comes_back_is_told_to_skip_assigning() -> None:
    rig = GroupRig()
    leader = RigMember(rig, instance_id="one")
    quiesce(leader)
    answer = join(rig, 9, instance_id="one")
    assert (answer.error_code, answer.skip_assignment, answer.generation_id) == (ErrorCode.NONE, True, 1)
