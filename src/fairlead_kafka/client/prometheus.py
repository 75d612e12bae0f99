"""Metrics for Prometheus, by the extra `fairlead-kafka[metrics]`."""

from __future__ import annotations

from collections.abc import Iterator

from fairlead_kafka.client.measured import Measured, Sources
from fairlead_kafka.core.metric_table import GROUPS, Group, Metric

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError(
        "PrometheusCollector needs prometheus-client: pip install 'fairlead-kafka[metrics]'"
    ) from error


class PrometheusCollector(Collector):
    """Exports metrics of clients, Spark streams and clusters to Prometheus, read at each scrape.

    `REGISTRY.register(fairlead_kafka.PrometheusCollector(producer, consumer))`. A source is
    whatever has `metrics()` by groups of the table: producers, consumers, share consumers and admin
    clients, blocking and async, a `ProgressListener` of Spark, and a `testing.Cluster`. Names are
    Kafka's with underscores: `kafka_producer_record_send_total{client_id}`,
    `kafka_producer_node_request_latency_avg{client_id, node}`,
    `kafka_consumer_records_lag{client_id, topic, partition}`; docs/reference/metrics.md has them
    all. A source without `client.id` is called producer-1, consumer-2 and so on, in the order in
    which this collector got to know them. The collector keeps no source: one that is no longer used
    is forgotten, and one that is gone before it is registered is a UsageError of `register`. A
    source whose `metrics()` raises is left out of the scrape, and logged by
    `fairlead_kafka.metrics`.
    """

    def __init__(self, *sources: Measured) -> None:
        self._sources = Sources(sources)

    def add(self, source: Measured) -> None:
        """Export the metrics of `source` too; one that is exported already stays as it is.

        Of sources with the same `client.id` the later ones get a number behind it, which makes a
        name that no other source has. Raises UsageError for what has no `metrics()`.
        """
        self._sources.add(source)

    def remove(self, source: Measured) -> None:
        """Stop exporting the metrics of `source`; one that is not known is no error."""
        self._sources.remove(source)

    def describe(self) -> Iterator[Family]:
        """The families that there are now; prometheus-client calls it in `register`.

        UsageError if a source is gone already, as in `PrometheusCollector(Producer(config))`.
        """
        self._sources.check()
        return self.collect()

    def collect(self) -> Iterator[Family]:
        """Metric families of all sources; prometheus-client calls it at a scrape."""
        read = self._sources.read()
        found = dict.fromkeys(name for each in read for name in each.series)
        for group in map(GROUPS.__getitem__, found):
            families = [_family(group, row) for row in group.rows]
            for client_id, series, _ in read:
                for labels, values in series.get(group.name, ()):
                    for row, family in zip(group.rows, families, strict=True):
                        family.add_metric([client_id, *labels], values[row.name])
            yield from families


def prometheus_name(group: Group, row: Metric) -> str:
    """The name of a metric in Prometheus: "kafka_producer_record_send_total"."""
    return f"{group.prefix}_{row.name.replace('-', '_')}"


def _family(group: Group, row: Metric) -> CounterMetricFamily | GaugeMetricFamily:
    name, meaning = prometheus_name(group, row), f"{row.meaning} ({row.unit})"
    labels = ["client_id", *group.labels]
    if row.counts:
        return CounterMetricFamily(
            name, meaning, labels=labels
        )  # which takes _total off the name, and puts it back
    return GaugeMetricFamily(name, meaning, labels=labels)
