"""OffsetCommit (8): how far a group has come; answered when the offsets are written.

Versions 2-10, topics by id from 10 on. Generation -1 commits for a group without members (an
assigned consumer, an admin). Refused: a retention time of the commit's own (versions 2-4,
INVALID_REQUEST): offsets are kept by `offsets.retention.minutes`; topics that are not there
(UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID); members of groups that are not there
(ILLEGAL_GENERATION, from 9 on GROUP_ID_NOT_FOUND). A member of the consumer protocol (KIP-848)
commits at its epoch, from 9 on (UNSUPPORTED_VERSION), or at an older one since which it has had the
partitions (STALE_MEMBER_EPOCH).

Needs READ on the group (GROUP_AUTHORIZATION_FAILED for every partition) and on each topic
(TOPIC_AUTHORIZATION_FAILED, whether it is there or not; an id that is not there is
UNKNOWN_TOPIC_ID). The group is asked only about what is left then.
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.api.rights import permitted
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.coordinator import CommittedOffset
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import OffsetCommitRequest, OffsetCommitResponse

_Topic = OffsetCommitResponse.OffsetCommitResponseTopic
_Row = OffsetCommitResponse.OffsetCommitResponsePartition

_IDS_FROM_VERSION = 10
_KNOWS_MISSING_FROM_VERSION = 9
_BROKER_RETENTION = -1


@serves(ApiKey.OFFSET_COMMIT, versions=(2, 10))
def offset_commit(
    broker: Services, request: Request[OffsetCommitRequest], session: Requester, reply: Reply
) -> None:
    """Serve OffsetCommit: commit the offsets that can be committed, and answer with each
    partition's error code."""
    message = request.message
    by_id = request.version >= _IDS_FROM_VERSION
    images = [_image(broker, topic, by_id) for topic in message.topics]
    refused = _refused(session, message, images, by_id)
    offsets: dict[TopicPartition, CommittedOffset] = {}
    for topic, image, code in zip(message.topics, images, refused, strict=True):
        for one in topic.partitions:
            if image is not None and not code and 0 <= one.partition_index < len(image.partitions):
                offsets[TopicPartition(image.name, one.partition_index)] = CommittedOffset(
                    one.committed_offset,
                    one.committed_leader_epoch,
                    one.committed_metadata or "",
                    broker.wall_ms,
                    topic_id=image.topic_id,
                )

    def answer(errors: dict[TopicPartition, int]) -> None:
        topics = []
        for topic, image, code in zip(message.topics, images, refused, strict=True):
            rows = []
            for one in topic.partitions:
                of = TopicPartition("" if image is None else image.name, one.partition_index)
                error = code or errors.get(of, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
                rows.append(_Row(partition_index=one.partition_index, error_code=error))
            topics.append(
                _Topic(topic_id=topic.topic_id, partitions=rows)
                if by_id
                else _Topic(name=topic.name, partitions=rows)
            )
        reply(OffsetCommitResponse(throttle_time_ms=0, topics=topics))

    if not offsets:
        answer({})
        return
    try:
        broker.coordinator.offsets.commit(
            message.group_id,
            message.generation_id_or_member_epoch,
            message.member_id,
            message.group_instance_id,
            offsets,
            answer,
            request.version,
        )
    except BrokerError as error:
        gone = (
            error.code == ErrorCode.ILLEGAL_GENERATION
            and broker.coordinator.describe(message.group_id) is None
        )
        code = (
            ErrorCode.GROUP_ID_NOT_FOUND
            if gone and request.version >= _KNOWS_MISSING_FROM_VERSION
            else error.code
        )
        answer(dict.fromkeys(offsets, code))


def _image(
    broker: Services, topic: OffsetCommitRequest.OffsetCommitRequestTopic, by_id: bool
) -> TopicImage | None:
    image = broker.controller.image
    return image.topics_by_id.get(topic.topic_id) if by_id else image.topics.get(topic.name)


def _refused(
    session: Requester, message: OffsetCommitRequest, images: list[TopicImage | None], by_id: bool
) -> list[int]:
    """The error code that all partitions of a topic get, for each topic; 0 if there is none."""
    if not session.may(AclOperation.READ, AclResourceType.GROUP, message.group_id):
        return [ErrorCode.GROUP_AUTHORIZATION_FAILED] * len(images)
    if message.retention_time_ms != _BROKER_RETENTION:
        return [ErrorCode.INVALID_REQUEST] * len(images)
    names = [
        (None if by_id else one.name) if image is None else image.name
        for one, image in zip(message.topics, images, strict=True)
    ]
    readable = permitted(
        session, AclOperation.READ, AclResourceType.TOPIC, (name for name in names if name is not None)
    )
    codes: list[int] = []
    for name, image in zip(names, images, strict=True):
        if name is None:
            codes.append(ErrorCode.UNKNOWN_TOPIC_ID)
        elif name not in readable:
            codes.append(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        else:
            codes.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if image is None else ErrorCode.NONE)
    return codes
