"""OffsetDelete (47): take back committed offsets of single partitions (KIP-496).

Version 0. Answered when that is written. Refused: topics that a member of the group reads
(GROUP_SUBSCRIBED_TO_TOPIC), topics that are not there (UNKNOWN_TOPIC_OR_PARTITION). Needs DELETE on
the group (GROUP_AUTHORIZATION_FAILED) and READ on each topic (TOPIC_AUTHORIZATION_FAILED, whether
it is there or not).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import OffsetDeleteRequest, OffsetDeleteResponse


@serves(ApiKey.OFFSET_DELETE, versions=(0, 0))
def offset_delete(
    broker: Services, request: Request[OffsetDeleteRequest], session: Requester, reply: Reply
) -> None:
    """Serve OffsetDelete: remove a group's committed offsets of some partitions."""
    message = request.message
    image = broker.controller.image
    asked = [
        TopicPartition(topic.name, one.partition_index)
        for topic in message.topics
        for one in topic.partitions
    ]
    readable = permitted(
        session, AclOperation.READ, AclResourceType.TOPIC, (topic.name for topic in message.topics)
    )
    known = [
        of for of in asked if of.topic in readable and image.partition(of.topic, of.partition) is not None
    ]

    def answer(errors: dict[TopicPartition, int]) -> None:
        topics = []
        for topic in message.topics:
            missing = (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if topic.name in readable
                else ErrorCode.TOPIC_AUTHORIZATION_FAILED
            )
            rows = [
                OffsetDeleteResponse.OffsetDeleteResponsePartition(
                    partition_index=one.partition_index,
                    error_code=errors.get(TopicPartition(topic.name, one.partition_index), missing),
                )
                for one in topic.partitions
            ]
            topics.append(OffsetDeleteResponse.OffsetDeleteResponseTopic(name=topic.name, partitions=rows))
        reply(OffsetDeleteResponse(error_code=ErrorCode.NONE, throttle_time_ms=0, topics=topics))

    try:
        demand(session, AclOperation.DELETE, AclResourceType.GROUP, message.group_id)
        if not message.group_id:
            raise BrokerError(ErrorCode.INVALID_GROUP_ID, "a group needs a name")
        broker.coordinator.offsets.delete(message.group_id, known, answer)
    except BrokerError as error:
        reply(OffsetDeleteResponse(error_code=error.code, throttle_time_ms=0, topics=[]))
