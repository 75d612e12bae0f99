"""ConsumerGroupDescribe (69): epochs, state, members, and what each has and is to have (KIP-848).

Versions 0-1; the protocol that a member speaks from 1 on. A group that is not there, or a classic
one, is GROUP_ID_NOT_FOUND (Kafka's tools then ask DescribeGroups). Needs DESCRIBE on each group
(GROUP_AUTHORIZATION_FAILED for it) and on all topics of its members (TOPIC_AUTHORIZATION_FAILED for
it); the authorized operations, if asked for, are those of the session's principal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.k68_consumer_group_heartbeat import check_served
from fairlead_kafka.broker.api.rights import NO_OPERATIONS, demand, operations, permitted
from fairlead_kafka.broker.consumer_groups import ConsumerGroup, ConsumerMember
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

_Group = ConsumerGroupDescribeResponse.DescribedGroup
_Member = ConsumerGroupDescribeResponse.Member
_Assignment = ConsumerGroupDescribeResponse.Assignment
_TopicPartitions = ConsumerGroupDescribeResponse.TopicPartitions

_CLASSIC, _CONSUMER = 0, 1
"""Kafka's numbers of a member's protocol."""


@serves(ApiKey.CONSUMER_GROUP_DESCRIBE, versions=(0, 1))
def consumer_group_describe(
    broker: Services, request: Request[ConsumerGroupDescribeRequest], session: Requester, reply: Reply
) -> None:
    """Describe each group."""
    message = request.message
    groups = [_describe(broker, session, group_id) for group_id in message.group_ids]
    if message.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = operations(session, AclResourceType.GROUP, group.group_id)
    reply(ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=groups))


def _describe(broker: Services, session: Requester, group_id: str) -> _Group:
    try:
        check_served(broker)
        demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)
        group = broker.coordinator.consumer.existing(group_id)
        row = _row(broker, group)
        _demand_topics(session, row)
    except BrokerError as error:
        return _Group(
            error_code=error.code,
            error_message=reason(error),
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
            authorized_operations=NO_OPERATIONS,
        )
    return row


def _demand_topics(session: Requester, group: _Group) -> None:
    names = {
        one.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for one in assignment.topic_partitions
    }
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    if any(name not in seen for name in names):
        raise BrokerError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The group has described topic(s) that the client is not authorized to describe.",
        )


def _row(broker: Services, group: ConsumerGroup) -> _Group:
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state.value,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=group.assignor(broker.settings["group.consumer.assignors"][0]),
        members=[_member(broker, group, member) for member in group.members.values()],
        authorized_operations=NO_OPERATIONS,
    )


def _member(broker: Services, group: ConsumerGroup, member: ConsumerMember) -> _Member:
    about, current = member.about, member.current
    has = {
        topic: sorted({*current.assigned.get(topic, ()), *current.revoking.get(topic, ())})
        for topic in {*current.assigned, *current.revoking}
    }
    return _Member(
        member_id=member.member_id,
        instance_id=about.instance_id,
        rack_id=about.rack_id,
        member_epoch=member.epoch,
        client_id=about.client_id,
        client_host=about.client_host,
        subscribed_topic_names=sorted(about.topics),
        subscribed_topic_regex=about.pattern,
        assignment=_assignment(broker, has),
        target_assignment=_assignment(broker, group.targets.get(member.member_id, {})),
        member_type=_CLASSIC if member.classic else _CONSUMER,
    )


def _assignment(broker: Services, partitions: Mapping[UUID, Iterable[int]]) -> _Assignment:
    """Partitions of topics that are still there."""
    by_id = broker.controller.image.topics_by_id
    rows = [
        _TopicPartitions(topic_id=topic, topic_name=by_id[topic].name, partitions=sorted(partitions[topic]))
        for topic in sorted(partitions)
        if topic in by_id
    ]
    return _Assignment(topic_partitions=rows)
