"""One client of a soak, in a process of its own: `python -m fairlead_kafka.lab.peers.soak JSON`,
JSON being an `Errand`.

Each line on standard input is answered by a line of JSON on standard output: its work since the
last one (`Ledger.report`), and the memory it has in use. Before it answers it collects garbage and
gives back what is free, so that what it holds is what it keeps: closed clients are garbage in
cycles, and an allocator keeps the holes of the minute's peak. When standard input ends the client
finishes its requests, makes its checks, and prints all results as a last line. The memory of a
client is bounded, however long it runs.
"""

from __future__ import annotations

import gc
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from importlib import import_module

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.lab.process_usage import memory_row
from fairlead_kafka.lab.soak_figures import Int64, Latencies, Tally
from fairlead_kafka.runtime import give_back_freed_memory, memory_use

AUDITOR = "auditor"
"""Role of the client that reads everything; it is at work before any other writes."""
ROLES = {
    "unkeyed": "fairlead_kafka.lab.peers.soak_producers",
    "keyed": "fairlead_kafka.lab.peers.soak_producers",
    "compacted": "fairlead_kafka.lab.peers.soak_producers",
    "transactional": "fairlead_kafka.lab.peers.soak_producers",
    "groups": "fairlead_kafka.lab.peers.soak_visitors",
    "topics": "fairlead_kafka.lab.peers.soak_visitors",
    AUDITOR: "fairlead_kafka.lab.peers.soak_auditor",
}
"""Role → the module whose function of that name runs it."""
UNKEYED, KEYED, COMPACTED, TRANSACTIONAL = (
    "soak-unkeyed",
    "soak-keyed",
    "soak-compacted",
    "soak-transactional",
)
PARTITIONS = 6
KEYS = 2_000
"""Number of different keys of KEYED and COMPACTED."""
TOMBSTONE_EVERY = 50
"""Records of COMPACTED per one without a value (a tombstone), by number."""
TRANSACTION_RECORDS = 10
ABORT_EVERY = 8
"""Transactions per one that is aborted, by number."""
UNPACED_ROWS = 2_000
"""Rows of a table if nothing paces the load."""
NUMBER_BYTES = 8


@dataclass(frozen=True)
class Errand:
    """A client's task: `rate` records a second, each of `value_bytes`; 0: as many as it can."""

    role: str
    bootstrap_servers: str
    rate: float
    value_bytes: int

    @property
    def config(self) -> JsonObject:
        """The configs that every client of the soak gets."""
        return {"bootstrap.servers": self.bootstrap_servers, "client.id": f"soak-{self.role}"}

    def to_json(self) -> str:
        """The task as JSON, for the command line."""
        return json.dumps(asdict(self))

    def due(self, stopping: threading.Event, period_s: float, share: int = 1) -> Iterator[range]:
        """Ranges of record numbers that are due, one every `period_s` seconds, until `stopping` is
        set; each number stands for `share` records. A client that was held up gets all numbers that
        became due meanwhile."""
        begun_s, sent = time.monotonic(), 0
        while not stopping.wait(period_s if self.rate else 0):
            due = (
                int((time.monotonic() - begun_s) * self.rate / share)
                if self.rate
                else sent + UNPACED_ROWS // share
            )
            if due > sent:
                yield range(sent, due)
            sent = due


@dataclass
class Ledger:
    """Counts what a client of the soak did; may be used from any of its threads."""

    tally: Tally = field(default_factory=Tally)
    """Numbers that were acknowledged, or read."""
    counts: Counter[str] = field(default_factory=Counter)
    """Other counts, by name."""
    last_figures: JsonObject = field(default_factory=dict)
    """Figures that only the last line has."""
    first_error: str = ""
    records: int = 0
    ready: threading.Event = field(default_factory=threading.Event)
    """Set once the client is at work: before that no line is answered."""
    lock: threading.Lock = field(default_factory=threading.Lock)
    _latencies: Latencies = field(default_factory=Latencies)
    _reported: int = 0

    def completed(self, place: str, numbers: Int64, latency_ms: float | None = None) -> None:
        """Note records that were acknowledged, or read, `latency_ms` after they were submitted."""
        with self.lock:
            self.tally.add(place, numbers)
            self.records += len(numbers)
            if latency_ms is not None:
                self._latencies.add(latency_ms, len(numbers))

    def took(self, latency_ms: float, records: int) -> None:
        """Count `records` records that took `latency_ms`, and keep no tally of them."""
        with self.lock:
            self.records += records
            self._latencies.add(latency_ms, records)

    def count(self, name: str, many: int = 1) -> None:
        """Add `many` to the count `name`."""
        with self.lock:
            self.counts[name] += many

    def failed(self, error: object, many: int = 1) -> None:
        """Note `many` records that were given up because of `error`."""
        with self.lock:
            self.counts["failed"] += many
            self.first_error = self.first_error or str(error)

    def report(self) -> JsonObject:
        """{records, p50_ms, p99_ms} since the last report."""
        with self.lock:
            records, latencies, self._latencies = self.records - self._reported, self._latencies, Latencies()
            self._reported = self.records
        return {"records": records, "p50_ms": latencies.percentile(0.5), "p99_ms": latencies.percentile(0.99)}

    def final(self) -> JsonObject:
        """The figures of the last line."""
        with self.lock:
            return {
                "records": self.records,
                "tally": self.tally.to_json(),
                "counts": dict(self.counts),
                "first_error": self.first_error,
                **self.last_figures,
            }


def values_of(numbers: Int64, value_bytes: int) -> pa.Array:
    """A value for each number: the number, little-endian, and padding."""
    cells = np.full((len(numbers), value_bytes), ord("."), np.uint8)
    cells[:, :NUMBER_BYTES] = numbers.astype("<i8").view(np.uint8).reshape(-1, NUMBER_BYTES)
    offsets = np.arange(len(numbers) + 1, dtype=np.int32) * value_bytes
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(numbers), [None, pa.py_buffer(offsets), pa.py_buffer(cells)]
    )


def numbers_of(values: pa.Array) -> Int64:
    """The number in each value, none of which is null."""
    if not len(values):
        return np.zeros(0, np.int64)
    _, offsets, data = values.buffers()
    begins = np.frombuffer(offsets, np.int32)[values.offset : values.offset + len(values)]
    cells = np.frombuffer(data, np.uint8)[begins[:, None] + np.arange(NUMBER_BYTES)]
    return np.ascontiguousarray(cells).view("<i8").reshape(-1).astype(np.int64)


def _answer(ledger: Ledger, stopping: threading.Event) -> None:
    for _ in sys.stdin:
        ledger.ready.wait()
        report = ledger.report()
        gc.collect()
        give_back_freed_memory()
        print(json.dumps({**report, **memory_row(memory_use())}), flush=True)
    stopping.set()


def main(text: str) -> None:
    """Run the client."""
    errand, ledger, stopping = Errand(**json.loads(text)), Ledger(), threading.Event()
    answering = threading.Thread(target=_answer, args=(ledger, stopping), daemon=True)
    answering.start()
    if errand.role != AUDITOR:
        ledger.ready.set()
    getattr(import_module(ROLES[errand.role]), errand.role)(errand, ledger, stopping)
    answering.join()
    print(json.dumps(ledger.final()), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
