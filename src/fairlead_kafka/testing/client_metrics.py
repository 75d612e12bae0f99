"""Metrics that clients have pushed to a cluster (KIP-714), decoded: `Cluster.client_metrics`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.broker.telemetry import INFLATED_BYTES_MAX, Pushed
from fairlead_kafka.records import decompress

if TYPE_CHECKING:
    from opentelemetry.proto.common.v1.common_pb2 import KeyValue
    from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric


class ClientMetric(NamedTuple):
    """One metric of one client, by OpenTelemetry's model."""

    name: str
    """As KIP-714 names it: `org.apache.kafka.producer.connection.creation.total`."""
    value: float
    attributes: dict[str, str]
    """The node id, topic or whatever else the value is about."""
    is_delta: bool
    """The value counts since the last push, and not since the client began."""


class ClientMetrics(NamedTuple):
    """The last push of one client to one broker."""

    client_instance_id: UUID
    client_id: str | None
    software: tuple[str | None, str | None]
    """Name and version of the client library; None: it did not say."""
    host: str
    """Address that it pushed from."""
    node_id: int
    """The broker that it pushed to."""
    timestamp_ms: int
    """When the broker took it, since 1970."""
    attributes: dict[str, str]
    """Facts that the client gives of itself: its group id, its rack."""
    metrics: list[ClientMetric]


def taken_apart(node_id: int, pushes: Iterable[Pushed]) -> Iterator[ClientMetrics]:
    """Each push of metrics to the broker `node_id`, decompressed and decoded. UsageError where
    opentelemetry-proto is not installed."""
    try:
        from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData
    except ImportError:
        raise UsageError(
            "client_metrics: decoding what clients push needs opentelemetry-proto; "
            "install it with: pip install 'fairlead-kafka[telemetry]'"
        ) from None
    for push in pushes:
        data = MetricsData.FromString(bytes(decompress(push.compression, push.data, INFLATED_BYTES_MAX)))
        attributes: dict[str, str] = {}
        metrics: list[ClientMetric] = []
        for resource in data.resource_metrics:
            attributes |= _texts(resource.resource.attributes)
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    metrics += _values(metric)
        client = push.client
        yield ClientMetrics(
            push.instance_id,
            client.client_id,
            (client.client_software_name, client.client_software_version),
            client.client_source_address,
            node_id,
            push.wall_ms,
            attributes,
            metrics,
        )


def _values(metric: Metric) -> Iterator[ClientMetric]:
    """The numbers of a metric: Kafka's clients push sums and gauges alone."""
    is_delta = metric.HasField("sum") and metric.sum.aggregation_temporality == _DELTA
    for point in metric.sum.data_points if metric.HasField("sum") else metric.gauge.data_points:
        value = point.as_int if point.HasField("as_int") else point.as_double
        yield ClientMetric(metric.name, value, _texts(point.attributes), is_delta)


_DELTA = 1
"""`AGGREGATION_TEMPORALITY_DELTA` of OpenTelemetry's protocol."""


def _texts(attributes: Sequence[KeyValue]) -> dict[str, str]:
    found = {}
    for each in attributes:
        kind = each.value.WhichOneof("value")
        found[each.key] = "" if kind is None else str(getattr(each.value, kind))
    return found
