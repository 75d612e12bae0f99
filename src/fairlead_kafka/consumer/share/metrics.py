"""Counters of a share consumer, written once for a request or a poll."""

from __future__ import annotations

from typing import TypedDict

from fairlead_kafka.core.traffic_meter import ClientMeter, Kinds
from fairlead_kafka.wire import ApiKey

ShareConsumerMetrics = TypedDict(
    "ShareConsumerMetrics",
    {
        "consumer-share-metrics": dict[str, float],
        "consumer-share-node-metrics": dict[str, dict[str, float]],
        "consumer-share-coordinator-metrics": dict[str, float],
        "consumer-share-fetch-manager-metrics": dict[str, float],
    },
)
"""Metrics by Kafka's groups and names."""

KINDS = Kinds(frozenset({ApiKey.SHARE_FETCH}), {ApiKey.SHARE_GROUP_HEARTBEAT: "heartbeat"})


class ShareMeter(ClientMeter):
    """Counters of the share consumer as a whole."""

    _OWN = (
        "bytes_fetched", "records_consumed", "acquired", "expired", "acks_asked", "acks_failed",
        "throttle_ms", "throttles", "heartbeats", "heartbeat_ns",
    )  # fmt: skip
    _OWN_MAXIMA = ("throttle_max_ms", "heartbeat_max_ns")
    TOTALS = (*ClientMeter.TOTALS, *_OWN)
    MAXIMA = (*ClientMeter.MAXIMA, *_OWN_MAXIMA)
    __slots__ = (*_OWN, *_OWN_MAXIMA)
    bytes_fetched: int
    records_consumed: int
    acquired: int
    expired: int
    acks_asked: int
    acks_failed: int
    throttle_ms: int
    throttles: int
    throttle_max_ms: int
