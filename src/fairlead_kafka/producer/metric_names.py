"""The table of metrics: Kafka's names and meanings, and our own; `metrics()` and
docs/reference/metrics.md are made from it.

Sources: Kafka's `SenderMetricsRegistry`, `BufferPool`, `KafkaProducerMetrics` and `Selector`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S
from fairlead_kafka.producer.meters import Reading


class Metric(NamedTuple):
    """One metric: its name, unit and meaning, and its value from a `Reading`."""

    name: str
    unit: str
    meaning: str
    value: Callable[[Reading], float]
    counts: bool = False
    """A total since the start, which never falls."""
    ours: bool = False
    """Kafka has none of this name."""


def _counted(name: str, unit: str, total: str, meaning: str, ours: bool = False) -> tuple[Metric, ...]:
    """Metrics of a total: itself, and its rate over the window."""
    return (
        Metric(f"{name}-total", unit, meaning, lambda reading: reading.total(total), counts=True, ours=ours),
        Metric(
            f"{name}-rate",
            f"{unit}/s",
            f"`{name}-total` per second.",
            lambda reading: reading.rate(total),
            ours=ours,
        ),
    )


def _spread(
    name: str, unit: str, sums: str, of: str, largest: str, meaning: str, scale: int = 1
) -> tuple[Metric, ...]:
    """Metrics of a value: its average and maximum over the window."""
    return (
        Metric(
            f"{name}-avg", unit, f"{meaning}: average.", lambda reading: reading.average(sums, of) / scale
        ),
        Metric(f"{name}-max", unit, f"{meaning}: largest.", lambda reading: reading.maximum(largest) / scale),
    )


def _gauge(name: str, unit: str, meaning: str, ours: bool = False) -> Metric:
    return Metric(name, unit, meaning, lambda reading: reading.gauge(name), ours=ours)


def _spent(name: str, total: str, meaning: str) -> Metric:
    return Metric(
        f"{name}-time-ns-total",
        "ns",
        f"Time that callers spent in {meaning}.",
        lambda reading: reading.total(total),
        counts=True,
    )


_NETWORK = (
    *_counted("request", "requests", "requests", "Requests of every kind that were written."),
    *_spread(
        "request-size",
        "bytes",
        "request_bytes",
        "requests",
        "request_max_bytes",
        "Size of a request with its header",
    ),
    *_counted("response", "responses", "responses", "Answers that came."),
    *_counted("outgoing-byte", "bytes", "request_bytes", "Bytes written to brokers."),
    *_counted("incoming-byte", "bytes", "response_bytes", "Bytes read from brokers."),
    *_spread(
        "request-latency",
        "ms",
        "latency_ns",
        "answers",
        "latency_max_ns",
        "From writing a Produce request to its answer",
        NS_PER_MS,
    ),
    _gauge("requests-in-flight", "requests", "Requests written whose answer is awaited."),
)

_SENDING = (
    *_counted(
        "record-send",
        "records",
        "records_sent",
        "Records in batches that were written; again with each retry, as Kafka counts.",
    ),
    *_counted("record-retry", "records", "records_retried", "Records in batches that will be sent again."),
    *_counted(
        "record-error", "records", "records_failed", "Records that failed, those refused by `send` included."
    ),
    *_counted(
        "record-delivered",
        "records",
        "records_delivered",
        "Records acknowledged (with acks=0: written to the socket).",
        ours=True,
    ),
)

PRODUCER = (
    *_SENDING,
    _gauge(
        "records-open",
        "records",
        "Records taken in by the producer's thread, neither delivered nor failed.",
        ours=True,
    ),
    *_spread(
        "record-size",
        "bytes",
        "entered_bytes",
        "entered",
        "record_max_bytes",
        "Size of a record, uncompressed, when sent",
    ),
    *_spread(
        "batch-size",
        "bytes",
        "batch_bytes",
        "batches_sent",
        "batch_max_bytes",
        "Size of a batch as written, after compression",
    ),
    *_counted("batch", "batches", "batches_sent", "Batches written, again with each retry.", ours=True),
    *_counted(
        "batch-split", "batches", "batches_split", "Batches cut up because a broker found them too large."
    ),
    *_spread(
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
    *_counted("produce-request", "requests", "produce_requests", "Produce requests written.", ours=True),
    *_counted(
        "request-error",
        "requests",
        "requests_failed",
        "Produce requests that got no usable answer.",
        ours=True,
    ),
    *_counted(
        "epoch-bump",
        "epochs",
        "epoch_bumps",
        "New epochs of the producer id, taken to mend a gap in sequences.",
        ours=True,
    ),
    *_spread(
        "produce-throttle-time",
        "ms",
        "throttle_ms",
        "answers",
        "throttle_max_ms",
        "How long a broker asked to be spared (quotas)",
    ),
    *_NETWORK,
    _gauge("connection-count", "connections", "Connections that are open now."),
    *_counted("connection-creation", "connections", "connections_made", "Connections that were made."),
    *_counted("connection-close", "connections", "connections_ended", "Connections that ended."),
    _gauge("metadata-age", "s", "Age of the metadata in use."),
    _gauge("buffer-total-bytes", "bytes", "`buffer.memory`."),
    _gauge("buffer-available-bytes", "bytes", "What of it is free."),
    _gauge(
        "machine-code",
        "1",
        "1: kernels run as machine code; 0: there is none for this platform, and all is slow.",
        ours=True,
    ),
    _gauge("waiting-threads", "callers", "Callers, threads or tasks, that wait for room in buffer.memory."),
    *_counted(
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
    _spent("flush", "flush_ns", "`flush` and `prepare_transaction`"),
    _spent("metadata-wait", "metadata_wait_ns", "`partitions_for`, which alone waits for metadata"),
    _spent("txn-init", "txn_init_ns", "`init_transactions`"),
    _spent("txn-begin", "txn_begin_ns", "`begin_transaction`"),
    _spent("txn-send-offsets", "txn_send_offsets_ns", "`send_offsets_to_transaction`"),
    _spent("txn-commit", "txn_commit_ns", "`commit_transaction`"),
    _spent("txn-abort", "txn_abort_ns", "`abort_transaction`"),
)

NODE = (
    *_NETWORK,
    _gauge(
        "request-window", "requests", "Requests that may be under way to this broker at present.", ours=True
    ),
)

TOPIC = (
    *_SENDING,
    *_counted("byte", "bytes", "batch_bytes", "Bytes of batches written, after compression."),
    Metric(
        "compression-rate",
        "1",
        "A batch's size as written to its size uncompressed: average.",
        lambda reading: reading.average("ratios", "batches_sent"),
    ),
)

GROUPS = {"producer-metrics": PRODUCER, "producer-node-metrics": NODE, "producer-topic-metrics": TOPIC}
"""Group → its metrics. The first group is one dictionary; the others have one for each node
("node-0") and topic."""


def named(group: tuple[Metric, ...], reading: Reading) -> dict[str, float]:
    """The metrics of a group by name."""
    return {metric.name: metric.value(reading) for metric in group}
