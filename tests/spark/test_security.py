"""Spark over SASL_SSL on Apache Kafka: source and sink, batch and exactly-once stream; and the
password is nowhere afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fairlead_kafka import Cluster
from fairlead_kafka.lab.apache_kafka import Unavailable
from fairlead_kafka.testing.certificates import PASSWORD
from tests.support.secured_kafka import USER, secured_kafka
from tests.support.spark_workers import until_workers_start

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
JOB = """
import json, sys
from urllib.request import urlopen
from fairlead_kafka.spark import spark_session

job = json.loads(sys.stdin.read())
sys.path.append(job["root"])
from tests.support.spark_workers import workers_start
events = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": job["folder"] + "/events", "spark.eventLog.compress": "false",
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1"}
spark = spark_session("secured", master="local[2]", config=events)
found = {}
for name, options in job["ways"].items():
    rows = spark.range(500).selectExpr("cast(id AS string) AS value")
    rows.write.format("fairlead").mode("append").options(**options).option("topic", name).save()
    topic = name
    if name == "plain":
        stream = spark.readStream.format("fairlead").options(**options).option("subscribe", name).option("startingOffsets", "earliest")
        writer = stream.load().select("value").writeStream.format("fairlead").options(**options).option("topic", "streamed")
        writer = writer.option("deliveryGuarantee", "exactly-once").option("checkpointLocation", job["folder"] + "/checkpoint")
        with workers_start():
            print(writer.trigger(availableNow=True).start().recentProgress)
        topic = "streamed"
    reader = spark.read.format("fairlead").options(**options).option("kafka.isolation.level", "read_committed")
    out = reader.option("subscribe", topic).load()
    out.explain(True)
    found[name] = out.select("value").distinct().count()
page = spark.sparkContext.uiWebUrl + "/api/v1/applications/" + spark.sparkContext.applicationId
for view in ("/sql?details=true", "/environment", "/jobs", "/stages"):
    print(urlopen(page + view).read().decode())
spark.stop()
print("FOUND " + json.dumps(found))
"""  # noqa: E501


def test_a_secured_job_works_and_leaves_its_password_nowhere(tmp_path: Path) -> None:
    (tmp_path / "work" / "events").mkdir(parents=True)
    (tmp_path / "brokers").mkdir()
    try:
        with secured_kafka(tmp_path / "brokers") as kafka:
            options = {f"kafka.{key}": value for key, value in kafka.settings("SASLTLS").items()} | {
                "kafka.sasl.mechanism": "SCRAM-SHA-256"
            }
            jaas = (
                f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{USER}" '
                f'password="{PASSWORD}";'
            )
            ways = {
                "plain": options | {"kafka.sasl.username": USER, "kafka.sasl.password": PASSWORD},
                "jaas": options | {"kafka.sasl.jaas.config": jaas},
                "reference": options
                | {"kafka.sasl.username": USER, "kafka.sasl.password": "${env:KAFKA_PASSWORD}"},
            }
            job = json.dumps({"folder": str(tmp_path / "work"), "root": str(ROOT), "ways": ways})
            environment = {**os.environ, "KAFKA_PASSWORD": PASSWORD}
            command = [sys.executable, "-c", JOB]
            ran = subprocess.run(
                command,
                input=job,
                env=environment,
                cwd=tmp_path / "work",
                capture_output=True,
                text=True,
                check=False,
            )
    except Unavailable as error:
        pytest.skip(str(error))
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said[-5000:]
    assert f"FOUND {json.dumps(dict.fromkeys(ways, 500))}" in ran.stdout
    assert PASSWORD not in said
    left = [path for path in (tmp_path / "work").rglob("*") if path.is_file()]
    assert len(left) > len(ways), "the event log, and checkpoints"
    assert [path for path in left if PASSWORD.encode() in path.read_bytes()] == []


def test_files_are_shipped_to_whoever_needs_them_and_our_own_cluster_lets_spark_in(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with Cluster(2, security="sasl_ssl") as cluster:
        settings = cluster.client_settings("alice")
        authority = Path(settings["ssl.truststore.location"])
        spark.sparkContext.addFile(str(authority))  # as Spark does itself with what `--files` names
        options = {f"kafka.{key}": value for key, value in settings.items()} | {
            "kafka.ssl.truststore.location": authority.name
        }
        rows = spark.range(300).selectExpr("cast(id AS string) AS value")
        rows.write.format("fairlead").mode("append").options(**options).option("topic", "in").save()
        stream = (
            spark.readStream.format("fairlead")
            .options(**options)
            .option("subscribe", "in")
            .option("startingOffsets", "earliest")
            .load()
        )
        writer = (
            stream.select("value").writeStream.format("fairlead").options(**options).option("topic", "out")
        )
        writer = writer.option("deliveryGuarantee", "exactly-once").option(
            "checkpointLocation", str(tmp_path / "checkpoint")
        )
        until_workers_start(lambda: writer.trigger(availableNow=True).start().awaitTermination())
        assert (
            spark.read.format("fairlead").options(**options).option("subscribe", "out").load().count() == 300
        )
