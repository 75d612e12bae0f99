"""A pipeline is run twice, the second time on a cluster of processes: it goes on where it stopped,
and every row is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from fairlead_kafka.spark.versions import Feature, has
from tests.support.waiting import PATIENCE_S

SPEC = """\
name: shop
storage: {storage}
configuration:
  spark.fairlead.bootstrap.servers: "{servers}"
  spark.driver.memory: 1g
  spark.ui.enabled: "false"
  spark.driver.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.executor.defaultJavaOptions: -XX:TieredStopAtLevel=1 -XX:+UseSerialGC
  spark.sql.shuffle.partitions: "1"
libraries:
  - glob:
      include: definitions.py
"""
DEFINITIONS = """\
from pyspark import pipelines as dp

from fairlead_kafka.spark.pipelines import Expectations

KAFKA = {"kafka.bootstrap.servers": spark.conf.get("spark.fairlead.bootstrap.servers")}
EXPECTED = Expectations({"is a number": "try_cast(text AS INT) IS NOT NULL", "is small": "try_cast(text AS INT) < 1000"})


def orders():
    stream = spark.readStream.format("fairlead").options(**KAFKA).option("subscribe", "ORDERS").option("startingOffsets", "earliest")
    return stream.load().selectExpr("value", "cast(value AS STRING) AS text")


@dp.table
def numbers():
    return EXPECTED.good(orders()).selectExpr("cast(text AS INT) AS number")


dp.create_sink("quarantine", "fairlead", {**KAFKA, "topic": "QUARANTINE"})


@dp.append_flow(target="quarantine")
def to_quarantine():
    return EXPECTED.bad(orders()).selectExpr("to_json(failed) AS key", "value")
"""  # noqa: E501


def run(project: Path, *arguments: str) -> dict[str, Any]:
    """Runs a project in a process of its own; the report, flows by name."""
    command = [
        sys.executable,
        "-m",
        "fairlead_kafka.cli.main",
        "pipeline",
        "run",
        str(project),
        "--json",
        str(project / "report.json"),
        *arguments,
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.returncode == 0, without_frames(ran.stdout + ran.stderr)
    report = json.loads((project / "report.json").read_text())
    return {**report, "flows": {flow["flow"]: flow for flow in report["flows"]}}


def without_frames(text: str) -> str:
    """What a JVM said without the frames of its stacks: they are hundreds of lines, and whoever
    cuts the text short keeps nothing else."""
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith(("at ", "... ")))


def values(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Keys and values of a topic of one partition."""
    partition = fairlead_kafka.TopicPartition(topic, 0)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        end = consumer.end_offsets([partition])[partition]
        tables = list(consumer.read_range(partition, 0, end))
    return [
        (key, value)
        for table in tables
        for key, value in zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
    ]


@pytest.mark.skipif(not has(Feature.PIPELINES), reason="this Spark has no pipelines")
def test_a_second_run_goes_on_where_the_first_stopped_on_a_cluster_too(
    servers: str, new_topic: Callable[..., str], tmp_path: Path
) -> None:
    first = pa.table({"value": [b"%d" % number for number in range(50)] + [b"many", b"5000"]})
    orders, quarantine = new_topic(2, first), new_topic(1)
    (tmp_path / "spark-pipeline.yml").write_text(
        SPEC.format(storage=(tmp_path / "storage").as_uri(), servers=servers)
    )
    (tmp_path / "definitions.py").write_text(
        DEFINITIONS.replace("ORDERS", orders).replace("QUARANTINE", quarantine)
    )

    report = run(tmp_path, "--master", "local[2]")
    flow = report["flows"]["numbers"]
    assert (report["state"], report["lost"]) == ("completed", 0)
    assert (flow["rows_in"], flow["rows_out"], flow["quarantined"]) == (52, 50, 2)
    assert flow["failed_expectations"] == {"is a number": 1, "is small": 2}
    assert (flow["bytes_in"], flow["lag"], flow["state"]) == (
        sum(map(len, first["value"].to_pylist())),
        0,
        "completed",
    )
    flow = report["flows"]["to_quarantine"]
    assert (flow["rows_in"], flow["rows_out"], flow["bytes_out"]) == (52, 2, 8)
    assert sorted(values(servers, quarantine)) == [
        (b'["is a number","is small"]', b"many"),
        (b'["is small"]', b"5000"),
    ]

    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        producer.send_table(orders, pa.table({"value": [b"7", b"none", b"8"]})).result(timeout_s=PATIENCE_S)
    report = run(tmp_path, "--master", "local-cluster[1,1,1024]")
    flow = report["flows"]["numbers"]
    assert (report["state"], flow["rows_in"], flow["quarantined"], flow["lag"], report["lost"]) == (
        "completed",
        3,
        1,
        0,
        0,
    )
    assert report["flows"]["to_quarantine"]["rows_out"] == 1
    assert len(values(servers, quarantine)) == 3
