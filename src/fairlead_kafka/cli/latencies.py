"""Counting latencies and throttling as kafka-producer-perf-test does, so that its output can be
compared line by line.

Latency runs from before `send` to the delivery report, so it includes waiting in the accumulator
and for memory; only successes count. Percentiles are taken without interpolation from a sample of
at most 500,000 records (Kafka's `ProducerPerformance`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from fairlead_kafka.base.units import MIB

SAMPLES_MAX = 500_000
WINDOW_S = 5.0
PAUSE_MIN_S = 0.002
"""Shorter pauses than this are saved up: no sleep is that exact."""
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


def percentile(ordered: list[int], share: float) -> int:
    """The value below which `share` (0 to 1) of the ordered values lie, by Kafka's rule: the
    element at floor(share x size)."""
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0


def pause_s(sent: int, elapsed_s: float, records_per_s: float) -> float:
    """Seconds to sleep after `sent` records, so as to keep to `records_per_s`: 0 if they are late,
    if the pause would be short, or without a limit."""
    if records_per_s < 0:
        return 0.0
    ahead_s = sent / records_per_s - elapsed_s
    return ahead_s if ahead_s >= PAUSE_MIN_S else 0.0


class Latencies:
    """Counts, sizes and latencies of delivered records; `say` gets a line every `interval_s`.

    `records`: how many are expected, which decides the sampling. `kind` goes into the summary ("
    steady state", as Kafka has it).
    """

    def __init__(
        self,
        records: int,
        say: Callable[[str], None] | None = None,
        *,
        interval_s: float = WINDOW_S,
        kind: str = "",
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._sample_every = max(1, records // min(records, SAMPLES_MAX))
        self._say = say
        self._interval_s = interval_s
        self._kind = kind
        self._clock = clock
        self._saying = threading.Lock()
        self._first_window = True
        self.begun = False
        self.reader_left = False
        """Nobody reads the lines any more: the pipe they went into was closed."""
        self.failed = 0
        self.first_error: Exception | None = None
        self._samples_ms: list[int] = []
        self._count = self._size_bytes = self._total_ms = self._most_ms = 0
        self._window = [0, 0, 0, 0]  # records, bytes, total ms, most ms
        self._started_s = self._window_s = clock()

    def begin(self) -> None:
        """Start the clock."""
        self.begun = True
        self._started_s = self._window_s = self._clock()

    def be_quiet(self) -> None:
        """Print no more lines, but go on counting. No line comes once this has returned, though
        delivery reports come on another thread."""
        with self._saying:
            self._say = None

    def record(self, sent_s: float, size_bytes: int, error: Exception | None) -> None:
        """Count a record that was sent at `sent_s` (seconds, by the clock) and is delivered, or
        failed with `error`."""
        now_s = self._clock()
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or error
            return
        latency_ms = int((now_s - sent_s) * 1000)
        if self._count % self._sample_every == 0:
            self._samples_ms.append(latency_ms)
        self._count += 1
        self._size_bytes += size_bytes
        self._total_ms += latency_ms
        self._most_ms = max(self._most_ms, latency_ms)
        window = self._window
        window[0] += 1
        window[1] += size_bytes
        window[2] += latency_ms
        window[3] = max(window[3], latency_ms)
        if now_s - self._window_s >= self._interval_s:
            self._end_window(now_s)

    def _end_window(self, now_s: float) -> None:
        (records, size_bytes, total_ms, most_ms), elapsed_s = self._window, now_s - self._window_s
        self._window, self._window_s = [0, 0, 0, 0], now_s
        with self._saying:
            if self._say is None:
                return
            try:
                if self._first_window and self._kind:
                    self._say("In steady state.")
                self._say(
                    f"{records} records sent, {records / elapsed_s:.1f} records/sec "
                    f"({size_bytes / elapsed_s / MIB:.2f} MB/sec), "
                    f"{total_ms / records:.1f} ms avg latency, {most_ms:.1f} ms max latency."
                )
            except BrokenPipeError:
                self.reader_left, self._say = True, None
            self._first_window = False

    def summary(self) -> str:
        """The last line: everything since the start."""
        elapsed_s = max(self._clock() - self._started_s, 1e-9)
        ordered = sorted(self._samples_ms)
        shown = ", ".join(f"{percentile(ordered, share)} ms {share * 100:g}th" for share in PERCENTILES)
        return (
            f"{self._count}{self._kind} records sent, {self._count / elapsed_s:.6f} records/sec "
            f"({self._size_bytes / elapsed_s / MIB:.2f} MB/sec), "
            f"{self._total_ms / max(1, self._count):.2f} ms avg latency, {self._most_ms:.2f} ms max latency, "
            f"{shown}."
        )


class Throttle:
    """Keeps a loop at a rate by pausing; pauses too short to sleep are saved up."""

    def __init__(self, records_per_s: float) -> None:
        self._records_per_s = records_per_s
        self._started_s = time.perf_counter()

    def pause(self, sent: int) -> None:
        """Called after `sent` records: sleeps if the rate was too high."""
        length_s = pause_s(sent, time.perf_counter() - self._started_s, self._records_per_s)
        if length_s:
            time.sleep(length_s)
