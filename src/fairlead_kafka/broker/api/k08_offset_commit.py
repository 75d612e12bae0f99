"""OffsetCommit (8): how far a group has come; answered when the offsets are written.

Versions 2-10, topics by id from 10 on. Generation -1 commits for a group without members (an assigned consumer, an admin). Refused:
a retention time of the commit's own (versions 2-4, INVALID_REQUEST): offsets are kept by `offsets.retention.minutes`; topics that are
not there (UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID); members of groups that are not there (ILLEGAL_GENERATION, from 9 on
GROUP_ID_NOT_FOUND).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.coordinator import CommittedOffset
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session

_IDS_FROM_VERSION = 10
_KNOWS_MISSING_FROM_VERSION = 9
_BROKER_RETENTION = -1


@serves(ApiKey.OFFSET_COMMIT, versions=(2, 10))
def offset_commit(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Commit what can be, and say per partition what became of it."""
    message = request.message
    by_id = request.version >= _IDS_FROM_VERSION
    images = [_image(broker, topic, by_id) for topic in message.topics]
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic, image in zip(message.topics, images, strict=True):
        for one in topic.partitions:
            if image is not None and 0 <= one.partition_index < len(image.partitions):
                offsets[TopicPartition(image.name, one.partition_index)] = CommittedOffset(
                    one.committed_offset, one.committed_leader_epoch, one.committed_metadata or "", broker.wall_ms
                )

    def answer(errors: dict[TopicPartition, int], otherwise: int) -> None:
        missing = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        topics = []
        for topic, image in zip(message.topics, images, strict=True):
            rows = []
            for one in topic.partitions:
                of = None if image is None else TopicPartition(image.name, one.partition_index)
                absent = missing if image is None else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                rows.append(Message(partition_index=one.partition_index, error_code=otherwise or errors.get(of, absent)))  # type: ignore[arg-type]
            name = {"topic_id": topic.topic_id} if by_id else {"name": topic.name}
            topics.append(Message(**name, partitions=rows))
        reply(Message(throttle_time_ms=0, topics=topics))

    try:
        if message.retention_time_ms != _BROKER_RETENTION:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a commit cannot bring its own retention time")
        broker.coordinator.commit(
            message.group_id,
            message.generation_id_or_member_epoch,
            message.member_id,
            message.group_instance_id,
            offsets,
            lambda errors: answer(errors, ErrorCode.NONE),
        )
    except BrokerError as error:
        gone = error.code == ErrorCode.ILLEGAL_GENERATION and broker.coordinator.describe(message.group_id) is None
        answer({}, ErrorCode.GROUP_ID_NOT_FOUND if gone and request.version >= _KNOWS_MISSING_FROM_VERSION else error.code)


def _image(broker: Broker, topic: Any, by_id: bool) -> TopicImage | None:
    image = broker.controller.image
    return image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)
