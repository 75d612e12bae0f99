"""The table of metrics: Kafka's names and meanings, and our own; `metrics()` and
docs/reference/metrics.md are made from it.

Sources: Kafka's `SenderMetricsRegistry`, `BufferPool`, `KafkaProducerMetrics` and `Selector`.
"""

from __future__ import annotations

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.core.metric_table import (
    CONNECTIONS,
    MACHINE_CODE_ROW,
    Group,
    Metric,
    counted,
    entered,
    gauge,
    network,
    spent,
    spread,
)

_NETWORK = network("a Produce request")

_SENDING = (
    *counted(
        "record-send",
        "records",
        "records_sent",
        "Records in batches that were written; again with each retry, as Kafka counts.",
    ),
    *counted("record-retry", "records", "records_retried", "Records in batches that will be sent again."),
    *counted(
        "record-error", "records", "records_failed", "Records that failed, those refused by `send` included."
    ),
    *counted(
        "record-delivered",
        "records",
        "records_delivered",
        "Records acknowledged (with acks=0: written to the socket).",
        ours=True,
    ),
)

PRODUCER = (
    *_SENDING,
    gauge(
        "records-open",
        "records",
        "Records taken in by the producer's thread, neither delivered nor failed.",
        ours=True,
    ),
    *spread(
        "record-size",
        "bytes",
        "entered_bytes",
        "entered",
        "record_max_bytes",
        "Size of a record, uncompressed, when sent",
    ),
    *spread(
        "batch-size",
        "bytes",
        "batch_bytes",
        "batches_sent",
        "batch_max_bytes",
        "Size of a batch as written, after compression",
    ),
    *counted("batch", "batches", "batches_sent", "Batches written, again with each retry.", ours=True),
    *counted(
        "batch-split", "batches", "batches_split", "Batches cut up because a broker found them too large."
    ),
    *spread(
        "record-queue-time",
        "ms",
        "queue_ns",
        "batches_sent",
        "queue_max_ns",
        "From a batch's first record to its sending",
        NS_PER_MS,
    ),
    Metric(
        "records-per-request-avg",
        "records",
        "Records in one Produce request: average.",
        lambda reading: reading.average("records_sent", "produce_requests"),
    ),
    Metric(
        "compression-rate-avg",
        "1",
        "A batch's size as written to its size uncompressed: average.",
        lambda reading: reading.average("ratios", "batches_sent"),
    ),
    *counted("produce-request", "requests", "produce_requests", "Produce requests written.", ours=True),
    *counted(
        "request-error",
        "requests",
        "requests_failed",
        "Produce requests that got no usable answer.",
        ours=True,
    ),
    *counted(
        "epoch-bump",
        "epochs",
        "epoch_bumps",
        "New epochs of the producer id, taken to mend a gap in sequences.",
        ours=True,
    ),
    *spread(
        "produce-throttle-time",
        "ms",
        "throttle_ms",
        "answers",
        "throttle_max_ms",
        "How long a broker asked to be spared (quotas)",
    ),
    *_NETWORK,
    *CONNECTIONS,
    gauge("buffer-total-bytes", "bytes", "`buffer.memory`."),
    gauge("buffer-available-bytes", "bytes", "What of it is free."),
    MACHINE_CODE_ROW,
    gauge("waiting-threads", "callers", "Callers, threads or tasks, that wait for room in buffer.memory."),
    *counted(
        "buffer-exhausted", "calls", "exhausted", "Submissions that failed because buffer.memory had no room."
    ),
    Metric(
        "bufferpool-wait-time-ns-total",
        "ns",
        "Time that callers waited for it.",
        lambda reading: reading.total("waited_ns"),
        counts=True,
    ),
    Metric(
        "bufferpool-wait-ratio",
        "1",
        "Callers waiting for it: average.",
        lambda reading: reading.rate("waited_ns") / NS_PER_S,
    ),
    spent("flush", "flush_ns", "`flush` and `prepare_transaction`"),
    spent("metadata-wait", "metadata_wait_ns", "`partitions_for`, which alone waits for metadata"),
    spent("txn-init", "txn_init_ns", "`init_transactions`"),
    spent("txn-begin", "txn_begin_ns", "`begin_transaction`"),
    spent("txn-send-offsets", "txn_send_offsets_ns", "`send_offsets_to_transaction`"),
    spent("txn-commit", "txn_commit_ns", "`commit_transaction`"),
    spent("txn-abort", "txn_abort_ns", "`abort_transaction`"),
)

NODE = (
    *_NETWORK,
    gauge(
        "request-window", "requests", "Requests that may be under way to this broker at present.", ours=True
    ),
)

TOPIC = (
    *_SENDING,
    *counted("byte", "bytes", "batch_bytes", "Bytes of batches written, after compression."),
    Metric(
        "compression-rate",
        "1",
        "A batch's size as written to its size uncompressed: average.",
        lambda reading: reading.average("ratios", "batches_sent"),
    ),
)

GROUPS = entered(
    Group("producer-metrics", "The producer as a whole.", "kafka_producer", PRODUCER),
    Group(
        "producer-node-metrics",
        "One dictionary for each broker, `node-0`; bootstrap servers have negative numbers, as in Kafka.",
        "kafka_producer_node",
        NODE,
        ("node",),
    ),
    Group(
        "producer-topic-metrics",
        "One dictionary for each topic that was sent to.",
        "kafka_producer_topic",
        TOPIC,
        ("topic",),
    ),
)
"""The groups that `Producer.metrics()` has."""
