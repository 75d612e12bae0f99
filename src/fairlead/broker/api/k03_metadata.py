"""Metadata (3): the live brokers, the controller, and the topics asked for; a missing topic may be created on the way.

Versions 0-13. Topics by name, by id (from 10 on; names may be null then from 12 on), or all (an empty list in version 0, null
later). Auto-creation as in Kafka: `auto.create.topics.enable`, and the request allows it (always before version 4), by name only;
the topic is there at once, so that the answer has its leaders. The controller named is the live broker with the lowest id.
A partition whose broker is down has leader -1 and LEADER_NOT_AVAILABLE. Authorized operations are not told (there is no
authorizer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.base.ids import NO_LEADER
from fairlead.broker.controller import OFFSETS_TOPIC, TopicImage
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session

_NO_OPERATIONS = -(2**31)
_ALLOW_FLAG_FROM_VERSION = 4


@serves(ApiKey.METADATA, versions=(0, 13))
def metadata(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Describe the cluster."""
    message = request.message
    image = broker.controller.image
    asked = message.topics
    if asked is None or (request.version == 0 and not asked):
        topics = [_describe(broker, topic) for topic in image.topics.values()]
    else:
        allowed = request.version < _ALLOW_FLAG_FROM_VERSION or message.allow_auto_topic_creation
        create = allowed and broker.settings["auto.create.topics.enable"]
        topics = [_topic(broker, one, create) for one in asked]
    brokers = [Message(node_id=info.node.node_id, host=info.node.host, port=info.node.port, rack=info.node.rack) for info in image.alive()]
    reply(
        Message(
            throttle_time_ms=0,
            brokers=brokers,
            cluster_id=image.cluster_id,
            controller_id=image.controller_id(),
            topics=topics,
            cluster_authorized_operations=_NO_OPERATIONS,
            error_code=ErrorCode.NONE,
        )
    )


def _topic(broker: Broker, asked: Any, create: bool) -> Message:
    image = broker.controller.image
    if asked.name is None:
        by_id = image.topics_by_id.get(asked.topic_id)
        if by_id is None:
            return Message(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[])
        return _describe(broker, by_id)
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _describe(broker, topic)
    if not create:
        return Message(error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, name=asked.name, partitions=[])
    try:
        if asked.name == OFFSETS_TOPIC:
            return _describe(broker, broker.controller.create_offsets_topic())
        return _describe(broker, broker.controller.create_topic(asked.name))
    except BrokerError as error:
        return Message(error_code=error.code, name=asked.name, partitions=[])


def _describe(broker: Broker, topic: TopicImage) -> Message:
    alive = {info.node.node_id for info in broker.controller.image.alive()}
    partitions = [
        Message(
            error_code=ErrorCode.LEADER_NOT_AVAILABLE if partition.leader == NO_LEADER else ErrorCode.NONE,
            partition_index=number,
            leader_id=partition.leader,
            leader_epoch=partition.leader_epoch,
            replica_nodes=list(partition.replicas),
            isr_nodes=list(partition.isr),
            offline_replicas=[replica for replica in partition.replicas if replica not in alive],
        )
        for number, partition in enumerate(topic.partitions)
    ]
    return Message(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        partitions=partitions,
        topic_authorized_operations=_NO_OPERATIONS,
    )
