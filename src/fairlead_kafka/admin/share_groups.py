"""Share groups (KIP-932): describe them; list, set and delete their offsets.

To delete the groups themselves, use `groups.delete_groups`, as for any group.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

from fairlead_kafka.admin.acl_items import operations_of
from fairlead_kafka.admin.coordinated import per_coordinated
from fairlead_kafka.admin.scripts import AdminScript, Done, Outcome, Refused, outcome_of
from fairlead_kafka.admin.share_group_items import (
    ShareGroupDescription,
    ShareGroupMember,
    SharePartitionOffset,
)
from fairlead_kafka.base.codes import policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)

K = TypeVar("K")
_NO_LAG = -1


def describe_share_groups(
    metadata: Metadata, group_ids: Sequence[str], *, include_authorized_operations: bool
) -> AdminScript[dict[str, ShareGroupDescription]]:
    """Describe share groups: {group: description}; ItemsFailed names those that are missing."""

    def read(
        node_id: int, answer: ShareGroupDescribeResponse
    ) -> list[tuple[str, Outcome[ShareGroupDescription]]]:
        rows = []
        for group in answer.groups:
            description = ShareGroupDescription(
                group.group_id,
                group.group_state,
                metadata.nodes.get(node_id),
                tuple(_member(member) for member in group.members),
                group.assignor_name,
                group.group_epoch,
                group.assignment_epoch,
                operations_of(group.authorized_operations),
            )
            rows.append((group.group_id, outcome_of(group.error_code, group.error_message, description)))
        return rows

    def ask(groups: list[str]) -> list[tuple[ApiKey, ShareGroupDescribeRequest]]:
        message = ShareGroupDescribeRequest(
            group_ids=groups, include_authorized_operations=include_authorized_operations
        )
        return [(ApiKey.SHARE_GROUP_DESCRIBE, message)]

    return per_coordinated("describe_share_groups", KeyType.GROUP, metadata, group_ids, ask, read)


def _member(member: ShareGroupDescribeResponse.Member) -> ShareGroupMember:
    return ShareGroupMember(
        member.member_id,
        member.client_id,
        member.client_host,
        member.rack_id,
        member.member_epoch,
        tuple(member.subscribed_topic_names),
        tuple(
            TopicPartition(topic.topic_name, number)
            for topic in member.assignment.topic_partitions
            for number in topic.partitions
        ),
    )


def list_share_group_offsets(
    metadata: Metadata, group_ids: Sequence[str]
) -> AdminScript[dict[str, dict[TopicPartition, SharePartitionOffset]]]:
    """Offsets of share groups: {group: {partition: offset}}, of the partitions that they have read.
    ItemsFailed names the groups that failed."""
    made = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

    def read(
        _node_id: int, answer: DescribeShareGroupOffsetsResponse
    ) -> list[tuple[str, Outcome[dict[TopicPartition, SharePartitionOffset]]]]:
        return [(group.group_id, _offsets(group)) for group in answer.groups]

    def ask(groups: list[str]) -> list[tuple[ApiKey, DescribeShareGroupOffsetsRequest]]:
        rows = [made(group_id=group_id, topics=None) for group_id in groups]
        return [(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, DescribeShareGroupOffsetsRequest(groups=rows))]

    return per_coordinated("list_share_group_offsets", KeyType.GROUP, metadata, group_ids, ask, read)


def _offsets(
    group: DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup,
) -> Outcome[dict[TopicPartition, SharePartitionOffset]]:
    if group.error_code:
        return Refused(group.error_code, group.error_message)
    found: dict[TopicPartition, SharePartitionOffset] = {}
    for topic in group.topics:
        for row in topic.partitions:
            if row.error_code:
                return Refused(row.error_code, f"offset of {topic.topic_name}-{row.partition_index}")
            if row.start_offset != NO_OFFSET:
                lag = None if row.lag == _NO_LAG else row.lag
                offset = SharePartitionOffset(row.start_offset, lag, row.leader_epoch)
                found[TopicPartition(topic.topic_name, row.partition_index)] = offset
    return Done(found)


def alter_share_group_offsets(
    metadata: Metadata, group_id: str, offsets: Mapping[TopicPartition, int]
) -> AdminScript[dict[TopicPartition, None]]:
    """A script: set the start offsets of a share group that has no members. ItemsFailed names the
    partitions that failed."""
    made = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition
    topics: dict[str, list[AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestPartition]] = {}
    for (topic, number), offset in offsets.items():
        topics.setdefault(topic, []).append(made(partition_index=number, start_offset=offset))
    row_of_topic = AlterShareGroupOffsetsRequest.AlterShareGroupOffsetsRequestTopic
    message = AlterShareGroupOffsetsRequest(
        group_id=group_id,
        topics=[row_of_topic(topic_name=name, partitions=rows) for name, rows in topics.items()],
    )

    def read(
        _node_id: int, answer: AlterShareGroupOffsetsResponse
    ) -> list[tuple[str, Outcome[dict[TopicPartition, tuple[int, str | None]]]]]:
        codes = {
            TopicPartition(topic.topic_name, row.partition_index): (row.error_code, row.error_message)
            for topic in answer.responses
            for row in topic.partitions
        }
        return [(group_id, outcome_of(answer.error_code, answer.error_message, codes))]

    asked = [(ApiKey.ALTER_SHARE_GROUP_OFFSETS, message)]
    outcomes = yield from per_coordinated(
        "alter_share_group_offsets", KeyType.GROUP, metadata, [group_id], lambda _groups: asked, read
    )
    return _all_done("alter_share_group_offsets", outcomes[group_id])


def delete_share_group_offsets(
    metadata: Metadata, group_id: str, topics: Sequence[str]
) -> AdminScript[dict[str, None]]:
    """Delete the offsets that a share group without members has in topics. ItemsFailed names the
    topics that failed."""
    made = DeleteShareGroupOffsetsRequest.DeleteShareGroupOffsetsRequestTopic
    message = DeleteShareGroupOffsetsRequest(
        group_id=group_id, topics=[made(topic_name=name) for name in topics]
    )

    def read(
        _node_id: int, answer: DeleteShareGroupOffsetsResponse
    ) -> list[tuple[str, Outcome[dict[str, tuple[int, str | None]]]]]:
        codes = {row.topic_name: (row.error_code, row.error_message) for row in answer.responses}
        return [(group_id, outcome_of(answer.error_code, answer.error_message, codes))]

    asked = [(ApiKey.DELETE_SHARE_GROUP_OFFSETS, message)]
    outcomes = yield from per_coordinated(
        "delete_share_group_offsets", KeyType.GROUP, metadata, [group_id], lambda _groups: asked, read
    )
    return _all_done("delete_share_group_offsets", outcomes[group_id])


def _all_done(call: str, codes: Mapping[K, tuple[int, str | None]]) -> dict[K, None]:
    """{item: None} of the items of a call, if none has an error code; ItemsFailed if some have."""
    errors = {item: _error(code, said) for item, (code, said) in codes.items() if code}
    done: dict[K, None] = dict.fromkeys(item for item in codes if item not in errors)
    if errors:
        raise ItemsFailed(call, errors, done)
    return done


def _error(code: int, said: str | None) -> BrokerError:
    return BrokerError(code, said or policy(code).meaning)
