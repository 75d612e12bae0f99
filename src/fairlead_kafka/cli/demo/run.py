"""The demo's steps: produce twice, run the pipeline, read everything back, and count at every
hop."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypedDict

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

import fairlead_kafka
from fairlead_kafka.base.errors import FairleadError
from fairlead_kafka.base.json_types import JsonObject, integer_at, json_object, text_at
from fairlead_kafka.cli.demo import access_log
from fairlead_kafka.cli.spark_end import spark_ended

if TYPE_CHECKING:
    from fairlead_kafka.client.handles import TableAck
    from fairlead_kafka.spark.pipelines.running import RunResult

PARTITIONS = 12
BROKERS = 3
ACCESS, UNKEYED, QUARANTINE, BY_HOST = "access", "access.unkeyed", "access.quarantine", "access.by-host"
PARSED = "parsed"
"""Name of the pipeline's table of parsed lines."""
SPARK_CONFIG = {
    # A pipeline this short is over before the JVM's second compiler has paid for itself; without it
    # the demo is a fifth faster.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    # Nobody runs it twice.
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.shuffle.partitions": "2",
}
BATCH_SIZE_BYTES = 2_048
"""Below the default of 16 KiB: a partition gets its turns in batches, and a log of a few megabytes
has too few of the default size to spread evenly over twelve partitions."""
ENDINGS = 1
"""Lines that only say that the log is over, so that the last hours are summed up too
(`access_log.ending`)."""


class HostRow(TypedDict):
    """A client address and its requests, summed over all hours; bytes are those of answers."""

    host: str
    requests: int
    bytes: int
    errors: int


@dataclass
class DemoResult:
    """Everything the demo counted and timed; `hops` are (what, records in, records out)."""

    lines: int = 0
    produced: int = 0
    read: int = 0
    """Lines that the pipeline has read."""
    quarantined: int = 0
    hosts: int = 0
    by_status: list[tuple[int, int, int]] = field(default_factory=list)
    """Rows (HTTP status, requests, bytes)."""
    flows: list[JsonObject] = field(default_factory=list)
    """The counters of the pipeline's flows."""
    hops: list[tuple[str, int, int]] = field(default_factory=list)
    top_hosts: list[HostRow] = field(default_factory=list)
    partitions: dict[str, list[int]] = field(default_factory=dict)
    """Bytes of keys and values in each partition, by topic."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Records that went into a hop and did not come out of it, over all hops; records that came
        out twice count too."""
        return sum(abs(entered - left) for _, entered, left in self.hops)

    def as_json(self) -> dict[str, object]:
        """The report for `--json`."""
        return {
            "lines": self.lines,
            "produced": self.produced,
            "read": self.read,
            "quarantined": self.quarantined,
            "hosts": self.hosts,
            "flows": self.flows,
            "partitions": self.partitions,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "lost": self.lost,
        }


class PipelineFailed(FairleadError):
    """Spark could not run the demo's pipeline; the message has what it said."""


Status = Callable[[str], None]
"""Callback that is called with the present step, for showing progress."""


def run_demo(input_path: Path | None, rows: int, status: Status) -> DemoResult:
    """Run every step on an embedded cluster of three brokers.

    Raises InputOfNoUse for an input that cannot be read, is empty or has other lines,
    PipelineFailed if Spark fails.
    """
    result = DemoResult()

    def tables() -> Iterator[pa.Table]:
        return access_log.access_lines(input_path) if input_path else access_log.generated(rows)

    next(iter(tables()))  # A missing or empty file is said before anything starts.
    with _timed(result, "cluster", status, f"starting {BROKERS} brokers"):
        cluster = fairlead_kafka.Cluster(brokers=BROKERS)
    with cluster, TemporaryDirectory(prefix="fairlead-demo-") as folder:
        servers = cluster.bootstrap_servers
        _create_topics(servers)
        with _timed(result, "produce", status, "producing the lines, keyed and unkeyed"):
            result.lines, result.produced, unkeyed = _produce(servers, tables())
        result.hops += [
            ("lines → access", result.lines, result.produced),
            ("lines → access.unkeyed", result.lines, unkeyed),
        ]
        project = Path(folder) / "access-log"
        flows = _run_pipeline(project, servers, result, status)
        with _timed(result, "read_back", status, "reading everything back"):
            _read_table(project / "storage" / "tables" / PARSED, result)
            _read_back(servers, result)
        result.flows = [_without_ending(flow.as_row()) for flow in flows.flows]
    result.seconds["total"] = sum(result.seconds.values())
    return result


def _without_ending(flow: JsonObject) -> JsonObject:
    """The counters of a flow without the log's last line, which only ends the log and which every
    flow reads once."""
    return {**flow, "rows_in": max(0, integer_at(flow, "rows_in") - ENDINGS)}


@contextmanager
def _timed(result: DemoResult, name: str, status: Status, text: str) -> Iterator[None]:
    status(text)
    started = time.perf_counter()
    yield
    result.seconds[name] = time.perf_counter() - started


def _create_topics(servers: str) -> None:
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics(
            [fairlead_kafka.NewTopic(name, partitions=PARTITIONS) for name in (ACCESS, UNKEYED)]
        )
        admin.create_topics([fairlead_kafka.NewTopic(name, partitions=1) for name in (QUARANTINE, BY_HOST)])


def _produce(servers: str, tables: Iterator[pa.Table]) -> tuple[int, int, int]:
    """Produce the lines to both topics. Returns how many lines were read, how many were
    acknowledged in `access`, and how many in `access.unkeyed`."""
    lines = 0
    acks: tuple[list[TableAck], list[TableAck]] = ([], [])
    with fairlead_kafka.Producer({"bootstrap.servers": servers, "batch.size": BATCH_SIZE_BYTES}) as producer:
        for table in tables:
            lines += table.num_rows
            acks[0].append(producer.send_table(ACCESS, table))
            acks[1].append(producer.send_table(UNKEYED, table.select(["value"])))
        ending = producer.send_table(ACCESS, access_log.ending())
        producer.flush()
        keyed, unkeyed = (sum(ack.result().num_rows for ack in sent) for sent in acks)
        ending.result()
    return lines, keyed, unkeyed


def _run_pipeline(project: Path, servers: str, result: DemoResult, status: Status) -> RunResult:
    """Run the project that `fairlead pipeline init` writes, as `fairlead pipeline run` does.
    PipelineFailed if Spark fails."""
    from fairlead_kafka.spark.pipelines.catalog import WAREHOUSE_KEY
    from fairlead_kafka.spark.pipelines.check import check_project
    from fairlead_kafka.spark.pipelines.running import Refresh, Where, open_runner
    from fairlead_kafka.spark.pipelines.template import write_project

    write_project(project, "access-log", servers)
    checked, definitions, _ = check_project(project / "spark-pipeline.yml")
    config = {**SPARK_CONFIG, WAREHOUSE_KEY: (project / "storage" / "tables").as_uri()}
    with spark_ended():
        started = time.perf_counter()
        status("starting Spark")
        with open_runner(checked, definitions, Where("local[2]", config=config)) as runner:
            result.seconds["spark_start"] = time.perf_counter() - started
            with _timed(result, "spark_job", status, "Spark: reading, parsing, summing up, writing"):
                ran = runner.run(Refresh(), status)
    if ran.failure:
        raise PipelineFailed(ran.failure)
    parsed = next(flow for flow in ran.flows if flow.flow == PARSED)
    result.read = parsed.rows_in - ENDINGS
    result.quarantined = parsed.quarantined
    return ran


def _read_table(folder: Path, result: DemoResult) -> None:
    """Count the rows of the pipeline's table, and sum them up by status."""
    table = ds.dataset(folder, format="parquet", exclude_invalid_files=True).to_table(
        ["host", "status", "bytes"]
    )
    lines = table.filter(pc.not_equal(table["host"], access_log.ENDING_HOST))
    sums = lines.group_by("status").aggregate([([], "count_all"), ("bytes", "sum")]).sort_by("status")
    result.by_status = list(
        zip(*(sums[name].to_pylist() for name in ("status", "count_all", "bytes_sum")), strict=True)
    )
    result.hops.append(("pipeline → parsed + quarantined", result.read, lines.num_rows + result.quarantined))


def _read_back(servers: str, result: DemoResult) -> None:
    counts: dict[str, int] = {}
    hosts: dict[str, HostRow] = {}
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        for topic in (ACCESS, UNKEYED):
            result.partitions[topic] = [0] * PARTITIONS
        for topic in (ACCESS, UNKEYED, QUARANTINE, BY_HOST):
            counts[topic] = 0
            for table in _whole_topic(consumer, topic):
                counts[topic] += table.num_rows
                if topic in result.partitions:
                    _add_sizes(table, result.partitions[topic])
                if topic == BY_HOST:
                    _add_hours(table, hosts)
    result.hosts = len(hosts)
    result.top_hosts = sorted(hosts.values(), key=lambda host: (-host["requests"], host["host"]))[:10]
    parsed = result.read - result.quarantined
    result.hops += [
        ("access → pipeline", result.produced, result.read),
        ("unparsable → access.quarantine", result.quarantined, counts[QUARANTINE]),
        ("parsed → requests in access.by-host", parsed, sum(host["requests"] for host in hosts.values())),
        ("access, read back", result.produced, counts[ACCESS] - ENDINGS),
        ("access.unkeyed, read back", result.lines, counts[UNKEYED]),
    ]


def _add_hours(table: pa.Table, hosts: dict[str, HostRow]) -> None:
    """Add the hours of each host up."""
    for value in table["value"].to_pylist():
        hour = json_object(value)
        name = text_at(hour, "host")
        host = hosts.setdefault(name, {"host": name, "requests": 0, "bytes": 0, "errors": 0})
        host["requests"] += integer_at(hour, "requests")
        host["bytes"] += integer_at(hour, "bytes")
        host["errors"] += integer_at(hour, "errors")


def _whole_topic(consumer: fairlead_kafka.Consumer, topic: str) -> Iterator[pa.Table]:
    partitions = [
        fairlead_kafka.TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)
    ]
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    for partition in partitions:
        yield from consumer.read_range(partition, starts[partition], ends[partition])


def _add_sizes(table: pa.Table, sizes_bytes: list[int]) -> None:
    table = table.filter(pc.not_equal(pc.fill_null(table["key"], b""), access_log.ENDING_HOST.encode()))
    lengths = pc.add(
        pc.fill_null(pc.binary_length(table["key"]), 0), pc.fill_null(pc.binary_length(table["value"]), 0)
    )
    sums = (
        pa.table({"partition": table["partition"], "bytes": lengths})
        .group_by("partition")
        .aggregate([("bytes", "sum")])
    )
    for partition, total in zip(sums["partition"].to_pylist(), sums["bytes_sum"].to_pylist(), strict=True):
        sizes_bytes[partition] += total
