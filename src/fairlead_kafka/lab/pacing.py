"""Open-loop loads: the number of records due at a time, and their latencies. Pure arithmetic, for
real and virtual clocks.

A load does not wait for answers: record number n is due at n / rate seconds, whatever the outcome
of earlier ones. Time is cut into periods, and the records of a period are submitted together at its
beginning: a period of a millisecond is as even as a thread that sleeps can be
(kafka-producer-perf-test saves pauses up to two), one of 100 ms is the throttle of Trogdor's
ProduceBench, by which KIP-480 was measured. Latency runs from the call that submits a record to its
acknowledgement, as in Kafka's `ProducerPerformance`; a client that blocks its caller shows in the
records per second that it reaches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.base.units import MIB, NS_PER_MS, NS_PER_S

_OPEN, _FAILED = 0, -1
PERCENTILES = {"p50_ms": 0.5, "p95_ms": 0.95, "p99_ms": 0.99, "p999_ms": 0.999}


@dataclass(frozen=True)
class Load:
    """A load: `warmup_records` and then `records` of `record_size` bytes each, `rate` a second.

    The warm-up counts for everything but latencies and records per second. `period_ms`: records
    that are due within that time are submitted together; `flush`: each period ends with a flush.
    After `limit_s` seconds nothing more is submitted or waited for.
    """

    records: int
    rate: int
    record_size: int
    warmup_records: int = 0
    period_ms: int = 1
    flush: bool = False
    limit_s: float = 120.0

    @property
    def total(self) -> int:
        """Number of all records, the warm-up's included."""
        return self.warmup_records + self.records

    def due(self, elapsed_ns: int) -> int:
        """Number of records that are due `elapsed_ns` after the start: those of all periods that
        have begun.
        """
        period_ns = self.period_ms * NS_PER_MS
        return min(self.total, (elapsed_ns // period_ns + 1) * period_ns * self.rate // NS_PER_S)

    def due_ns(self, number: int) -> int:
        """Time when record `number` (from 0) is due, ns after the start: the beginning of its
        period.
        """
        period_ns = self.period_ms * NS_PER_MS
        periods = -(-(number + 1) * NS_PER_S // (period_ns * self.rate))
        return (periods - 1) * period_ns

    def steps(self, now_ns: Callable[[], int]) -> Iterator[tuple[float, range]]:
        """Next steps, until all records are submitted or time is up: seconds to sleep, then the
        numbers of records to submit.

        One of the two is always empty (0.0, or an empty range). A caller that was held up finds
        everything due at once.
        """
        started_ns = now_ns()
        submitted = 0
        while submitted < self.total:
            elapsed_ns = now_ns() - started_ns
            if elapsed_ns > self.limit_s * NS_PER_S:
                return
            due = self.due(elapsed_ns)
            if due > submitted:
                yield 0.0, range(submitted, due)
                submitted = due
            else:
                yield (self.due_ns(submitted) - elapsed_ns) / NS_PER_S, range(0)


def latency_figures(latencies_ms: npt.NDArray[np.float64]) -> dict[str, float]:
    """{avg_ms, p50_ms, p95_ms, p99_ms, p999_ms, max_ms} of latencies in any order; {} if there are
    none.

    Percentiles by Kafka's rule: the element at floor(share x count) of the ordered ones, without
    interpolation.
    """
    count = len(latencies_ms)
    if not count:
        return {}
    ordered = np.sort(latencies_ms)
    shown = {name: float(ordered[min(count - 1, int(share * count))]) for name, share in PERCENTILES.items()}
    figures = {"avg_ms": float(ordered.mean()), **shown, "max_ms": float(ordered[-1])}
    return {name: round(value, 2) for name, value in figures.items()}


class Journal:
    """Notes when each record was submitted and acknowledged, in ns of the clock `now_ns`. Records
    are numbered from 0, those of the warm-up first."""

    def __init__(self, load: Load, now_ns: Callable[[], int]) -> None:
        self._load = load
        self._now_ns = now_ns
        self._end_ns = 0
        self.sent_ns = [0] * load.total
        self.acked_ns = [_OPEN] * load.total
        self.first_error = ""

    def sent(self, number: int) -> None:
        """Note that record `number` is about to be submitted."""
        self.sent_ns[number] = self._now_ns()

    def acked(self, number: int) -> None:
        """Note that record `number` is acknowledged."""
        self.acked_ns[number] = self._now_ns()

    def failed(self, number: int, error: object) -> None:
        """Note that record `number` failed."""
        self.acked_ns[number] = _FAILED
        self.first_error = self.first_error or str(error) or type(error).__name__

    def end(self) -> None:
        """Note the end of the load: no more acknowledgements are waited for."""
        self._end_ns = self._now_ns()

    def figures(self) -> JsonObject:
        """{records_per_s, mb_per_s, avg_ms, …, max_ms, acked, failed}, and `error` if records
        failed, `open` if some were given up.

        A second's records run from the first submission after the warm-up to the last
        acknowledgement; MB are KIP-794's, 2**20 bytes of values. A record that was neither
        acknowledged nor failed in the end counts among latencies with what it had waited by then; a
        failed one does not. `acked`, `failed` and `open` count the warm-up too.
        """
        first, submitted = self._load.warmup_records, np.array(self.sent_ns, np.int64) > 0
        sent, acked = np.array(self.sent_ns, np.int64), np.array(self.acked_ns, np.int64)
        waiting = submitted & (acked == _OPEN)
        counts: JsonObject = {"acked": int((acked > 0).sum()), "failed": int((acked == _FAILED).sum())}
        if self.first_error:
            counts["error"] = self.first_error
        if waiting.any():
            counts["open"] = int(waiting.sum())
        answered = acked[first:][acked[first:] > 0]
        if not len(answered):
            return {"records_per_s": 0.0, "mb_per_s": 0.0, **counts}
        seconds = max(int(answered.max()) - int(sent[first]), 1) / NS_PER_S
        until = np.where(waiting, max(self._end_ns, int(answered.max())), acked)
        shown = (submitted & (acked != _FAILED))[first:]
        latencies_ms = (until - sent)[first:][shown] / NS_PER_MS
        return {
            **rates(len(answered) / seconds, self._load.record_size),
            **latency_figures(latencies_ms),
            **counts,
        }


def rates(records_per_s: float, record_size: int) -> dict[str, float]:
    """{records_per_s, mb_per_s}; MB are 2**20 bytes of values."""
    return {"records_per_s": round(records_per_s, 1), "mb_per_s": round(records_per_s * record_size / MIB, 3)}
