"""The table of a share consumer's metrics: Kafka's names and meanings, and our own.

Sources: Kafka's `KafkaShareConsumerMetrics`, `ShareFetchMetricsRegistry`,
`HeartbeatMetricsManager` and `Selector`.
"""

from __future__ import annotations

from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core.metric_table import (
    CONNECTIONS,
    MACHINE_CODE_ROW,
    Group,
    Metric,
    counted,
    entered,
    gauge,
    network,
    ratio,
    spread,
)

_NETWORK = network("a ShareFetch request")

GROUPS = entered(
    Group(
        "consumer-share-metrics",
        "The share consumer as a whole.",
        "kafka_share_consumer",
        (
            *_NETWORK,
            *CONNECTIONS,
            gauge("bytes-waiting", "bytes", "Bytes that were fetched and wait for a poll.", ours=True),
            MACHINE_CODE_ROW,
        ),
    ),
    Group(
        "consumer-share-node-metrics",
        "One dictionary for each broker, `node-0`; bootstrap servers have negative numbers, as in Kafka.",
        "kafka_share_consumer_node",
        _NETWORK,
        ("node",),
    ),
    Group(
        "consumer-share-coordinator-metrics",
        "The share consumer in its group.",
        "kafka_share_consumer_coordinator",
        (
            gauge("assigned-partitions", "partitions", "Partitions assigned now.", ours=True),
            *counted("heartbeat", "requests", "heartbeats", "Heartbeats that were answered."),
            Metric(
                "heartbeat-response-time-max",
                "ms",
                "From writing a heartbeat to its answer: largest.",
                lambda reading: reading.maximum("heartbeat_max_ns") / NS_PER_MS,
            ),
        ),
    ),
    Group(
        "consumer-share-fetch-manager-metrics",
        "Fetches and acknowledgements.",
        "kafka_share_consumer_fetch_manager",
        (
            *counted("fetch", "requests", "answers", "ShareFetch requests that were answered."),
            *spread(
                "fetch-latency",
                "ms",
                "latency_ns",
                "answers",
                "latency_max_ns",
                "From writing a ShareFetch request to its answer, for which a broker may wait",
                NS_PER_MS,
            ),
            *spread(
                "fetch-throttle-time",
                "ms",
                "throttle_ms",
                "throttles",
                "throttle_max_ms",
                "How long a broker asked to be spared (quotas), acknowledgements included",
            ),
            ratio("fetch-size-avg", "bytes", "bytes_fetched", "answers", "Bytes of an answer: average."),
            *counted("bytes-fetched", "bytes", "bytes_fetched", "Bytes of batches, compressed.", ours=True),
            *counted("records-consumed", "records", "records_consumed", "Records that polls have returned."),
            *counted(
                "records-acquired", "offsets", "acquired", "Offsets acquired, gaps among them.", ours=True
            ),
            *counted(
                "records-expired",
                "offsets",
                "expired",
                "Offsets given up because they waited until their lock was over.",
                ours=True,
            ),
            *counted("acknowledgements-send", "offsets", "acks_asked", "Acknowledgements of offsets."),
            *counted(
                "acknowledgements-error",
                "offsets",
                "acks_failed",
                "Those that brokers refused or did not get.",
            ),
        ),
    ),
)
"""The groups that `ShareConsumer.metrics()` has."""
