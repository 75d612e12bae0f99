"""Replays a topic's records through a producer with other settings.

The producer is Fairlead's own in virtual time, against the simulator's model brokers. The records
keep their keys, sizes and bytes, and are sent at the times of their timestamps, or at an even rate.
Partitioner, batches, linger, compression and window are real. Network and healthy brokers are
modelled, by the lab's constants (`lab.virtual_load`), with the topic's own leaders. One producer is
given all records, however many wrote the topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from random import Random

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.limits import RECORD_OVERHEAD_MAX_BYTES
from fairlead_kafka.cli.skew.document import ReplayRow, Waits
from fairlead_kafka.cli.skew.spread import Spread
from fairlead_kafka.lab.experiment import AS_KAFKA
from fairlead_kafka.lab.virtual_load import BROKER_BATCH_MS, BROKER_REQUEST_MS, NETWORK_MS
from fairlead_kafka.producer import Flush
from fairlead_kafka.records import BinaryColumn, HeaderColumns, RecordColumns
from fairlead_kafka.runtime import Completion, VirtualHost
from fairlead_kafka.simulation import Application, ProduceCluster, SubmittedRecords

POLICIES: Mapping[str, Mapping[str, str]] = {
    "keyed": {},
    **{
        name: {"partitioner.class": name, "partitioner.ignore.keys": "true"}
        for name in ("round_robin", "sticky", "uniform", "adaptive", "late")
    },
}
"""`keyed`: by key where there is one, else by the default (late). The others place every record as
if it had no key."""
SUBMISSION_MAX_BYTES = 1 << 20
"""Bytes submitted at once at most, or a single record: a caller's loop gets no further between two
looks of the machine, and buffer.memory has room for it."""
BUFFER_MEMORY_BYTES = 32 << 20
"""Bytes of buffer.memory: Kafka's default; twice the largest record where that is more."""
NO_LIMIT_BYTES = 2**31 - 1
READY_MS = 100.0
"""Milliseconds that connecting and learning the metadata take at most."""
FLUSH_MS = 3_600_000.0
_TOPIC = "replayed"
_HEADER_ROW_BYTES = 16


@dataclass(frozen=True)
class Records:
    """Records in the order in which they were once submitted.

    `arrivals_ms` is int64[n], ascending, from 0.
    """

    columns: RecordColumns
    arrivals_ms: npt.NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A producer's settings to try."""

    policy: str
    batch_size: int
    linger_ms: int


@dataclass(frozen=True)
class Cluster:
    """The topic's cluster, as a replay needs it: `leaders`, the broker of each partition, numbered
    from 0; and the codec that its producers chose."""

    leaders: Sequence[int]
    codec: str


def replay(records: Records, case: Case, cluster: Cluster, seed: int = 1) -> ReplayRow:
    """A flat row: the case, the batches and bytes it would have made, how even over partitions, and
    how long records would have waited."""
    sizes_bytes = memory_bytes(records.columns)
    run = _Run(case, cluster, max(BUFFER_MEMORY_BYTES, 2 * int(sizes_bytes.max())), seed)
    run.submit(records, sizes_bytes)
    partitions = run.cluster.log.topics[_TOPIC].partitions
    sizes = [one.size_bytes for one in partitions]
    batches = sum(len(one.batches) for one in partitions)
    size_bytes = sum(sizes)
    return {
        "policy": case.policy,
        "batch_size": case.batch_size,
        "linger_ms": case.linger_ms,
        "batches": batches,
        "records_per_batch": round(records.columns.count / max(1, batches), 2),
        "fill": round(size_bytes / max(1, batches) / max(1, case.batch_size), 4),
        "size_bytes": size_bytes,
        **Spread.of(sizes).figures(),
        "requests": sum(machine.requests for machine in run.cluster.machines),
        **run.waits(),
        "partition_bytes": sizes,
    }


class _Run:
    """One simulated producer and its cluster, which measures how long records wait."""

    def __init__(self, case: Case, cluster: Cluster, buffer_bytes: int, seed: int) -> None:
        self.host = VirtualHost(latency_ms=NETWORK_MS)
        self.cluster = ProduceCluster(self.host, max(cluster.leaders) + 1, max_message_bytes=NO_LIMIT_BYTES)
        self.cluster.create_topic(_TOPIC, len(cluster.leaders), cluster.leaders)
        for broker in self.cluster.brokers:
            broker.takes(BROKER_REQUEST_MS, BROKER_BATCH_MS)
        config = {
            "bootstrap.servers": self.cluster.bootstrap_servers,
            **POLICIES[case.policy],
            "batch.size": case.batch_size,
            **AS_KAFKA,
            "linger.ms": case.linger_ms,
            "compression.type": cluster.codec,
            "buffer.memory": buffer_bytes,
            "max.request.size": NO_LIMIT_BYTES,
        }
        self._application = Application(self.host, config, Random(seed), self._completed)
        self._waited_ns: list[int] = []
        self._counts: list[int] = []
        self._failed = 0
        self.host.advance(READY_MS)

    def submit(self, records: Records, sizes_bytes: npt.NDArray[np.int64]) -> None:
        """Submit all records, each in its millisecond, as soon as there is room.

        Then flushes, as closing a producer does.
        """
        columns = records.columns
        begun_ms = self.host.now_ms()
        for start, stop in submissions(records.arrivals_ms, sizes_bytes):
            late_ms = int(records.arrivals_ms[start]) - (self.host.now_ms() - begun_ms)
            if late_ms > 0:
                self.host.advance(late_ms)
            piece, size_bytes = slice_of(columns, start, stop), int(sizes_bytes[start:stop].sum())
            while self._application.submit_columns(_TOPIC, piece, size_bytes) is None:
                self._application.memory.wanted = True
                self.host.advance(1)
            self._application.memory.wanted = False
        completion: Completion[None] = Completion()
        self.host.submit(self._application.handle, Flush(completion))
        with suppress(TimedOut):
            self.host.run_until(completion.done, FLUSH_MS)

    def waits(self) -> Waits:
        """Waits from submission to acknowledgement, in ms, and the number of failed records."""
        if not self._counts:
            return {"p50_ms": None, "p99_ms": None, "failed": self._failed}
        order = np.argsort(self._waited_ns)
        ends = np.cumsum(np.array(self._counts)[order])
        waited_ms = np.array(self._waited_ns)[order] / 1e6
        at = {
            share: round(float(waited_ms[np.searchsorted(ends, ends[-1] * share)]), 3)
            for share in (0.5, 0.99)
        }
        return {"p50_ms": at[0.5], "p99_ms": at[0.99], "failed": self._failed}

    def _completed(
        self,
        submission: SubmittedRecords,
        rows: Sequence[int],
        partition: int,
        base_offset: int,
        error: Exception | None,
    ) -> None:
        if error is not None:
            self._failed += len(rows)
            return
        self._waited_ns.append(self.host.now_ns() - submission.created_ns)
        self._counts.append(len(rows))


def submissions(
    arrivals_ms: npt.NDArray[np.int64], sizes_bytes: npt.NDArray[np.int64]
) -> Iterator[tuple[int, int]]:
    """Records start..stop that come within one millisecond, in pieces of `SUBMISSION_MAX_BYTES` at
    most, or of one record."""
    bounds = [*np.flatnonzero(np.diff(arrivals_ms, prepend=-1)).tolist(), len(arrivals_ms)]
    ends = np.cumsum(sizes_bytes)
    for first, end in pairwise(bounds):
        start = first
        while start < end:
            begun = int(ends[start - 1]) if start else 0
            stop = max(
                start + 1, min(end, int(np.searchsorted(ends, begun + SUBMISSION_MAX_BYTES, side="right")))
            )
            yield start, stop
            start = stop


def slice_of(columns: RecordColumns, start: int, stop: int) -> RecordColumns:
    """Records start..stop over the same memory."""
    headers = columns.headers
    return RecordColumns(
        stop - start,
        _slice(columns.keys, start, stop),
        _slice(columns.values, start, stop),
        None
        if headers is None
        else HeaderColumns(headers.offsets[start : stop + 1], headers.keys, headers.values),
        None if columns.timestamps_ms is None else columns.timestamps_ms[start:stop],
    )


def _slice(column: BinaryColumn | None, start: int, stop: int) -> BinaryColumn | None:
    if column is None:
        return None
    return BinaryColumn(
        column.data,
        column.offsets[start : stop + 1],
        None if column.valid is None else column.valid[start:stop],
    )


def memory_bytes(columns: RecordColumns) -> npt.NDArray[np.int64]:
    """int64[n]: the most bytes of buffer.memory that each record takes."""
    sizes = np.full(columns.count, RECORD_OVERHEAD_MAX_BYTES, np.int64)
    for column in (columns.keys, columns.values):
        if column is not None:
            sizes += np.diff(column.offsets)
    headers = columns.headers
    if headers is not None:
        ends = headers.offsets
        counts = np.diff(ends)
        sizes += headers.keys.offsets[ends[1:]] - headers.keys.offsets[ends[:-1]]
        sizes += (
            headers.values.offsets[ends[1:]] - headers.values.offsets[ends[:-1]] + counts * _HEADER_ROW_BYTES
        )
    return sizes
