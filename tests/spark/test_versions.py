"""What differs between versions of Spark, on the one that is installed; `make test-spark-versions`
runs this on each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka.spark.java import java_major_version
from fairlead_kafka.spark.progress import source_progress
from fairlead_kafka.spark.versions import Feature, has
from tests.support.spark_workers import until_workers_start

NewTopic = Callable[..., str]
EACH_VERSION = os.environ.get("FAIRLEAD_SPARK_VERSIONS") == "1"
JAVA = os.environ.get("FAIRLEAD_SPARK_JAVA")

CONNECT = """
import sys
from pathlib import Path

from fairlead_kafka.spark.pipelines.session import connect_session

servers, topic, copied, folder = sys.argv[1:]
with connect_session("connect", "local[2]", None, {"spark.ui.enabled": "false"}) as spark:
    options = {"kafka.bootstrap.servers": servers}
    rows = spark.range(20).selectExpr("cast(id AS string) AS key", "concat('v', id) AS value")
    rows.write.format("fairlead").mode("append").options(**options, topic=topic).save()
    read = spark.read.format("fairlead").options(**options, subscribe=topic).load()
    assert sorted(bytes(row.value) for row in read.collect()) == sorted(b"v%d" % n for n in range(20))
    stream = spark.readStream.format("fairlead").options(**options, subscribe=topic)
    rows = stream.option("startingOffsets", "earliest").load().select("key", "value")
    writer = rows.writeStream.format("fairlead").options(**options, topic=copied)
    writer = writer.option("deliveryGuarantee", "exactly-once").option("checkpointLocation", folder)
    query = writer.trigger(availableNow=True).start()
    assert query.awaitTermination(300)
    options["kafka.isolation.level"] = "read_committed"
    assert spark.read.format("fairlead").options(**options, subscribe=copied).load().count() == 20
print("works")
"""


@pytest.fixture
def send(servers: str) -> Callable[[str, int], None]:
    """`send(topic, 3)`: so many records to partition 0."""

    def to(topic: str, count: int) -> None:
        with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
            for number in range(count):
                producer.send(topic, b"%d" % number, partition=0)

    return to


@pytest.fixture
def stream(spark: Any, servers: str) -> Callable[..., Any]:
    """`stream(subscribe=…)`: a streaming DataFrame of the source."""

    def load(**options: str) -> Any:
        reader = spark.readStream.format("fairlead").option("kafka.bootstrap.servers", servers)
        return reader.options(**options).load()

    return load


@pytest.mark.skipif(has(Feature.LIMITS), reason="this Spark has limits")
def test_limits_are_refused_with_the_reason(
    stream: Callable[..., Any], new_topic: NewTopic, tmp_path: Path
) -> None:
    frame = stream(subscribe=new_topic(), maxOffsetsPerTrigger="5")
    writer = frame.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(Exception, match=r"maxOffsetsPerTrigger: needs Spark 4\.2, and PySpark 4\.\d is inst"):
        until_workers_start(lambda: writer.start().awaitTermination())


@pytest.mark.skipif(has(Feature.LIMITS), reason="`test_stream_read` does it, with limits")
@pytest.mark.parametrize("trigger", [{"availableNow": True}, {"processingTime": "1 second"}])
def test_a_query_without_limits_reads_on_where_its_checkpoint_says(
    stream: Callable[..., Any],
    new_topic: NewTopic,
    send: Callable[[str, int], None],
    servers: str,
    tmp_path: Path,
    trigger: dict[str, Any],
) -> None:
    topic = new_topic(partitions=1)
    found: list[str] = []
    group = {"kafka.group.id": topic, "commitOffsets": "true"}

    def keep(frame: Any, batch_id: int) -> None:
        found.extend(row.value for row in frame.selectExpr("CAST(value AS STRING) AS value").collect())

    def run() -> Any:
        frame = stream(subscribe=topic, startingOffsets="earliest", **group)
        writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(tmp_path))
        query = writer.trigger(**trigger).start()
        if "availableNow" not in trigger:
            query.processAllAvailable()
            query.stop()
        query.awaitTermination()
        return query

    send(topic, 3)
    first = until_workers_start(run)
    assert found == ["0", "1", "2"]
    (figures,) = source_progress(first.recentProgress[0])
    assert figures.metrics["maxOffsetsBehindLatest"] == "0"
    found.clear()
    send(topic, 2)
    until_workers_start(run)
    assert found == ["0", "1"]
    offsets = (tmp_path / "offsets" / "1").read_text().splitlines()[-1]
    assert json.loads(offsets) == {topic: {"0": 5}}
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        (committed,) = admin.list_group_offsets([topic])[topic].values()
    assert committed.offset in (3, 5)  # of the last micro-batch when the next begins


@pytest.mark.skipif(not has(Feature.LIMITS), reason="this PySpark has no such trigger")
def test_the_real_time_trigger_is_refused_by_spark(
    stream: Callable[..., Any], new_topic: NewTopic, tmp_path: Path
) -> None:
    writer = stream(subscribe=new_topic()).select("value").writeStream.format("console").outputMode("update")
    writer = writer.option("checkpointLocation", str(tmp_path)).trigger(realTime="5 seconds")
    with pytest.raises(Exception, match=r"Python.* is not supported in Real-time Mode"):
        until_workers_start(lambda: writer.start().awaitTermination())


@pytest.mark.skipif(JAVA is None, reason="`make test-spark-versions` says which Java is meant")
def test_this_is_the_java_that_was_meant(spark: Any) -> None:
    said = spark._jvm.System.getProperty("java.version")
    assert str(java_major_version(f'version "{said}"')) == JAVA


@pytest.mark.skipif(not EACH_VERSION, reason="pipelines use Connect too; `make test-spark-versions` does it")
def test_spark_connect_writes_reads_and_streams(servers: str, new_topic: NewTopic, tmp_path: Path) -> None:
    topics = new_topic(partitions=2), new_topic(partitions=2)
    command = [sys.executable, "-c", CONNECT, servers, *topics, str(tmp_path / "checkpoint")]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=500, check=False)
    assert ran.stdout.splitlines()[-1:] == ["works"], ran.stdout + ran.stderr
