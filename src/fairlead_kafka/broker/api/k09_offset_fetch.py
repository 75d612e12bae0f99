"""OffsetFetch (9): how far groups have come.

Versions 1-10; all partitions at once from 2 on, several groups from 8 on, topics by id from 10 on.
A partition without an offset is -1, without an error. With `require_stable` (7 on) a partition of
which an open transaction commits an offset is UNSTABLE_OFFSET_COMMIT: come again (KIP-447). A
member of the consumer protocol (KIP-848; 9 on) gets offsets at its epoch (UNKNOWN_MEMBER_ID,
STALE_MEMBER_EPOCH); in classic groups any is taken.

Needs DESCRIBE on the group (GROUP_AUTHORIZATION_FAILED) and on each topic:
TOPIC_AUTHORIZATION_FAILED, whether it is there or not, for those that are named (an id that is not
there is UNKNOWN_TOPIC_ID), and left out where all are asked for.
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER_EPOCH, NO_OFFSET, TopicPartition
from fairlead_kafka.broker.api.common import distinct
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.coordinator import CommittedOffset
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import OffsetFetchRequest, OffsetFetchResponse

_Asked = OffsetFetchRequest.OffsetFetchRequestTopics
_Group = OffsetFetchResponse.OffsetFetchResponseGroup
_Topic = OffsetFetchResponse.OffsetFetchResponseTopics
_Row = OffsetFetchResponse.OffsetFetchResponsePartitions
_OldTopic = OffsetFetchResponse.OffsetFetchResponseTopic
_OldRow = OffsetFetchResponse.OffsetFetchResponsePartition

_ERRORS_FROM_VERSION = 2
"""Version from which a group's error is answered once; before, with each partition."""
_GROUPS_FROM_VERSION = 8
_MEMBERS_FROM_VERSION = 9
_IDS_FROM_VERSION = 10
_NO_EPOCH = -1


@serves(ApiKey.OFFSET_FETCH, versions=(1, 10))
def offset_fetch(
    broker: Services, request: Request[OffsetFetchRequest], session: Requester, reply: Reply
) -> None:
    """Serve OffsetFetch: answer with the committed offsets of each group."""
    message = request.message
    by_id = request.version >= _IDS_FROM_VERSION
    stable = bool(message.require_stable)
    if request.version >= _GROUPS_FROM_VERSION:
        groups = [
            _group(broker, session, one.group_id, one.topics, by_id, stable, _member(request.version, one))
            for one in distinct(message.groups)
        ]
        reply(OffsetFetchResponse(throttle_time_ms=0, groups=groups))
        return
    topics = None
    if message.topics is not None:
        topics = [_Asked(name=one.name, partition_indexes=one.partition_indexes) for one in message.topics]
    group = _group(broker, session, message.group_id, topics, by_id, stable)
    if group.error_code and request.version < _ERRORS_FROM_VERSION:
        group.topics = _failed_rows(topics or [], group.error_code)
    rows = [_old_topic(topic) for topic in group.topics]
    reply(OffsetFetchResponse(throttle_time_ms=0, topics=rows, error_code=group.error_code))


def _member(version: int, group: OffsetFetchRequest.OffsetFetchRequestGroup) -> tuple[str | None, int]:
    """The member id and epoch by which a request asks for a group's offsets; (None, -1) for
    none."""
    return (group.member_id, group.member_epoch) if version >= _MEMBERS_FROM_VERSION else (None, _NO_EPOCH)


def _old_topic(topic: _Topic) -> _OldTopic:
    """A topic's rows for the versions that know one group only."""
    rows = [
        _OldRow(
            partition_index=row.partition_index,
            committed_offset=row.committed_offset,
            committed_leader_epoch=row.committed_leader_epoch,
            metadata=row.metadata,
            error_code=row.error_code,
        )
        for row in topic.partitions
    ]
    return _OldTopic(name=topic.name, partitions=rows)


def _group(
    broker: Services,
    session: Requester,
    group_id: str,
    topics: list[_Asked] | None,
    by_id: bool,
    stable: bool,
    member: tuple[str | None, int] = (None, _NO_EPOCH),
) -> _Group:
    try:
        demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, group_id)
        broker.coordinator.consumer.check_reader(group_id, *member)
        unstable = broker.coordinator.offsets.unstable(group_id) if stable else frozenset()
        if topics is None:
            rows = _all_rows(broker, session, group_id, unstable, by_id)
        else:
            rows = _topic_rows(broker, session, group_id, unstable, topics, by_id)
    except BrokerError as error:
        return _Group(group_id=group_id, topics=[], error_code=error.code)
    return _Group(group_id=group_id, topics=rows, error_code=ErrorCode.NONE)


def _all_rows(
    broker: Services, session: Requester, group_id: str, unstable: frozenset[TopicPartition], by_id: bool
) -> list[_Topic]:
    by_topic: dict[str, list[_Row]] = {}
    found = {*broker.coordinator.offsets.fetch(group_id, None), *unstable}
    seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, (of.topic for of in found))
    for of in sorted(found):
        if of.topic in seen:
            by_topic.setdefault(of.topic, []).extend(
                _partition_rows(broker, group_id, unstable, of.topic, [of.partition])
            )
    images = broker.controller.image.topics
    if by_id:
        return [
            _Topic(topic_id=images[name].topic_id, partitions=rows)
            for name, rows in by_topic.items()
            if name in images
        ]
    return [_Topic(name=name, partitions=rows) for name, rows in by_topic.items()]


def _topic_rows(
    broker: Services,
    session: Requester,
    group_id: str,
    unstable: frozenset[TopicPartition],
    topics: list[_Asked],
    by_id: bool,
) -> list[_Topic]:
    names = [_name(broker, topic, by_id) for topic in topics]
    seen = permitted(
        session, AclOperation.DESCRIBE, AclResourceType.TOPIC, (name for name in names if name is not None)
    )
    answered = []
    for topic, name in zip(topics, names, strict=True):
        if name is None:
            rows = [
                _partition_row(number, None, ErrorCode.UNKNOWN_TOPIC_ID) for number in topic.partition_indexes
            ]
        elif name not in seen:
            rows = [
                _partition_row(number, None, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
                for number in topic.partition_indexes
            ]
        else:
            rows = _partition_rows(broker, group_id, unstable, name, topic.partition_indexes)
        answered.append(
            _Topic(topic_id=topic.topic_id, partitions=rows)
            if by_id
            else _Topic(name=topic.name, partitions=rows)
        )
    return answered


def _name(broker: Services, topic: _Asked, by_id: bool) -> str | None:
    """Name of a topic of a request; None for an id that no topic has."""
    if not by_id:
        return topic.name
    image = broker.controller.image.topics_by_id.get(topic.topic_id)
    return None if image is None else image.name


def _partition_rows(
    broker: Services, group_id: str, unstable: frozenset[TopicPartition], topic: str, numbers: Iterable[int]
) -> list[_Row]:
    offsets = broker.coordinator.offsets.fetch(
        group_id, [TopicPartition(topic, number) for number in numbers]
    )
    return [
        _partition_row(of.partition, None, ErrorCode.UNSTABLE_OFFSET_COMMIT)
        if of in unstable
        else _partition_row(of.partition, committed, ErrorCode.NONE)
        for of, committed in offsets.items()
    ]


def _failed_rows(topics: Iterable[_Asked], error_code: int) -> list[_Topic]:
    return [
        _Topic(
            name=topic.name,
            partitions=[_partition_row(number, None, error_code) for number in topic.partition_indexes],
        )
        for topic in topics
    ]


def _partition_row(number: int, committed: CommittedOffset | None, error_code: int) -> _Row:
    return _Row(
        partition_index=number,
        committed_offset=NO_OFFSET if committed is None else committed.offset,
        committed_leader_epoch=NO_LEADER_EPOCH if committed is None else committed.leader_epoch,
        metadata="" if committed is None else committed.metadata,
        error_code=error_code,
    )
