"""The rows of a table of metrics: name, unit, meaning, and how a value is read.

Producer, consumers, admin client and cluster have tables of such rows (`producer.metric_names` and
so on). `metrics()`, the exporters, pushed metrics (KIP-714) and docs/reference/metrics.md are made
from them.

Sources: Kafka's `SelectorMetricsRegistry`, `MetricNameTemplate`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.units import NS_PER_MS
from fairlead_kafka.core.meters import Reading

NONE_LEAST = 2**63 - 1
"""Number that a meter counts a minimum from: it keeps `NONE_LEAST - value`, of which the largest
belongs to the least value."""

Values = Mapping[str, float]
"""Values of a group's metrics, by name."""
Metrics = Mapping[str, object]
"""Result of a client's `metrics()`: of each group its `Values`, or, where the group has labels,
its `Values` by label."""


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


class Group(NamedTuple):
    """The metrics that share a key of `metrics()`.

    One dictionary of `Values`; with labels one for each node ("node-0"), topic or TopicPartition.
    """

    name: str
    """Key in `metrics()`."""
    meaning: str
    prefix: str
    """Prefix of its names in Prometheus: `kafka_producer_node`."""
    rows: tuple[Metric, ...]
    labels: tuple[str, ...] = ()
    kafka: str = ""
    """Kafka's name of the group, if it is another: there labels do not make a group."""

    @property
    def kafka_name(self) -> str:
        """Kafka's name for this group of metrics."""
        return self.kafka or self.name


GROUPS: dict[str, Group] = {}
"""Every group of the tables that this process has loaded, by name: those of each object that has
`metrics()` are among them."""


def entered(*groups: Group) -> tuple[Group, ...]:
    """Enter `groups` in GROUPS, and return them. ValueError for another group with the name of
    one."""
    for group in groups:
        if GROUPS.setdefault(group.name, group) != group:
            raise ValueError(f"a group of metrics {group.name!r} is in the table already")
    return groups


class Sample(NamedTuple):
    """One value of one metric, with the values of its group's labels."""

    group: Group
    metric: Metric
    labels: tuple[str, ...]
    value: float


def named(rows: Sequence[Metric], reading: Reading) -> dict[str, float]:
    """The metrics of a group's `rows`, by name, with their values in `reading`."""
    return {metric.name: metric.value(reading) for metric in rows}


def samples(metrics: Metrics) -> Iterator[Sample]:
    """Every value in what `metrics()` returned, with its row of the table and its labels."""
    for group in map(GROUPS.__getitem__, metrics):
        for labels, values in labelled(group, metrics):
            for metric in group.rows:
                yield Sample(group, metric, labels, values[metric.name])


def labelled(group: Group, metrics: Metrics) -> Iterator[tuple[tuple[str, ...], Values]]:
    """The dictionaries of a group in what `metrics()` returned, with their labels' values."""
    found = metrics[group.name]
    if not isinstance(found, Mapping):
        raise TypeError(f"metrics of {group.name}: expected a mapping, got {found!r}")
    if not group.labels:
        yield (), found
        return
    for key, values in found.items():
        yield (tuple(map(str, key)) if isinstance(key, tuple) else (str(key),)), values


# Kinds of rows


def counted(name: str, unit: str, total: str, meaning: str, ours: bool = False) -> tuple[Metric, ...]:
    """Rows of the table for a total: the total itself, and its rate over the window."""
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


def hourly(name: str, unit: str, total: str, meaning: str) -> tuple[Metric, ...]:
    """Rows of the table for what happens seldom: a total, and its rate over the window per hour."""
    return (
        Metric(f"{name}-total", unit, meaning, lambda reading: reading.total(total), counts=True),
        Metric(
            f"{name}-rate-per-hour",
            f"{unit}/h",
            f"`{name}-total` per hour.",
            lambda reading: reading.rate(total) * 3_600,
        ),
    )


def spread(
    name: str, unit: str, sums: str, of: str, largest: str, meaning: str, scale: int = 1
) -> tuple[Metric, ...]:
    """Rows of the table for a value that is measured: its average and maximum over the window, both
    divided by `scale`."""
    return (
        Metric(
            f"{name}-avg", unit, f"{meaning}: average.", lambda reading: reading.average(sums, of) / scale
        ),
        Metric(f"{name}-max", unit, f"{meaning}: largest.", lambda reading: reading.maximum(largest) / scale),
    )


def ratio(name: str, unit: str, sums: str, of: str, meaning: str) -> Metric:
    """The row of the table for an average: of the total `sums` for each of the total `of`, over the
    window."""
    return Metric(name, unit, meaning, lambda reading: reading.average(sums, of))


def gauge(name: str, unit: str, meaning: str, ours: bool = False) -> Metric:
    """The row of the table for a present value, which the reading's gauges have under the same
    name."""
    return Metric(name, unit, meaning, lambda reading: reading.gauge(name), ours=ours)


def spent(name: str, total: str, meaning: str) -> Metric:
    """The row of the table for a total of time, ns, with a name as Kafka gives such totals."""
    return Metric(
        f"{name}-time-ns-total",
        "ns",
        f"Time that callers spent in {meaning}.",
        lambda reading: reading.total(total),
        counts=True,
    )


# Rows that clients have in common


def network(timed: str) -> tuple[Metric, ...]:
    """Rows of the table for traffic with brokers; `timed`: the requests whose latency is
    measured."""
    return (
        *counted("request", "requests", "requests", "Requests of every kind that were written."),
        *spread(
            "request-size",
            "bytes",
            "request_bytes",
            "requests",
            "request_max_bytes",
            "Size of a request with its header",
        ),
        *counted("response", "responses", "responses", "Answers that came."),
        *counted("outgoing-byte", "bytes", "request_bytes", "Bytes written to brokers."),
        *counted("incoming-byte", "bytes", "response_bytes", "Bytes read from brokers."),
        *spread(
            "request-latency",
            "ms",
            "latency_ns",
            "answers",
            "latency_max_ns",
            f"From writing {timed} to its answer",
            NS_PER_MS,
        ),
        gauge("requests-in-flight", "requests", "Requests written whose answer is awaited."),
    )


CONNECTIONS = (
    gauge("connection-count", "connections", "Connections that are open now."),
    *counted("connection-creation", "connections", "connections_made", "Connections that were made."),
    *counted("connection-close", "connections", "connections_ended", "Connections that ended."),
    gauge("metadata-age", "s", "Age of the metadata in use."),
)
MACHINE_CODE_ROW = gauge(
    "machine-code",
    "1",
    "1: kernels run as machine code; 0: there is none for this platform, and all is slow.",
    ours=True,
)
