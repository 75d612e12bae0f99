"""ConsumerGroupDescribe (69): epochs, state, members, and what each has and is to have (KIP-848).

Versions 0-1; the protocol that a member speaks from 1 on. A group that is not there, or a classic
one, is GROUP_ID_NOT_FOUND (Kafka's tools then ask DescribeGroups). Needs DESCRIBE on each group
(GROUP_AUTHORIZATION_FAILED for it) and on all topics of its members (TOPIC_AUTHORIZATION_FAILED for
it); the authorized operations, if asked for, are those of the session's principal.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.group_requests import Descriptions, topic_rows
from fairlead_kafka.broker.api.k68_consumer_group_heartbeat import check_served
from fairlead_kafka.broker.api.rights import NO_OPERATIONS
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
    """Serve ConsumerGroupDescribe: describe each consumer group that is named."""
    groups = _GROUPS.answered(broker, session, request.message)
    reply(ConsumerGroupDescribeResponse(throttle_time_ms=0, groups=groups))


def _describe(broker: Services, group_id: str) -> tuple[_Group, list[_TopicPartitions]]:
    row = _row(broker, broker.coordinator.consumer.existing(group_id))
    topics = [
        topic
        for member in row.members
        for assignment in (member.assignment, member.target_assignment)
        for topic in assignment.topic_partitions
    ]
    return row, topics


_GROUPS = Descriptions(check_served, _describe, _Group)


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
    target = group.targets.get(member.member_id, {})
    return _Member(
        member_id=member.member_id,
        instance_id=about.instance_id,
        rack_id=about.rack_id,
        member_epoch=member.epoch,
        client_id=about.client_id,
        client_host=about.client_host,
        subscribed_topic_names=sorted(about.topics),
        subscribed_topic_regex=about.pattern,
        assignment=_Assignment(topic_partitions=topic_rows(broker, has, _TopicPartitions)),
        target_assignment=_Assignment(topic_partitions=topic_rows(broker, target, _TopicPartitions)),
        member_type=_CLASSIC if member.classic else _CONSUMER,
    )
