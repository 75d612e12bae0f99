"""ListOffsets (2): the offset at a time, at the beginning or at the end of a partition.

Versions 1-11. Times: a timestamp in ms (the first record at or after it), -1 latest (where the
reader's view ends), -2 earliest, -3 the record with the greatest timestamp (version 7), -4 earliest
local (8; as earliest), -5 latest tiered (9; none: there is no tiered storage), -6 earliest pending
upload (11; none either). With isolation level 1 (read_committed) the view ends at the last stable
offset, else at the high watermark; after an election nobody can say where until the high watermark
has come to this leader's epoch: OFFSET_NOT_AVAILABLE (KIP-207). Each answer has the leader epoch of
the record at its offset; the latest, which has none, that of the leader. A search by time that has
to look into a damaged batch ends with CORRUPT_MESSAGE. Not served: 0 (lists of segments' offsets).
Needs DESCRIBE on each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there or not).
"""

from __future__ import annotations

from collections.abc import Callable

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import PendingParts, repeated
from fairlead_kafka.broker.api.rights import permitted
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.log import TimedRecord
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ListOffsetsRequest, ListOffsetsResponse

_Row = ListOffsetsResponse.ListOffsetsPartitionResponse

_READ_COMMITTED = 1
_OFFSET_NOT_AVAILABLE_FROM_VERSION = 5
LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED, EARLIEST_PENDING = -1, -2, -3, -4, -5, -6
_FROM_VERSION = {LATEST: 1, EARLIEST: 1, NEWEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9, EARLIEST_PENDING: 11}


@serves(ApiKey.LIST_OFFSETS, versions=(1, 11))
def list_offsets(
    broker: Services, request: Request[ListOffsetsRequest], session: Requester, reply: Reply
) -> None:
    """Serve ListOffsets: look up every partition, and answer when the last batch that has to be
    read is."""
    answer = ListOffsetsResponse(throttle_time_ms=0, topics=[])
    parts_pending = PendingParts(lambda: reply(answer))
    committed = request.message.isolation_level == _READ_COMMITTED
    seen = permitted(
        session,
        AclOperation.DESCRIBE,
        AclResourceType.TOPIC,
        (asked.name for asked in request.message.topics),
    )
    for asked in request.message.topics:
        topic = broker.controller.image.topics.get(asked.name)
        rows: list[_Row] = []
        twice = repeated(data.partition_index for data in asked.partitions)
        for data in {data.partition_index: data for data in asked.partitions}.values():
            row = _row(data.partition_index)
            rows.append(row)
            if asked.name not in seen:
                row.error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            elif data.partition_index in twice:
                row.error_code = ErrorCode.INVALID_REQUEST
            else:
                _look_up(broker, topic, data, request.version, committed, row, parts_pending)
        answer.topics.append(ListOffsetsResponse.ListOffsetsTopicResponse(name=asked.name, partitions=rows))
    parts_pending.done()


def _answer_of(
    row: _Row, parts_pending: PendingParts, absent: int
) -> Callable[[int, TimedRecord | None], None]:
    """A callback that writes what a search found into `row`; `absent` is the error code if it found
    nothing."""
    parts_pending.begin()

    def found(error: int, record: TimedRecord | None) -> None:
        if record is not None:
            row.offset, row.timestamp, row.leader_epoch = record
        else:
            row.error_code = error or absent
        parts_pending.done()

    return found


def _look_up(
    broker: Services,
    topic: TopicImage | None,
    data: ListOffsetsRequest.ListOffsetsPartition,
    version: int,
    committed: bool,
    row: _Row,
    parts_pending: PendingParts,
) -> None:
    partition = broker.partitions.find(topic, data.partition_index, data.current_leader_epoch)
    if isinstance(partition, int):
        row.error_code = partition
        return
    timestamp = data.timestamp
    if timestamp < 0 and _FROM_VERSION.get(timestamp, version + 1) > version:
        row.error_code = ErrorCode.UNSUPPORTED_VERSION
        return
    epoch = broker.partitions.leader_epoch(partition)
    end = partition.last_stable_offset if committed else partition.high_watermark
    led = broker.replication.leading(partition)
    end_known = led.end_known
    absent = ErrorCode.NONE if end_known else _unknown_end(version)
    if timestamp == LATEST and not end_known:
        row.error_code = absent
    elif timestamp == LATEST:
        row.offset, row.leader_epoch = end, epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        start = row.offset = partition.log_start
        # An empty log begins in the leader's own epoch, though nothing was written in it yet.
        row.leader_epoch = epoch if start >= led.former_end else partition.epochs.of(start)
    elif timestamp in (LATEST_TIERED, EARLIEST_PENDING):
        row.offset = -1
    elif timestamp == NEWEST:
        broker.logs.newest(partition, end, _answer_of(row, parts_pending, absent))
    else:
        broker.logs.first_at(partition, timestamp, end, _answer_of(row, parts_pending, absent))


def _unknown_end(version: int) -> int:
    """The error code while a new leader does not know yet how much the one before had acknowledged
    (KIP-207)."""
    return (
        ErrorCode.OFFSET_NOT_AVAILABLE
        if version >= _OFFSET_NOT_AVAILABLE_FROM_VERSION
        else ErrorCode.LEADER_NOT_AVAILABLE
    )


def _row(number: int) -> _Row:
    return _Row(partition_index=number, error_code=ErrorCode.NONE, timestamp=-1, offset=-1, leader_epoch=-1)
