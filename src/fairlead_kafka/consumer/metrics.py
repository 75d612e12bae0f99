"""Counters of a consumer, written once for a request, a chunk of fetched data or a poll.

There are two halves. The machine's `Recorder` counts traffic, fetches and rebalances, on the host's
thread. The client class's `PollRecorder` counts what polls return, on the caller's thread. Both may
be read on any thread, and are read as one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple, TypedDict

from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.consumer.metric_names import (
    BETWEEN_OPEN,
    CONSUMER,
    COORDINATOR,
    FETCH_MANAGER,
    FETCH_PARTITION,
    FETCH_TOPIC,
    GROUPS,
    POLLING_OPEN,
)
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.core.meters import Meter, Meters, Sampling, combined
from fairlead_kafka.core.metric_table import NONE_LEAST, named
from fairlead_kafka.core.traffic_meter import ClientMeter, Kinds, TrafficRecorder
from fairlead_kafka.wire import ApiKey

NEVER_S = -1.0
"""Kafka's "seconds ago" of what has not happened yet."""

ConsumerMetrics = TypedDict(
    "ConsumerMetrics",
    {
        "consumer-metrics": dict[str, float],
        "consumer-node-metrics": dict[str, dict[str, float]],
        "consumer-coordinator-metrics": dict[str, float],
        "consumer-fetch-manager-metrics": dict[str, float],
        "consumer-fetch-manager-topic-metrics": dict[str, dict[str, float]],
        "consumer-fetch-manager-partition-metrics": dict[TopicPartition, dict[str, float]],
    },
)
"""Metrics by Kafka's groups; those of fetches also by topic and by partition, for which Kafka has
labels."""

_CALLS = ("commit", "heartbeat", "join", "sync", "rebalance", "revoked_call", "assigned_call", "lost_call")
"""Kinds for `ClientMeter.spend`."""
KINDS = Kinds(
    frozenset({ApiKey.FETCH}),
    {
        ApiKey.OFFSET_COMMIT: "commit",
        ApiKey.HEARTBEAT: "heartbeat",
        ApiKey.CONSUMER_GROUP_HEARTBEAT: "heartbeat",
        ApiKey.JOIN_GROUP: "join",
        ApiKey.SYNC_GROUP: "sync",
    },
)


class TopicMeter(Meter):
    """Counters of one topic that is read."""

    TOTALS = ("fetches", "fetched_bytes", "bytes_consumed", "records_consumed")
    MAXIMA = ("fetched_max_bytes",)
    __slots__ = (*TOTALS, *MAXIMA)
    fetches: int
    fetched_bytes: int
    bytes_consumed: int
    records_consumed: int
    fetched_max_bytes: int


class ConsumerMeter(ClientMeter):
    """Counters of the consumer as a whole."""

    _OWN = (
        "fetched_bytes", "throttle_ms", "bytes_consumed", "records_consumed", "gaps", "between_ns",
        "polling_ns", "commit_call_ns", "committed_call_ns", "rebalances_failed",
        *(f"{kind}s" for kind in _CALLS), *(f"{kind}_ns" for kind in _CALLS),
    )  # fmt: skip
    _OWN_MAXIMA = (
        "fetched_max_bytes", "throttle_max_ms", "between_max_ns", "lag_max", "lead_shy",
        *(f"{kind}_max_ns" for kind in _CALLS),
    )  # fmt: skip
    TOTALS = (*ClientMeter.TOTALS, *_OWN)
    MAXIMA = (*ClientMeter.MAXIMA, *_OWN_MAXIMA)
    __slots__ = (*_OWN, *_OWN_MAXIMA)
    fetched_bytes: int
    throttle_ms: int
    bytes_consumed: int
    records_consumed: int
    gaps: int
    between_ns: int
    polling_ns: int
    heartbeats: int
    rebalances_failed: int
    fetched_max_bytes: int
    throttle_max_ms: int
    between_max_ns: int
    lag_max: int
    lead_shy: int


class PartitionMeter(Meter):
    """Lag and lead of a partition after polls, in records. `lead_shy` is `NONE_LEAST` less the
    lead, so that its maximum gives the least lead."""

    TOTALS = ("looks", "lags", "leads")
    MAXIMA = ("lag_max", "lead_shy")
    __slots__ = (*TOTALS, *MAXIMA)
    looks: int
    lags: int
    leads: int
    lag_max: int
    lead_shy: int


class Topics(Meters[str, TopicMeter]):
    """Meters of topics, made when a topic is first read."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__(lambda: TopicMeter(sampling))

    def keep(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the topics of which no partition is assigned any more."""
        for name in self.keys() - {partition.topic for partition in partitions}:
            del self[name]


class Recorder(TrafficRecorder[ConsumerMeter]):
    """The machine's half of a consumer's counters; its methods run in the machine's step."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__(ConsumerMeter(sampling), sampling, KINDS)
        self.topics = Topics(sampling)
        self._rebalancing_ns: int | None = None
        """Since when a rebalance is under way."""
        self.rebalanced_ns: int | None = None
        self.heartbeat_ns: int | None = None

    def served(self, node_id: int, api_key: ApiKey, latency_ns: int) -> None:
        """Called when a request was answered, `latency_ns` after it was written."""
        super().served(node_id, api_key, latency_ns)
        if KINDS.counted.get(api_key) == "heartbeat":
            self.heartbeat_ns = self.now_ns

    def fetched(self, topics: Mapping[str, int], throttle_ms: int) -> None:
        """Count an answer to a Fetch: bytes of each topic, and milliseconds of throttling."""
        whole, size_bytes = self.whole, sum(topics.values())
        whole.fetched_bytes += size_bytes
        whole.fetched_max_bytes = max(whole.fetched_max_bytes, size_bytes)
        whole.throttle_ms += throttle_ms
        whole.throttle_max_ms = max(whole.throttle_max_ms, throttle_ms)
        for name, topic_bytes in topics.items():
            meter = self.topics.of(name, self.now_ns)
            meter.fetches += 1
            meter.fetched_bytes += topic_bytes
            meter.fetched_max_bytes = max(meter.fetched_max_bytes, topic_bytes)

    def keep(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the topics of which no partition is assigned any more."""
        self.topics.keep(partitions)

    def rebalance_began(self) -> None:
        """Note that a rebalance begins, unless one is under way."""
        if self._rebalancing_ns is None:
            self._rebalancing_ns = self.now_ns

    def rebalance_ended(self, failed: bool = False) -> None:
        """Note that the rebalance under way, if there is one, has ended."""
        if self._rebalancing_ns is None:
            return
        if failed:
            self.whole.rebalances_failed += 1
        else:
            self.whole.spend("rebalance", 1, self.now_ns - self._rebalancing_ns)
            self.rebalanced_ns = self.now_ns
        self._rebalancing_ns = None


class _Poll(NamedTuple):
    """One poll: when it began, and when it returned; None: it is under way."""

    began_ns: int
    ended_ns: int | None


class PollRecorder:
    """The client class's half of a consumer's counters; its methods run on the thread that polls,
    `read` on any."""

    def __init__(self, sampling: Sampling, now_ns: Callable[[], int]) -> None:
        self.whole = ConsumerMeter(sampling)
        self.topics = Topics(sampling)
        self.partitions: Meters[TopicPartition, PartitionMeter] = Meters(lambda: PartitionMeter(sampling))
        self._sampling = sampling
        self._now_ns = now_ns
        self._last: _Poll | None = None  # replaced as a whole: readers on other threads look once

    def poll_began(self) -> int:
        """Note that a poll begins. Returns the time, ns on the monotonic clock."""
        now_ns = self._roll()
        last = self._last
        if last is not None:
            gap_ns, whole = now_ns - last.began_ns, self.whole
            whole.gaps += 1
            whole.between_ns += gap_ns
            whole.between_max_ns = max(whole.between_max_ns, gap_ns)
            # Time in a poll counts with the time until the next, so that no window has one alone.
            whole.polling_ns += (now_ns if last.ended_ns is None else last.ended_ns) - last.began_ns
        self._last = _Poll(now_ns, None)
        return now_ns

    def poll_ended(self, began_ns: int) -> None:
        """Note that the poll that began at `began_ns` returns."""
        self._last = _Poll(began_ns, self._now_ns())

    def open_gauges(self, now_ns: int) -> dict[str, float]:
        """Gauges of the last poll: seconds since it began, and nanoseconds in and since it that no
        total counts yet; 0 if it returned before the window."""
        last = self._last
        if last is None:
            return {"last-poll-seconds-ago": NEVER_S, POLLING_OPEN: 0, BETWEEN_OPEN: 0}
        ended_ns = now_ns if last.ended_ns is None else last.ended_ns
        recent = now_ns - ended_ns <= self._sampling.window_ns * self._sampling.samples
        return {
            "last-poll-seconds-ago": _ago(last.began_ns, now_ns),
            POLLING_OPEN: ended_ns - last.began_ns if recent else 0,
            BETWEEN_OPEN: now_ns - last.began_ns if recent else 0,
        }

    @contextmanager
    def timed(self, total: str) -> Iterator[None]:
        """Add the nanoseconds that the `with` block takes to the total `total` of
        `ConsumerMeter`."""
        began_ns = self._now_ns()
        try:
            yield
        finally:
            self._roll()
            setattr(self.whole, total, getattr(self.whole, total) + self._now_ns() - began_ns)

    def listened(self, kind: str, began_ns: int) -> None:
        """Note that a call of the listener, which began at `began_ns`, has ended. `kind` is the
        total that its time is added to."""
        self._roll()
        self.whole.spend(kind, 1, self._now_ns() - began_ns)

    def took(self, chunk: Chunk, next_offset: int) -> None:
        """Note that a chunk was decoded, up to `next_offset`, for polls to return."""
        if chunk.start < next_offset < min(chunk.next_offset, chunk.end):
            return  # a part of it; its bytes count with the last one
        now_ns = self._roll()
        self.whole.bytes_consumed += len(chunk.data)
        self.topics.of(chunk.partition.topic, now_ns).bytes_consumed += len(chunk.data)

    def returned(self, chunk: Chunk, records: int, position: int) -> None:
        """Note that a poll returns records of a chunk, and leaves the partition at `position`."""
        now_ns = self._roll()
        self.whole.records_consumed += records
        self.topics.of(chunk.partition.topic, now_ns).records_consumed += records
        meter = self.partitions.of(chunk.partition, now_ns)
        if chunk.readable_end == NO_OFFSET or chunk.log_start == NO_OFFSET:
            return
        # Comparisons and no calls of max(): this runs at every poll, also of one record.
        lag = chunk.readable_end - position if chunk.readable_end > position else 0
        lead = position - chunk.log_start if chunk.log_start < position else 0
        meter.looks += 1
        meter.lags += lag
        meter.leads += lead
        _widen(meter, lag, NONE_LEAST - lead)
        _widen(self.whole, lag, NONE_LEAST - lead)

    def keep(self, partitions: Iterable[TopicPartition]) -> None:
        """Forget the partitions that are not assigned any more, and their topics."""
        partitions = set(partitions)
        for partition in self.partitions.keys() - partitions:
            del self.partitions[partition]
        self.topics.keep(partitions)

    def _roll(self) -> int:
        now_ns = self._now_ns()
        if now_ns >= self.whole.rolls_ns:
            self.whole.roll(now_ns)
        return now_ns


def read(
    recorder: Recorder,
    polls: PollRecorder,
    now_ns: int,
    gauges: Mapping[str, float],
    requests_in_flight: Callable[[int], int],
    of_partitions: Mapping[TopicPartition, Mapping[str, float]],
) -> ConsumerMetrics:
    """All metrics, by Kafka's groups and names. `of_partitions`: the gauges of each one
    assigned."""
    ago = {
        **polls.open_gauges(now_ns),
        "last-heartbeat-seconds-ago": _ago(recorder.heartbeat_ns, now_ns),
        "last-rebalance-seconds-ago": _ago(recorder.rebalanced_ns, now_ns),
    }
    whole = combined([recorder.whole.read(now_ns), polls.whole.read(now_ns)], {**ago, **gauges})
    sampling = recorder.sampling
    none, nowhere = TopicMeter(sampling), PartitionMeter(sampling)
    topics = dict.fromkeys([*list(recorder.topics), *list(polls.topics)])
    return {
        "consumer-metrics": named(CONSUMER, whole),
        "consumer-node-metrics": recorder.nodes_named(
            GROUPS[1].rows, now_ns, lambda node_id: {"requests-in-flight": requests_in_flight(node_id)}
        ),
        "consumer-coordinator-metrics": named(COORDINATOR, whole),
        "consumer-fetch-manager-metrics": named(FETCH_MANAGER, whole),
        "consumer-fetch-manager-topic-metrics": {
            name: named(
                FETCH_TOPIC,
                combined([each.get(name, none).read(now_ns) for each in (recorder.topics, polls.topics)], {}),
            )
            for name in topics
        },
        "consumer-fetch-manager-partition-metrics": {
            of: named(FETCH_PARTITION, combined([polls.partitions.get(of, nowhere).read(now_ns)], found))
            for of, found in of_partitions.items()
        },
    }


def _widen(meter: PartitionMeter | ConsumerMeter, lag: int, lead_shy: int) -> None:
    """Enter a lag and a lead (`NONE_LEAST` less the lead) into the maxima of a meter."""
    if lag > meter.lag_max:
        meter.lag_max = lag
    if lead_shy > meter.lead_shy:
        meter.lead_shy = lead_shy


def _ago(then_ns: int | None, now_ns: int) -> float:
    return NEVER_S if then_ns is None else (now_ns - then_ns) / NS_PER_S
