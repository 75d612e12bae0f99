"""The pages of what can be observed: log lines and metrics."""

from __future__ import annotations

import logging

from page_parts import NOTE, table

from fairlead_kafka.admin import metric_names as admin_metrics
from fairlead_kafka.client.prometheus import prometheus_name
from fairlead_kafka.consumer import metric_names as consumer_metrics
from fairlead_kafka.consumer.share import metric_names as share_metrics
from fairlead_kafka.core.event_log import EVENTS, ITEMS_MAX, LINES_MAX, WINDOW_S
from fairlead_kafka.core.metric_table import Group
from fairlead_kafka.producer import metric_names as producer_metrics
from fairlead_kafka.spark import metric_names as spark_metrics
from fairlead_kafka.testing import cluster_metrics

METRIC_GROUPS = (
    *producer_metrics.GROUPS,
    *consumer_metrics.GROUPS,
    *share_metrics.GROUPS,
    *admin_metrics.GROUPS,
    *spark_metrics.GROUPS,
    *cluster_metrics.GROUPS,
)


def log_lines() -> str:
    """docs/reference/logging.md"""
    rows = "\n".join(
        f"| `{event.name}` | {logging.getLevelName(event.level)} | `{event.logger}` | "
        f"{', '.join(f'`{field}`' for field in event.fields)} | {event.when} |"
        for event in EVENTS
    )
    return (
        "\n\n".join(
            (
                NOTE,
                "# Log lines",
                "Clients log with Python's `logging`, below the logger `fairlead_kafka`. A line about an "
                "event is its name and fields, so that it can be searched:",
                "```text\npartitions_assigned client_id=shop group=billing count=2 "
                "partitions=orders-0,orders-1\n```",
                "Each line has `client_id` first. `-` stands for none; for `node` it is a bootstrap server. "
                "A value with spaces is quoted as in JSON. No line has a password, token, key or record.",
                f"A client logs at most {LINES_MAX} lines of one event in {WINDOW_S} seconds. The next line "
                f"of that event says in `held_back` how many were left out. A line names at most {ITEMS_MAX} "
                "partitions.",
                "Handlers and filters run on the client's thread, or the broker's. One that raises ends "
                "neither; the first such error is on stderr. One that blocks holds everything up, so put a "
                "`logging.handlers.QueueHandler` before what is slow. A call of the same client that waits "
                "is refused there (UsageError), since it would wait for itself. A handler that sends lines "
                "to Kafka must not wait for their delivery on any thread: it would hold its lock, which "
                "the client's own lines wait for.",
                f"## Events\n\n| event | level | logger | fields | when |\n|---|---|---|---|---|\n{rows}",
                "## Other loggers",
                "Sentences for people, which are not in the table, come from `fairlead_kafka.network` "
                "(WARNING: a broker cannot be reached, again with growing gaps while that lasts, and INFO "
                "when it is over), `fairlead_kafka.producer`, `fairlead_kafka.consumer`, "
                "`fairlead_kafka.config`, `fairlead_kafka.metrics`, `fairlead_kafka.interceptors`, "
                "`fairlead_kafka.runtime`, `fairlead_kafka.security`, `fairlead_kafka.spark`, and, of the "
                "embedded cluster, `fairlead_kafka.broker`, `fairlead_kafka.authorizer` and "
                "`fairlead_kafka.testing`.",
                "Without any configuration, Python prints the warnings of those loggers to stderr. The "
                "events in the table are not printed then.",
            )
        )
        + "\n"
    )


def metrics() -> str:
    """docs/reference/metrics.md"""
    return (
        "\n\n".join(
            (
                NOTE,
                "# Metrics",
                "`metrics()` of a client or a Spark listener gives these, by Kafka's groups and names; those "
                "marked (ours) are no names of Kafka's. Totals are since the start; rates, averages and "
                "maxima over the last `metrics.sample.window.ms` times `metrics.num.samples`; an average or "
                "maximum of nothing is NaN. Counting happens once for a batch, a request or a poll, never "
                "for a record.",
                "`fairlead_kafka.PrometheusCollector(producer, consumer)` (extra `metrics`) gives them to "
                "prometheus-client under the names in the second column, with the labels that stand above "
                "each table. [Observing](../how-to/observing.md) shows how to use them. "
                "`fairlead_kafka.OpenTelemetryMetrics` (extra `opentelemetry`) gives them to OpenTelemetry, "
                "under the [names that are told there](../how-to/observing.md#export-by-opentelemetry).",
                "A cluster that has a subscription for clients' metrics (`fairlead configs alter "
                "--client-metrics NAME`, KIP-714) is pushed those that begin with the names it asks for, "
                "such as `org.apache.kafka.producer.record.send.total` or "
                "`org.apache.kafka.producer.topic.byte.rate` with the topic as attribute; ours are not "
                "pushed. `enable.metrics.push=false` turns it off. `client_instance_id()` is the id under "
                "which a client is known there.",
                *(
                    f"## {group.name}\n\n{_about_group(group)}\n\n{_metric_rows(group)}"
                    for group in METRIC_GROUPS
                ),
            )
        )
        + "\n"
    )


def _about_group(group: Group) -> str:
    labels = ", ".join(f"`{label}`" for label in ("client_id", *group.labels))
    kafka = f" Kafka's group: `{group.kafka}`, with labels." if group.kafka else ""
    return f"{group.meaning}{kafka} Labels in Prometheus: {labels}."


def _metric_rows(group: Group) -> str:
    return table(
        ("metric", "in Prometheus", "type", "unit", "meaning"),
        (
            (
                f"`{row.name}`{' (ours)' if row.ours else ''}",
                f"`{prometheus_name(group, row)}`",
                "counter" if row.counts else "gauge",
                row.unit,
                row.meaning,
            )
            for row in group.rows
        ),
    )
