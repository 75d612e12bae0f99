"""Descriptions of groups, of the classic protocol and of KIP-848.

Brokers describe the two protocols by different APIs, and the client does not know the protocol of a
group beforehand: groups that DescribeGroups does not find are asked for by ConsumerGroupDescribe.
Kafka's counterpart: `DescribeConsumerGroupsHandler`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from fairlead_kafka.admin.acl_items import operations_of
from fairlead_kafka.admin.coordinated import per_coordinated
from fairlead_kafka.admin.group_items import GroupDescription, GroupMember
from fairlead_kafka.admin.scripts import AdminScript, Outcome, outcome_of
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError, ItemsFailed, UnsupportedVersion
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

_MISSING = "Dead"
"""The state that brokers report for a group that is not there (until DescribeGroups 6, which has an
error for it)."""
_UPGRADED = {0: False, 1: True}
"""Type of a member of a KIP-848 group → whether it speaks that protocol; others are not known."""


def describe_groups(
    metadata: Metadata, group_ids: Sequence[str], *, include_authorized_operations: bool
) -> AdminScript[dict[str, GroupDescription]]:
    """Describe groups: {group: description}; ItemsFailed names those that are missing."""
    found, errors = yield from _results_and_errors(
        _classic(metadata, group_ids, include_authorized_operations)
    )
    others = [name for name, error in errors.items() if error.code == ErrorCode.GROUP_ID_NOT_FOUND]
    if others:
        with suppress(UnsupportedVersion):  # brokers have no other groups: what is missing is missing
            more, still = yield from _results_and_errors(
                _consumer(metadata, others, include_authorized_operations)
            )
            found |= more
            errors = {name: still.get(name, error) for name, error in errors.items() if name not in more}
    if errors:
        raise ItemsFailed("describe_groups", errors, found)
    return {name: found[name] for name in group_ids}


def _results_and_errors(
    script: AdminScript[dict[str, GroupDescription]],
) -> AdminScript[tuple[dict[str, GroupDescription], dict[str, BrokerError]]]:
    """Run `script`: its results, and the errors of the groups that failed, in place of
    ItemsFailed."""
    try:
        return (yield from script), {}
    except ItemsFailed as failed:
        return failed.results, failed.errors


def _classic(
    metadata: Metadata, group_ids: Sequence[str], operations: bool
) -> AdminScript[dict[str, GroupDescription]]:
    def read(node_id: int, answer: DescribeGroupsResponse) -> list[tuple[str, Outcome[GroupDescription]]]:
        rows = []
        for group in answer.groups:
            missing = not group.error_code and group.group_state == _MISSING
            code = ErrorCode.GROUP_ID_NOT_FOUND if missing else group.error_code
            description = GroupDescription(
                group.group_id,
                group.group_state,
                group.protocol_type,
                group.protocol_data,
                metadata.nodes.get(node_id),
                tuple(_classic_member(member, group.protocol_type) for member in group.members),
                operations_of(group.authorized_operations),
            )
            rows.append((group.group_id, outcome_of(code, group.error_message, description)))
        return rows

    def ask(groups: list[str]) -> list[tuple[ApiKey, DescribeGroupsRequest]]:
        message = DescribeGroupsRequest(groups=groups, include_authorized_operations=operations)
        return [(ApiKey.DESCRIBE_GROUPS, message)]

    return per_coordinated("describe_groups", KeyType.GROUP, metadata, group_ids, ask, read)


def _classic_member(member: DescribeGroupsResponse.DescribedGroupMember, protocol_type: str) -> GroupMember:
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == PROTOCOL_TYPE:
        with suppress(DecodeError):  # an assignor of its own making: what it says is between its members
            assignment = decode_assignment(bytes(member.member_assignment)).partitions
    return GroupMember(
        member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment
    )


def _consumer(
    metadata: Metadata, group_ids: Sequence[str], operations: bool
) -> AdminScript[dict[str, GroupDescription]]:
    def read(
        node_id: int, answer: ConsumerGroupDescribeResponse
    ) -> list[tuple[str, Outcome[GroupDescription]]]:
        rows = []
        for group in answer.groups:
            description = GroupDescription(
                group.group_id,
                group.group_state,
                PROTOCOL_TYPE,
                group.assignor_name,
                metadata.nodes.get(node_id),
                tuple(_consumer_member(member) for member in group.members),
                operations_of(group.authorized_operations),
                "consumer",
                group.group_epoch,
                group.assignment_epoch,
            )
            rows.append((group.group_id, outcome_of(group.error_code, group.error_message, description)))
        return rows

    def ask(groups: list[str]) -> list[tuple[ApiKey, ConsumerGroupDescribeRequest]]:
        message = ConsumerGroupDescribeRequest(group_ids=groups, include_authorized_operations=operations)
        return [(ApiKey.CONSUMER_GROUP_DESCRIBE, message)]

    return per_coordinated("describe_groups", KeyType.GROUP, metadata, group_ids, ask, read)


def _consumer_member(member: ConsumerGroupDescribeResponse.Member) -> GroupMember:
    return GroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        _partitions(member.assignment),
        member.member_epoch,
        _partitions(member.target_assignment),
        _UPGRADED.get(member.member_type),
    )


def _partitions(assignment: ConsumerGroupDescribeResponse.Assignment) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, number)
        for topic in assignment.topic_partitions
        for number in topic.partitions
    )
