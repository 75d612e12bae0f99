"""The report of a client's metrics that is pushed to a cluster (KIP-714)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fairlead_kafka.base.config import Settings
from fairlead_kafka.core.metric_table import Group, Metrics, labelled

NOT_OF_NODES = frozenset({"requests-in-flight"})
"""Metrics that Kafka has of a client, and not of a node."""


Labelled = tuple[str, tuple[tuple[str, str], ...]]
"""Name and attributes of a metric."""


class Sample(NamedTuple):
    """The value of one metric. `counts`: a total since the client began, which never falls."""

    name: str
    value: float
    counts: bool
    attributes: tuple[tuple[str, str], ...] = ()

    @property
    def labelled(self) -> Labelled:
        """The name and the attributes."""
        return self.name, self.attributes


class Report(NamedTuple):
    """Metrics of a client at one time; `labels`: its group id, its transactional id."""

    labels: Mapping[str, str]
    samples: Iterable[Sample]


class Point(NamedTuple):
    """A sample as it is pushed; `start_ms`: since when a sum was counted, ms since 1970; None: a
    gauge."""

    name: str
    value: float
    attributes: tuple[tuple[str, str], ...]
    start_ms: int | None


def labels_of(settings: Settings) -> Mapping[str, str]:
    """The labels of a client with these settings: those labels of KIP-714 that it has a value
    for."""
    keys = ("group.id", "group.instance.id", "client.rack", "transactional.id")
    return {key.replace(".", "_"): str(settings[key]) for key in keys if settings.get(key)}


def report_of(metrics: Metrics | None, groups: Iterable[Group], labels: Mapping[str, str]) -> Report:
    """The report of what a client's `metrics()` returned, of which `groups` are the tables.

    Only metrics that Kafka has are in it, without those that are not known (NaN). None: an empty
    report.
    """
    return Report(labels, () if metrics is None else _samples(metrics, groups))


def _samples(metrics: Metrics, groups: Iterable[Group]) -> Iterable[Sample]:
    for group in groups:
        if group.name not in metrics:
            continue
        prefix = "org.apache.kafka." + group.kafka_name.removesuffix("-metrics").replace("-", ".") + "."
        of_node = group.labels == ("node",)
        names = ("node_id",) if of_node else group.labels
        for values, found in labelled(group, metrics):
            attributes = tuple(zip(names, values, strict=True))
            for row in group.rows:
                value = found[row.name]
                if row.ours or (of_node and row.name in NOT_OF_NODES) or value != value:  # NaN
                    continue
                yield Sample(prefix + row.name.replace("-", "."), value, row.counts, attributes)
