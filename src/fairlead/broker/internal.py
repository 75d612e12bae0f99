"""Appending and reading without a client: how the coordinator keeps its offsets in a partition of this broker's log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.core.effects import Buffer
from fairlead.records import RecordColumns, Slice, encode, scan

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker


def append_internal(broker: Broker, topic: str, number: int, columns: RecordColumns, done: Callable[[int, int], None]) -> None:
    """Append records to a partition led here; done(error_code, base_offset) once they are written (error 0) or refused."""
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        done(partition, -1)
        return
    batch = encode([Slice(columns, 0, columns.count, None)], create_time_ms=broker.wall_ms).buffer
    try:
        base_offset = broker.logs.append(
            partition, memoryview(batch), scan(batch)[0], broker.partitions.leader_epoch(partition), broker.wall_ms
        )
    except BrokerError as error:
        done(error.code, -1)
        return

    def written(success: bool) -> None:
        done(ErrorCode.NONE if success else ErrorCode.KAFKA_STORAGE_ERROR, base_offset if success else -1)

    broker.logs.when_written(written)


def read_internal(
    broker: Broker, topic: str, number: int, offset: int, done: Callable[[int, Sequence[Buffer], int], None], max_bytes: int
) -> None:
    """Read whole batches from `offset` on: done(error_code, batches, next_offset); no batches: the end was reached."""
    partition = broker.log_of(topic, number)
    if isinstance(partition, int):
        done(partition, (), offset)
        return
    start = max(offset, partition.log_start)
    locations = partition.select(start, partition.high_watermark, max_bytes, at_least_one=True)
    index = partition.index
    first = index.first_reaching(start)
    next_offset = index.last_offsets[first + len(locations) - 1] + 1 if locations else start

    def read(batches: list[Buffer] | None) -> None:
        if batches is None:
            done(ErrorCode.KAFKA_STORAGE_ERROR, (), offset)
        else:
            done(ErrorCode.NONE, batches, next_offset)

    broker.logs.read(locations, read)
