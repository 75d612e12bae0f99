"""Runs one client as fast as it can while a broker fails: `python -m
fairlead_kafka.lab.peers.pressed JSON`, JSON being a `Task`.

One thread of the application submits records as fast as the client takes them (or at a rate),
whatever their outcomes. A second thread only watches the clock: warm-up, baseline, then it prints
`fault` (the parent process breaks a broker now), a pause, the time under the fault; then it prints
a line of JSON and ends the process, blocked or not. A record counts for the phase in which its
acknowledgement comes; its latency runs from its timestamp, to a millisecond.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from itertools import cycle

from fairlead_kafka.base.json_types import Json, JsonObject
from fairlead_kafka.lab.peers.program import KEYS, peak_memory_mb, value_of

MODULES = {
    "fairlead": "fairlead_kafka.lab.peers.pressed_ours",
    "confluent-kafka": "fairlead_kafka.lab.peers.pressed_confluent",
    "kafka-python": "fairlead_kafka.lab.peers.pressed_pure_python",
    "aiokafka": "fairlead_kafka.lab.peers.pressed_pure_python",
}
SAMPLE_EVERY = 16
"""Acknowledgements per one whose latency is noted."""
PACE_S = 0.002


@dataclass(frozen=True)
class Phases:
    """Seconds of each phase; `settling` is the pause between the fault and the time under it that
    counts.
    """

    warmup: float
    baseline: float
    settling: float
    fault: float


@dataclass(frozen=True)
class Task:
    """One client's run, with records of `record_size` bytes.

    `rate` is in records a second, 0: as fast as the client takes them. `faulty`:
    partitions led by the broker that will fail.
    """

    system: str
    bootstrap_servers: str
    topic: str
    keyed: bool
    partitions: int
    faulty: list[int]
    phases: Phases
    record_size: int = 512
    rate: int = 0
    config: Mapping[str, Json] = field(default_factory=dict)

    def to_json(self) -> str:
        """The task as JSON, for the command line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Task:
        """The task that `to_json` wrote."""
        fields = json.loads(text)
        return cls(**{**fields, "phases": Phases(**fields["phases"])})


class Phase:
    """Counts of acknowledgements and failures in one phase."""

    def __init__(self, partitions: int) -> None:
        self.acked = [0] * partitions
        self.failed = 0
        self.latencies_ms: list[float] = []

    def figures(self, seconds: float, healthy: list[int]) -> JsonObject:
        """{healthy_records_per_s, p99_ms, acked, failed}; p99 is None if nothing on a healthy
        partition was acknowledged."""
        ordered = sorted(self.latencies_ms)
        p99_ms = round(ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))], 1) if ordered else None
        return {
            "healthy_records_per_s": round(sum(self.acked[one] for one in healthy) / seconds),
            "p99_ms": p99_ms,
            "acked": sum(self.acked),
            "failed": self.failed,
        }


class Run:
    """One run of a client that sends as fast as it can, or at a rate, while a broker fails. The
    client calls `begin` when it is connected, then `acked` and `fail` from any thread."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.value = value_of(task.record_size)
        self.first_error = ""
        self.phase = Phase(task.partitions)
        """Counts of the phase under way."""
        self._healthy = [one for one in range(task.partitions) if one not in task.faulty]
        self._is_healthy = [one not in task.faulty for one in range(task.partitions)]

    def endless_keys(self) -> Iterator[bytes | None]:
        """A key for each record to send, without end: None for all if the load is not keyed; waits
        as `rate` says."""
        endless: Iterator[bytes | None] = cycle(
            [b"key-%d" % number for number in range(KEYS)] if self.task.keyed else [None]
        )
        return self._paced(endless) if self.task.rate else endless

    def _paced(self, keys: Iterator[bytes | None]) -> Iterator[bytes | None]:
        started_s, submitted = time.perf_counter(), 0
        while True:
            due = int((time.perf_counter() - started_s) * self.task.rate)
            while submitted < due:
                yield next(keys)
                submitted += 1
            time.sleep(PACE_S)

    def acked(self, partition: int, timestamp_ms: int) -> None:
        """Note that a record with this timestamp (ms since 1970) was acknowledged."""
        phase = self.phase
        counts = phase.acked
        counts[partition] += 1
        if not counts[partition] % SAMPLE_EVERY and self._is_healthy[partition]:
            phase.latencies_ms.append(time.time() * 1000 - timestamp_ms)

    def fail(self, error: object) -> None:
        """Note that a record was refused, or failed."""
        self.phase.failed += 1
        self.first_error = self.first_error or str(error)

    def begin(self) -> None:
        """Note that the client is connected and warm, and start the phases' clock."""
        gc.collect()
        gc.freeze()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        phases = self.task.phases
        time.sleep(phases.warmup)
        baseline, baseline_s = self._enter(phases.baseline)
        print("fault", flush=True)
        self._enter(phases.settling)
        fault, fault_s = self._enter(phases.fault)
        self.phase = Phase(self.task.partitions)
        figures = {
            "baseline": baseline.figures(baseline_s, self._healthy),
            "fault": fault.figures(fault_s, self._healthy),
            "rss_mb": peak_memory_mb(),
            "error": self.first_error,
        }
        print(json.dumps(figures), flush=True)
        os._exit(0)  # a blocked client would take minutes to give up

    def _enter(self, seconds: float) -> tuple[Phase, float]:
        """Begin a phase and wait for its end. Returns it, and its real duration in seconds."""
        self.phase = phase = Phase(self.task.partitions)
        started_s = time.perf_counter()
        time.sleep(seconds)
        return phase, time.perf_counter() - started_s


def main(text: str) -> None:
    """Run the client until its run's clock ends the process."""
    run = Run(Task.from_json(text))
    system = run.task.system
    getattr(import_module(MODULES[system]), f"pressed_{system.replace('-', '_')}")(run)


if __name__ == "__main__":
    main(sys.argv[1])
