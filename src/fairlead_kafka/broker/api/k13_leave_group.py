"""LeaveGroup (13): members leave, and the others rebalance.

Versions 0-5; several members at once from 3 on (KIP-345), static ones by their instance id alone.
The reason given (5 on) goes to the log. Needs READ on the group (GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import LeaveGroupRequest, LeaveGroupResponse

_logger = GuardedLogger("fairlead_kafka.broker")

_SEVERAL_FROM_VERSION = 3
_NOT_THE_GROUPS_FAULT = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_INSTANCE_ID)
"""Errors of one member; any other is the whole request's."""


@serves(ApiKey.LEAVE_GROUP, versions=(0, 5))
def leave_group(
    broker: Services, request: Request[LeaveGroupRequest], session: Requester, reply: Reply
) -> None:
    """Serve LeaveGroup: remove each member that is named from its group."""
    message = request.message
    if not session.may(AclOperation.READ, AclResourceType.GROUP, message.group_id):
        reply(
            LeaveGroupResponse(
                throttle_time_ms=0, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED, members=[]
            )
        )
        return
    if request.version < _SEVERAL_FROM_VERSION:
        reply(
            LeaveGroupResponse(
                throttle_time_ms=0, error_code=_leave(broker, message.group_id, message.member_id, None)
            )
        )
        return
    rows, error_code = [], ErrorCode.NONE
    for member in message.members:
        if member.reason:
            _logger.info("group %s: %r leaves: %s", message.group_id, member.member_id, member.reason)
        left = _leave(broker, message.group_id, member.member_id, member.group_instance_id)
        if left and left not in _NOT_THE_GROUPS_FAULT:
            error_code = left
        rows.append(
            LeaveGroupResponse.MemberResponse(
                member_id=member.member_id, group_instance_id=member.group_instance_id, error_code=left
            )
        )
    reply(LeaveGroupResponse(throttle_time_ms=0, error_code=error_code, members=[] if error_code else rows))


def _leave(broker: Services, group_id: str, member_id: str, instance_id: str | None) -> int:
    try:
        broker.coordinator.leave(group_id, member_id, instance_id)
    except BrokerError as error:
        return error.code
    return ErrorCode.NONE
