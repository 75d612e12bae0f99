"""The demo's Spark job: access log → per-host and per-status figures. Nothing in it knows where Kafka or Spark run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINE_PATTERN = r'^(\S+) \S+ \S+ \[([^\]]+)\] "((?:[^"\\]|\\.)*)" (\d{3}) (\d+|-)'
"""Host, time, request, status and size: the fields that the common and the combined log format share."""
ERROR_STATUS_MIN = 400
"""Client and server errors."""


@dataclass(frozen=True)
class Topics:
    """The topics of the demo."""

    access: str = "access"
    unkeyed: str = "access.unkeyed"
    quarantine: str = "access.quarantine"
    by_host: str = "access.by-host"


@dataclass(frozen=True)
class PipelineResult:
    """What the job counted at each hop. `by_status` rows: status, requests, bytes."""

    read: int
    parsed: int
    quarantined: int
    hosts: int
    by_status: list[tuple[int, int, int]]


def read_topic(spark: SparkSession, bootstrap_servers: str, topic: str) -> DataFrame:
    """All records of `topic`, as Spark's Kafka source gives them."""
    return spark.read.format("fairlead").option("kafka.bootstrap.servers", bootstrap_servers).option("subscribe", topic).load()


def write_topic(frame: DataFrame, bootstrap_servers: str, topic: str) -> None:
    """Appends the frame's `key` and `value` to `topic`."""
    frame.write.format("fairlead").mode("append").option("kafka.bootstrap.servers", bootstrap_servers).option("topic", topic).save()


def run_pipeline(spark: SparkSession, bootstrap_servers: str, topics: Topics) -> PipelineResult:
    """Reads `access`, aggregates what parses per host and per status, and writes hosts and unparsable lines to their topics."""
    from pyspark.sql import functions as f

    lines = read_topic(spark, bootstrap_servers, topics.access).select("key", "value", f.col("value").cast("string").alias("line"))

    def field(group: int) -> object:
        return f.regexp_extract("line", LINE_PATTERN, group)

    fields = lines.select(
        "key",
        "value",
        field(1).alias("host"),  # type: ignore[attr-defined]
        field(4).try_cast("int").alias("status"),  # type: ignore[attr-defined]
        f.coalesce(field(5).try_cast("long"), f.lit(0)).alias("size_bytes"),  # type: ignore[attr-defined]
        f.col("line").rlike(LINE_PATTERN).alias("parses"),
    ).persist()
    try:
        counts = fields.agg(f.count("*").alias("read"), f.count_if("parses").alias("parsed")).first()
        assert counts is not None
        parsed = fields.where("parses")
        is_error = f.col("status") >= ERROR_STATUS_MIN
        hosts = parsed.groupBy("host").agg(
            f.count("*").alias("requests"),
            f.sum("size_bytes").alias("bytes"),
            f.round(f.avg(is_error.cast("double")), 4).alias("error_share"),
        )
        hosts = hosts.select(
            f.col("host").cast("binary").alias("key"),
            f.to_json(f.struct("host", "requests", "bytes", "error_share")).cast("binary").alias("value"),
        ).persist()
        write_topic(hosts, bootstrap_servers, topics.by_host)
        write_topic(fields.where("not parses").select("key", "value"), bootstrap_servers, topics.quarantine)
        by_status = parsed.groupBy("status").agg(f.count("*"), f.sum("size_bytes")).orderBy("status").collect()
        host_count = hosts.count()
        hosts.unpersist()
    finally:
        fields.unpersist()
    return PipelineResult(
        read=counts["read"],
        parsed=counts["parsed"],
        quarantined=counts["read"] - counts["parsed"],
        hosts=host_count,
        by_status=[(row[0], row[1], row[2]) for row in by_status],
    )
