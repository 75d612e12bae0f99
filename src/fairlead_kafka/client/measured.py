"""Sources of metrics, as exporters know them: by name, and only while somebody uses them."""

from __future__ import annotations

from collections.abc import Iterable
from threading import Lock
from typing import Protocol
from weakref import ref

from fairlead_kafka.core.metric_table import Metrics


class Measured(Protocol):
    """The part of a client, a listener of Spark's or a cluster that exporters need.

    Its name is its `client_id`, if it has one.
    """

    def metrics(self) -> Metrics:
        """Its metrics, on any thread."""


class Sources:
    """The sources of one exporter, each under a name of its own. May be used by any thread."""

    def __init__(self, sources: Iterable[Measured] = ()) -> None:
        self._lock = Lock()
        self._count = 0
        self._sources: dict[str, ref[Measured]] = {}
        for source in sources:
            self.add(source)

    def add(self, source: Measured) -> None:
        """Take in a source: by its `client_id`, or "producer-1"; a name that is taken gets a
        number."""
        with self._lock:
            self._count += 1
            name = str(getattr(source, "client_id", "")) or f"{_kind(source)}-{self._count}"
            known = self._sources.get(name)
            if known is not None and known() is not None:
                name = f"{name}-{self._count}"
            self._sources[name] = ref(source)

    def remove(self, source: Measured) -> None:
        """Forget a source; one that is not known is no error."""
        with self._lock:
            self._sources = {
                name: each
                for name, each in self._sources.items()
                if (known := each()) is not None and known is not source
            }

    def read(self) -> list[tuple[str, Metrics]]:
        """The metrics of each source that is still used, with its name."""
        found: list[tuple[str, Metrics]] = []
        for name, each in list(self._sources.items()):
            source = each()
            if source is not None:
                found.append((name, source.metrics()))
        return found


_KINDS = {
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
