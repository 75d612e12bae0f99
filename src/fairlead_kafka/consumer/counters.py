"""Counters that `Consumer.metrics()` returns."""

from __future__ import annotations

from collections.abc import Mapping

from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.consumer.fetcher import Fetcher
from fairlead_kafka.consumer.operations import ConsumerCounters
from fairlead_kafka.consumer.partition import PartitionState
from fairlead_kafka.core.group_offsets import Position


def counters(
    fetcher: Fetcher,
    partitions: Mapping[TopicPartition, PartitionState],
    positions: Mapping[TopicPartition, Position],
) -> ConsumerCounters:
    """Counters of the machine that has this fetcher, these partitions and positions."""
    lags = {
        partition: max(0, partitions[partition].readable_end - position.offset)
        for partition, position in positions.items()
        if partitions[partition].readable_end != NO_OFFSET
    }
    return {
        "fetch_requests": fetcher.requests,
        "fetched_bytes": fetcher.fetched_bytes,
        "fetch_throttle_time_avg": fetcher.throttle_ms / fetcher.answers if fetcher.answers else 0.0,
        "fetch_throttle_time_max": fetcher.throttle_max_ms,
        "undelivered_bytes": fetcher.waiting.size_bytes(),
        "assigned_partitions": len(partitions),
        "lag": lags,
    }
