"""The table of a Spark stream's metrics, as `ProgressListener.metrics()` has them. None of them is
a metric of Kafka's."""

from __future__ import annotations

from fairlead_kafka.core.metric_table import Group, Metric, entered, gauge


def _total(name: str, unit: str, meaning: str) -> Metric:
    return Metric(f"{name}-total", unit, meaning, lambda reading: reading.gauge(name), counts=True, ours=True)


GROUPS = entered(
    Group(
        "spark-stream-metrics",
        "One dictionary for each source of a streaming query, by (name or id of the query, number of the "
        "source), since the listener was added.",
        "kafka_spark_stream",
        (
            _total("micro-batches", "micro-batches", "Micro-batches that were completed."),
            _total(
                "micro-batch-time-ms",
                "ms",
                "Time that they took, from trigger to commit; of the query, so of each of its sources.",
            ),
            _total("rows", "rows", "Rows that were read."),
            _total("offsets", "offsets", "Offsets that were read."),
            _total(
                "offsets-without-rows",
                "offsets",
                "Offsets at which there was no row: markers, records that were compacted away or left out.",
            ),
            _total("partitions-gone", "partitions", "Partitions that were deleted."),
            gauge(
                "lag",
                "offsets",
                "Offsets that waited when the last micro-batch was planned; NaN once the query has ended.",
                ours=True,
            ),
            gauge("lag-bytes", "bytes", "Their bytes; NaN unless the listener has `client`.", ours=True),
        ),
        ("query", "source"),
    ),
)
"""The groups that `ProgressListener.metrics()` has."""
