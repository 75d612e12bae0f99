"""Producers' metrics for Prometheus, by the extra `fairlead-kafka[metrics]`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from threading import Lock
from typing import Protocol
from weakref import ref

from fairlead_kafka.producer.metric_names import GROUPS, Metric
from fairlead_kafka.producer.metrics import Metrics

try:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
    from prometheus_client.metrics_core import Metric as Family
    from prometheus_client.registry import Collector
except ImportError as error:
    raise ImportError(
        "PrometheusCollector needs prometheus-client: pip install 'fairlead-kafka[metrics]'"
    ) from error

_PREFIXES = {
    "producer-metrics": ("kafka_producer", ()),
    "producer-node-metrics": ("kafka_producer_node", ("node",)),
    "producer-topic-metrics": ("kafka_producer_topic", ("topic",)),
}
"""Group → prefix of its names, and labels of its samples besides client_id."""


class _Producer(Protocol):
    """The part of `Producer` and `AsyncProducer` that metrics need."""

    @property
    def client_id(self) -> str: ...

    def metrics(self) -> Metrics: ...


class PrometheusCollector(Collector):
    """Exports the metrics of producers to Prometheus, read at each scrape.

    `REGISTRY.register(fairlead_kafka.PrometheusCollector(producer))`. Names are Kafka's with
    underscores: `kafka_producer_record_send_total{client_id}`,
    `kafka_producer_node_request_latency_avg{client_id, node}`,
    `kafka_producer_topic_byte_total{client_id, topic}`; docs/reference/metrics.md has them all. A
    producer without `client.id` is called producer-1 and so on, in the order in which this
    collector got to know them. Producers that are no longer used are forgotten.
    """

    def __init__(self, *producers: _Producer) -> None:
        self._lock = Lock()
        self._count = 0
        self._producers: dict[str, ref[_Producer]] = {}
        for producer in producers:
            self.add(producer)

    def add(self, producer: _Producer) -> None:
        """Export the metrics of `producer` too.

        Of producers with the same `client.id` the later ones get a number behind it.
        """
        with self._lock:
            self._count += 1
            name = producer.client_id or f"producer-{self._count}"
            known = self._producers.get(name)
            if known is not None and known() is not None:
                name = f"{name}-{self._count}"
            self._producers[name] = ref(producer)

    def remove(self, producer: _Producer) -> None:
        """Stop exporting the metrics of `producer`; one that is not known is no error."""
        with self._lock:
            self._producers = {
                name: each for name, each in self._producers.items() if each() not in (None, producer)
            }

    def collect(self) -> Iterator[Family]:
        """Metric families of all producers; prometheus-client calls it at a scrape."""
        read: list[tuple[str, Metrics]] = []
        for name, each in list(self._producers.items()):
            producer = each()
            if producer is not None:
                read.append((name, producer.metrics()))
        for group, rows in GROUPS.items():
            prefix, labels = _PREFIXES[group]
            for row in rows:
                family = _family(f"{prefix}_{row.name.replace('-', '_')}", row, ["client_id", *labels])
                for client_id, metrics in read:
                    for label, values in _by_label(metrics, group).items():
                        family.add_metric([client_id, label] if labels else [client_id], values[row.name])
                yield family


def _by_label(metrics: Metrics, group: str) -> Mapping[str, Mapping[str, float]]:
    """The metrics of a group by node or topic; by "" those of the producer as a whole."""
    if group == "producer-node-metrics":
        return metrics["producer-node-metrics"]
    if group == "producer-topic-metrics":
        return metrics["producer-topic-metrics"]
    return {"": metrics["producer-metrics"]}


def _family(name: str, row: Metric, labels: list[str]) -> CounterMetricFamily | GaugeMetricFamily:
    meaning = f"{row.meaning} ({row.unit})"
    if row.counts:
        return CounterMetricFamily(
            name, meaning, labels=labels
        )  # which takes _total off the name, and puts it back
    return GaugeMetricFamily(name, meaning, labels=labels)
