"""Groups: list, describe, delete; their offsets: read, set, take back. Sources: KIP-222, KIP-496, KIP-518, KIP-709, KIP-848.

A group's coordinator is looked for first, and again when it has moved. Groups of one coordinator share a request where the API has room
for several.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from fairlead.admin.group_items import GroupDescription, GroupListing, GroupMember
from fairlead.admin.scripts import AdminScript, Settled
from fairlead.base.codes import ErrorCode, policy
from fairlead.base.errors import BrokerError, DecodeError, ItemsFailed, UnsupportedVersion
from fairlead.base.ids import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from fairlead.core.consumer_protocol import PROTOCOL_TYPE, decode_assignment
from fairlead.core.group_coordinator import find_group_coordinators
from fairlead.core.group_offsets import NO_GENERATION, OffsetAndMetadata, offset_rows
from fairlead.core.metadata import Metadata
from fairlead.core.script import Ask, Pause
from fairlead.core.topic_listing import ask_metadata
from fairlead.wire import ApiKey, Message

_MISSING = "Dead"
"""The state that brokers tell of a group that is not there (until DescribeGroups 6, which has an error for it)."""


def list_groups(states: Sequence[str], types: Sequence[str]) -> AdminScript[dict[str, GroupListing]]:
    """{group: listing} of all brokers' groups, by name; `states` and `types` empty: all."""
    answer = yield from ask_metadata([])
    waiting = {broker.node_id for broker in answer.brokers}
    found: dict[str, GroupListing] = {}
    message = Message(states_filter=list(states), types_filter=list(types))
    while waiting:
        nodes = sorted(waiting)
        trouble: Exception | None = None
        for node_id, said in zip(nodes, (yield [Ask(ApiKey.LIST_GROUPS, message, node_id) for node_id in nodes]), strict=True):
            if isinstance(said, UnsupportedVersion):
                raise said
            if isinstance(said, Exception):
                trouble = said
                continue
            error = BrokerError(said.error_code, f"listing the groups of broker {node_id}") if said.error_code else None
            if error is not None and not error.retriable:
                raise error
            trouble = error or trouble
            if error is None:
                waiting.discard(node_id)
                found.update(
                    (row.group_id, GroupListing(row.group_id, row.protocol_type, row.group_state, row.group_type)) for row in said.groups
                )
        if trouble is not None:
            yield Pause(trouble, refresh=True)
    return dict(sorted(found.items()))


def describe_groups(metadata: Metadata, group_ids: Sequence[str]) -> AdminScript[dict[str, GroupDescription]]:
    """{group: description}; ItemsFailed names those that are missing."""

    def read(node_id: int, answer: Message) -> list[tuple[str, Settled]]:
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
                tuple(_member(member, group.protocol_type) for member in group.members),
            )
            rows.append((group.group_id, Settled(code, getattr(group, "error_message", None), description)))
        return rows

    def ask(groups: list[str]) -> list[tuple[ApiKey, Message]]:
        return [(ApiKey.DESCRIBE_GROUPS, Message(groups=groups, include_authorized_operations=False))]

    return _per_group("describe_groups", metadata, group_ids, ask, read)


def delete_groups(metadata: Metadata, group_ids: Sequence[str]) -> AdminScript[dict[str, None]]:
    """Groups without members go, with their offsets."""

    def read(_node_id: int, answer: Message) -> list[tuple[str, Settled]]:
        return [(row.group_id, Settled(row.error_code)) for row in answer.results]

    def ask(groups: list[str]) -> list[tuple[ApiKey, Message]]:
        return [(ApiKey.DELETE_GROUPS, Message(groups_names=groups))]

    return _per_group("delete_groups", metadata, group_ids, ask, read)


def list_group_offsets(
    metadata: Metadata, group_ids: Sequence[str], *, require_stable: bool
) -> AdminScript[dict[str, dict[TopicPartition, OffsetAndMetadata]]]:
    """{group: {partition: committed offset}}; a group that is not there has none."""

    def read(_node_id: int, answer: Message) -> list[tuple[str, Settled]]:
        if answer.groups:
            return [(group.group_id, _offsets(group)) for group in answer.groups]
        return [("", _offsets(answer))]  # below version 8 an answer is about the one group that was asked for

    def ask(groups: list[str]) -> list[tuple[ApiKey, Message]]:
        return [(ApiKey.OFFSET_FETCH, _fetch_message(group_id, require_stable)) for group_id in groups]

    return _per_group("list_group_offsets", metadata, group_ids, ask, read)


def alter_group_offsets(
    metadata: Metadata, group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> AdminScript[dict[TopicPartition, None]]:
    """Commit for a group that has no members."""
    message = Message(
        group_id=group_id,
        generation_id_or_member_epoch=NO_GENERATION,
        member_id="",
        group_instance_id=None,
        retention_time_ms=-1,
        topics=offset_rows(offsets),
    )

    def read(_node_id: int, answer: Message) -> list[tuple[str, Settled]]:
        return [(group_id, _partition_rows(answer))]

    settled = yield from _per_group("alter_group_offsets", metadata, [group_id], lambda _groups: [(ApiKey.OFFSET_COMMIT, message)], read)
    return _partitions_settled("alter_group_offsets", settled[group_id])


def delete_group_offsets(
    metadata: Metadata, group_id: str, partitions: Sequence[TopicPartition]
) -> AdminScript[dict[TopicPartition, None]]:
    """Take committed offsets back; of topics that no member reads."""
    topics: dict[str, list[Message]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(Message(partition_index=number))
    message = Message(group_id=group_id, topics=[Message(name=name, partitions=rows) for name, rows in topics.items()])

    def read(_node_id: int, answer: Message) -> list[tuple[str, Settled]]:
        return [(group_id, Settled(answer.error_code) if answer.error_code else _partition_rows(answer))]

    settled = yield from _per_group("delete_group_offsets", metadata, [group_id], lambda _groups: [(ApiKey.OFFSET_DELETE, message)], read)
    return _partitions_settled("delete_group_offsets", settled[group_id])


def _per_group(
    what: str,
    metadata: Metadata,
    group_ids: Sequence[str],
    ask: Callable[[list[str]], list[tuple[ApiKey, Message]]],
    read: Callable[[int, Message], Iterable[tuple[str, Settled]]],
) -> AdminScript[dict[str, Any]]:
    """A script: {group: result}. `ask` makes the requests about the groups of one coordinator, `read` takes one answer apart.

    Raises ItemsFailed if any group failed, once all are settled.
    """
    nodes: dict[str, int] = {}
    results: dict[str, Any] = {}
    errors: dict[str, BrokerError] = {}
    while open_groups := [group_id for group_id in dict.fromkeys(group_ids) if group_id not in results and group_id not in errors]:
        trouble: Exception | None = None
        lost = [group_id for group_id in open_groups if group_id not in nodes]
        for group_id, found in (yield from find_group_coordinators(metadata, lost)).items() if lost else ():
            if isinstance(found, int):
                nodes[group_id] = found
            elif isinstance(found, BrokerError) and not found.retriable:
                errors[group_id] = found
            else:
                trouble = found
        asked = _requests(open_groups, nodes, ask)
        answers = (yield [one for _, one in asked]) if asked else []
        for (groups, one), answer in zip(asked, answers, strict=True):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            assert one.node_id is not None
            rows = [] if isinstance(answer, Exception) else list(read(one.node_id, answer))
            settled = dict(rows if len(groups) > 1 else [(groups[0], row) for _, row in rows])
            for group_id in groups:
                row = settled.get(group_id, Settled(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer left out group {group_id!r}"))
                if isinstance(answer, Exception) or BrokerError(row.code).retriable:
                    nodes.pop(group_id)
                    trouble = answer if isinstance(answer, Exception) else BrokerError(row.code, f"group {group_id!r}")
                elif row.code:
                    errors[group_id] = BrokerError(row.code, row.message or policy(row.code).meaning)
                else:
                    results[group_id] = row.result
        if trouble is not None:
            yield Pause(trouble)
    if errors:
        raise ItemsFailed(what, errors, results)
    return {group_id: results[group_id] for group_id in group_ids}


def _requests(
    groups: Sequence[str], nodes: Mapping[str, int], ask: Callable[[list[str]], list[tuple[ApiKey, Message]]]
) -> list[tuple[list[str], Ask]]:
    """Each request with the groups that it is about: all of one coordinator's, or one of them each."""
    by_node: dict[int, list[str]] = {}
    for group_id in groups:
        if group_id in nodes:
            by_node.setdefault(nodes[group_id], []).append(group_id)
    found = []
    for node_id, mine in by_node.items():
        made = ask(mine)
        shares = [mine] if len(made) == 1 else [[group_id] for group_id in mine]
        found += [(share, Ask(api_key, message, node_id, fails_fast=True)) for share, (api_key, message) in zip(shares, made, strict=True)]
    return found


def _member(member: Message, protocol_type: str) -> GroupMember:
    assignment: tuple[TopicPartition, ...] = ()
    if protocol_type == PROTOCOL_TYPE:
        with suppress(DecodeError):  # an assignor of its own making: what it says is between its members
            assignment = decode_assignment(bytes(member.member_assignment)).partitions
    return GroupMember(member.member_id, member.group_instance_id, member.client_id, member.client_host, assignment)


def _fetch_message(group_id: str, require_stable: bool) -> Message:
    group = Message(group_id=group_id, member_id=None, member_epoch=-1, topics=None)
    return Message(group_id=group_id, topics=None, groups=[group], require_stable=require_stable)


def _offsets(group: Message) -> Settled:
    if group.error_code:
        return Settled(group.error_code)
    found: dict[TopicPartition, OffsetAndMetadata] = {}
    for topic in group.topics or ():
        for row in topic.partitions:
            if row.error_code:
                return Settled(row.error_code, f"offset of {topic.name}-{row.partition_index}")
            if row.committed_offset != NO_OFFSET:
                epoch = getattr(row, "committed_leader_epoch", NO_LEADER_EPOCH)
                found[TopicPartition(topic.name, row.partition_index)] = OffsetAndMetadata(row.committed_offset, row.metadata or "", epoch)
    return Settled(ErrorCode.NONE, None, found)


def _partition_rows(answer: Message) -> Settled:
    """{partition: error code}; an error that passes stands for all, for then none was done and all are asked again."""
    codes = {TopicPartition(topic.name, row.partition_index): row.error_code for topic in answer.topics for row in topic.partitions}
    passing = next((code for code in codes.values() if code and policy(code).retriable and code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), 0)
    return Settled(passing, None, codes)


def _partitions_settled(what: str, codes: Mapping[TopicPartition, int]) -> dict[TopicPartition, None]:
    errors = {of: BrokerError(code) for of, code in codes.items() if code}
    done: dict[TopicPartition, None] = dict.fromkeys(of for of, code in codes.items() if not code)
    if errors:
        raise ItemsFailed(what, errors, done)
    return done
