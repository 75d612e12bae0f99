"""ShareGroupHeartbeat (76): a member of a share group joins, lives, says what it reads, and leaves; it
is told which partitions to fetch (KIP-932).

Version 1. Answered when the log has what the answer rests on. New partitions are told with the
heartbeat after the share coordinator has their state. UNSUPPORTED_VERSION where the feature
share.version is 0. Needs READ on the group (GROUP_AUTHORIZATION_FAILED) and DESCRIBE on each topic
that is named (TOPIC_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import peer_host, reason
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.api.share_requests import MEMBER_ID_MAX_LENGTH, check_share_groups
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import ShareBeaten, ShareHeartbeat
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_Assignment = ShareGroupHeartbeatResponse.Assignment
_TopicPartitions = ShareGroupHeartbeatResponse.TopicPartitions


@serves(ApiKey.SHARE_GROUP_HEARTBEAT, versions=(1, 1))
def share_group_heartbeat(
    broker: Services, request: Request[ShareGroupHeartbeatRequest], session: Requester, reply: Reply
) -> None:
    """Hear a member out."""
    message = request.message

    def answer(error: int, beaten: ShareBeaten) -> None:
        reply(_refused(error, None) if error else _answer(broker, message.group_id, beaten))

    try:
        check_share_groups(broker)
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        if not message.member_id or len(message.member_id) > MEMBER_ID_MAX_LENGTH:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "Invalid member id in the request.")
        _demand_topics(session, message.subscribed_topic_names or [])
        broker.coordinator.share.heartbeat(_heartbeat(request, session), answer)
    except BrokerError as error:
        reply(_refused(error.code, reason(error)))


def _demand_topics(session: Requester, names: list[str]) -> None:
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    hidden = [name for name in names if name not in seen]
    if hidden:
        raise BrokerError(
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            f"{session.principal} has no right to DESCRIBE on the topic {hidden[0]!r}",
        )


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


def _answer(broker: Services, group_id: str, beaten: ShareBeaten) -> ShareGroupHeartbeatResponse:
    assignment = None
    if beaten.assignment is not None:
        rows = [
            _TopicPartitions(topic_id=topic, partitions=sorted(beaten.assignment[topic]))
            for topic in sorted(beaten.assignment)
        ]
        assignment = _Assignment(topic_partitions=rows)
    leaving = beaten.member_epoch < 0
    interval_ms = broker.controller.group_settings(group_id)["share.heartbeat.interval.ms"]
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        member_id=beaten.member_id,
        member_epoch=beaten.member_epoch,
        heartbeat_interval_ms=0 if leaving else interval_ms,
        assignment=assignment,
    )


def _refused(code: int, text: str | None) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(
        throttle_time_ms=0,
        error_code=code,
        error_message=text,
        member_id=None,
        member_epoch=0,
        heartbeat_interval_ms=0,
        assignment=None,
    )
