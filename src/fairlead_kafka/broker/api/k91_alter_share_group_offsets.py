"""AlterShareGroupOffsets (91): a share group without members goes on from other offsets (KIP-932).

Version 0. Its partitions begin with a new state: what was in flight is forgotten. A group that is
not there is made, one of another kind is GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP;
nothing is done where the session may READ none of the topics. Of a partition, INVALID_REQUEST for
an offset that no record has; -1 is as share.auto.offset.reset says. UNSUPPORTED_VERSION where the
feature share.version is 0. Needs READ on the group (GROUP_AUTHORIZATION_FAILED) and on each topic
(TOPIC_AUTHORIZATION_FAILED for its partitions).
"""

from __future__ import annotations

from collections.abc import Container
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
from fairlead_kafka.broker.share_groups import NO_OFFSET, OFFSET_MAX, ShareKey
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AlterShareGroupOffsetsRequest, AlterShareGroupOffsetsResponse

_Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
_Row = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


@serves(ApiKey.ALTER_SHARE_GROUP_OFFSETS, versions=(0, 0))
def alter_share_group_offsets(
    broker: Services, request: Request[AlterShareGroupOffsetsRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterShareGroupOffsets: set the start offsets of a share group; answered when they are
    written."""
    message = request.message
    answer = AlterShareGroupOffsetsResponse(
        throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, responses=[]
    )
    try:
        check_share_groups(broker)
        demand(session, AclOperation.READ, AclResourceType.GROUP, message.group_id)
        names = (topic.topic_name for topic in message.topics)
        seen = permitted(session, AclOperation.READ, AclResourceType.TOPIC, names)
        wanted, rows = _read(broker, seen, message, answer)

        def altered(errors: dict[ShareKey, int]) -> None:
            for key, error in errors.items():
                rows[key.topic_id, key.partition].error_code = error
            reply(answer)

        if any(row.topic_id != NO_ID and row.topic_name in seen for row in answer.responses):
            broker.coordinator.share.states.alter(message.group_id, wanted, altered)
        else:
            reply(answer)
    except BrokerError as error:
        answer.error_code, answer.error_message, answer.responses = error.code, reason(error), []
        reply(answer)


def _read(
    broker: Services,
    seen: Container[str | None],
    message: AlterShareGroupOffsetsRequest,
    answer: AlterShareGroupOffsetsResponse,
) -> tuple[dict[UUID, dict[int, int]], dict[tuple[UUID, int], _Row]]:
    """The offsets that a request sets, by topic id and partition, and the rows of the answer."""
    wanted: dict[UUID, dict[int, int]] = {}
    rows: dict[tuple[UUID, int], _Row] = {}
    for asked in message.topics:
        topic = broker.controller.image.topics.get(asked.topic_name)
        row_of_topic = _Topic(topic_name=asked.topic_name, topic_id=NO_ID, partitions=[])
        answer.responses.append(row_of_topic)
        if topic is not None:
            row_of_topic.topic_id = topic.topic_id
        for one in asked.partitions:
            row = _Row(partition_index=one.partition_index, error_code=ErrorCode.NONE, error_message=None)
            row_of_topic.partitions.append(row)
            if asked.topic_name not in seen:
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                row.error_message = TOPIC_REFUSED
            elif topic is None or not 0 <= one.partition_index < len(topic.partitions):
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                row.error_message = NOT_HOSTED
            elif not NO_OFFSET <= one.start_offset <= OFFSET_MAX:
                row.error_code = ErrorCode.INVALID_REQUEST
                row.error_message = (
                    f"{one.start_offset} is no start offset: it is from {NO_OFFSET} (as "
                    f"share.auto.offset.reset says) to {OFFSET_MAX}"
                )
            else:
                wanted.setdefault(topic.topic_id, {})[one.partition_index] = one.start_offset
                rows[topic.topic_id, one.partition_index] = row
    return wanted, rows
