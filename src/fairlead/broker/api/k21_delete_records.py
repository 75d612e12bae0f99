"""DeleteRecords (21): the records of a partition before an offset are gone; -1 means all that can be read now.

Versions 0-2, served by the partition's leader. Refused: offsets beyond the high watermark (OFFSET_OUT_OF_RANGE), internal topics
(INVALID_TOPIC_EXCEPTION), topics that are only compacted (POLICY_VIOLATION). The answer does not wait for the followers, which hear of
the new start with the stream: `timeout_ms` has nothing to bound, and `low_watermark` is the leader's log start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.base.codes import ErrorCode
from fairlead.broker.controller import INTERNAL_TOPICS
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session

_TO_HIGH_WATERMARK = -1
_NO_LOW_WATERMARK = -1


@serves(ApiKey.DELETE_RECORDS, versions=(0, 2))
def delete_records(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Raise the start of each partition."""
    topics = [
        Message(name=topic.name, partitions=[_delete(broker, topic.name, one.partition_index, one.offset) for one in topic.partitions])
        for topic in request.message.topics
    ]
    reply(Message(throttle_time_ms=0, topics=topics))


def _delete(broker: Broker, topic: str, number: int, offset: int) -> Message:
    partition = ErrorCode.INVALID_TOPIC_EXCEPTION if topic in INTERNAL_TOPICS else broker.log_of(topic, number)
    if isinstance(partition, int):
        return Message(partition_index=number, low_watermark=_NO_LOW_WATERMARK, error_code=partition)
    if "delete" not in broker.controller.topic_settings(topic, broker.node_id)["cleanup.policy"]:
        return Message(partition_index=number, low_watermark=_NO_LOW_WATERMARK, error_code=ErrorCode.POLICY_VIOLATION)
    start = partition.high_watermark if offset == _TO_HIGH_WATERMARK else offset
    if not 0 <= start <= partition.high_watermark:
        return Message(partition_index=number, low_watermark=_NO_LOW_WATERMARK, error_code=ErrorCode.OFFSET_OUT_OF_RANGE)
    if start > partition.log_start:
        broker.logs.move_start(partition, start)
        broker.purgatory.advanced(partition)
        broker.replication.start_moved(partition)
    return Message(partition_index=number, low_watermark=partition.log_start, error_code=ErrorCode.NONE)
