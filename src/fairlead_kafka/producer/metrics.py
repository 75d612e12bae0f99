"""Counters of a producer: a recorder that is called once for a batch, a request or a submission.

It is never called for a single record.

The names under which all of it is read, and their meaning, are in `metric_names`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

import numpy as np

from fairlead_kafka.core.meters import Meter, Meters, Sampling, combined
from fairlead_kafka.core.metric_table import named
from fairlead_kafka.core.traffic_meter import ClientMeter, Kinds, TrafficRecorder
from fairlead_kafka.producer.metric_names import NODE, PRODUCER, TOPIC

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


class ProducerMeter(ClientMeter):
    """Counters of the producer as a whole.

    There are two, the machine's and the client API's, written by different threads and read as one.
    """

    _OWN = (
        *TopicMeter.TOTALS, "batches_split", "queue_ns", "entered", "entered_bytes", "produce_requests",
        "requests_failed", "throttle_ms", "epoch_bumps", "exhausted", "waited_ns", "flush_ns",
        "metadata_wait_ns", "txn_init_ns", "txn_begin_ns", "txn_send_offsets_ns", "txn_commit_ns",
        "txn_abort_ns",
    )  # fmt: skip
    _OWN_MAXIMA = ("batch_max_bytes", "queue_max_ns", "record_max_bytes", "throttle_max_ms")
    TOTALS = (*ClientMeter.TOTALS, *_OWN)
    MAXIMA = (*ClientMeter.MAXIMA, *_OWN_MAXIMA)
    __slots__ = (*_OWN, *_OWN_MAXIMA)
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
    exhausted: int
    batch_max_bytes: int
    queue_max_ns: int
    record_max_bytes: int
    throttle_max_ms: int

    def add(self, name: str, amount: int, now_ns: int) -> None:
        """Add `amount` to the total `name`; for events that are rare."""
        if now_ns >= self.rolls_ns:
            self.roll(now_ns)
        setattr(self, name, getattr(self, name) + amount)


KINDS = Kinds(frozenset())
"""No request is measured by its kind: of Produce alone the latency is counted, by `answered`."""


class Recorder(TrafficRecorder[ProducerMeter]):
    """The machine's counters. Its methods run in the machine's step; `read` may run on any
    thread."""

    def __init__(self, sampling: Sampling) -> None:
        super().__init__(ProducerMeter(sampling), sampling, KINDS)
        self.topics: Meters[str, TopicMeter] = Meters(lambda: TopicMeter(sampling))

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
            for meter in (self.topics.of(batch.queue.topic.name, self.now_ns), whole):
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
        self.topics.of(name, self.now_ns).records_delivered += records
        self.whole.records_delivered += records

    def failed(self, name: str, records: int) -> None:
        """Called when records of a topic failed."""
        self.topics.of(name, self.now_ns).records_failed += records
        self.whole.records_failed += records

    def retried(self, batch: Batch) -> None:
        """Count a batch that is to be sent again."""
        self.topics.of(batch.queue.topic.name, self.now_ns).records_retried += batch.count
        self.whole.records_retried += batch.count

    def forget(self, names: Iterable[str]) -> None:
        """Drop the meters of topics that are not sent to any more."""
        for name in names:
            self.topics.pop(name, None)

    # Requests

    def answered(self, node_id: int, latency_ns: int, throttle_ms: int) -> None:
        """Called when a Produce request was answered: `latency_ns` nanoseconds after it was sent,
        with so many milliseconds of throttling."""
        self.timed(node_id, latency_ns)
        whole = self.whole
        whole.throttle_ms += throttle_ms
        if throttle_ms > whole.throttle_max_ms:
            whole.throttle_max_ms = throttle_ms

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
        return {
            "producer-metrics": named(PRODUCER, whole),
            "producer-node-metrics": self.nodes_named(NODE, now_ns, node_gauges),
            "producer-topic-metrics": {
                name: named(TOPIC, combined([meter.read(now_ns)], {}))
                for name, meter in list(self.topics.items())
            },
        }
