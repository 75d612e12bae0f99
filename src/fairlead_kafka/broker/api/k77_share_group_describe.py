"""ShareGroupDescribe (77): epochs, state, members, and what each has (KIP-932).

Version 1. A group that is not there, or of another kind, is GROUP_ID_NOT_FOUND. UNSUPPORTED_VERSION
where the feature share.version is 0. Needs DESCRIBE on each group (GROUP_AUTHORIZATION_FAILED for
it) and on all topics of its members (TOPIC_AUTHORIZATION_FAILED for it); the authorized operations,
if asked for, are those of the session's principal.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.group_requests import Descriptions, topic_rows
from fairlead_kafka.broker.api.rights import NO_OPERATIONS
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
    """Serve ShareGroupDescribe: describe each share group that is named."""
    groups = _GROUPS.answered(broker, session, request.message)
    reply(ShareGroupDescribeResponse(throttle_time_ms=0, groups=groups))


def _describe(broker: Services, group_id: str) -> tuple[_Group, list[_TopicPartitions]]:
    row = _row(broker, broker.coordinator.share.records.existing(group_id, "Group"))
    return row, [topic for member in row.members for topic in member.assignment.topic_partitions]


_GROUPS = Descriptions(check_share_groups, _describe, _Group)


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
    rows = topic_rows(broker, current.assigned, _TopicPartitions)
    return _Member(
        member_id=member.member_id,
        rack_id=about.rack_id,
        member_epoch=current.epoch,
        client_id=about.client_id,
        client_host=about.client_host,
        subscribed_topic_names=sorted(about.topics),
        assignment=_Assignment(topic_partitions=rows),
    )
