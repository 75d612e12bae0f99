"""Rows per second through Spark, `local[2]`: reading, writing, Kafka to Kafka, and the latency of a
record through a stream.

`format("fairlead")` beside Spark's own Kafka connector, on the same topic of 8 partitions. Each
system has a session of its own that stays for the whole run, and every job is run by both, one
right after the other, in each round; the first round warms up and checks that no row is missing,
and does not count. A row is the median round. Rows read are dropped (`noop`); rows written are
generated.

The columns: `read` takes all, `read_value` the value alone (by Fairlead's option `columns`; the
connector has no such option), `copy` key and value. CPU seconds are per million rows: of the
session's processes, and of the broker beside them on the same cores.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import count, cycle, islice
from pathlib import Path

import pyarrow as pa

from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import Json, integer_at, number_at, text_at
from fairlead_kafka.client import Admin, Consumer, NewTopic, Producer
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.lines import values_of_size
from fairlead_kafka.lab.maven import Unavailable
from fairlead_kafka.lab.plotting import Bars, figure
from fairlead_kafka.lab.process_tree import Watch
from fairlead_kafka.lab.spark_latency import streaming_latency
from fairlead_kafka.lab.spark_systems import SYSTEMS, JobFailed, SparkSystem
from fairlead_kafka.lab.targets import TARGETS, target

PARTITIONS = 8
VALUES = 1_000
"""Number of different values, used in turn."""
TABLE_ROWS = 100_000
JOBS = ("read", "read_value", "write", "copy", "latency")
_COPIED = ["key", "value"]
_SINKS = count(1)
_HINTS: Mapping[tuple[str, str], Mapping[str, str]] = {("fairlead", "read_value"): {"columns": "value"}}
"""Options of a system's source beside the topic, by system and job."""


@dataclass(frozen=True)
class Profile:
    """Sizes of a profile.

    `rounds` count, after one that does not; `stream_s`: seconds that the stream of the latency job
    runs.
    """

    rows: int
    rounds: int
    record_sizes: tuple[int, ...]
    stream_s: float


PROFILES: dict[str, Profile] = {
    "quick": Profile(1_000_000, 1, (100,), 10.0),
    "full": Profile(5_000_000, 3, (100, 512), 30.0),
}


def run(
    status: Status,
    profile: str = "quick",
    targets: Sequence[str] = TARGETS,
    peers: Sequence[str] = SYSTEMS,
    jobs: Sequence[str] = JOBS,
    rows: int | None = None,
    record_sizes: Sequence[int] = (),
    rounds: int | None = None,
    options: Mapping[str, str] | None = None,
    heap: str = "1g",
) -> list[Row]:
    """Rows {system, target, job, record_size, rows_per_s, mb_per_s, cpu_s_per_million, …,
    worker_rss_mb}, or {…, skipped}.

    `options` are for our source and sink alike, `kafka.` ones among them, to try what they do. MB
    per second are 10^6 bytes of values, those of memory 2^20; `worker_rss_mb` is the largest Python
    worker at its peak. Rows of `latency` have p50_ms, p95_ms, p99_ms.
    """
    chosen = PROFILES[profile]
    found: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with target(name) as bootstrap_servers, ExitStack() as sessions:
                systems, missing = _start(status, sessions, peers, heap)
                found += [{**row, "target": name} for row in missing]
                for size in record_sizes or chosen.record_sizes:
                    cell = _Cell(
                        name,
                        bootstrap_servers,
                        size,
                        rows or chosen.rows,
                        rounds or chosen.rounds,
                        chosen.stream_s,
                        options or {},
                    )
                    found += _measure(status, cell, systems, jobs)
        except Unavailable as error:
            found += [{"system": system, "target": name, "skipped": str(error)} for system in peers]
    return found


def plot(rows: Sequence[Row], path: Path) -> None:
    """Rows per second by job, for each target and record size a panel, for each system a colour."""
    panels = []
    measured = [row for row in rows if row["job"] != "latency"]
    for name, size in dict.fromkeys((row["target"], row["record_size"]) for row in measured):
        of_cell = {
            (text_at(row, "job"), text_at(row, "system")): number_at(row, "rows_per_s")
            for row in measured
            if (row["target"], row["record_size"]) == (name, size)
        }
        jobs, systems = (
            list(dict.fromkeys(job for job, _ in of_cell)),
            list(dict.fromkeys(system for _, system in of_cell)),
        )
        series = {system: [of_cell.get((job, system)) for job in jobs] for system in systems}
        panels.append(Bars(f"{name}, {size} B", jobs, series, "rows/s"))
    figure(path, panels, title="Rows per second through Spark, local[2]")


@dataclass(frozen=True)
class _Cell:
    target: str
    bootstrap_servers: str
    size: int
    rows: int
    rounds: int
    stream_s: float
    options: Mapping[str, str]

    @property
    def topic(self) -> str:
        return f"spark-{self.size}"


def _start(
    status: Status, sessions: ExitStack, peers: Sequence[str], heap: str
) -> tuple[list[SparkSystem], list[Row]]:
    """Start a session for each system; a row for each that cannot be had."""
    systems: list[SparkSystem] = []
    missing: list[Row] = []
    for peer in peers:
        status(f"starting Spark for {peer}; what it needs is fetched the first time")
        try:
            systems.append(sessions.enter_context(SparkSystem(peer, heap)))
        except Unavailable as error:
            missing.append({"system": peer, "skipped": str(error)})
    return systems, missing


def _measure(status: Status, cell: _Cell, systems: Sequence[SparkSystem], jobs: Sequence[str]) -> list[Row]:
    measured: dict[tuple[str, str], list[Row]] = {}
    failed: dict[tuple[str, str], Row] = {}
    status(f"{cell.target}, {cell.size} B: filling a topic with {cell.rows} records")
    with values_file(cell.size) as values, new_topic(cell.bootstrap_servers, cell.topic):
        fill(cell.bootstrap_servers, cell.topic, cell.rows, cell.size)
        for number in range(cell.rounds + 1):
            for job in jobs:
                for system in systems:
                    of = (job, system.system)
                    if of in failed or (job == "latency" and number):
                        continue
                    stage = f"round {number} of {cell.rounds}" if number else "warm-up"
                    status(f"{cell.target}, {cell.size} B, {job}, {stage}: {system.system}")
                    what: Row = {
                        "system": system.system,
                        "target": cell.target,
                        "job": job,
                        "record_size": cell.size,
                    }
                    try:
                        row = {**what, **_run_job(cell, system, job, values, first=number == 0)}
                    except FairleadError as error:
                        failed[of] = {**what, "skipped": f"failed: {error}"}
                        continue
                    if number or job == "latency":
                        measured.setdefault(of, []).append(row)
    kept = {
        of: sorted(rounds, key=lambda row: number_at(row, "rows_per_s"))[len(rounds) // 2]
        for of, rounds in measured.items()
    }
    return [
        {**kept, **failed}[of]
        for of in ((job, system.system) for job in jobs for system in systems)
        if of in kept or of in failed
    ]


def _run_job(cell: _Cell, system: SparkSystem, job: str, values: str, first: bool) -> Row:
    """Run one job of one system; returns the measured columns of a row.

    Raises JobFailed, also if rows are missing.
    """
    ours = dict(cell.options) if system.system == "fairlead" else {}
    source = {**ours, **_HINTS.get((system.system, job), {})}
    servers = {"bootstrap_servers": cell.bootstrap_servers}
    if job == "latency":
        return streaming_latency(system, cell.bootstrap_servers, cell.size, cell.stream_s, ours)
    if job.startswith("read"):
        if first:
            digest = system.ask("digest", topic=cell.topic, options=source, **servers)
            _check(job, cell.rows, integer_at(digest, "rows"))
        columns = ["value"] if job == "read_value" else []
        return _watched(cell, system, "read", topic=cell.topic, options=source, columns=columns, **servers)
    # A new name each time: the connector keeps its producers for ten minutes, and these make
    # brokers create a deleted topic again.
    sink = f"{cell.topic}-{job}-{system.system}-{next(_SINKS)}"
    with new_topic(cell.bootstrap_servers, sink):
        if job == "write":
            row = _watched(
                cell, system, job, topic=sink, options=ours, rows=cell.rows, values=values, **servers
            )
        else:
            row = _watched(
                cell,
                system,
                job,
                topic=cell.topic,
                options=source,
                columns=_COPIED,
                sink=sink,
                sink_options=ours,
                **servers,
            )
        _check(job, cell.rows, records_of(cell.bootstrap_servers, sink))
    return row


def _watched(cell: _Cell, system: SparkSystem, job: str, **arguments: Json) -> Row:
    with watch_of(system) as watch:
        seconds = number_at(system.ask(job, **arguments), "seconds")
    millions = cell.rows / 1e6
    cpu_s = {kind: watch.cpu_s(kind) for kind in ("driver", "jvm", "worker", "broker")}
    return {
        "rows_per_s": round(cell.rows / seconds),
        "mb_per_s": round(cell.rows * cell.size / seconds / 1e6, 1),
        "cpu_s_per_million": round((cpu_s["driver"] + cpu_s["jvm"] + cpu_s["worker"]) / millions, 3),
        "jvm_cpu_s_per_million": round(cpu_s["jvm"] / millions, 3),
        "worker_cpu_s_per_million": round(cpu_s["worker"] / millions, 3),
        "broker_cpu_s_per_million": round(cpu_s["broker"] / millions, 3),
        "worker_rss_mb": round(watch.peak_rss_mb("worker")),
        "jvm_rss_mb": round(watch.peak_rss_mb("jvm")),
    }


def watch_of(system: SparkSystem) -> Watch:
    """A watch of a session's processes (driver, jvm, worker), and of all others below this process
    (broker).
    """
    root = os.getpid()
    return Watch(
        root, lambda process_id: None if process_id == root else system.kind_of(process_id) or "broker"
    )


def _check(job: str, expected: int, found: int) -> None:
    if found != expected:
        raise JobFailed(f"{job}: {found} rows of {expected}")


@contextmanager
def values_file(size: int) -> Iterator[str]:
    """A file of `VALUES` lines of `size` bytes."""
    with tempfile.NamedTemporaryFile(prefix="fairlead-lab-spark-", suffix=".txt") as file:
        file.write(b"\n".join(values_of_size(size, VALUES)))
        file.flush()
        yield file.name


@contextmanager
def new_topic(bootstrap_servers: str, topic: str, partitions: int = PARTITIONS) -> Iterator[None]:
    """Create a topic and delete it at the end, so that the disk does not fill and no later job pays
    for it.
    """
    with Admin({"bootstrap.servers": bootstrap_servers}) as admin:
        admin.create_topics([NewTopic(topic, partitions=partitions)])
        try:
            yield
        finally:
            with suppress(
                FairleadError
            ):  # what went wrong before is what counts, and the target ends with the run
                admin.delete_topics([topic])


def fill(bootstrap_servers: str, topic: str, rows: int, size: int) -> None:
    """Produce `rows` records with values of `size` bytes, evenly to all partitions."""
    whole = pa.table(
        {
            "value": pa.array(
                list(islice(cycle(values_of_size(size, VALUES)), min(rows, TABLE_ROWS))), pa.binary()
            )
        }
    )
    with Producer({"bootstrap.servers": bootstrap_servers}) as producer:
        sent = [
            producer.send_table(topic, whole.slice(0, min(TABLE_ROWS, rows - start)))
            for start in range(0, rows, TABLE_ROWS)
        ]
        for each in sent:
            each.result()


def records_of(bootstrap_servers: str, topic: str) -> int:
    """Number of records in a topic that had no deletions and no transactions: the sum of its end
    offsets.
    """
    with Consumer({"bootstrap.servers": bootstrap_servers}) as consumer:
        partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        return sum(consumer.end_offsets(partitions).values())
