"""ShareGroupHeartbeat (76): a member of a share group joins, stays, sends its subscription, and
leaves; the answer has the partitions to fetch (KIP-932).

Version 1. Answered when the log has what the answer rests on. New partitions are answered to the
first heartbeat after the share coordinator has their state. UNSUPPORTED_VERSION where the feature
share.version is 0. Needs READ on the group (GROUP_AUTHORIZATION_FAILED) and DESCRIBE on each topic
that is named (TOPIC_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import peer_host, reason
from fairlead_kafka.broker.api.group_requests import HeartbeatAnswers, demand_topics
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.api.share_requests import MEMBER_ID_MAX_LENGTH, check_share_groups
from fairlead_kafka.broker.consumer_groups import HeartbeatResult
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareHeartbeat
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_ANSWERS = HeartbeatAnswers(
    ShareGroupHeartbeatResponse,
    ShareGroupHeartbeatResponse.Assignment,
    ShareGroupHeartbeatResponse.TopicPartitions,
    "share.heartbeat.interval.ms",
)


@serves(ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1))
def share_group_heartbeat(
    broker: Services, request: Request[ShareGroupHeartbeatRequest], session: Requester, reply: Reply
) -> None:
    """Serve ShareGroupHeartbeat: note a member's subscription, and answer with the partitions that
    it is to fetch."""
    message = request.message

    def answer(error: int, result: HeartbeatResult) -> None:
        reply(_ANSWERS.refused(error) if error else _ANSWERS.served(broker, message.group_id, result))

    try:
        check_share_groups(broker)
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        if not message.member_id or len(message.member_id) > MEMBER_ID_MAX_LENGTH:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        demand_topics(session, message.subscribed_topic_names or [])
        broker.coordinator.share.heartbeat(_heartbeat(request, session), answer)
    except BrokerError as error:
        reply(_ANSWERS.refused(error.code, reason(error)))


def _heartbeat(request: Request[ShareGroupHeartbeatRequest], session: Requester) -> ShareHeartbeat:
    message = request.message
    names = message.subscribed_topic_names
    return ShareHeartbeat(
        message.group_id,
        message.member_id,
        message.member_epoch,
        request.client_id or "",
        peer_host(session.peer),
        message.rack_id,
        None if names is None else frozenset(names),
    )
