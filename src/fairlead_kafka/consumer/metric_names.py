"""The table of a consumer's metrics: Kafka's names and meanings, and our own.

Sources: Kafka's `KafkaConsumerMetrics`, `FetchMetricsRegistry`, `OffsetCommitMetricsManager`,
`HeartbeatMetricsManager`, `ConsumerRebalanceMetricsManager`, `RebalanceCallbackMetricsManager`,
`AbstractCoordinator` and `Selector`.
"""

from __future__ import annotations

from math import nan

from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core.meters import Reading
from fairlead_kafka.core.metric_table import (
    CONNECTIONS,
    MACHINE_CODE_ROW,
    NONE_LEAST,
    Group,
    Metric,
    counted,
    entered,
    gauge,
    hourly,
    network,
    ratio,
    spent,
    spread,
)

_NETWORK = network("a Fetch request")

POLLING_OPEN, BETWEEN_OPEN = "polling-open-ns", "between-open-ns"
"""Gauges: what the last poll adds to `polling_ns` and `between_ns` so far; the next one counts
it."""


def idle_ratio(reading: Reading) -> float:
    """Share of the time in polls, the time since the last one included; NaN without polls."""
    between_ns = reading.changes["between_ns"] + reading.gauge(BETWEEN_OPEN)
    if not between_ns > 0:
        return nan
    return min(1.0, (reading.changes["polling_ns"] + reading.gauge(POLLING_OPEN)) / between_ns)


POLLS = (
    gauge("last-poll-seconds-ago", "s", "Time since the last poll began; -1: there was none."),
    *spread(
        "time-between-poll",
        "ms",
        "between_ns",
        "gaps",
        "between_max_ns",
        "From the beginning of a poll to that of the next",
        NS_PER_MS,
    ),
    Metric(
        "poll-idle-ratio-avg",
        "1",
        "Share of the time that the application spends in polls, and not between them: average; the time "
        "since the last poll counts. NaN: there was no poll in the window.",
        idle_ratio,
    ),
)

CONSUMER = (
    *POLLS,
    spent("commit-sync", "commit_call_ns", "`commit`"),
    spent("committed", "committed_call_ns", "`committed`"),
    *_NETWORK,
    *CONNECTIONS,
    gauge("bytes-waiting", "bytes", "Bytes that were fetched and wait for a poll.", ours=True),
    MACHINE_CODE_ROW,
)


def _consumed(requests: str) -> tuple[Metric, ...]:
    return (
        *spread("fetch-size", "bytes", "fetched_bytes", requests, "fetched_max_bytes", "Bytes of an answer"),
        *counted(
            "bytes-consumed",
            "bytes",
            "bytes_consumed",
            "Bytes of batches that polls have returned, as they were fetched: compressed.",
        ),
        *counted("records-consumed", "records", "records_consumed", "Records that polls have returned."),
        ratio(
            "records-per-request-avg",
            "records",
            "records_consumed",
            requests,
            "Records that polls have returned, to each answer: average.",
        ),
    )


def _least(name: str, unit: str, least: str, meaning: str) -> Metric:
    return Metric(name, unit, meaning, lambda reading: NONE_LEAST - reading.maximum(least))


FETCHES = (
    *counted("fetch", "requests", "answers", "Fetch requests that were answered."),
    *spread(
        "fetch-latency",
        "ms",
        "latency_ns",
        "answers",
        "latency_max_ns",
        "From writing a Fetch request to its answer, for which a broker may wait",
        NS_PER_MS,
    ),
    *spread(
        "fetch-throttle-time",
        "ms",
        "throttle_ms",
        "answers",
        "throttle_max_ms",
        "How long a broker asked to be spared (quotas)",
    ),
    *_consumed("answers"),
)

FETCH_MANAGER = (
    *FETCHES,
    Metric(
        "records-lag-max",
        "records",
        "Largest lag of any partition that a poll has left behind.",
        lambda reading: reading.maximum("lag_max"),
    ),
    _least(
        "records-lead-min",
        "records",
        "lead_shy",
        "Least lead of any partition that a poll has left: how near its position was to the log's start.",
    ),
)

FETCH_TOPIC = _consumed("fetches")

FETCH_PARTITION = (
    gauge(
        "records-lag",
        "records",
        "Records from the position, that of the next record to return, to the end that may be read.",
    ),
    ratio("records-lag-avg", "records", "lags", "looks", "Lag that a poll has left: average."),
    Metric(
        "records-lag-max",
        "records",
        "Lag that a poll has left: largest.",
        lambda reading: reading.maximum("lag_max"),
    ),
    gauge("records-lead", "records", "Records from the start of the log to the position."),
    ratio("records-lead-avg", "records", "leads", "looks", "Lead that a poll has left: average."),
    _least("records-lead-min", "records", "lead_shy", "Lead that a poll has left: least."),
    gauge("preferred-read-replica", "node id", "The replica that is read; -1: the leader."),
)


def _latency(name: str, kind: str, meaning: str) -> tuple[Metric, ...]:
    return spread(name, "ms", f"{kind}_ns", f"{kind}s", f"{kind}_max_ns", meaning, NS_PER_MS)


def _milliseconds(total: str) -> Metric:
    def value(reading: Reading) -> float:
        return reading.total(total) / NS_PER_MS

    return Metric("rebalance-latency-total", "ms", "Time spent in rebalances.", value, counts=True)


COORDINATOR = (
    gauge("assigned-partitions", "partitions", "Partitions assigned now."),
    *counted("commit", "requests", "commits", "OffsetCommit requests that were answered."),
    *_latency("commit-latency", "commit", "From writing an OffsetCommit request to its answer"),
    *counted("heartbeat", "requests", "heartbeats", "Heartbeats that were answered."),
    Metric(
        "heartbeat-response-time-max",
        "ms",
        "From writing a heartbeat to its answer: largest.",
        lambda reading: reading.maximum("heartbeat_max_ns") / NS_PER_MS,
    ),
    gauge("last-heartbeat-seconds-ago", "s", "Time since a heartbeat was answered; -1: none was."),
    *counted("join", "requests", "joins", "JoinGroup requests that were answered (classic protocol)."),
    *_latency("join-time", "join", "From writing a JoinGroup request to its answer"),
    *counted("sync", "requests", "syncs", "SyncGroup requests that were answered (classic protocol)."),
    *_latency("sync-time", "sync", "From writing a SyncGroup request to its answer"),
    *hourly("rebalance", "rebalances", "rebalances", "Rebalances that ended with an assignment."),
    *_latency("rebalance-latency", "rebalance", "From the beginning of a rebalance to its end"),
    _milliseconds("rebalance_ns"),
    gauge("last-rebalance-seconds-ago", "s", "Time since a rebalance ended; -1: none has."),
    *hourly(
        "failed-rebalance",
        "rebalances",
        "rebalances_failed",
        "Rebalances that ended without an assignment, or with the loss of the membership.",
    ),
    *_latency("partition-revoked-latency", "revoked_call", "Time in the listener's `on_revoked`"),
    *_latency("partition-assigned-latency", "assigned_call", "Time in the listener's `on_assigned`"),
    *_latency("partition-lost-latency", "lost_call", "Time in the listener's `on_lost`"),
)

_FETCH_MANAGER_NAME = "consumer-fetch-manager-metrics"
GROUPS = entered(
    Group("consumer-metrics", "The consumer as a whole.", "kafka_consumer", CONSUMER),
    Group(
        "consumer-node-metrics",
        "One dictionary for each broker, `node-0`; bootstrap servers have negative numbers, as in Kafka.",
        "kafka_consumer_node",
        _NETWORK,
        ("node",),
    ),
    Group(
        "consumer-coordinator-metrics",
        "The consumer in its group; all zeros or NaN without one.",
        "kafka_consumer_coordinator",
        COORDINATOR,
    ),
    Group(_FETCH_MANAGER_NAME, "Fetches.", "kafka_consumer_fetch_manager", FETCH_MANAGER),
    Group(
        "consumer-fetch-manager-topic-metrics",
        "One dictionary for each topic that was read.",
        "kafka_consumer_fetch_manager_topic",
        FETCH_TOPIC,
        ("topic",),
        _FETCH_MANAGER_NAME,
    ),
    Group(
        "consumer-fetch-manager-partition-metrics",
        "One dictionary for each partition assigned, by TopicPartition.",
        "kafka_consumer_fetch_manager_partition",
        FETCH_PARTITION,
        ("topic", "partition"),
        _FETCH_MANAGER_NAME,
    ),
)
"""The groups that `Consumer.metrics()` has."""
