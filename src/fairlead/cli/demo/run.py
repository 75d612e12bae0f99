"""The demo's steps: produce twice, run the Spark job, read everything back, and count at every hop."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import fairlead
from fairlead.cli.demo import access_log
from fairlead.cli.demo.pipeline import PipelineResult, Topics, run_pipeline
from fairlead.cli.demo.spark_end import spark_ended

PARTITIONS = 12
BROKERS = 3
LOG_CONFIG = Path(__file__).with_name("log4j2.properties")
SPARK_CONFIG = {
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    # A job this short is over before the JVM's second compiler has paid for itself; without it the demo is a fifth faster.
    "spark.driver.extraJavaOptions": f'-XX:TieredStopAtLevel=1 "-Dlog4j2.configurationFile={LOG_CONFIG}"',
}
BATCH_SIZE_BYTES = 2_048
"""Below the default of 16 KiB: a partition gets its turns in batches, and a log of a few megabytes has too few of the default size to
spread evenly over twelve partitions."""


@dataclass
class DemoResult:
    """Everything the demo counted and timed; `hops` are (what, records in, records out)."""

    lines: int = 0
    produced: int = 0
    job: PipelineResult | None = None
    hops: list[tuple[str, int, int]] = field(default_factory=list)
    top_hosts: list[dict[str, Any]] = field(default_factory=list)
    partitions: dict[str, list[int]] = field(default_factory=dict)
    """Bytes of keys and values in each partition, by topic."""
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """Records that went into a hop and did not come out of it, over all hops; doubled ones count too."""
        return sum(abs(entered - left) for _, entered, left in self.hops)

    def as_json(self) -> dict[str, Any]:
        """The report for `--json`."""
        job = self.job
        return {
            "lines": self.lines,
            "produced": self.produced,
            "read": job.read if job else 0,
            "quarantined": job.quarantined if job else 0,
            "hosts": job.hosts if job else 0,
            "partitions": self.partitions,
            "seconds": {name: round(value, 3) for name, value in self.seconds.items()},
            "lost": self.lost,
        }


Status = Callable[[str], None]
"""Told what is being done now, for showing progress."""


def run_demo(input_path: Path | None, rows: int, status: Status, topics: Topics | None = None) -> DemoResult:
    """Runs every step on an embedded cluster of three brokers. Raises ConfigError for an input that cannot be read or is empty."""
    topics = topics or Topics()
    result = DemoResult()

    def tables() -> Iterator[pa.Table]:
        return access_log.from_file(input_path) if input_path else access_log.generated(rows)

    next(iter(tables()))  # A missing or empty file is said before anything starts.
    with _timed(result, "cluster", status, f"starting {BROKERS} brokers"):
        cluster = fairlead.Cluster(brokers=BROKERS)
    with cluster:
        servers = cluster.bootstrap_servers
        _create_topics(servers, topics)
        with _timed(result, "produce", status, "producing the lines, keyed and unkeyed"):
            result.lines, result.produced, unkeyed = _produce(servers, topics, tables())
        result.hops += [("lines → access", result.lines, result.produced), ("lines → access.unkeyed", result.lines, unkeyed)]
        with spark_ended():
            with _timed(result, "spark_start", status, "starting Spark"):
                from fairlead.spark.session import spark_session

                spark = spark_session("fairlead-demo", master="local[2]", config=SPARK_CONFIG)
            with _timed(result, "spark_job", status, "Spark: reading, parsing, aggregating, writing"):
                result.job = run_pipeline(spark, servers, topics)
            spark.stop()
        with _timed(result, "read_back", status, "reading everything back"):
            _read_back(servers, topics, result, result.job)
    result.seconds["total"] = sum(result.seconds.values())
    return result


@contextmanager
def _timed(result: DemoResult, name: str, status: Status, text: str) -> Iterator[None]:
    status(text)
    started = time.perf_counter()
    yield
    result.seconds[name] = time.perf_counter() - started


def _create_topics(servers: str, topics: Topics) -> None:
    with fairlead.Admin({"bootstrap.servers": servers}) as admin:
        admin.create_topics([fairlead.NewTopic(name, partitions=PARTITIONS) for name in (topics.access, topics.unkeyed, topics.by_host)])
        admin.create_topics([fairlead.NewTopic(topics.quarantine, partitions=1)])


def _produce(servers: str, topics: Topics, tables: Iterator[pa.Table]) -> tuple[int, int, int]:
    """Lines read, records acknowledged in `access`, records acknowledged in `access.unkeyed`."""
    lines, acks = 0, ([], [])  # type: tuple[int, tuple[list[Any], list[Any]]]
    with fairlead.Producer({"bootstrap.servers": servers, "batch.size": BATCH_SIZE_BYTES}) as producer:
        for table in tables:
            lines += table.num_rows
            acks[0].append(producer.send_table(topics.access, table))
            acks[1].append(producer.send_table(topics.unkeyed, table.select(["value"])))
        producer.flush()
        keyed, unkeyed = (sum(ack.result().num_rows for ack in sent) for sent in acks)
    return lines, keyed, unkeyed


def _read_back(servers: str, topics: Topics, result: DemoResult, job: PipelineResult) -> None:
    counts: dict[str, int] = {}
    with fairlead.Consumer({"bootstrap.servers": servers}) as consumer:
        for topic in (topics.access, topics.unkeyed):
            result.partitions[topic] = [0] * PARTITIONS
        for topic in (topics.access, topics.unkeyed, topics.quarantine, topics.by_host):
            counts[topic] = 0
            for table in _whole_topic(consumer, topic):
                counts[topic] += table.num_rows
                if topic in result.partitions:
                    _add_sizes(table, result.partitions[topic])
                if topic == topics.by_host:
                    result.top_hosts += [json.loads(value) for value in table["value"].to_pylist()]
    result.top_hosts = sorted(result.top_hosts, key=lambda host: (-host["requests"], host["host"]))[:10]
    result.hops += [
        ("access → Spark", result.produced, job.read),
        ("Spark → parsed + quarantined", job.read, job.parsed + job.quarantined),
        ("unparsable → access.quarantine", job.quarantined, counts[topics.quarantine]),
        ("hosts → access.by-host", job.hosts, counts[topics.by_host]),
        ("access, read back", result.produced, counts[topics.access]),
        ("access.unkeyed, read back", result.lines, counts[topics.unkeyed]),
    ]


def _whole_topic(consumer: fairlead.Consumer, topic: str) -> Iterator[pa.Table]:
    partitions = [fairlead.TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    for partition in partitions:
        yield from consumer.read_range(partition, starts[partition], ends[partition])


def _add_sizes(table: pa.Table, sizes_bytes: list[int]) -> None:
    lengths = pc.add(pc.fill_null(pc.binary_length(table["key"]), 0), pc.fill_null(pc.binary_length(table["value"]), 0))
    sums = pa.table({"partition": table["partition"], "bytes": lengths}).group_by("partition").aggregate([("bytes", "sum")])
    for partition, total in zip(sums["partition"].to_pylist(), sums["bytes_sum"].to_pylist(), strict=True):
        sizes_bytes[partition] += total
