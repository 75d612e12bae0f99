"""Speed of encoding columns into record batches and of decoding these, on one and two threads.

Encoding is `encode_many` into batches of 1 MiB with their CRC, decoding is `decode` of the same
batches with the CRCs checked: what a producer and a consumer call, not the kernels alone. Keys are
null, values random bytes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from fairlead_kafka.base.json_types import JsonObject, number_at
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.plotting import bars
from fairlead_kafka.records import BinaryColumn, RecordColumns, Slice, bounds_of, cut, decode, encode_many
from fairlead_kafka.records.layout import EncodedBatch

RECORD_SIZES_BYTES = (10, 100, 512, 4096)
THREADS = (1, 2)
BATCH_BYTES = 1 << 20
BATCHES_PER_CALL = 4
_CREATE_TIME_MS = 1_700_000_000_000


@dataclass(frozen=True)
class _Load:
    """Value bytes per thread, records at most, and repetitions, of which the fastest counts."""

    value_bytes: int
    records_max: int
    repetitions: int


_PROFILES = {"quick": _Load(8 << 20, 300_000, 5), "full": _Load(64 << 20, 3_000_000, 15)}


def run(status: Status, profile: str = "quick") -> list[JsonObject]:
    """Rows `{"kernel": "encode" | "decode", "record_size", "threads", "records_per_s",
    "gb_per_s"}`.

    `profile` is "quick" (a few seconds) or "full"; `record_size` is the value's, in bytes;
    `gb_per_s` counts value bytes in 10**9. Each row is the fastest of several repetitions, its
    threads working on columns of their own.
    """
    load = _PROFILES[profile]
    rows: list[JsonObject] = []
    for record_size in RECORD_SIZES_BYTES:
        status(f"records of {record_size} B")
        tasks = [_Task(record_size, load) for _ in range(max(THREADS))]
        for name in ("encode", "decode"):
            for threads in THREADS:
                work = [task.encode if name == "encode" else task.decode for task in tasks[:threads]]
                records_per_s = round(threads * tasks[0].count / _fastest_s(work, load.repetitions))
                rows.append(
                    {
                        "kernel": name,
                        "record_size": record_size,
                        "threads": threads,
                        "records_per_s": records_per_s,
                        "gb_per_s": records_per_s * record_size / 1e9,
                    }
                )
    return rows


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw records per second by kernel and record size, on one thread and on two."""
    groups = list(dict.fromkeys((row["kernel"], row["record_size"]) for row in rows))
    rates = {
        (row["kernel"], row["record_size"], row["threads"]): number_at(row, "records_per_s") for row in rows
    }
    series = {f"{threads} threads": [rates.get((*group, threads)) for group in groups] for threads in THREADS}
    bars(
        path,
        "Kernels: records per second",
        [f"{kernel} {size} B" for kernel, size in groups],
        series,
        "records/s",
        log=True,
    )


class _Task:
    """The records of one thread, and the batches made of them."""

    def __init__(self, record_size: int, load: _Load) -> None:
        self.count = min(load.records_max, load.value_bytes // record_size)
        data = np.random.default_rng(0).integers(0, 256, self.count * record_size, dtype=np.uint8)
        offsets = np.arange(self.count + 1, dtype=np.int64) * record_size
        self.columns = RecordColumns(self.count, None, BinaryColumn(data, offsets))
        cuts = np.concatenate([[0], cut(Slice(self.columns, 0, self.count), BATCH_BYTES, BATCH_BYTES)])
        self.calls = [
            cuts[start : start + BATCHES_PER_CALL + 1] for start in range(0, len(cuts) - 1, BATCHES_PER_CALL)
        ]
        self.answers = [b"".join(batch.buffer for batch in self._batches(cuts)) for cuts in self.calls]

    def _batches(self, cuts: npt.NDArray[np.int64]) -> list[EncodedBatch]:
        return encode_many(self.columns, None, bounds_of(cuts), create_time_ms=_CREATE_TIME_MS)

    def encode(self) -> None:
        """Encode all records into batches, as a producer does once per drain; the sizes were
        measured before.
        """
        for cuts in self.calls:
            self._batches(cuts)

    def decode(self) -> None:
        """Decode all batches into columns, as many at a time as one fetch answer brings."""
        for answer in self.answers:
            decode(answer)


def _fastest_s(work: list[Callable[[], None]], repetitions: int) -> float:
    """Seconds until all of `work` is done, a thread for each; the least of several repetitions."""
    fastest_s = float("inf")
    with ThreadPoolExecutor(len(work)) as pool:
        for _ in range(repetitions):
            started = time.perf_counter()
            for done in [pool.submit(each) for each in work]:
                done.result()
            fastest_s = min(fastest_s, time.perf_counter() - started)
    return fastest_s
