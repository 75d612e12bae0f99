"""Gigabytes through Spark's read and write, more than any process holds, with little memory for the
JVM and each Python process.

A session writes numbered values to a topic of two partitions, copies that to another, and sums up
both: each task reads half of all. The heap is the JVM's own limit. A Python process is limited by
the kernel to `worker_limit_mb` of data (RLIMIT_DATA: allocated memory, touched or not). Spark's own
`spark.executor.pyspark.memory` limits the address space instead, which includes libraries and
reserved space that is never touched.
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.json_types import Json, integer_at, number_at
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.maven import Unavailable
from fairlead_kafka.lab.spark import new_topic, values_file, watch_of
from fairlead_kafka.lab.spark_systems import SparkSystem
from fairlead_kafka.lab.targets import TARGETS, target

PARTITIONS = 2
_SOURCE, _SINK = "bounded", "bounded-copy"


def run(
    status: Status,
    targets: Sequence[str] = TARGETS,
    gigabytes: float = 5.0,
    record_size: int = 512,
    heap: str = "1g",
    worker_limit_mb: int = 600,
) -> list[Row]:
    """Rows {target, job, gigabytes, record_size, rows, seconds, mb_per_s, worker_rss_mb,
    jvm_rss_mb, lost, …}, or {…, skipped}.

    Jobs: write, copy, check. `lost` and `changed` are those of `check`: rows that the copy lacks,
    and whether the sums of the values differ. GB and MB per second are 10^9 and 10^6 bytes of
    values, memory 2**20; peaks are those of the largest process.
    """
    rows: list[Row] = []
    for name in targets:
        status(f"starting {name}")
        try:
            with (
                target(name) as servers,
                SparkSystem("fairlead", heap, worker_limit_mb=worker_limit_mb) as system,
            ):
                limits: Row = {"heap": heap, "worker_limit_mb": worker_limit_mb}
                rows += [
                    {"target": name, **row, **limits}
                    for row in stream(
                        status, system, servers, round(gigabytes * 1e9 / record_size), record_size
                    )
                ]
        except Unavailable as error:
            rows.append({"target": name, "skipped": str(error)})
    return rows


def stream(
    status: Status, system: SparkSystem, bootstrap_servers: str, count: int, record_size: int
) -> list[Row]:
    """Run the jobs on `count` values of about `record_size` bytes; returns the measured columns of
    their rows."""
    rows: list[Row] = []

    def measured(job: str, name: str, **arguments: Json) -> Row:
        status(f"{count} rows of {record_size} B: {job}")
        with watch_of(system) as watch:
            answer = system.ask(name, bootstrap_servers=bootstrap_servers, options={}, **arguments)
        seconds = number_at(answer, "seconds")
        row: Row = {
            "job": job,
            "gigabytes": round(count * record_size / 1e9, 3),
            "record_size": record_size,
            "rows": count,
            "seconds": round(seconds, 1),
            "mb_per_s": round(count * record_size / seconds / 1e6, 1),
            "worker_rss_mb": round(watch.peak_rss_mb("worker")),
            "jvm_rss_mb": round(watch.peak_rss_mb("jvm")),
        }
        rows.append(row)
        return answer

    number_bytes = len(str(count))
    with (
        values_file(max(record_size - number_bytes, 1)) as values,
        new_topic(bootstrap_servers, _SOURCE, PARTITIONS),
        new_topic(bootstrap_servers, _SINK, PARTITIONS),
    ):
        measured("write", "write", topic=_SOURCE, rows=count, values=values, numbered=True)
        measured("copy", "copy", topic=_SOURCE, columns=["value"], sink=_SINK, sink_options={})
        first = measured("check", "digest", topic=_SOURCE)
        second = measured("check", "digest", topic=_SINK)
    for row, answer in zip(rows[-2:], (first, second), strict=True):
        row["lost"] = count - integer_at(answer, "rows")
        row["changed"] = answer["checksum"] != first["checksum"]
    return rows
