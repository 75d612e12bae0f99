"""Counting latencies and throttling as kafka-producer-perf-test does, so that its output can be compared line by line.

Latency runs from before `send` to the delivery report, so it includes waiting in the accumulator and for memory; only successes
count. Percentiles are taken without interpolation from a sample of at most 500,000 records (Kafka's `ProducerPerformance`).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from fairlead.base.units import MIB

SAMPLES_MAX = 500_000
WINDOW_S = 5.0
PAUSE_MIN_S = 0.002
"""Shorter pauses than this are saved up: no sleep is that exact."""
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


def percentile(ordered: list[int], share: float) -> int:
    """The value that `share` of the ordered values lie below, by Kafka's rule: the element at floor(share x size)."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


class Latencies:
    """Counts, sizes and latencies of delivered records; `say` gets a line every five seconds."""

    def __init__(self, records: int, say: Callable[[str], None] | None = None) -> None:
        self._sample_every = max(1, records // min(records, SAMPLES_MAX))
        self._say = say
        self.failed = 0
        self.first_error: Exception | None = None
        self.restart()

    def restart(self) -> None:
        """Start the clock."""
        self._samples_ms: list[int] = []
        self._count = self._size_bytes = self._total_ms = self._most_ms = self._seen = 0
        self._window = [0, 0, 0, 0]  # records, bytes, total ms, most ms
        self._started_s = self._window_s = time.perf_counter()

    def record(self, sent_s: float, size_bytes: int, error: Exception | None) -> None:
        """A delivery report."""
        now_s = time.perf_counter()
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or error
            return
        latency_ms = int((now_s - sent_s) * 1000)
        self._count += 1
        self._size_bytes += size_bytes
        self._total_ms += latency_ms
        self._most_ms = max(self._most_ms, latency_ms)
        if self._seen % self._sample_every == 0:
            self._samples_ms.append(latency_ms)
        self._seen += 1
        window = self._window
        window[0] += 1
        window[1] += size_bytes
        window[2] += latency_ms
        window[3] = max(window[3], latency_ms)
        if self._say and now_s - self._window_s >= WINDOW_S:
            elapsed_s = now_s - self._window_s
            self._say(
                f"{window[0]} records sent, {window[0] / elapsed_s:.1f} records/sec ({window[1] / elapsed_s / MIB:.2f} MB/sec), "
                f"{window[2] / window[0]:.1f} ms avg latency, {window[3]:.1f} ms max latency."
            )
            self._window, self._window_s = [0, 0, 0, 0], now_s

    def summary(self) -> str:
        """The last line: everything since the start."""
        elapsed_s = max(time.perf_counter() - self._started_s, 1e-9)
        ordered = sorted(self._samples_ms)
        shown = ", ".join(f"{percentile(ordered, share)} ms {share * 100:g}th" for share in PERCENTILES)
        return (
            f"{self._count} records sent, {self._count / elapsed_s:.1f} records/sec ({self._size_bytes / elapsed_s / MIB:.2f} MB/sec), "
            f"{self._total_ms / max(1, self._count):.2f} ms avg latency, {self._most_ms:.2f} ms max latency, {shown}."
        )


class Throttle:
    """Keeps a loop at a rate by pausing; what is too short to sleep is saved up."""

    def __init__(self, records_per_s: float) -> None:
        self._records_per_s = records_per_s
        self._started_s = time.perf_counter()

    def pause(self, sent: int) -> None:
        """Called after `sent` records: sleeps if they came too fast."""
        if self._records_per_s < 0:
            return
        ahead_s = sent / self._records_per_s - (time.perf_counter() - self._started_s)
        if ahead_s >= PAUSE_MIN_S:
            time.sleep(ahead_s)
