"""Heartbeat (12): a member is alive; REBALANCE_IN_PROGRESS tells it to join again.

Versions 0-4. Needs READ on the group (GROUP_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import HeartbeatRequest, HeartbeatResponse


@serves(ApiKey.HEARTBEAT, versions=(0, 4))
def heartbeat(broker: Services, request: Request[HeartbeatRequest], session: Requester, reply: Reply) -> None:
    """Serve Heartbeat: note that a member is alive, and answer whether it must join again."""
    message = request.message
    try:
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        error_code = broker.coordinator.heartbeat(
            message.group_id, message.generation_id, message.member_id, message.group_instance_id
        )
    except BrokerError as error:
        error_code = error.code
    reply(HeartbeatResponse(throttle_time_ms=0, error_code=error_code))
