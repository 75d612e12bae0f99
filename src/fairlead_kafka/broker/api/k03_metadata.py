"""Metadata (3): the live brokers, the controller, and the topics asked for; a missing topic may be
created on the way.

Versions 0-13. Topics by name, by id (from 10 on; names may be null then from 12 on), or all (an
empty list in version 0, null later). Auto-creation as in Kafka: `auto.create.topics.enable`, and
the request allows it (always before version 4), by name only; the topic is there at once, so that
the answer has its leaders. Above the client's controller_mutation_rate it is not created yet, and
UNKNOWN_TOPIC_OR_PARTITION, upon which clients ask again. The controller named is the live broker
with the lowest id. A partition whose broker is down has leader -1 and LEADER_NOT_AVAILABLE.
Refused: names that no topic can have (INVALID_TOPIC_EXCEPTION); ids and null names in versions 10
and 11, which carry them and cannot ask by them (INVALID_REQUEST; the answer is empty, as Kafka's).

Needs DESCRIBE on each topic: one that is asked for without it is TOPIC_AUTHORIZATION_FAILED,
whether it is there or not (by id, without its name; an id that is not there is UNKNOWN_TOPIC_ID),
and among all topics it is left out. To create one needs CREATE on the cluster or on the topic, else
it is TOPIC_AUTHORIZATION_FAILED too. The authorized operations, if asked for, are those of the
session's principal; of the cluster they are 0 without DESCRIBE on it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.api.common import NO_ID, PendingParts, name_error, one_each
from fairlead_kafka.broker.api.rights import (
    NO_OPERATIONS,
    cluster_operations,
    may_cluster,
    operations,
    permitted,
)
from fairlead_kafka.broker.controller import (
    OFFSETS_TOPIC,
    ClusterImage,
    CreateInternalTopic,
    CreateTopics,
    NewTopic,
    TopicImage,
)
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.quotas.spending import Spending
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import MetadataRequest, MetadataResponse

_Asked = MetadataRequest.MetadataRequestTopic
_Topic = MetadataResponse.MetadataResponseTopic
_Partition = MetadataResponse.MetadataResponsePartition

_ALLOW_FLAG_FROM_VERSION = 4
_IDS_FROM_VERSION = 12


@serves(ApiKey.METADATA, versions=(0, 13))
def metadata(broker: Services, request: Request[MetadataRequest], session: Requester, reply: Reply) -> None:
    """Serve Metadata: answer with the brokers, the controller and the topics asked for; create
    missing topics if that is allowed."""
    message = request.message
    image = broker.controller.image
    if message.topics is None or (request.version == 0 and not message.topics):
        seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, image.topics, quiet=True)
        described = [
            _describe(broker, session, message, topic)
            for topic in image.topics.values()
            if topic.name in seen
        ]
        reply(_answer(broker, session, message, described))
        return
    if request.version < _IDS_FROM_VERSION and any(
        one.topic_id != NO_ID or one.name is None for one in message.topics
    ):
        reply(_refused(message.topics))
        return
    asked = list({(one.name, one.topic_id): one for one in message.topics}.values())
    allowed = request.version < _ALLOW_FLAG_FROM_VERSION or message.allow_auto_topic_creation
    refused: dict[str, BrokerError | None] = {}
    hidden = _hidden(broker, session, asked)
    answer = PendingParts(
        lambda: reply(
            _answer(
                broker,
                session,
                message,
                [_topic(broker, session, message, one, hidden, refused) for one in asked],
            )
        )
    )
    if allowed and broker.settings["auto.create.topics.enable"]:
        missing = [
            one.name
            for one in asked
            if one.name is not None and one.name not in image.topics and one.name not in hidden
        ]
        _create(broker, session, _creatable(session, missing, hidden), refused, answer)
    answer.done()


def _hidden(broker: Services, session: Requester, asked: list[_Asked]) -> set[str]:
    """Names of topics that the session may not DESCRIBE. The caller adds those that it may not
    create."""
    if session.authorizer is None:
        return set()
    by_id = broker.controller.image.topics_by_id
    names = {one.name for one in asked if one.name is not None}
    names.update(by_id[one.topic_id].name for one in asked if one.name is None and one.topic_id in by_id)
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    return {name for name in names if name not in seen}


def _creatable(session: Requester, missing: list[str], hidden: set[str]) -> list[str]:
    """Topics of `missing` that the session may create; the other names are added to `hidden`."""
    if not missing or may_cluster(session, AclOperation.CREATE, quiet=True):
        return missing
    creatable = permitted(session, AclOperation.CREATE, AclResourceType.TOPIC, missing)
    hidden.update(name for name in missing if name not in creatable)
    return [name for name in missing if name in creatable]


def _create(
    broker: Services,
    session: Requester,
    missing: list[str],
    refused: dict[str, BrokerError | None],
    answer: PendingParts,
) -> None:
    """Create the topics `missing`, then call `answer`; errors are put into `refused`, by name."""
    wanted = [NewTopic(name) for name in dict.fromkeys(missing) if name != OFFSETS_TOPIC]

    def created(results: list[TopicImage | BrokerError] | None, error: BrokerError | None) -> None:
        for new, result in zip(wanted, one_each(results, error, len(wanted)), strict=True):
            late = isinstance(result, BrokerError) and result.code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
            refused[new.name] = result if isinstance(result, BrokerError) and not late else None
        answer.done()

    if OFFSETS_TOPIC in missing:
        broker.controller.decide(CreateInternalTopic(OFFSETS_TOPIC), answer.into(refused, OFFSETS_TOPIC))
    if wanted:
        answer.begin()
        spending = Spending(broker, session, strict=True)
        spending.decide(CreateTopics(wanted), created)


def _refused(topics: list[_Asked]) -> MetadataResponse:
    rows = [
        _Topic(
            error_code=ErrorCode.INVALID_REQUEST, name=one.name or "", topic_id=one.topic_id, partitions=[]
        )
        for one in topics
    ]
    return MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id=None, controller_id=NO_LEADER, topics=rows
    )


def _answer(
    broker: Services, session: Requester, message: MetadataRequest, topics: list[_Topic]
) -> MetadataResponse:
    image = broker.controller.image
    nodes = [info.endpoint(session.listener) for info in image.alive()]
    brokers = [
        MetadataResponse.MetadataResponseBroker(
            node_id=node.node_id, host=node.host, port=node.port, rack=node.rack
        )
        for node in nodes
    ]
    return MetadataResponse(
        throttle_time_ms=0,
        brokers=brokers,
        cluster_id=image.cluster_id,
        controller_id=image.controller_id(),
        topics=topics,
        cluster_authorized_operations=cluster_operations(session)
        if message.include_cluster_authorized_operations
        else NO_OPERATIONS,
        error_code=ErrorCode.NONE,
    )


def _topic(
    broker: Services,
    session: Requester,
    message: MetadataRequest,
    asked: _Asked,
    hidden: set[str],
    refused: dict[str, BrokerError | None],
) -> _Topic:
    image = broker.controller.image
    if asked.name is None:
        by_id = image.topics_by_id.get(asked.topic_id)
        if by_id is None:
            return _Topic(
                error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=asked.topic_id, partitions=[]
            )
        if by_id.name in hidden:
            return _Topic(
                error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
                name=None,
                topic_id=asked.topic_id,
                partitions=[],
            )
        return _describe(broker, session, message, by_id)
    if asked.name in hidden:
        return _Topic(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, name=asked.name, partitions=[])
    topic = image.topics.get(asked.name)
    if topic is not None:
        return _describe(broker, session, message, topic)
    error = refused.get(asked.name) or name_error(asked.name)
    return _Topic(
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if error is None else error.code,
        name=asked.name,
        partitions=[],
        topic_authorized_operations=_operations(session, message, asked.name),
    )


def _operations(session: Requester, message: MetadataRequest, name: str) -> int:
    return (
        operations(session, AclResourceType.TOPIC, name)
        if message.include_topic_authorized_operations
        else NO_OPERATIONS
    )


def _describe(broker: Services, session: Requester, message: MetadataRequest, topic: TopicImage) -> _Topic:
    row = _Topic(
        error_code=ErrorCode.NONE,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.internal,
        topic_authorized_operations=_operations(session, message, topic.name),
    )
    # No list, which a reader would get, but encoded as one.
    row.__dict__["partitions"] = _Partitions(broker.controller.image, topic)
    return row


class _Partitions:
    """The rows of a topic's partitions, to be encoded at once: an iterable that gives one message
    again and again, changed into each row in turn.

    30,000 of them would take 20 MB and as long to make as to encode.
    """

    def __init__(self, image: ClusterImage, topic: TopicImage) -> None:
        self._alive = frozenset(info.node.node_id for info in image.alive() if not info.disk_failed)
        self._partitions = topic.partitions

    def __len__(self) -> int:
        return len(self._partitions)

    def __iter__(self) -> Iterator[_Partition]:
        row = _Partition()
        fields = row.__dict__
        offline: dict[tuple[int, ...], list[int]] = {}
        for number, one in enumerate(self._partitions):
            replicas = one.replicas
            if replicas not in offline:
                offline[replicas] = [replica for replica in replicas if replica not in self._alive]
            fields["error_code"] = (
                ErrorCode.LEADER_NOT_AVAILABLE if one.leader == NO_LEADER else ErrorCode.NONE
            )
            fields["partition_index"] = number
            fields["leader_id"] = one.leader
            fields["leader_epoch"] = one.leader_epoch
            fields["replica_nodes"] = replicas
            fields["isr_nodes"] = one.isr
            fields["offline_replicas"] = offline[replicas]
            yield row
