"""ListOffsets (2): the offset at a time, at the beginning or at the end of a partition.

Versions 1-10. Times: a timestamp in ms (the first record at or after it), -1 latest (where the reader's view ends), -2 earliest, -3 the
record with the greatest timestamp (version 7), -4 earliest local (8; as earliest), -5 latest tiered (9; none: there is no tiered
storage). With isolation level 1 (read_committed) the view ends at the last stable offset, else at the high watermark; after
an election nobody can say where until the high watermark has come to this leader's epoch: OFFSET_NOT_AVAILABLE (KIP-207). Not served: 0
(lists of segments' offsets), 11 (earliest pending upload).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import Gathering, repeated
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.broker.log import Partition
from fairlead_kafka.core.effects import Buffer
from fairlead_kafka.records import decode, scan
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session

_READ_COMMITTED = 1
_OFFSET_NOT_AVAILABLE_FROM_VERSION = 5
LATEST, EARLIEST, NEWEST, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
_FROM_VERSION = {LATEST: 1, EARLIEST: 1, NEWEST: 7, EARLIEST_LOCAL: 8, LATEST_TIERED: 9}


@serves(ApiKey.LIST_OFFSETS, versions=(1, 10))
def list_offsets(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Look up every partition; the answer goes when the last batch that has to be read is."""
    answer = Message(throttle_time_ms=0, topics=[])
    gathering = Gathering(lambda: reply(answer))
    committed = request.message.isolation_level == _READ_COMMITTED
    for asked in request.message.topics:
        topic = broker.controller.image.topics.get(asked.name)
        rows: list[Message] = []
        twice = repeated(data.partition_index for data in asked.partitions)
        for data in {data.partition_index: data for data in asked.partitions}.values():
            row = _row(data.partition_index)
            rows.append(row)
            if data.partition_index in twice:
                row.error_code = ErrorCode.INVALID_REQUEST
            else:
                _look_up(broker, topic, data, request.version, committed, row, gathering)
        answer.topics.append(Message(name=asked.name, partitions=rows))
    gathering.done()


def _read(
    broker: Broker, partition: Partition, number: int, row: Message, gathering: Gathering, choose: Callable[[Buffer], tuple[int, int]]
) -> None:
    """Read batch `number`; `choose` finds (offset, timestamp) in it."""
    gathering.begin()
    epoch = broker.partitions.leader_epoch(partition)

    def taken(batches: list[Buffer] | None) -> None:
        if batches is None:
            row.error_code = ErrorCode.KAFKA_STORAGE_ERROR
        else:
            row.offset, row.timestamp = choose(batches[0])
            row.leader_epoch = epoch
        gathering.done()

    broker.logs.read([partition.index.location(number)], taken)


def _look_up(
    broker: Broker, topic: TopicImage | None, data: Any, version: int, committed: bool, row: Message, gathering: Gathering
) -> None:
    partition = broker.partitions.find(topic, data.partition_index, data.current_leader_epoch)
    if isinstance(partition, int):
        row.error_code = partition
        return
    timestamp = data.timestamp
    if timestamp < 0 and _FROM_VERSION.get(timestamp, version + 1) > version:
        row.error_code = ErrorCode.UNSUPPORTED_VERSION
        return
    index, epoch = partition.index, broker.partitions.leader_epoch(partition)
    end = partition.last_stable_offset if committed else partition.high_watermark
    end_known = broker.replication.leading(partition).end_known
    first, stop = index.first_reaching(partition.log_start), index.below(end)
    if timestamp == LATEST and not end_known:
        row.error_code = _unknown_end(version)
    elif timestamp == LATEST:
        row.offset, row.leader_epoch = end, epoch
    elif timestamp in (EARLIEST, EARLIEST_LOCAL):
        row.offset, row.leader_epoch = partition.log_start, epoch
    elif timestamp == LATEST_TIERED:
        row.offset = -1
    elif timestamp == NEWEST:
        number = index.newest(first, stop)
        if number < stop:
            _read(broker, partition, number, row, gathering, _newest_in)
    else:
        number = index.first_with_timestamp(timestamp, first)
        if number < stop:
            log_start = partition.log_start
            _read(broker, partition, number, row, gathering, lambda batch: _first_at(batch, timestamp, log_start))
        elif not end_known:
            row.error_code = _unknown_end(version)


def _unknown_end(version: int) -> int:
    """The leader is new, and does not know yet how much the one before had acknowledged (KIP-207)."""
    return ErrorCode.OFFSET_NOT_AVAILABLE if version >= _OFFSET_NOT_AVAILABLE_FROM_VERSION else ErrorCode.LEADER_NOT_AVAILABLE


def _newest_in(batch: Buffer) -> tuple[int, int]:
    """The first record with the greatest timestamp."""
    header = scan(batch)[0]
    if header.control:
        return header.base_offset, header.max_timestamp_ms
    records = decode(batch, want_keys=False, want_headers=False)
    number = int(records.timestamps_ms.argmax())
    return int(records.offsets[number]), int(records.timestamps_ms[number])


def _first_at(batch: Buffer, timestamp_ms: int, log_start: int) -> tuple[int, int]:
    """The first record at or after a time (Kafka's `FileRecords.searchForTimestamp`); (-1, -1) if the batch has none after all."""
    header = scan(batch)[0]
    if header.control:  # a marker counts as a record here, as in Kafka
        return header.base_offset, header.max_timestamp_ms
    records = decode(batch, from_offset=log_start, want_keys=False, want_headers=False)
    late = records.timestamps_ms >= timestamp_ms
    if not late.any():
        return -1, -1
    number = int(late.argmax())
    return int(records.offsets[number]), int(records.timestamps_ms[number])


def _row(number: int) -> Message:
    return Message(partition_index=number, error_code=ErrorCode.NONE, timestamp=-1, offset=-1, leader_epoch=-1)
