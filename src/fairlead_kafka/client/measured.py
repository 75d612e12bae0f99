"""Sources of metrics for exporters: registered by name, and only as long as the client is referred
to elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from inspect import iscoroutinefunction
from threading import Lock
from time import monotonic_ns
from typing import NamedTuple, Protocol
from weakref import ref

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.core.metric_table import GROUPS, Metrics, labelled

LOGGER = GuardedLogger("fairlead_kafka.metrics")
WARNS_AGAIN_S = 600
"""Seconds between two warnings about one source: Prometheus scrapes several times a minute, and the
second warning says no more than the first."""

Series = dict[str, list[tuple[tuple[str, ...], dict[str, float]]]]
"""Metrics by group: the values of its labels, and the values by name."""


class Read(NamedTuple):
    """The metrics of one source at one time."""

    name: str
    series: Series
    group_id: str | None
    """The consumer group, for a source that has one."""


class Measured(Protocol):
    """The part of a client, a listener of Spark's or a cluster that exporters need.

    Its name is its `client_id`, if it has one.
    """

    def metrics(self) -> Metrics:
        """The source's metrics, by groups of the table; may be called on any thread."""


@dataclass
class _Source:
    """A source that an exporter knows, with whether it was ever read."""

    of: ref[Measured]
    warns_ns: int | None = None
    """When a warning about it may be logged again."""
    was_read: bool = False


class Sources:
    """The sources of one exporter, each under a name of its own. May be used by any thread.

    Each call forgets the sources that are no longer used, so there are as many as are in use. A
    source that is dropped before it was ever read is warned of, the first time:
    `PrometheusCollector(Producer(config))` keeps no producer.
    """

    def __init__(self, sources: Iterable[Measured] = (), now_ns: Callable[[], int] = monotonic_ns) -> None:
        self._lock = Lock()
        self._now_ns = now_ns
        self._count = 0
        self._sources: dict[str, _Source] = {}
        self._warned_of_gone = False
        for source in sources:
            self.add(source)

    def __len__(self) -> int:
        return len(self._sources)

    def add(self, source: Measured) -> None:
        """Enter a source under the name `client_id`, or "producer-1" if it has none; if the name is
        taken, a number is added to it. A source that is known already stays as it is.

        Raises UsageError if it has no `metrics()`.
        """
        entry = _Source(_referred(source))
        self._sweep()
        with self._lock:
            if any(each.of() is source for each in self._sources.values()):
                return
            self._count += 1
            number, base = self._count, str(getattr(source, "client_id", ""))
            name = base or f"{_kind(source)}-{number}"
            base = base or _kind(source)
            while name in self._sources:
                name = f"{base}-{number}"
                number += 1
            self._sources[name] = entry

    def remove(self, source: Measured) -> None:
        """Forget a source; one that is not known is no error."""
        self._sweep(source)

    def check(self) -> None:
        """Raise UsageError if a source is gone that was never read: nobody but the exporter knew
        it."""
        with self._lock:
            for name, each in self._sources.items():
                if each.of() is None and not each.was_read:
                    raise UsageError(_gone(name))

    def read(self) -> list[Read]:
        """The metrics of each source that is still used.

        A source that raises, or whose metrics are not those of the table, is left out, with a
        warning every WARNS_AGAIN_S seconds.
        """
        self._sweep()
        with self._lock:
            sources = list(self._sources.items())
        found: list[Read] = []
        for name, entry in sources:
            source = entry.of()
            if source is None:
                continue
            try:
                entry.was_read = True
                group_id = getattr(source, "group_id", None)
                series = _series(source.metrics())
                found.append(Read(name, series, None if group_id is None else str(group_id)))
            except Exception as error:  # the others are exported whatever is wrong with this one
                self._warn(name, entry, error)
        return found

    def _sweep(self, besides: Measured | None = None) -> None:
        unread: list[str] = []
        with self._lock:
            for name, each in list(self._sources.items()):
                source = each.of()
                if source is None or source is besides:
                    del self._sources[name]
                if source is None and not each.was_read:
                    unread.append(name)
            warns = bool(unread) and not self._warned_of_gone
            self._warned_of_gone |= warns
        if warns:
            LOGGER.warning("%s", _gone(unread[0]))

    def _warn(self, name: str, entry: _Source, error: Exception) -> None:
        now_ns = self._now_ns()
        with self._lock:
            if entry.warns_ns is not None and now_ns < entry.warns_ns:
                return
            entry.warns_ns = now_ns + WARNS_AGAIN_S * NS_PER_S
        LOGGER.warning(
            "metrics of %s are not exported: %s: %s (logged again in %d s if that lasts)",
            name,
            type(error).__name__,
            error,
            WARNS_AGAIN_S,
        )


def _gone(name: str) -> str:
    return (
        f"{name} is gone, and its metrics were never read: an exporter does not keep a client. Keep it in a "
        "variable for as long as it is used, and give that to the exporter"
    )


def _referred(source: Measured) -> ref[Measured]:
    """A weak reference to a source. UsageError for an object without `metrics()`, or that cannot be
    referred to weakly."""
    metrics: object = getattr(source, "metrics", None)
    if isinstance(source, type) or not callable(metrics) or iscoroutinefunction(metrics):
        raise UsageError(
            f"{source!r:.100} has no metrics to export. Give a Producer, Consumer, ShareConsumer or Admin, "
            "blocking or async, a ProgressListener of Spark, a testing.Cluster, or an object whose metrics() "
            "returns groups of docs/reference/metrics.md"
        )
    try:
        return ref(source)
    except TypeError as error:
        raise UsageError(
            f"{source!r:.100} cannot be exported: {error}. Its class needs __weakref__ among its __slots__"
        ) from error


def _series(metrics: Metrics) -> Series:
    """The result of `metrics()`, as rows of labels and numbers by group. TypeError, ValueError or
    KeyError if it has other groups or names than the table, or something that is no number."""
    if not isinstance(metrics, Mapping):
        raise TypeError(f"metrics() returned {metrics!r:.100}, not groups by name")
    found: Series = {}
    for name in metrics:
        group = GROUPS.get(name)
        if group is None:
            raise ValueError(f"there is no group of metrics {name!r:.100}")
        found[name] = [
            (labels, {row.name: float(values[row.name]) for row in group.rows})
            for labels, values in labelled(group, metrics)
        ]
        if any(len(labels) != len(group.labels) for labels, _ in found[name]):
            raise ValueError(f"metrics of {name} need the labels {', '.join(group.labels)}")
    return found


_KINDS = {
    "ShareConsumer": "share-consumer",
    "Producer": "producer",
    "Consumer": "consumer",
    "Admin": "admin",
    "ProgressListener": "spark",
    "Cluster": "cluster",
}


def _kind(source: Measured) -> str:
    """Name for a source without one: "producer", for an AsyncProducer and for subclasses too."""
    names = [each.__name__.removeprefix("Async") for each in type(source).__mro__]
    return next((_KINDS[name] for name in names if name in _KINDS), "source")
