"""Metrics for OpenTelemetry, by the extra `fairlead-kafka[opentelemetry]`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from threading import Lock
from time import monotonic_ns

from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.measured import Measured, Read, Sources
from fairlead_kafka.core.metric_table import GROUPS, Group, Metric

try:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation, get_meter
except ImportError as error:
    raise ImportError(
        "OpenTelemetryMetrics needs OpenTelemetry: pip install 'fairlead-kafka[opentelemetry]'"
    ) from error

SEMANTIC = {
    ("producer-topic-metrics", "record-send-total"): ("messaging.client.sent.messages", "send"),
    ("consumer-fetch-manager-topic-metrics", "records-consumed-total"): (
        "messaging.client.consumed.messages",
        "poll",
    ),
    ("consumer-share-fetch-manager-metrics", "records-consumed-total"): (
        "messaging.client.consumed.messages",
        "poll",
    ),
}
"""Metrics that OpenTelemetry's semantic conventions for messaging name: the name there, and the
operation. Their durations are histograms, which nothing in the table of metrics is."""
ATTRIBUTES = {
    "topic": "messaging.destination.name",
    "partition": "messaging.destination.partition.id",
}
"""Labels of groups that the conventions have another name for."""
FRESH_S = 1
"""Seconds that metrics which were read serve for, so that one collection's instruments, each with a
callback of its own, are answered from one reading."""
_UNITS = {"bytes": "By", "batches": "{batch}", "s": "s", "ms": "ms", "ns": "ns", "h": "h", "1": "1"}
_Attributes = dict[str, str]
_Values = list[tuple[_Attributes, float]]


class OpenTelemetryMetrics:
    """Exports metrics of clients, Spark streams and clusters by OpenTelemetry, read when collected.

    `fairlead_kafka.OpenTelemetryMetrics(producer, consumer)`. Sources are those of
    `PrometheusCollector`, and kept as little. Each metric of docs/reference/metrics.md is an
    observable counter or gauge of the meter `fairlead_kafka`. Its name is that of its group and its
    own, `kafka.producer.record_error_total`, `kafka.consumer_fetch_manager_partition.records_lag`,
    but `messaging.client.sent.messages` and `messaging.client.consumed.messages` where the semantic
    conventions have one. Attributes are `messaging.client.id`, `messaging.consumer.group.name`,
    `messaging.destination.name`, `messaging.destination.partition.id`, `node`, `query` and
    `source`. What is not known (NaN) is not exported. `meter_provider`: None for the global one.
    """

    def __init__(self, *sources: Measured, meter_provider: MeterProvider | None = None) -> None:
        self._sources = Sources(sources)
        self._readings = _Readings(self._sources.read)
        self._meter = get_meter("fairlead_kafka", meter_provider=meter_provider)
        self._known: set[str] = set()
        self._create()

    def add(self, source: Measured) -> None:
        """Export the metrics of `source` too; as `PrometheusCollector.add`."""
        self._sources.add(source)
        self._create()

    def remove(self, source: Measured) -> None:
        """Stop exporting the metrics of `source`; one that is not known is no error."""
        self._sources.remove(source)

    def _create(self) -> None:
        """Create instruments for metrics that no source had before: a group's instruments exist
        once a source has the group."""
        for name, rows in list(_instruments().items()):
            if name not in self._known:
                self._known.add(name)
                row = rows[0][1]
                create = (
                    self._meter.create_observable_counter
                    if row.counts
                    else self._meter.create_observable_gauge
                )
                unit = "{message}" if name.startswith("messaging.") else otel_unit(row.unit)
                create(name, [self._readings.callback(name)], unit, row.meaning)


class _Readings:
    """The last reading of all sources' metrics, by instrument. May be used by any thread."""

    def __init__(self, read: Callable[[], Sequence[Read]], now_ns: Callable[[], int] = monotonic_ns) -> None:
        self._read = read
        self._now_ns = now_ns
        self._lock = Lock()
        self._taken: set[str] = set()
        self._values: dict[str, _Values] = {}
        self._until_ns: int | None = None

    def callback(self, name: str) -> Callable[[CallbackOptions], Iterable[Observation]]:
        """The function that OpenTelemetry calls for the values of the instrument `name`."""

        def observe(_: CallbackOptions) -> Iterable[Observation]:
            return [Observation(value, attributes) for attributes, value in self.take(name)]

        return observe

    def take(self, name: str) -> _Values:
        """The values of the instrument `name`. All sources are read again if this instrument has
        taken the last reading already, or that is older than FRESH_S seconds."""
        with self._lock:
            now_ns = self._now_ns()
            if self._until_ns is None or name in self._taken or now_ns >= self._until_ns:
                self._values = _by_instrument(self._read())
                self._taken.clear()
                self._until_ns = now_ns + FRESH_S * NS_PER_S
            self._taken.add(name)
            return self._values.get(name, [])


def otel_name(group: Group, row: Metric) -> str:
    """The name of a metric in OpenTelemetry: "kafka.producer_node.request_total"."""
    if (group.name, row.name) in SEMANTIC:
        return SEMANTIC[group.name, row.name][0]
    return f"kafka.{group.name.removesuffix('-metrics')}.{row.name}".replace("-", "_")


def otel_unit(unit: str) -> str:
    """A unit of the table in UCUM's form: "By" for bytes, "{record}/s" for records/s."""
    return "/".join(_UNITS.get(part) or "{" + part.removesuffix("s") + "}" for part in unit.split("/"))


def _instruments() -> dict[str, list[tuple[Group, Metric]]]:
    """The rows of the table by their name in OpenTelemetry."""
    found: dict[str, list[tuple[Group, Metric]]] = {}
    for group in GROUPS.values():
        for row in group.rows:
            found.setdefault(otel_name(group, row), []).append((group, row))
    return found


def _by_instrument(read: Iterable[Read]) -> dict[str, _Values]:
    found: dict[str, _Values] = {}
    for source in read:
        for group_name, series in source.series.items():
            group = GROUPS[group_name]
            for labels, values in series:
                about = _about(source, group, labels)
                for row in group.rows:
                    value = values[row.name]
                    if value == value:  # no NaN
                        attributes = about | dict(_operation(group, row))
                        found.setdefault(otel_name(group, row), []).append(
                            (attributes, int(value) if row.counts else value)
                        )
    return found


def _about(source: Read, group: Group, labels: Sequence[str]) -> _Attributes:
    attributes = {"messaging.client.id": source.name}
    if source.group_id is not None:
        attributes["messaging.consumer.group.name"] = source.group_id
    names = (ATTRIBUTES.get(name, name) for name in group.labels)
    return attributes | dict(zip(names, labels, strict=True))


def _operation(group: Group, row: Metric) -> Iterator[tuple[str, str]]:
    """The attributes (name, value) that the semantic conventions require of a metric that they
    define."""
    if (group.name, row.name) in SEMANTIC:
        yield "messaging.system", "kafka"
        yield "messaging.operation.name", SEMANTIC[group.name, row.name][1]
