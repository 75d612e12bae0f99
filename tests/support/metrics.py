"""Reading clients' metrics in tests."""

from __future__ import annotations

from typing import Any

from fairlead_kafka.base.ids import TopicPartition


def metric(producer: Any, name: str) -> float:
    """One of the group producer-metrics."""
    value: float = producer.metrics()["producer-metrics"][name]
    return value


def memory_is_free(producer: Any) -> bool:
    """Every byte of buffer.memory is given back, and nobody waits for any."""
    found = producer.metrics()["producer-metrics"]
    return bool(
        found["buffer-available-bytes"] == found["buffer-total-bytes"] and not found["waiting-threads"]
    )


def lags(consumer: Any) -> dict[TopicPartition, float]:
    """Records that a consumer is behind the end that it may read, by partition."""
    found = consumer.metrics()["consumer-fetch-manager-partition-metrics"]
    return {partition: values["records-lag"] for partition, values in found.items()}
