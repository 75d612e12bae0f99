"""DescribeTopicPartitions (75): topics page by page (KIP-966).

Version 0. An answer has `response_partition_limit` partitions at most, and no more than
`max.request.partition.size.limit`; where more are left its cursor says where to go on. No topics:
all that the session may see, by name. Refused with INVALID_REQUEST: a cursor at a topic that is not
asked for, or below partition 0. No replica is eligible to lead but those in sync. Needs DESCRIBE on
each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there or not; where all are asked for, others
are left out).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.api.common import NO_ID, name_error
from fairlead_kafka.broker.api.rights import operations, permitted
from fairlead_kafka.broker.controller import ClusterImage, TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse

_Topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
_Partition = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponsePartition


@serves(ApiKey.DESCRIBE_TOPIC_PARTITIONS, versions=(0, 0))
def describe_topic_partitions(
    broker: Services, request: Request[DescribeTopicPartitionsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeTopicPartitions: describe partitions from the cursor on, as many as one answer
    may have."""
    message, image = request.message, broker.controller.image
    cursor = message.cursor
    names = _names(image, message)
    if names is None:
        reply(_refused(message))
        return
    shown = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names, quiet=not message.topics)
    answer = DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=[], next_cursor=None)
    left = max(1, min(message.response_partition_limit, broker.settings["max.request.partition.size.limit"]))
    for name in (name for name in names if name in shown):
        if left == 0:
            answer.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=0)
            break
        topic = image.topics.get(name)
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        row = _unknown(name) if topic is None else _topic(image, topic, first, left)
        row.topic_authorized_operations = operations(session, AclResourceType.TOPIC, name)
        answer.topics.append(row)
        stop = first + len(row.partitions)
        if topic is not None and stop < len(topic.partitions):
            answer.next_cursor = DescribeTopicPartitionsResponse.Cursor(topic_name=name, partition_index=stop)
            break
        left -= len(row.partitions)
    if message.topics:
        answer.topics += [_hidden(name) for name in names if name not in shown]
    reply(answer)


def _names(image: ClusterImage, message: DescribeTopicPartitionsRequest) -> list[str] | None:
    """The topics to describe, by name, from the cursor on; None for a cursor at a topic that is not
    asked for, or below partition 0."""
    asked = {one.name for one in message.topics} or image.topics.keys()
    if message.cursor is None:
        return sorted(asked)
    start = message.cursor.topic_name
    if message.cursor.partition_index < 0 or (message.topics and start not in asked):
        return None
    return sorted(name for name in asked if name >= start)


def _topic(image: ClusterImage, topic: TopicImage, first: int, count: int) -> _Topic:
    alive = frozenset(info.node.node_id for info in image.alive() if not info.disk_failed)
    rows = [
        _Partition(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE if one.leader == NO_LEADER else ErrorCode.NONE,
            partition_index=number,
            leader_id=one.leader,
            leader_epoch=one.leader_epoch,
            replica_nodes=list(one.replicas),
            isr_nodes=list(one.isr),
            eligible_leader_replicas=[],
            last_known_elr=[],
            offline_replicas=[replica for replica in one.replicas if replica not in alive],
        )
        for number, one in enumerate(topic.partitions[first : first + count], first)
    ]
    return _Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=rows,
    )


def _unknown(name: str) -> _Topic:
    error = name_error(name)
    return _Topic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is None else error.code,
        name=name,
        topic_id=NO_ID,
        partitions=[],
    )


def _hidden(name: str) -> _Topic:
    return _Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=name, topic_id=NO_ID, partitions=[])


def _refused(message: DescribeTopicPartitionsRequest) -> DescribeTopicPartitionsResponse:
    """The answer to an invalid cursor: the error is in each topic's row, for the answer has no
    other place for it."""
    code = BrokerError(ErrorCode.INVALID_REQUEST, "the cursor").code
    rows = [_Topic(error_code=code, name=one.name, topic_id=NO_ID, partitions=[]) for one in message.topics]
    return DescribeTopicPartitionsResponse(throttle_time_ms=0, topics=rows, next_cursor=None)
