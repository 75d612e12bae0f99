"""Counters of flows: from the progress of queries, observations, and the offsets of brokers."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TypedDict

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import Json, JsonObject, read_json
from fairlead_kafka.client import Consumer
from fairlead_kafka.spark.pipelines.expectations import OBSERVED, QUARANTINED
from fairlead_kafka.spark.pipelines.registry import BYTES, READ, ROWS, WRITTEN
from fairlead_kafka.spark.shipped import with_shipped_files

Offsets = dict[TopicPartition, int]
Connection = tuple[tuple[str, str], ...]
"""A cluster, and how a client is let in: settings, sorted by name."""
AGGREGATION = "stateStoreSave"
"""Spark's name of the operator that keeps the sums of open windows."""


@dataclass
class FlowCounters:
    """One flow in one run. Bytes are those of records' values; a counter that is not known is
    None."""

    flow: str
    target: str
    state: str = "waiting"
    batches: int = 0
    rows_in: int = 0
    rows_out: int | None = None
    bytes_in: int | None = None
    bytes_out: int | None = None
    quarantined: int = 0
    """Rows that its expectations kept from going on."""
    failed_expectations: dict[str, int] = field(default_factory=dict)
    late: int = 0
    """Rows that came after the watermark, and were left out of their window."""
    waiting: int = 0
    """Rows of windows that are still open: the sums so far, one for each key of each window."""
    watermark: str | None = None
    """The flow's watermark, in ISO 8601; None if it has none. A window is written once this has
    passed its end."""
    lost: int = 0
    """Offsets that the flow had yet to read when its topics had dropped them already."""
    lag: int | None = None
    """Offsets between what it has read and the ends of its topics; None if it reads no topic."""
    seconds: float = 0.0
    start: Offsets = field(default_factory=dict)
    """Offset of each partition at which the flow's first batch began."""
    end: Offsets = field(default_factory=dict)
    """Offset of each partition at which the flow's last batch ended."""

    def add_earlier(self, earlier: FlowCounters) -> None:
        """Add what the flow did in runs before this one."""
        if not self.batches:  # nothing new: what waited waits still
            self.waiting, self.watermark = earlier.waiting, earlier.watermark
        for name in ("batches", "rows_in", "quarantined", "late", "lost", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(earlier, name))
        for name in ("rows_out", "bytes_in", "bytes_out"):
            own, other = getattr(self, name), getattr(earlier, name)
            setattr(self, name, own if other is None else other if own is None else own + other)
        for name, count in earlier.failed_expectations.items():
            self.failed_expectations[name] = self.failed_expectations.get(name, 0) + count
        self.lag = earlier.lag if self.lag is None else self.lag

    def as_row(self) -> JsonObject:
        """The flow as a row of the report."""
        return {name: value for name, value in asdict(self).items() if name not in ("start", "end")}


class StateJson(TypedDict, total=False):
    """A stateful operator in a micro-batch, as Spark's progress tells of it."""

    operatorName: str
    numRowsTotal: int | None
    numRowsDroppedByWatermark: int | None


class SourceJson(TypedDict, total=False):
    """A source in a micro-batch; offsets as JSON, or as a text of JSON."""

    startOffset: Json
    endOffset: Json


class ProgressJson(TypedDict, total=False):
    """One micro-batch: what is read of the JSON of Spark's `StreamingQueryProgress`;
    `batchDuration` in ms."""

    name: str | None
    numInputRows: int | None
    batchDuration: int | None
    observedMetrics: Mapping[str, Mapping[str, int | None]]
    sources: Sequence[SourceJson]
    eventTime: Mapping[str, str]
    stateOperators: Sequence[StateJson]


class Progress:
    """Counters of all flows of a run, fed by a listener's thread and read by others."""

    def __init__(self, targets: Mapping[str, str]) -> None:
        self._lock = threading.Lock()
        self.flows = {name: FlowCounters(name, target) for name, target in targets.items()}
        self._running: set[str] = set()
        self._all_ended = threading.Event()
        self._all_ended.set()

    def named(self, name: str | None) -> FlowCounters | None:
        """The counters of the flow of a query's name, which has catalog and database in front if
        the flow fills a table; None if there are none."""
        return self.flows.get(name or "") or self.flows.get((name or "").rpartition(".")[2])

    def started(self, run_id: str, name: str | None) -> None:
        """Called when a query has begun."""
        if self.named(name) is not None:
            with self._lock:
                self._running.add(run_id)
                self._all_ended.clear()

    def ended(self, run_id: str) -> None:
        """Called when a query has ended, and all its progress was reported."""
        with self._lock:
            self._running.discard(run_id)
            if not self._running:
                self._all_ended.set()

    def await_ended(self, timeout_s: float) -> bool:
        """Wait until all queries that began have ended, as Spark reports; False after `timeout_s`
        seconds."""
        return self._all_ended.wait(timeout_s)

    def add(self, progress: ProgressJson) -> None:
        """Count one micro-batch, given as the JSON of Spark's `StreamingQueryProgress`."""
        counters = self.named(progress.get("name"))
        if counters is None:
            return
        with self._lock:
            counters.batches += 1
            counters.rows_in += max(0, progress.get("numInputRows") or 0)
            counters.seconds += (progress.get("batchDuration") or 0) / 1000
            _add_windows(counters, progress)
            counters.late += sum(
                state.get("numRowsDroppedByWatermark") or 0 for state in progress.get("stateOperators") or ()
            )
            _add_observations(counters, progress.get("observedMetrics") or {})
            for source in progress.get("sources") or ():
                start, end = offsets_of(source.get("startOffset")), offsets_of(source.get("endOffset"))
                counters.start = {**start, **counters.start}
                counters.end |= end

    def rows(self) -> list[JsonObject]:
        """All flows, as rows of the report."""
        with self._lock:
            return [flow.as_row() for flow in self.flows.values()]


def _add_windows(counters: FlowCounters, progress: ProgressJson) -> None:
    """Set a flow's open windows and watermark from a micro-batch's progress; those of the last
    micro-batch count."""
    kept = [
        state for state in progress.get("stateOperators") or () if state.get("operatorName") == AGGREGATION
    ]
    counters.waiting = sum(state.get("numRowsTotal") or 0 for state in kept)
    watermark = (progress.get("eventTime") or {}).get("watermark")
    counters.watermark = (
        watermark if kept and watermark is not None and not watermark.startswith("1970-01-01") else None
    )


def _add_observations(counters: FlowCounters, observed: Mapping[str, Mapping[str, int | None]]) -> None:
    if READ in observed:
        counters.bytes_in = (counters.bytes_in or 0) + (observed[READ].get(BYTES) or 0)
    if WRITTEN in observed:
        counters.rows_out = (counters.rows_out or 0) + (observed[WRITTEN].get(ROWS) or 0)
        if BYTES in observed[WRITTEN]:
            counters.bytes_out = (counters.bytes_out or 0) + (observed[WRITTEN][BYTES] or 0)
    for name, count in observed.get(OBSERVED, {}).items():
        if name == QUARANTINED:
            counters.quarantined += count or 0
        else:
            counters.failed_expectations[name] = counters.failed_expectations.get(name, 0) + (count or 0)


def offsets_of(text: Json) -> Offsets:
    """Offsets by partition, from the JSON of a source's offset; empty for sources whose offsets are
    something else."""
    try:
        parsed = read_json(text) if isinstance(text, str) else text
    except ValueError:
        return {}
    offsets: Offsets = {}
    for topic, partitions in parsed.items() if isinstance(parsed, dict) else ():
        if not isinstance(partitions, dict):
            return {}
        for number, offset in partitions.items():
            if not number.isdecimal() or not isinstance(offset, int):
                return {}
            offsets[TopicPartition(topic, int(number))] = offset
    return offsets


def earliest_offsets(clusters: Mapping[str, Connection]) -> Offsets:
    """First offset of each partition of the topics, which `clusters` have by cluster."""
    return _offsets(clusters, "beginning_offsets")


def latest_offsets(clusters: Mapping[str, Connection]) -> Offsets:
    """End offset of each partition of the topics, which `clusters` have by cluster."""
    return _offsets(clusters, "end_offsets")


def _offsets(clusters: Mapping[str, Connection], which: str) -> Offsets:
    found: Offsets = {}
    for connection in set(clusters.values()):
        with Consumer(
            {**with_shipped_files(dict(connection)), "allow.auto.create.topics": "false"}
        ) as consumer:
            there = set(consumer.list_topics())
            topics = [topic for topic, own in clusters.items() if own == connection and topic in there]
            partitions = [
                TopicPartition(topic, one.partition)
                for topic in topics
                for one in consumer.partitions_for(topic)
            ]
            found |= getattr(consumer, which)(partitions)
    return found


def add_lag_and_loss(
    flows: Iterable[FlowCounters],
    earliest: Mapping[TopicPartition, int],
    latest: Mapping[TopicPartition, int],
) -> None:
    """Add to `lost` and set `lag` of each flow.

    `earliest`: where the topics' logs began before the run; `latest`: where they ended after it.
    """
    for flow in flows:
        flow.lost += sum(
            max(0, earliest[one] - offset) for one, offset in flow.start.items() if one in earliest
        )
        topics = {one.topic for one in flow.end}
        if topics and topics <= {one.topic for one in latest}:
            flow.lag = sum(
                max(0, latest[one] - flow.end.get(one, 0)) for one in latest if one.topic in topics
            )
