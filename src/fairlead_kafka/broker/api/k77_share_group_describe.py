"""ShareGroupDescribe (77): epochs, state, members, and what each has (KIP-932).

Version 1. A group that is not there, or of another kind, is GROUP_ID_NOT_FOUND. UNSUPPORTED_VERSION
where the feature share.version is 0. Needs DESCRIBE on each group (GROUP_AUTHORIZATION_FAILED for
it) and on all topics of its members (TOPIC_AUTHORIZATION_FAILED for it); the authorized operations,
if asked for, are those of the session's principal.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import NO_OPERATIONS, demand, operations, permitted
from fairlead_kafka.broker.api.share_requests import check_share_groups
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ASSIGNOR, ShareGroup, ShareMember
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ShareGroupDescribeRequest, ShareGroupDescribeResponse

_Group = ShareGroupDescribeResponse.DescribedGroup
_Member = ShareGroupDescribeResponse.Member
_Assignment = ShareGroupDescribeResponse.Assignment
_TopicPartitions = ShareGroupDescribeResponse.TopicPartitions


@serves(ApiKey.SHARE_GROUP_DESCRIBE, versions=(1, 1))
def share_group_describe(
    broker: Services, request: Request[ShareGroupDescribeRequest], session: Requester, reply: Reply
) -> None:
    """Describe each group."""
    message = request.message
    groups = [_describe(broker, session, group_id) for group_id in message.group_ids]
    if message.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = operations(session, AclResourceType.GROUP, group.group_id)
    reply(ShareGroupDescribeResponse(throttle_time_ms=0, groups=groups))


def _describe(broker: Services, session: Requester, group_id: str) -> _Group:
    try:
        check_share_groups(broker)
        demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)
        row = _row(broker, broker.coordinator.share.existing(group_id))
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
    names = {one.topic_name for member in group.members for one in member.assignment.topic_partitions}
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    if any(name not in seen for name in names):
        raise BrokerError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            "The group has described topic(s) that the client is not authorized to describe.",
        )


def _row(broker: Services, group: ShareGroup) -> _Group:
    return _Group(
        error_code=ErrorCode.NONE,
        error_message=None,
        group_id=group.group_id,
        group_state=group.state_name,
        group_epoch=group.epoch,
        assignment_epoch=group.target_epoch,
        assignor_name=ASSIGNOR,
        members=[_member(broker, member) for member in group.members.values()],
        authorized_operations=NO_OPERATIONS,
    )


def _member(broker: Services, member: ShareMember) -> _Member:
    about, current = member.about, member.current
    by_id = broker.controller.image.topics_by_id
    rows = [
        _TopicPartitions(
            topic_id=topic, topic_name=by_id[topic].name, partitions=sorted(current.assigned[topic])
        )
        for topic in sorted(current.assigned)
        if topic in by_id
    ]
    return _Member(
        member_id=member.member_id,
        rack_id=about.rack_id,
        member_epoch=current.epoch,
        client_id=about.client_id,
        client_host=about.client_host,
        subscribed_topic_names=sorted(about.topics),
        assignment=_Assignment(topic_partitions=rows),
    )
