"""Members of the classic protocol in a consumer group: their requests, translated (KIP-848, live
upgrade).

A classic member's JoinGroup has its subscription and the partitions it owns, and is answered with
its epoch as generation; the member is never the leader, so that it asks for its assignment with an
empty SyncGroup; a heartbeat is answered with REBALANCE_IN_PROGRESS whenever the member is to join
again. Functions as in `membership`: they change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.broker.consumer_groups.consumer_protocol import (
    Subscribed,
    read_subscription,
    write_assignment,
)
from fairlead_kafka.broker.consumer_groups.group import ConsumerGroup, ConsumerMember
from fairlead_kafka.broker.consumer_groups.membership import Step, advance, check_room, newcomer
from fairlead_kafka.broker.consumer_groups.records import ClassicAbout, GroupsEntry
from fairlead_kafka.broker.consumer_groups.states import MemberState
from fairlead_kafka.broker.consumer_groups.view import View

CONSUMER_PROTOCOL = "consumer"


class ClassicJoin(NamedTuple):
    """A JoinGroup to a consumer group; `known`: the member came with an id of its own."""

    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    session_timeout_ms: int
    rebalance_timeout_ms: int
    protocol_type: str
    protocols: tuple[tuple[str, bytes], ...]
    known: bool


def check_classic_join(group: ConsumerGroup, request: ClassicJoin, view: View) -> None:
    """Check a JoinGroup. BrokerError: GROUP_MAX_SIZE_REACHED, INCONSISTENT_GROUP_PROTOCOL if the
    other members of the classic protocol share none of its protocols."""
    check_room(group, request.member_id if request.known else "", view)
    others = [
        {name for name, _ in member.about.classic.protocols}
        for member in group.members.values()
        if member.about.classic is not None
    ]
    names = {name for name, _ in request.protocols}
    shared = names.intersection(*others) if others else names
    if request.protocol_type != CONSUMER_PROTOCOL or not shared:
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"Member {request.member_id}'s protocols are not supported.",
        )


def join_classic(group: ConsumerGroup, request: ClassicJoin, view: View) -> Step:
    """Let a member of the classic protocol join, or join again, by a JoinGroup.

    BrokerError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID, INCONSISTENT_GROUP_PROTOCOL for metadata
    that cannot be read.
    """
    subscribed = _subscribed(request.protocols[0][1])
    entries: list[GroupsEntry] = []
    if request.instance_id is not None and request.known:
        member = group.speaker(request.member_id, request.instance_id)
    else:
        member = newcomer(group, request.member_id, request.instance_id, entries, classic=True)
    about = member.about._replace(
        instance_id=request.instance_id if request.instance_id is not None else member.about.instance_id,
        rack_id=subscribed.rack_id or member.about.rack_id,
        rebalance_timeout_ms=request.rebalance_timeout_ms,
        topics=subscribed.topics,
        pattern="",
        client_id=request.client_id,
        client_host=request.client_host,
        classic=ClassicAbout(request.session_timeout_ms, request.protocols),
    )
    return advance(group, member, about, _by_id(subscribed.owned, view), view, entries)


def _subscribed(metadata: bytes) -> Subscribed:
    try:
        return read_subscription(metadata)
    except DecodeError as error:
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL, f"a consumer's metadata cannot be read: {error}"
        ) from None


def _by_id(owned: Mapping[str, frozenset[int]], view: View) -> dict[UUID, frozenset[int]]:
    found = ((view.topics.find(name), numbers) for name, numbers in owned.items())
    return {topic.topic_id: numbers for topic, numbers in found if topic is not None}


def speaking_classic(
    group: ConsumerGroup, member_id: str, instance_id: str | None, generation: int
) -> ConsumerMember:
    """The member of the classic protocol that a request is from. BrokerError: UNKNOWN_MEMBER_ID,
    FENCED_INSTANCE_ID, ILLEGAL_GENERATION."""
    member = _classic(group.speaker(member_id, instance_id))
    if generation != member.epoch:
        raise BrokerError(
            ErrorCode.ILLEGAL_GENERATION,
            f"The request generation id {generation} is not equal to the member epoch {member.epoch} of "
            f"member {member_id}.",
        )
    return member


def leaving(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
    """The member that a LeaveGroup names, of either protocol, a static one by its instance id alone
    if need be. BrokerError: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID."""
    known = group.static_member(instance_id)
    named = member_id or (known.member_id if known is not None else "")
    return group.speaker(named, instance_id)


def _classic(member: ConsumerMember) -> ConsumerMember:
    if not member.classic:
        raise BrokerError(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member.member_id} does not use the classic protocol."
        )
    return member


def protocol_of(member: ConsumerMember) -> tuple[str, bytes]:
    """Name and metadata of the protocol that a classic member is given: its first choice."""
    assert member.about.classic is not None
    return member.about.classic.protocols[0]


def check_sync(
    group: ConsumerGroup, member: ConsumerMember, protocol_type: str | None, protocol_name: str | None
) -> None:
    """Check a SyncGroup. BrokerError: INCONSISTENT_GROUP_PROTOCOL; REBALANCE_IN_PROGRESS for a
    member that must join again first."""
    name = protocol_of(member)[0]
    if protocol_type not in (None, CONSUMER_PROTOCOL) or protocol_name not in (None, name):
        raise BrokerError(
            ErrorCode.INCONSISTENT_GROUP_PROTOCOL,
            f"The protocol {protocol_type}/{protocol_name} of member {member.member_id} is not the group's, "
            f"{CONSUMER_PROTOCOL}/{name}.",
        )
    behind = group.target_epoch > member.epoch
    if behind and member.current.state is not MemberState.UNREVOKED_PARTITIONS:
        raise BrokerError(
            ErrorCode.REBALANCE_IN_PROGRESS,
            f"A new rebalance is triggered in group {group.group_id} and member {member.member_id} should "
            "rejoin to catch up.",
        )


def must_join_again(group: ConsumerGroup, member: ConsumerMember) -> bool:
    """Whether a classic member has something to join again for."""
    state = member.current.state
    return (
        member.epoch < group.target_epoch
        or group.epoch > group.target_epoch
        or state is MemberState.UNREVOKED_PARTITIONS
        or (state is MemberState.UNRELEASED_PARTITIONS and not group.waits_for_others(member))
    )


def assignment_of(member: ConsumerMember, view: View) -> bytes:
    """A classic member's assignment as bytes."""
    partitions = {topic: frozenset(numbers) for topic, numbers in member.current.assigned.items()}
    return written_assignment(partitions, protocol_of(member)[1], view)


def written_assignment(partitions: Mapping[UUID, Iterable[int]], metadata: bytes, view: View) -> bytes:
    """Partitions by topic id as the bytes of an assignment, in the version of the member's
    `metadata`."""
    found = ((view.topics.by_id(topic), numbers) for topic, numbers in partitions.items())
    named = {topic.name: numbers for topic, numbers in found if topic is not None}
    return write_assignment(named, _subscribed(metadata).version)
