"""Groups: list, delete (`group_describing` has the rest); their committed offsets: list, set,
delete.

A group's coordinator is looked for first, and again when it has moved. Groups of one coordinator
share a request if the API takes several. Sources: KIP-222, KIP-496, KIP-518, KIP-709, KIP-848.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fairlead_kafka.admin.coordinated import of_every_broker, per_coordinated
from fairlead_kafka.admin.group_describing import describe_groups
from fairlead_kafka.admin.group_items import GroupListing
from fairlead_kafka.admin.scripts import AdminScript, Done, Outcome, Refused, outcome_of
from fairlead_kafka.base.codes import ErrorCode, policy
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.core.coordinator_lookup import KeyType
from fairlead_kafka.core.group_offsets import NO_GENERATION, OffsetAndMetadata, offset_rows
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    LeaveGroupRequest,
    LeaveGroupResponse,
    ListGroupsRequest,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)


def list_groups(
    states: Sequence[str], types: Sequence[str], protocol_types: Sequence[str]
) -> AdminScript[dict[str, GroupListing]]:
    """List groups of all brokers: {group: listing}, by name. If `states`, `types` or
    `protocol_types` is empty, groups with any. BrokerError if a broker refuses."""
    message = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    answers = yield from of_every_broker("the groups", ApiKey.LIST_GROUPS, message)
    rows = [row for said in answers for row in said.groups]
    found = {
        row.group_id: GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)
        for row in rows
        if not protocol_types or row.protocol_type in protocol_types
    }
    return dict(sorted(found.items()))


def delete_groups(metadata: Metadata, group_ids: Sequence[str]) -> AdminScript[dict[str, None]]:
    """Delete groups that have no members, with their offsets. ItemsFailed names those that
    failed."""

    def read(_node_id: int, answer: DeleteGroupsResponse) -> list[tuple[str, Outcome[None]]]:
        return [(row.group_id, outcome_of(row.error_code, None, None)) for row in answer.results]

    def ask(groups: list[str]) -> list[tuple[ApiKey, DeleteGroupsRequest]]:
        return [(ApiKey.DELETE_GROUPS, DeleteGroupsRequest(groups_names=groups))]

    return per_coordinated("delete_groups", KeyType.GROUP, metadata, group_ids, ask, read)


def list_group_offsets(
    metadata: Metadata, group_ids: Sequence[str], *, require_stable: bool
) -> AdminScript[dict[str, dict[TopicPartition, OffsetAndMetadata]]]:
    """Committed offsets: {group: {partition: offset}}; a group that does not exist has none.
    ItemsFailed names the groups that failed."""

    def read(
        _node_id: int, answer: OffsetFetchResponse
    ) -> list[tuple[str, Outcome[dict[TopicPartition, OffsetAndMetadata]]]]:
        if answer.groups:
            return [(group.group_id, _offsets(group)) for group in answer.groups]
        return [("", _offsets(answer))]  # below version 8 an answer is about the one group that was asked for

    def ask(groups: list[str]) -> list[tuple[ApiKey, OffsetFetchRequest]]:
        return [(ApiKey.OFFSET_FETCH, _fetch_message(group_id, require_stable)) for group_id in groups]

    return per_coordinated("list_group_offsets", KeyType.GROUP, metadata, group_ids, ask, read)


def alter_group_offsets(
    metadata: Metadata, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> AdminScript[dict[TopicPartition, None]]:
    """Set committed offsets of a group that has no members. ItemsFailed names the partitions that
    failed."""
    message = OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=NO_GENERATION,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=offset_rows(offsets),
    )

    def read(
        _node_id: int, answer: OffsetCommitResponse
    ) -> list[tuple[str, Outcome[dict[TopicPartition, int]]]]:
        return [(group_id, _partition_rows(answer))]

    asked = [(ApiKey.OFFSET_COMMIT, message)]
    outcomes = yield from per_coordinated(
        "alter_group_offsets", KeyType.GROUP, metadata, [group_id], lambda _groups: asked, read
    )
    return _completed("alter_group_offsets", outcomes[group_id])


def delete_group_offsets(
    metadata: Metadata, group_id: str, partitions: Sequence[TopicPartition]
) -> AdminScript[dict[TopicPartition, None]]:
    """Delete committed offsets of partitions: {partition: None}. ItemsFailed names those of topics
    that a member reads."""
    topics: dict[str, list[OffsetDeleteRequest.OffsetDeleteRequestPartition]] = {}
    for topic, number in partitions:
        row = OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=number)
        topics.setdefault(topic, []).append(row)
    made = OffsetDeleteRequest.OffsetDeleteRequestTopic
    message = OffsetDeleteRequest(
        group_id=group_id, topics=[made(name=name, partitions=rows) for name, rows in topics.items()]
    )

    def read(
        _node_id: int, answer: OffsetDeleteResponse
    ) -> list[tuple[str, Outcome[dict[TopicPartition, int]]]]:
        return [(group_id, Refused(answer.error_code) if answer.error_code else _partition_rows(answer))]

    asked = [(ApiKey.OFFSET_DELETE, message)]
    outcomes = yield from per_coordinated(
        "delete_group_offsets", KeyType.GROUP, metadata, [group_id], lambda _groups: asked, read
    )
    return _completed("delete_group_offsets", outcomes[group_id])


def remove_members(
    metadata: Metadata, group_id: str, instance_ids: Sequence[str] | None, *, why: str
) -> AdminScript[dict[str, None]]:
    """Remove static members of a group by instance id, or all members (`instance_ids` None), each
    by its member id (KIP-345). `why` goes to the coordinator's log. ItemsFailed names the members
    that failed."""
    made = LeaveGroupRequest.MemberIdentity
    if instance_ids is None:
        described = yield from describe_groups(metadata, [group_id], include_authorized_operations=False)
        rows = [
            made(member_id=one.member_id, group_instance_id=None, reason=why)
            for one in described[group_id].members
        ]
    else:
        rows = [made(member_id="", group_instance_id=each, reason=why) for each in instance_ids]
    if not rows:
        return {}
    message = LeaveGroupRequest(group_id=group_id, member_id="", members=rows)

    def read(_node_id: int, answer: LeaveGroupResponse) -> list[tuple[str, Outcome[LeaveGroupResponse]]]:
        return [(group_id, outcome_of(answer.error_code, None, answer))]

    asked = [(ApiKey.LEAVE_GROUP, message)]
    try:
        outcomes = yield from per_coordinated(
            "remove_members", KeyType.GROUP, metadata, [group_id], lambda _groups: asked, read
        )
    except ItemsFailed as failed:
        raise failed.errors[group_id] from None
    answer = outcomes[group_id]
    codes = {
        (one.member_id if instance_ids is None else one.group_instance_id or ""): one.error_code
        for one in answer.members
    }
    errors = {member: BrokerError(code) for member, code in codes.items() if code}
    done: dict[str, None] = dict.fromkeys(member for member, code in codes.items() if not code)
    if errors:
        raise ItemsFailed("remove_members", errors, done)
    return done


def _fetch_message(group_id: str, require_stable: bool) -> OffsetFetchRequest:
    group = OffsetFetchRequest.OffsetFetchRequestGroup(
        group_id=group_id, member_id=None, member_epoch=-1, topics=None
    )
    return OffsetFetchRequest(group_id=group_id, topics=None, groups=[group], require_stable=require_stable)


def _offsets(
    group: OffsetFetchResponse | OffsetFetchResponse.OffsetFetchResponseGroup,
) -> Outcome[dict[TopicPartition, OffsetAndMetadata]]:
    if group.error_code:
        return Refused(group.error_code)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in group.topics or ():
        for row in topic.partitions:
            if row.error_code:
                return Refused(row.error_code, f"offset of {topic.name}-{row.partition_index}")
            if row.committed_offset != NO_OFFSET:
                committed = OffsetAndMetadata(
                    row.committed_offset, row.metadata or "", row.committed_leader_epoch
                )
                found[TopicPartition(topic.name, row.partition_index)] = committed
    return Done(found)


def _partition_rows(
    answer: OffsetCommitResponse | OffsetDeleteResponse,
) -> Outcome[dict[TopicPartition, int]]:
    """An answer's outcome: {partition: error code}. If a code is retriable it is the whole
    answer's, so that all partitions are asked for again."""
    codes = {
        TopicPartition(topic.name, row.partition_index): row.error_code
        for topic in answer.topics
        for row in topic.partitions
    }
    passing = next(
        (
            code
            for code in codes.values()
            if code and policy(code).retriable and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        ),
        0,
    )
    return outcome_of(passing, None, codes)


def _completed(what: str, codes: Mapping[TopicPartition, int]) -> dict[TopicPartition, None]:
    errors = {of: BrokerError(code) for of, code in codes.items() if code}
    done: dict[TopicPartition, None] = dict.fromkeys(of for of, code in codes.items() if not code)
    if errors:
        raise ItemsFailed(what, errors, done)
    return done
