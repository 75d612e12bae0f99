"""ShareAcknowledge (79): what a member of a share group has to say of records that it has acquired:
accepted, released, rejected, a gap, or (from 2 on) locked for longer (KIP-932, KIP-1222).

Versions 1-2. Answered when it is written. The session's last request (epoch -1) gives back all that
the member still has. Errors of a partition: INVALID_RECORD_STATE for records that are not the
member's, and then none of what was said of that partition counts; INVALID_REQUEST,
UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER. Of the whole:
SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH; UNSUPPORTED_VERSION where the feature
share.version is 0. Needs READ on the group (GROUP_AUTHORIZATION_FAILED) and on each topic
(TOPIC_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.share_requests import (
    Acknowledging,
    Outcome,
    Place,
    check_member,
    code_and_message,
    leader_hint,
)
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import FINAL_EPOCH, INITIAL_EPOCH, ShareKey
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ShareAcknowledgeRequest, ShareAcknowledgeResponse

_Row = ShareAcknowledgeResponse.PartitionData
_Topic = ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse
_Leader = ShareAcknowledgeResponse.LeaderIdAndEpoch
_Endpoint = ShareAcknowledgeResponse.NodeEndpoint


@serves(ApiKey.SHARE_ACKNOWLEDGE, versions=(1, 2))
def share_acknowledge(
    broker: Services, request: Request[ShareAcknowledgeRequest], session: Requester, reply: Reply
) -> None:
    """Serve ShareAcknowledge: apply a member's acknowledgements of records that it acquired;
    answered when the state is written."""
    message = request.message
    try:
        key = check_member(broker, session, message.group_id, message.member_id)
        if message.share_session_epoch == INITIAL_EPOCH:
            raise BrokerError(ErrorCode.INVALID_SHARE_SESSION_EPOCH, "a session begins with a ShareFetch")
        share_session = broker.share_sessions.of(key, message.share_session_epoch)
    except BrokerError as error:
        reply(
            ShareAcknowledgeResponse(
                throttle_time_ms=0, error_code=error.code, error_message=reason(error), responses=[]
            )
        )
        return

    def acknowledged(outcomes: dict[Place, Outcome]) -> None:
        if message.share_session_epoch == FINAL_EPOCH:
            broker.share_sessions.end(share_session, lambda errors: answer(_with_released(outcomes, errors)))
        else:
            answer(outcomes)

    def answer(outcomes: dict[Place, Outcome]) -> None:
        reply(_answer(broker, session, key.group_id, outcomes))

    acknowledging = Acknowledging(broker, session, key, acknowledged)
    for topic in message.topics:
        for asked in topic.partitions:
            place = (topic.topic_id, asked.partition_index)
            acknowledging.take(place, asked.acknowledgement_batches, message.is_renew_ack)
    acknowledging.complete()


def _with_released(outcomes: dict[Place, Outcome], errors: dict[ShareKey, int]) -> dict[Place, Outcome]:
    """`outcomes`, with an error for each partition whose records could not be released at the end
    of the session."""
    for key, code in errors.items():
        if code:
            outcomes.setdefault(
                (key.topic_id, key.partition), BrokerError(code, "what was acquired could not be given back")
            )
    return outcomes


def _answer(
    broker: Services, session: Requester, group_id: str, outcomes: dict[Place, Outcome]
) -> ShareAcknowledgeResponse:
    topics: dict[object, _Topic] = {}
    leaders: list[int] = []
    for place, outcome in outcomes.items():
        code, words = code_and_message(outcome)
        hint = None if outcome is None else leader_hint(broker, place, outcome)
        if hint is not None:
            leaders.append(hint[0])
        leader, epoch = hint or (0, 0)
        row = _Row(
            partition_index=place[1],
            error_code=code,
            error_message=words,
            current_leader=_Leader(leader_id=leader, leader_epoch=epoch),
        )
        topics.setdefault(place[0], _Topic(topic_id=place[0], partitions=[])).partitions.append(row)
    return ShareAcknowledgeResponse(
        throttle_time_ms=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        acquisition_lock_timeout_ms=broker.share_partitions.settings(group_id).lock_ms,
        responses=list(topics.values()),
        node_endpoints=[
            _Endpoint(node_id=node.node_id, host=node.host, port=node.port, rack=node.rack)
            for node in broker.partitions.endpoints(leaders, session.listener)
        ],
    )
