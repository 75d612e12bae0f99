"""DeleteShareGroupOffsets (92): a share group without members forgets where it is in topics, and
what is in flight there (KIP-932).

Version 0. A topic that the group has no offsets of is UNKNOWN_TOPIC_OR_PARTITION. A group that is
not there, or of another kind, is GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP.
UNSUPPORTED_VERSION where the feature share.version is 0. Needs DELETE on the group
(GROUP_AUTHORIZATION_FAILED) and READ on each topic (TOPIC_AUTHORIZATION_FAILED for it).
"""

from __future__ import annotations

from uuid import UUID

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import NO_ID, reason
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.api.share_requests import NOT_HOSTED, TOPIC_REFUSED, check_share_groups
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DeleteShareGroupOffsetsRequest, DeleteShareGroupOffsetsResponse

_Topic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


def _refused(row: _Topic) -> bool:
    """Whether a topic's row says that the session may not READ it: such rows come first, as in
    Apache Kafka."""
    return row.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


@serves(ApiKey.DELETE_SHARE_GROUP_OFFSETS, versions=(0, 0))
def delete_share_group_offsets(
    broker: Services, request: Request[DeleteShareGroupOffsetsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DeleteShareGroupOffsets: forget a share group's offsets in topics; answered when the
    deletion is written."""
    message = request.message
    answer = DeleteShareGroupOffsetsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, responses=[]
    )
    try:
        check_share_groups(broker)
        demand(session, AclOperation.DELETE, AclResourceType.GROUP, message.group_id)
        names = [topic.topic_name for topic in message.topics]
        seen = permitted(session, AclOperation.READ, AclResourceType.TOPIC, names)
        topics = broker.controller.image.topics
        there = broker.coordinator.share.states.places(message.group_id)
        rows: dict[UUID, _Topic] = {}
        for name in names:
            topic = topics.get(name)
            row = _Topic(topic_name=name, topic_id=NO_ID, error_code=ErrorCode.NONE, error_message=None)
            answer.responses.append(row)
            if name not in seen:
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                row.error_message = TOPIC_REFUSED
            elif topic is None:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                row.error_message = NOT_HOSTED
            elif topic.topic_id not in there:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                row.error_message = "There is no offset information to delete."
            else:
                row.topic_id = topic.topic_id
                rows[topic.topic_id] = row
        answer.responses.sort(key=_refused, reverse=True)

        def deleted(errors: dict[UUID, int]) -> None:
            for topic_id, error in errors.items():
                rows[topic_id].error_code = error
            reply(answer)

        broker.coordinator.share.states.delete_offsets(message.group_id, rows, deleted)
    except BrokerError as error:
        answer.error_code, answer.error_message, answer.responses = error.code, reason(error), []
        reply(answer)
