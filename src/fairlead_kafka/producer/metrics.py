"""Counters of a producer: a recorder that is called once for a batch, a request or a submission.

It is never called for a single record.

The names under which all of it is read, and their meaning, are in `metric_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from fairlead_kafka.core.meters import Meter, Sampling, combined
from fairlead_kafka.core.metric_table import named
from fairlead_kafka.core.traffic_meter import NodeMeter
from fairlead_kafka.producer.metric_names import NODE, PRODUCER, TOPIC
from fairlead_kafka.wire import ApiKey

if TYPE_CHECKING:
    from fairlead_kafka.producer.queues import Batch
    from fairlead_kafka.producer.submission import Submission

Metrics = TypedDict(
    "Metrics",
    {
        "producer-metrics": dict[str, float],
        "producer-node-metrics": dict[str, dict[str, float]],
        "producer-topic-metrics": dict[str, dict[str, float]],
    },
)
"""Metrics by Kafka's groups: of the producer, of each broker ("node-0") and of each topic, by
name."""


class TopicMeter(Meter):
    """Counters of one topic."""

    TOTALS = (
        "records_sent",
        "records_delivered",
        "records_failed",
        "records_retried",
        "batches_sent",
        "batch_bytes",
        "ratios",
    )
    __slots__ = TOTALS
    records_sent: int
    records_delivered: int
    records_failed: int
    records_retried: int
    batches_sent: int
    batch_bytes: int
    ratios: float


class ProducerMeter(Meter):
    """Counters of the producer as a whole.

    There are two, the machine's and the client API's, written by different threads and read as one.
    """

    TOTALS = (
        *NodeMeter.TOTALS, *TopicMeter.TOTALS, "batches_split", "queue_ns", "entered", "entered_bytes",
        "produce_requests",
        "requests_failed", "throttle_ms", "epoch_bumps", "connections_made", "connections_ended", "exhausted",
        "waited_ns", "flush_ns",
        "metadata_wait_ns", "txn_init_ns", "txn_begin_ns", "txn_send_offsets_ns", "txn_commit_ns",
        "txn_abort_ns",
    )  # fmt: skip
    MAXIMA = (*NodeMeter.MAXIMA, "batch_max_bytes", "queue_max_ns", "record_max_bytes", "throttle_max_ms")
    __slots__ = (*TOTALS, *MAXIMA)
    requests: int
    request_bytes: int
    responses: int
    response_bytes: int
    answers: int
    latency_ns: int
    request_max_bytes: int
    latency_max_ns: int
    records_sent: int
    records_delivered: int
    records_failed: int
    records_retried: int
    batches_sent: int
    batch_bytes: int
    ratios: float
    batches_split: int
    queue_ns: int
    entered: int
    entered_bytes: int
    produce_requests: int
    requests_failed: int
    throttle_ms: int
    epoch_bumps: int
    connections_made: int
    connections_ended: int
    exhausted: int
    batch_max_bytes: int
    queue_max_ns: int
    record_max_bytes: int
    throttle_max_ms: int

    def add(self, name: str, amount: int, now_ns: int) -> None:
        """Add to a total by its name: for what happens seldom."""
        if now_ns >= self.rolls_ns:
            self.roll(now_ns)
        setattr(self, name, getattr(self, name) + amount)


class Recorder:
    """The machine's counters. Its methods run in the machine's step; `read` may run on any
    thread."""

    def __init__(self, sampling: Sampling) -> None:
        self.sampling = sampling
        self.now_ns = 0
        self.whole = ProducerMeter(sampling)
        self.nodes: dict[int, NodeMeter] = {}
        self.topics: dict[str, TopicMeter] = {}

    def tick(self, now_ns: int) -> None:
        """Set the time of this step, ns."""
        self.now_ns = now_ns
        if now_ns >= self.whole.rolls_ns:
            self.whole.roll(now_ns)

    # Records and batches

    def entered(self, submission: Submission) -> None:
        """Count the records of a submission."""
        if not submission.columns.count:
            return
        sizes, whole = submission.sizes_bytes(), self.whole
        whole.entered += submission.columns.count
        whole.entered_bytes += int(np.add.reduce(sizes))
        whole.record_max_bytes = max(whole.record_max_bytes, int(np.maximum.reduce(sizes)))

    def sent(self, batches: Sequence[Batch]) -> None:
        """Count a Produce request with these batches, which was written."""
        whole, now_ns = self.whole, self.now_ns
        whole.produce_requests += 1
        for batch in batches:
            size_bytes = 0 if batch.buffer is None else len(batch.buffer)
            ratio = size_bytes / batch.uncompressed_bytes if batch.uncompressed_bytes else 1.0
            for meter in (self.topic(batch.queue.topic.name), whole):
                meter.records_sent += batch.count
                meter.batches_sent += 1
                meter.batch_bytes += size_bytes
                meter.ratios += ratio
            if size_bytes > whole.batch_max_bytes:
                whole.batch_max_bytes = size_bytes
            wait_ns = now_ns - batch.created_ns
            whole.queue_ns += wait_ns
            if wait_ns > whole.queue_max_ns:
                whole.queue_max_ns = wait_ns

    def delivered(self, name: str, records: int) -> None:
        """Called when records of a topic were delivered."""
        self.topic(name).records_delivered += records
        self.whole.records_delivered += records

    def failed(self, name: str, records: int) -> None:
        """Called when records of a topic failed."""
        self.topic(name).records_failed += records
        self.whole.records_failed += records

    def retried(self, batch: Batch) -> None:
        """Count a batch that is to be sent again."""
        self.topic(batch.queue.topic.name).records_retried += batch.count
        self.whole.records_retried += batch.count

    def topic(self, name: str) -> TopicMeter:
        """The meter of a topic, its window up to date."""
        meter = self.topics.get(name)
        if meter is None:
            meter = self.topics[name] = TopicMeter(self.sampling)
        if self.now_ns >= meter.rolls_ns:
            meter.roll(self.now_ns)
        return meter

    def forget(self, names: Iterable[str]) -> None:
        """Drop the meters of topics that are not sent to any more."""
        for name in names:
            self.topics.pop(name, None)

    # Requests; the first five are `core.traffic.Traffic`

    def wrote(self, node_id: int, size_bytes: int) -> None:
        """Count a request that was written to a broker."""
        for meter in (self._node(node_id), self.whole):
            meter.requests += 1
            meter.request_bytes += size_bytes
            if size_bytes > meter.request_max_bytes:
                meter.request_max_bytes = size_bytes

    def read_bytes(self, node_id: int, size_bytes: int, answers: int) -> None:
        """Count bytes that came from a broker, and the whole answers in them."""
        for meter in (self._node(node_id), self.whole):
            meter.responses += answers
            meter.response_bytes += size_bytes

    def connected(self, node_id: int) -> None:
        """Count a connection that was made to a broker."""
        self.whole.connections_made += 1

    def disconnected(self, node_id: int) -> None:
        """Called when a connection that had been made ended."""
        self.whole.connections_ended += 1

    def served(self, node_id: int, api_key: ApiKey, latency_ns: int) -> None:
        """Count nothing: of requests other than Produce no latency is counted, and `answered` has
        that."""

    def answered(self, node_id: int, latency_ns: int, throttle_ms: int) -> None:
        """Called when a Produce request was answered."""
        whole = self.whole
        for meter in (self._node(node_id), whole):
            meter.answers += 1
            meter.latency_ns += latency_ns
            if latency_ns > meter.latency_max_ns:
                meter.latency_max_ns = latency_ns
        whole.throttle_ms += throttle_ms
        if throttle_ms > whole.throttle_max_ms:
            whole.throttle_max_ms = throttle_ms

    def _node(self, node_id: int) -> NodeMeter:
        meter = self.nodes.get(node_id)
        if meter is None:
            meter = self.nodes[node_id] = NodeMeter(self.sampling)
        if self.now_ns >= meter.rolls_ns:
            meter.roll(self.now_ns)
        return meter

    # Reading

    def read(
        self,
        now_ns: int,
        client_api: ProducerMeter,
        gauges: Mapping[str, float],
        node_gauges: Callable[[int], Mapping[str, float]],
    ) -> Metrics:
        """All metrics, by Kafka's groups and names. `client_api`: the counters of the client
        API."""
        whole = combined([self.whole.read(now_ns), client_api.read(now_ns)], gauges)
        nodes, topics = list(self.nodes.items()), list(self.topics.items())
        return {
            "producer-metrics": named(PRODUCER, whole),
            "producer-node-metrics": {
                f"node-{node_id}": named(NODE, combined([meter.read(now_ns)], node_gauges(node_id)))
                for node_id, meter in nodes
            },
            "producer-topic-metrics": {
                name: named(TOPIC, combined([meter.read(now_ns)], {})) for name, meter in topics
            },
        }
