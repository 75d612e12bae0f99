"""ConsumerGroupHeartbeat and ConsumerGroupDescribe through the wire's bytes, and the configs of
groups."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.controller import FeatureUpdate, UpdateFeatures, UpgradeType
from fairlead_kafka.wire import ApiKey, Message
from tests.support.api_calls import call, versions
from tests.support.group_rig import GROUP, GroupRig

RESOURCE_GROUP = 32


def beat(rig: GroupRig, version: int = 1, epoch: int = 0, **fields: Any) -> Message:
    joins = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    told = {"group_id": GROUP, "member_id": "m", "member_epoch": epoch} | (joins if epoch == 0 else {})
    return call(rig, ApiKey.CONSUMER_GROUP_HEARTBEAT, version, **told | fields)


@pytest.mark.parametrize("version", versions(ApiKey.CONSUMER_GROUP_HEARTBEAT))
def test_a_member_lives(version: int) -> None:
    rig = GroupRig()
    joined = beat(rig, version, **({"member_id": ""} if version == 0 else {}))
    assert (joined.error_code, joined.heartbeat_interval_ms) == (0, 5_000)
    (row,) = joined.assignment.topic_partitions
    assert (row.topic_id, list(row.partitions)) == (
        rig.controller.image.topics["orders"].topic_id,
        [0, 1, 2, 3],
    )
    again = beat(rig, version, joined.member_epoch, member_id=joined.member_id)
    assert (again.error_code, again.member_epoch, again.assignment) == (0, joined.member_epoch, None)
    left = beat(rig, version, -1, member_id=joined.member_id)
    assert (left.error_code, left.member_epoch, left.heartbeat_interval_ms) == (0, -1, 0)
    gone = beat(rig, version, 1, member_id=joined.member_id)
    assert (gone.error_code, gone.member_id, bool(gone.error_message)) == (25, None, True)


@pytest.mark.parametrize("version", versions(ApiKey.CONSUMER_GROUP_DESCRIBE))
def test_a_group_is_described(version: int) -> None:
    rig = GroupRig()
    beat(rig, rack_id="r", instance_id="i")
    answer = call(rig, ApiKey.CONSUMER_GROUP_DESCRIBE, version, group_ids=[GROUP, "other"])
    group, other = answer.groups
    assert (group.error_code, group.group_state, group.assignor_name) == (0, "Stable", "uniform")
    assert (group.group_epoch, group.assignment_epoch) == (2, 2)
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id, member.member_epoch) == ("m", "i", "r", 2)
    assert (list(member.subscribed_topic_names), member.client_id) == (["orders"], "client")
    for assignment in (member.assignment, member.target_assignment):
        (row,) = assignment.topic_partitions
        assert (row.topic_name, list(row.partitions)) == ("orders", [0, 1, 2, 3])
    assert (other.error_code, other.group_id) == (ErrorCode.GROUP_ID_NOT_FOUND, "other")
    classic = call(rig, ApiKey.DESCRIBE_GROUPS, 6, groups=[GROUP]).groups[0]
    assert (classic.error_code, classic.group_state) == (ErrorCode.GROUP_ID_NOT_FOUND, "Dead")


def test_groups_are_listed_by_their_type() -> None:
    rig = GroupRig()
    beat(rig)
    for types, expected in (([], [GROUP]), (["consumer"], [GROUP]), (["Classic"], [])):
        rows = call(rig, ApiKey.LIST_GROUPS, 5, states_filter=[], types_filter=types).groups
        assert [row.group_id for row in rows] == expected
    assert (rows := call(rig, ApiKey.LIST_GROUPS, 5).groups)
    assert (rows[0].group_type, rows[0].group_state, rows[0].protocol_type) == (
        "consumer",
        "Stable",
        "consumer",
    )


@pytest.mark.parametrize("how", ["config", "feature"])
def test_where_the_protocol_is_switched_off_it_is_refused_in_words(how: str) -> None:
    off = {"group.coordinator.rebalance.protocols": ("classic",)} if how == "config" else {}
    rig = GroupRig(off)
    if how == "feature":
        update = FeatureUpdate("group.version", 0, UpgradeType.SAFE_DOWNGRADE)
        rig.controller.decide(UpdateFeatures([update]), lambda _result, error: None)
    answer = beat(rig)
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "group.protocol=classic" in answer.error_message
    (group,) = call(rig, ApiKey.CONSUMER_GROUP_DESCRIBE, 1, group_ids=[GROUP]).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION


def test_configs_of_a_group_are_set_told_and_taken_back() -> None:
    rig = GroupRig()

    def alter(value: str | None, operation: int = 0, key: str = "consumer.heartbeat.interval.ms") -> int:
        config = Message(name=key, config_operation=operation, value=value)
        resource = Message(resource_type=RESOURCE_GROUP, resource_name=GROUP, configs=[config])
        return int(
            call(rig, ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, resources=[resource]).responses[0].error_code
        )

    def told() -> dict[str, tuple[str, int]]:
        resource = Message(resource_type=RESOURCE_GROUP, resource_name=GROUP, configuration_keys=None)
        (result,) = call(rig, ApiKey.DESCRIBE_CONFIGS, 4, resources=[resource]).results
        return {row.name: (row.value, row.config_source) for row in result.configs}

    assert told()["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert alter("7000") == 0
    assert told()["consumer.heartbeat.interval.ms"] == ("7000", 8)
    assert beat(rig).heartbeat_interval_ms == 7_000
    assert alter("1") == alter("99999") == alter("x") == ErrorCode.INVALID_CONFIG
    assert alter("1", key="retention.ms") == ErrorCode.INVALID_CONFIG
    assert alter(None, 1) == 0
    assert told()["consumer.heartbeat.interval.ms"] == ("5000", 5)
    assert rig.controller.image.group_configs == {}
