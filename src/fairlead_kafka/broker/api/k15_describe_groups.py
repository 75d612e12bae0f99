"""DescribeGroups (15): a group's state, protocol and members.

Versions 0-6. Metadata are only returned for a stable group, as in Kafka. A group that is not there,
or is one of the consumer protocol, is Dead (from 6 on with GROUP_ID_NOT_FOUND). Needs DESCRIBE on
each group (GROUP_AUTHORIZATION_FAILED for it); the authorized operations, if asked for, are those
of the session's principal.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, cut_short
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import NO_OPERATIONS, demand, operations
from fairlead_kafka.broker.coordinator import Group, GroupState, Member
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeGroupsRequest, DescribeGroupsResponse

_Group = DescribeGroupsResponse.DescribedGroup
_Member = DescribeGroupsResponse.DescribedGroupMember

_MISSING_IS_ERROR_FROM_VERSION = 6


@serves(ApiKey.DESCRIBE_GROUPS, versions=(0, 6))
def describe_groups(
    broker: Services, request: Request[DescribeGroupsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeGroups: describe each classic group that is named."""
    groups = [
        _describe(broker, session, group_id, request.version)
        for group_id in dict.fromkeys(request.message.groups)
    ]
    if request.message.include_authorized_operations:
        for group in groups:
            if not group.error_code:
                group.authorized_operations = operations(session, AclResourceType.GROUP, group.group_id)
    reply(DescribeGroupsResponse(throttle_time_ms=0, groups=groups))


def _describe(broker: Services, session: Requester, group_id: str, version: int) -> _Group:
    try:
        demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)
        group = broker.coordinator.describe(group_id)
    except BrokerError as error:
        return _row(group_id, error_code=error.code, error_message=reason(error), group_state="")
    if group is None or group.consumer is not None or group.share is not None:
        if version >= _MISSING_IS_ERROR_FROM_VERSION:
            return _row(
                group_id,
                error_code=ErrorCode.GROUP_ID_NOT_FOUND,
                error_message=cut_short(
                    f"Group {group_id} {'not found' if group is None else 'is not a classic group'}."
                ),
            )
        return _row(group_id)
    stable = group.state is GroupState.STABLE
    return _row(
        group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=(group.protocol_name or "") if stable else "",
        members=[_member(group, member, stable) for member in group.members.values()],
    )


def _member(group: Group, member: Member, stable: bool) -> _Member:
    return _Member(
        member_id=member.member_id,
        group_instance_id=member.instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=member.metadata(group.protocol_name or "") if stable else b"",
        member_assignment=member.assignment,
    )


def _row(
    group_id: str,
    error_code: int = ErrorCode.NONE,
    error_message: str | None = None,
    group_state: str = GroupState.DEAD.value,
    protocol_type: str = "",
    protocol_data: str = "",
    members: list[_Member] | None = None,
) -> _Group:
    return _Group(
        error_code=error_code,
        error_message=error_message,
        group_id=group_id,
        group_state=group_state,
        protocol_type=protocol_type,
        protocol_data=protocol_data,
        members=members or [],
        authorized_operations=NO_OPERATIONS,
    )
