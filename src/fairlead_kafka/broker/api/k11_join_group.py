"""JoinGroup (11): a consumer (or any member of the classic protocol) enters a group, or enters its
next generation.

Versions 0-9. Answered when the generation stands. From version 4 on a newcomer is first given an id
with MEMBER_ID_REQUIRED, so that a lost answer leaves no ghost; static members (version 5 on) are
recognized by their instance id. The reason given (8 on) goes to the log. Needs READ on the group
(GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.broker.api.common import peer_host
from fairlead_kafka.broker.coordinator import JoinOutcome, JoinRequest
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import JoinGroupRequest, JoinGroupResponse

_logger = GuardedLogger("fairlead_kafka.broker")

_ASKS_FOR_ID_FROM_VERSION = 4
_NULL_PROTOCOL_FROM_VERSION = 7
_CAN_SKIP_FROM_VERSION = 9


@serves(ApiKey.JOIN_GROUP, versions=(0, 9))
def join_group(
    broker: Services, request: Request[JoinGroupRequest], session: Requester, reply: Reply
) -> None:
    """Serve JoinGroup: have a member join its group; answered when the group's next generation is
    formed."""
    message = request.message
    if not session.may(AclOperation.READ, AclResourceType.GROUP, message.group_id):
        reply(_answer(JoinOutcome(ErrorCode.GROUP_AUTHORIZATION_FAILED, ""), request.version))
        return
    rebalance_ms = message.rebalance_timeout_ms
    join = JoinRequest(
        member_id=message.member_id,
        instance_id=message.group_instance_id,
        client_id=request.client_id or "",
        client_host=peer_host(session.peer),
        session_timeout_ms=message.session_timeout_ms,
        rebalance_timeout_ms=message.session_timeout_ms if rebalance_ms < 0 else rebalance_ms,
        protocol_type=message.protocol_type,
        protocols=[(protocol.name, bytes(protocol.metadata)) for protocol in message.protocols],
        asks_for_id=request.version >= _ASKS_FOR_ID_FROM_VERSION,
        can_skip=request.version >= _CAN_SKIP_FROM_VERSION,
    )
    if message.reason:
        _logger.info("group %s: %r joins: %s", message.group_id, join.member_id, message.reason)

    def answer(outcome: JoinOutcome) -> None:
        reply(_answer(outcome, request.version))

    try:
        broker.coordinator.join(message.group_id, join, answer)
    except BrokerError as error:
        answer(JoinOutcome(error.code, join.member_id))


def _answer(outcome: JoinOutcome, version: int) -> JoinGroupResponse:
    protocol_name = outcome.protocol_name
    if protocol_name is None and version < _NULL_PROTOCOL_FROM_VERSION:
        protocol_name = ""
    return JoinGroupResponse(
        throttle_time_ms=0,
        error_code=outcome.error_code,
        generation_id=outcome.generation,
        protocol_type=outcome.protocol_type,
        protocol_name=protocol_name,
        leader=outcome.leader_id,
        skip_assignment=outcome.skip_assignment,
        member_id=outcome.member_id,
        members=[
            JoinGroupResponse.JoinGroupResponseMember(
                member_id=member_id, group_instance_id=instance_id, metadata=metadata
            )
            for member_id, instance_id, metadata in outcome.members
        ],
    )
