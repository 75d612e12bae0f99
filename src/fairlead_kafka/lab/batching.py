"""Batching, compression and limits as a table to read: effects of batch.size, linger.ms and
compression.type on the same records.

Lines of an access log, without keys, are submitted at an even rate to a topic of three partitions.
Bytes are counted in the batches that the partitions hold in the end (`held`), with their headers of
61 bytes and the overhead of each record. The producer runs in this process, the cluster in another.

Rows about limits follow: the error for a record that is too large, for the client or for the
broker, the splitting of a batch that the broker finds too large, and the error when `buffer.memory`
is used up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

from fairlead_kafka.base.json_types import Json, JsonObject, number_at, number_or_none, text_at
from fairlead_kafka.client import Admin, NewTopic, Producer
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.lab.batching_limits import LIMITS, limit_row
from fairlead_kafka.lab.experiment import AS_KAFKA, Row, Status
from fairlead_kafka.lab.held import Held, held
from fairlead_kafka.lab.lines import log_lines
from fairlead_kafka.lab.pacing import Journal, Load
from fairlead_kafka.lab.plotting import Lines, figure
from fairlead_kafka.lab.targets import target

PARTITIONS = 3
LINES = 5_000
"""Number of different lines, which are sent again and again: no batch has a line twice before it is
250 KB large.
"""
TIMEOUT_S = 30.0
CODECS: Mapping[str, Mapping[str, Json]] = {
    "none": {},
    "gzip": {"compression.type": "gzip"},
    "gzip 1": {"compression.type": "gzip", "compression.gzip.level": 1},
    "gzip 9": {"compression.type": "gzip", "compression.gzip.level": 9},
    "snappy": {"compression.type": "snappy"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
    "zstd 1": {"compression.type": "zstd", "compression.zstd.level": 1},
    "zstd 9": {"compression.type": "zstd", "compression.zstd.level": 9},
}
"""Codecs by name, some at a level of their own; without one, at Kafka's default."""
DEFAULT_CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@dataclass(frozen=True)
class Profile:
    """Sizes and times of the table; `deep` is the batch size and linger at which every level is
    tried."""

    batch_sizes: tuple[int, ...]
    lingers_ms: tuple[int, ...]
    records: int
    rate: int
    deep: tuple[int, int]


PROFILES = {
    "quick": Profile((1_024, 16_384, 262_144), (0, 5, 100), 6_000, 10_000, (262_144, 100)),
    "full": Profile(
        (1_024, 16_384, 65_536, 262_144, 972_800), (0, 5, 20, 100), 50_000, 10_000, (972_800, 100)
    ),
}


@dataclass(frozen=True)
class Case:
    """One row of the batching table: a batch size, a linger and a codec."""

    batch_size: int
    linger_ms: int
    codec: str

    def config(self) -> JsonObject:
        """The producer's configs."""
        return {**AS_KAFKA, "batch.size": self.batch_size, "linger.ms": self.linger_ms, **CODECS[self.codec]}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = ("fairlead",),
    batch_sizes: Sequence[int] = (),
    lingers_ms: Sequence[int] = (),
    codecs: Sequence[str] = (),
    records: int | None = None,
    rate: int | None = None,
    limits: bool = True,
) -> list[Row]:
    """Rows of two tables, or {table, target, skipped}.

    "batching": {table, target, batch_size, linger_ms, compression, records, batches,
    records_per_batch, bytes, ratio, p50_ms, p99_ms, requests, cpu_s}: `bytes` are those of the
    batches, `ratio` is bytes by bytes of values (above 1: what batches and records cost beside
    their values), latencies are from submission to acknowledgement. "limits": {table, target,
    limit, setting, records, acked, batches, got}, `got` being the caller's result.
    """
    chosen = PROFILES[profile]
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name) as bootstrap_servers:
                load = Load(records or chosen.records, rate or chosen.rate, 0, limit_s=TIMEOUT_S)
                for number, case in enumerate(cases(chosen, batch_sizes, lingers_ms, codecs)):
                    status(f"{name}: batch.size {case.batch_size}, linger.ms {case.linger_ms}, {case.codec}")
                    rows.append(
                        {
                            "table": "batching",
                            "target": name,
                            **measure(bootstrap_servers, f"batching-{number}", case, load),
                        }
                    )
                for number, limit in enumerate(LIMITS if limits else ()):
                    status(f"{name}: {limit.name}")
                    rows.append(
                        {
                            "table": "limits",
                            "target": name,
                            **limit_row(bootstrap_servers, f"limit-{number}", limit),
                        }
                    )
        except Unavailable as error:
            rows.append({"table": "batching", "target": name, "skipped": str(error)})
    return rows


def cases(
    profile: Profile,
    batch_sizes: Sequence[int] = (),
    lingers_ms: Sequence[int] = (),
    codecs: Sequence[str] = (),
) -> list[Case]:
    """Every combination of what is given, or the profile's; and unless codecs are given, every
    level at the profile's `deep` case."""
    sizes, lingers = batch_sizes or profile.batch_sizes, lingers_ms or profile.lingers_ms
    found = [Case(*values) for values in product(sizes, lingers, codecs or DEFAULT_CODECS)]
    if not codecs:
        found += [Case(*profile.deep, codec) for codec in CODECS if codec not in DEFAULT_CODECS]
    return found


def measure(bootstrap_servers: str, topic: str, case: Case, load: Load) -> Row:
    """Measure one row of the batching table, without its target."""
    lines = log_lines(min(LINES, load.total))
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=PARTITIONS)])
    journal = Journal(load, time.perf_counter_ns)

    def delivered(number: int, _: object, error: Exception | None) -> None:
        if error is None:
            journal.acked(number)
        else:
            journal.failed(number, error)

    with Producer({"bootstrap.servers": bootstrap_servers, **case.config()}) as producer:
        producer.partitions_for(topic)
        cpu_s, requests = time.process_time(), _requests(producer)
        for pause_s, numbers in load.steps(time.perf_counter_ns):
            if pause_s:
                time.sleep(pause_s)
            for number in numbers:
                journal.sent(number)
                producer.send(topic, lines[number % len(lines)], on_delivery=partial(delivered, number))
        producer.flush(TIMEOUT_S)
        cpu_s, requests = time.process_time() - cpu_s, _requests(producer) - requests
    row = row_of(
        case,
        load,
        journal,
        held(bootstrap_servers, topic),
        sum(len(lines[number % len(lines)]) for number in range(load.total)),
    )
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.delete_topics([topic])
    return {**row, "requests": requests, "cpu_s": round(cpu_s, 3)}


def row_of(case: Case, load: Load, journal: Journal, partitions: Sequence[Held], value_bytes: int) -> Row:
    """The row of a case: latencies from the journal, sizes from what the partitions hold."""
    batches, size_bytes = sum(one.batches for one in partitions), sum(one.size_bytes for one in partitions)
    figures = journal.figures()
    row: Row = {
        "batch_size": case.batch_size,
        "linger_ms": case.linger_ms,
        "compression": case.codec,
        "records": load.total,
        "batches": batches,
        "records_per_batch": round(load.total / max(1, batches), 1),
        "bytes": size_bytes,
        "ratio": round(size_bytes / value_bytes, 3),
        "p50_ms": figures.get("p50_ms"),
        "p99_ms": figures.get("p99_ms"),
    }
    return {**row, "failed": figures["failed"], "error": figures["error"]} if figures["failed"] else row


def _requests(producer: Producer) -> int:
    """Number of requests of all kinds that the producer has sent so far."""
    return int(producer.metrics()["producer-metrics"]["request-total"])


def plot(rows: Sequence[Row], path: Path) -> None:
    """Draw bytes sent per byte of values, records per batch and p99 against the batch size, a line
    for each codec, at each linger.
    """
    table = [row for row in rows if row["table"] == "batching" and row["compression"] in DEFAULT_CODECS]
    panels = []
    for name in dict.fromkeys(row["target"] for row in table):
        for linger_ms in dict.fromkeys(row["linger_ms"] for row in table):
            shown = [row for row in table if (row["target"], row["linger_ms"]) == (name, linger_ms)]
            for column, unit in (("ratio", "bytes sent by bytes of values"), ("p99_ms", "p99, ms")):
                series = {
                    codec: ([number_at(row, "batch_size") for row in shown if row["compression"] == codec],
                            [number_or_none(row, column) for row in shown if row["compression"] == codec])
                    for codec in dict.fromkeys(text_at(row, "compression") for row in shown)
                }  # fmt: skip
                panels.append(
                    Lines(f"linger.ms {linger_ms}, {name}", series, "batch.size, bytes", unit, log_x=True)
                )
    figure(path, panels, title="Batching and compression of log lines", columns=2)
