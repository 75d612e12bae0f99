"""DescribeShareGroupOffsets (90): from where share groups go on in partitions, and from 1 on how
far that is behind (KIP-932, KIP-1226).

Versions 0-1. Topics null: all that the group has offsets of and that the session may DESCRIBE, and
a group that is not there is GROUP_ID_NOT_FOUND. Where a group has no offset, -1. The lag counts
offsets up to the high watermark (or the last stable offset, where the group's share.isolation.level
is read_committed) without those that are complete; -1: not known. UNSUPPORTED_VERSION where the
feature share.version is 0. Needs DESCRIBE on each group (GROUP_AUTHORIZATION_FAILED for it) and on
each topic (TOPIC_AUTHORIZATION_FAILED for it).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import NO_ID, PendingParts, reason
from fairlead_kafka.broker.api.rights import demand, permitted
from fairlead_kafka.broker.api.share_requests import NOT_HOSTED, TOPIC_REFUSED, check_share_groups
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.broker.share_groups import NO_OFFSET, ShareKey, ShareState
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
)

_Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
_Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
_Row = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
_Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup

_LATEST = -1
_LIST_OFFSETS_VERSION = 7
_CLIENT = -1
_READ_UNCOMMITTED, _READ_COMMITTED = 0, 1
_UNKNOWN = -1
_LAG_MAX = 2**63 - 1
"""Greatest lag that the answer can hold: a start offset that was kept may be far below 0."""


@serves(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, versions=(0, 1))
def describe_share_group_offsets(
    broker: Services, request: Request[DescribeShareGroupOffsetsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeShareGroupOffsets: answer with the start offsets of each group, once the last
    one is known."""
    answer = DescribeShareGroupOffsetsResponse(throttle_time_ms=0, groups=[])
    pending = PendingParts(lambda: reply(answer))
    for asked in request.message.groups:
        group = _Group(group_id=asked.group_id, topics=[], error_code=ErrorCode.NONE, error_message=None)
        answer.groups.append(group)
        try:
            check_share_groups(broker)
            demand(session, AclOperation.DESCRIBE, AclResourceType.GROUP, asked.group_id)
            _describe(broker, session, asked, group, pending)
        except BrokerError as error:
            group.error_code, group.error_message = error.code, reason(error)
    pending.done()


def _describe(
    broker: Services, session: Requester, asked: _Asked, group: _Group, pending: PendingParts
) -> None:
    """Begin to look up a group's offsets; `group` gets the rows. BrokerError if the group does not
    exist."""
    topics = broker.controller.image.topics
    if asked.topics is None:
        places = broker.coordinator.share.states.places(asked.group_id)
        wanted = {state.name: sorted(state.partitions) for state in places.values()}
        seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, wanted, quiet=True)
        wanted = {name: numbers for name, numbers in wanted.items() if name in seen}
    else:
        wanted = {one.topic_name: list(one.partitions) for one in asked.topics}
        seen = permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, wanted)
    for name, numbers in wanted.items():
        topic = topics.get(name)
        row_of_topic = _Topic(
            topic_name=name, topic_id=NO_ID if topic is None else topic.topic_id, partitions=[]
        )
        group.topics.append(row_of_topic)
        for number in numbers:
            row = _row(number)
            row_of_topic.partitions.append(row)
            if name not in seen:
                row.error_code, row.error_message = ErrorCode.TOPIC_AUTHORIZATION_FAILED, TOPIC_REFUSED
                row_of_topic.topic_id = NO_ID
            elif topic is None or not 0 <= number < len(topic.partitions):
                row.error_code, row.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, NOT_HOSTED
            else:
                _look_up(broker, asked.group_id, topic, row, pending)


def _row(number: int) -> _Row:
    return _Row(
        partition_index=number,
        start_offset=NO_OFFSET,
        leader_epoch=0,
        lag=_UNKNOWN,
        error_code=ErrorCode.NONE,
        error_message=None,
    )


def _look_up(broker: Services, group_id: str, topic: TopicImage, row: _Row, pending: PendingParts) -> None:
    """Ask the share coordinator for a partition's start offset and its leader for its end; `row`
    gets both."""
    pending.begin()

    def seen(error: int, state: ShareState | None) -> None:
        row.error_code = error
        if error or state is None:
            pending.done()
            return
        row.start_offset, row.leader_epoch = state.start_offset, state.leader_epoch
        if state.start_offset == NO_OFFSET or state.complete_count < 0:
            pending.done()
            return
        committed = broker.share_partitions.settings(group_id).committed
        _end(broker, topic, row.partition_index, committed, partial(ended, state))

    def ended(state: ShareState, end: int | None) -> None:
        if end is not None:
            row.lag = min(max(0, end - state.start_offset - state.complete_count), _LAG_MAX)
        pending.done()

    broker.share_persister.summary(ShareKey(group_id, topic.topic_id, row.partition_index), seen)


def _end(
    broker: Services, topic: TopicImage, number: int, committed: bool, done: Callable[[int | None], None]
) -> None:
    """Find the end offset of a partition for readers, and call done(offset); done(None) if it
    cannot be found now."""
    partition = broker.partitions.find(topic, number)
    if not isinstance(partition, int):
        done(partition.last_stable_offset if committed else partition.high_watermark)
        return
    leader = topic.partitions[number].leader
    if leader == broker.node_id or not broker.controller.image.is_alive(leader):
        done(None)
        return
    asked = ListOffsetsRequest.ListOffsetsPartition(
        partition_index=number, current_leader_epoch=-1, timestamp=_LATEST
    )
    message = ListOffsetsRequest(
        replica_id=_CLIENT,
        isolation_level=_READ_COMMITTED if committed else _READ_UNCOMMITTED,
        topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic.name, partitions=[asked])],
    )

    def answered(response: ListOffsetsResponse | None, _error: Exception | None) -> None:
        row = None if response is None else response.topics[0].partitions[0]
        done(None if row is None or row.error_code else row.offset)

    broker.links.ask(leader, ApiKey.LIST_OFFSETS, _LIST_OFFSETS_VERSION, message, answered)
