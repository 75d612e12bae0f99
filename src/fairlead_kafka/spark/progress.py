"""Figures of streaming queries: lag, rows, offsets without rows, from the progress that Spark
reports after each micro-batch.

A source written in Python cannot report metrics of its own to Spark, so the metrics of Spark's
Kafka connector (`minOffsetsBehindLatest` and so on) are computed here, from the offsets in the
progress: the start and end of the micro-batch, and the ends of the logs. The progress of the
connector itself has the same form.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from math import nan

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
    StreamingQueryProgress,
)

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import Json, integer_at, integers_at, json_object, objects_at, text_at
from fairlead_kafka.core.meters import Reading
from fairlead_kafka.core.metric_table import named
from fairlead_kafka.spark.metric_names import GROUPS
from fairlead_kafka.spark.offsets import OffsetRange, OffsetsByPartition, from_offsets_json
from fairlead_kafka.spark.options import ReadOptions
from fairlead_kafka.spark.survey import Survey
from fairlead_kafka.spark.volume import Volume

TOTALS_MAX = 500
"""Sources of queries whose totals a listener keeps. A query without a name counts by its id, which
is new at each start, so in a session that starts queries for months there would be no end of them;
those that run at one time are tens."""


@dataclass(frozen=True)
class SourceProgress:
    """Figures of one source in one micro-batch."""

    query_id: str
    query_name: str | None
    batch_id: int
    source: int
    """Which source of the query, counted from 0."""
    rows: int
    read: tuple[OffsetRange, ...]
    """Ranges of offsets that it read; none for a query's first micro-batch, whose beginning Spark
    does not report."""
    lag: Mapping[TopicPartition, int]
    """Offsets of each partition between the end of the micro-batch and the end of the log when it
    was planned."""
    behind: tuple[OffsetRange, ...] = ()
    """The offsets of `lag` as ranges, without empty ones."""
    partitions_gone: tuple[TopicPartition, ...] = ()
    """Partitions that it left out because they are no longer there (`failOnDataLoss=false`)."""
    duration_ms: int = 0
    """Time that the micro-batch took, from trigger to commit; 0 if Spark does not say."""
    lag_bytes: float | None = None
    """About how many bytes `behind` holds; None unless the listener was given client settings."""

    @property
    def offsets(self) -> int:
        """Number of offsets that the micro-batch read over, gaps included."""
        return sum(one.size for one in self.read)

    @property
    def offsets_without_rows(self) -> int:
        """Number of offsets that gave no row: compacted, of aborted transactions, transaction
        markers, or lost with `failOnDataLoss=false`."""
        return max(0, self.offsets - self.rows) if self.read else 0

    @property
    def metrics(self) -> dict[str, str]:
        """The metrics of Spark's Kafka connector, by its names and in its form."""
        if not self.lag:
            return {}
        lags = list(self.lag.values())
        return {
            "minOffsetsBehindLatest": str(min(lags)),
            "maxOffsetsBehindLatest": str(max(lags)),
            "avgOffsetsBehindLatest": str(sum(lags) / len(lags)),
        }


@dataclass
class Totals:
    """Sums over one source of a query since the listener was added; lag of the last micro-batch."""

    micro_batches: int = 0
    time_ms: int = 0
    """Time that the micro-batches took."""
    rows: int = 0
    offsets: int = 0
    offsets_without_rows: int = 0
    partitions_gone: int = 0
    lag: int = 0
    """Offsets that waited when the last micro-batch was planned."""
    lag_bytes: float | None = None
    query_id: str = ""
    """Id of the query that reported last."""
    last_batch: int = 0
    """Which of the listener's micro-batches, of all queries, was the last."""
    ended: bool = False
    """That query has ended: nobody waits for its lag, which is no longer exported."""


def _reading(totals: Totals) -> Reading:
    return Reading(
        {},
        {},
        {},
        {},
        {
            "micro-batches": totals.micro_batches,
            "micro-batch-time-ms": totals.time_ms,
            "rows": totals.rows,
            "offsets": totals.offsets,
            "offsets-without-rows": totals.offsets_without_rows,
            "partitions-gone": totals.partitions_gone,
            "lag": nan if totals.ended else totals.lag,
            "lag-bytes": nan if totals.ended or totals.lag_bytes is None else totals.lag_bytes,
        },
    )


def _worth(totals: Totals) -> tuple[bool, int]:
    """A sort key of totals; when there are too many, those with the least are dropped first."""
    return not totals.ended, totals.last_batch


def source_progress(progress: StreamingQueryProgress | Mapping[str, Json]) -> list[SourceProgress]:
    """The figures of each source with offsets of topics, of a `StreamingQueryProgress` or of its
    JSON as a dictionary."""
    # Spark's own is a dictionary too, whose parts are not those of JSON in every version.
    if isinstance(progress, Mapping) and not isinstance(progress, StreamingQueryProgress):
        report = progress
    else:
        report = json_object(progress.json)
    durations = report.get("durationMs")
    duration_ms = durations.get("triggerExecution") if isinstance(durations, Mapping) else None
    found = []
    for number, source in enumerate(objects_at(report, "sources")):
        start, end, latest = (
            _offsets(source.get(name)) for name in ("startOffset", "endOffset", "latestOffset")
        )
        if end is None:
            continue
        # A partition that the beginning does not name is new: it was read from its first offset.
        read = (
            []
            if start is None
            else [OffsetRange(one, start.get(one, 0), offset) for one, offset in sorted(end.items())]
        )
        behind = [OffsetRange(one, end.get(one, 0), offset) for one, offset in sorted((latest or {}).items())]
        found.append(
            SourceProgress(
                query_id=text_at(report, "id"),
                query_name=None if report.get("name") is None else text_at(report, "name"),
                batch_id=integer_at(report, "batchId"),
                source=number,
                rows=integer_at(source, "numInputRows"),
                read=tuple(one for one in read if one.size),
                lag={one.partition: one.size for one in behind},
                behind=tuple(one for one in behind if one.size),
                duration_ms=duration_ms if isinstance(duration_ms, int) else 0,
                partitions_gone=tuple(sorted(set(start or ()) - set(end))),
            )
        )
    return found


def _offsets(reported: Json) -> OffsetsByPartition | None:
    """Offsets by partition, from JSON as a text or an object; None for offsets of another kind of
    source."""
    try:
        found: Json = json.loads(reported) if isinstance(reported, str) else reported
        if not isinstance(found, Mapping):
            return None
        return from_offsets_json({topic: integers_at(found, topic) for topic in found})
    except (ValueError, TypeError, AttributeError):
        return None


@dataclass
class ProgressListener(StreamingQueryListener):
    """Follows all streaming queries of a session:
    `spark.streams.addListener(ProgressListener(tell=print))`.

    `tell` gets the figures of each micro-batch; `totals` has the sums by (query name or id, number
    of the source), of TOTALS_MAX sources: beyond that, those of queries that have ended go first,
    then those that had no micro-batch for longest. With the settings of a client
    (`{"bootstrap.servers": ...}`) the lag is told in bytes too, which costs a few small fetches for
    each micro-batch.
    """

    tell: Callable[[SourceProgress], None] | None = None
    client: Mapping[str, str] | None = field(default=None, repr=False)
    totals: dict[tuple[str, int], Totals] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._survey = None if self.client is None else Survey(ReadOptions(client=dict(self.client)))
        self._volume = None if self._survey is None else Volume(self._survey.look)
        self._batches = 0

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802
        """Called when a query has started; its figures come with its progress."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        """Called when a micro-batch is done."""
        for figures in source_progress(event.progress):
            self.take(figures)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        """Called when a query waits for data; nothing has changed."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        """Called when a query has ended; its totals stay, its lag is no longer exported."""
        for totals in list(self.totals.values()):
            if totals.query_id == str(event.id):
                totals.ended = True

    def take(self, figures: SourceProgress) -> None:
        """Add a micro-batch's figures to the totals, and call `tell` with them."""
        if self._volume is not None:
            self._volume.learn(figures.behind)
            figures = replace(figures, lag_bytes=sum(self._volume.size_bytes(one) for one in figures.behind))
        key = (figures.query_name or figures.query_id, figures.source)
        if key not in self.totals and len(self.totals) >= TOTALS_MAX:
            del self.totals[min(self.totals, key=lambda each: _worth(self.totals[each]))]
        totals = self.totals.setdefault(key, Totals())
        self._batches += 1
        totals.query_id, totals.last_batch, totals.ended = figures.query_id, self._batches, False
        totals.micro_batches += 1
        totals.time_ms += figures.duration_ms
        totals.rows += figures.rows
        totals.offsets += figures.offsets
        totals.offsets_without_rows += figures.offsets_without_rows
        totals.partitions_gone += len(figures.partitions_gone)
        totals.lag = sum(figures.lag.values())
        totals.lag_bytes = figures.lag_bytes
        if self.tell is not None:
            self.tell(figures)

    def metrics(self) -> dict[str, dict[tuple[str, str], dict[str, float]]]:
        """The totals as metrics, for `PrometheusCollector` (docs/reference/metrics.md).

        {"spark-stream-metrics": {(query, source): {name: number}}}.
        """
        (group,) = GROUPS
        found = {
            (query, str(source)): named(group.rows, _reading(totals))
            for (query, source), totals in list(self.totals.items())
        }
        return {group.name: found}

    def close(self) -> None:
        """Close the client's connections, if `client` was given."""
        if self._survey is not None:
            self._survey.close()
