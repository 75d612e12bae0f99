"""SyncGroup (14): a member of the new generation asks for its assignment; the leader brings
everyone's.

Versions 0-5. Answered when the leader's has come. From version 5 on the member's protocol type and
name are held against the group's, and must be there (INCONSISTENT_GROUP_PROTOCOL). Needs READ on
the group (GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.coordinator import SyncOutcome
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import SyncGroupRequest, SyncGroupResponse

_NAMES_PROTOCOL_FROM_VERSION = 5


@serves(ApiKey.SYNC_GROUP, versions=(0, 5))
def sync_group(
    broker: Services, request: Request[SyncGroupRequest], session: Requester, reply: Reply
) -> None:
    """Serve SyncGroup: give a member its assignment once the leader's has come."""
    message = request.message

    def answer(outcome: SyncOutcome) -> None:
        reply(
            SyncGroupResponse(
                throttle_time_ms=0,
                error_code=outcome.error_code,
                protocol_type=outcome.protocol_type,
                protocol_name=outcome.protocol_name,
                assignment=outcome.assignment,
            )
        )

    try:
        if request.version >= _NAMES_PROTOCOL_FROM_VERSION and None in (
            message.protocol_type,
            message.protocol_name,
        ):
            raise BrokerError(
                ErrorCode.INCONSISTENT_GROUP_PROTOCOL, "a member names the group's protocol type and protocol"
            )
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        broker.coordinator.sync(
            message.group_id,
            message.generation_id,
            message.member_id,
            message.group_instance_id,
            (message.protocol_type, message.protocol_name),
            [(one.member_id, bytes(one.assignment)) for one in message.assignments],
            answer,
        )
    except BrokerError as error:
        answer(SyncOutcome(error.code))
