"""The examples of the integration guide of Spark's own Kafka connector, each as it stands there but
for the format's name.

One thing has to be added: a batch write needs `.mode("append")`, which Spark demands of every
source that is not made in Java or Scala.

Topics are named, and filled, as the examples have it: `topic1` with two partitions, `topic2` with
one. The streaming reads share a query, for what costs is starting one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka
from tests.support.spark_workers import until_workers_start
from tests.support.waiting import PATIENCE_S

ROWS = 60
"""Of each partition: the examples read up to offset 50."""
TOPICS = {"topic1": 2, "topic2": 1}
HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
Pairs = set[tuple[str, str]]
Received = Callable[[str], Any]


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    """A cluster of this module's own, so that the topics' names and a pattern of the examples mean
    what they mean there."""
    with fairlead_kafka.Cluster(brokers=2) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            wanted = {
                **TOPICS,
                "out-batch": 1,
                "out-stream": 1,
                "by-column-1": 1,
                "by-column-2": 1,
                "stream-1": 1,
                "stream-2": 1,
            }
            admin.create_topics(
                [fairlead_kafka.NewTopic(name, partitions=partitions) for name, partitions in wanted.items()]
            )
        produce(cluster.bootstrap_servers)
        yield cluster.bootstrap_servers


def produce(servers: str) -> None:
    with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
        for topic, partitions in TOPICS.items():
            numbers = range(ROWS * partitions)
            columns = {
                "key": pa.array([f"{topic}-k{number}".encode() for number in numbers], pa.binary()),
                "value": pa.array([f"v{number}".encode() for number in numbers], pa.binary()),
                "partition": pa.array([number % partitions for number in numbers], pa.int32()),
                "headers": pa.array([[{"key": "n", "value": b"%d" % number}] for number in numbers], HEADERS),
            }
            producer.send_table(topic, pa.table(columns)).result(timeout_s=PATIENCE_S)


def rows_of(*topics: str) -> Pairs:
    return {
        (f"{topic}-k{number}", f"v{number}") for topic in topics for number in range(ROWS * TOPICS[topic])
    }


def pairs(rows: Any) -> Pairs:
    return {(row.key, row.value) for row in rows}


# Batch reads


def test_batch_one_topic_from_its_first_record_to_its_last(spark: Any, cluster: str) -> None:
    df = (
        spark.read.format("fairlead")
        .option("kafka.bootstrap.servers", cluster)
        .option("subscribe", "topic1")
        .load()
    )
    rows = df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()
    assert pairs(rows) == rows_of("topic1")
    assert len(rows) == ROWS * 2


def test_batch_several_topics_with_offsets_by_partition(spark: Any, cluster: str) -> None:
    df = (
        spark.read.format("fairlead")
        .option("kafka.bootstrap.servers", cluster)
        .option("subscribe", "topic1,topic2")
        .option("startingOffsets", """{"topic1":{"0":23,"1":-2},"topic2":{"0":-2}}""")
        .option("endingOffsets", """{"topic1":{"0":50,"1":-1},"topic2":{"0":-1}}""")
        .load()
    )
    rows = df.selectExpr(
        "CAST(key AS STRING)", "CAST(value AS STRING)", "topic", "partition", "offset"
    ).collect()
    expected = {("topic1", 0): range(23, 50), ("topic1", 1): range(ROWS), ("topic2", 0): range(ROWS)}
    assert sorted((row.topic, row.partition, row.offset) for row in rows) == sorted(
        (*of, offset) for of, offsets in expected.items() for offset in offsets
    )


def test_batch_a_pattern_from_earliest_to_latest(spark: Any, cluster: str) -> None:
    df = (
        spark.read.format("fairlead")
        .option("kafka.bootstrap.servers", cluster)
        .option("subscribePattern", "topic.*")
        .option("startingOffsets", "earliest")
        .option("endingOffsets", "latest")
        .load()
    )
    assert pairs(df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)").collect()) == rows_of(
        "topic1", "topic2"
    )


# Batch writes


def test_batch_write_to_the_topic_of_an_option(spark: Any, cluster: str) -> None:
    df = spark.createDataFrame([("k1", "v1"), ("k2", "v2")], "key string, value string")
    (
        df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        .write.format("fairlead")
        .mode("append")
        .option("kafka.bootstrap.servers", cluster)
        .option("topic", "out-batch")
        .save()
    )
    assert received(cluster, "out-batch") == [(b"k1", b"v1"), (b"k2", b"v2")]


def test_batch_write_to_the_topics_of_a_column(spark: Any, cluster: str) -> None:
    df = spark.createDataFrame(
        [("by-column-1", "k1", "v1"), ("by-column-2", "k2", "v2")], "topic string, key string, value string"
    )
    (
        df.selectExpr("topic", "CAST(key AS STRING)", "CAST(value AS STRING)")
        .write.format("fairlead")
        .mode("append")
        .option("kafka.bootstrap.servers", cluster)
        .save()
    )
    assert received(cluster, "by-column-1") == [(b"k1", b"v1")]
    assert received(cluster, "by-column-2") == [(b"k2", b"v2")]


def test_batch_write_without_a_mode_is_refused_by_spark_which_names_the_modes(
    spark: Any, cluster: str
) -> None:
    df = spark.createDataFrame([("v",)], "value string")
    with pytest.raises(Exception, match="UNSUPPORTED_DATA_SOURCE_SAVE_MODE"):
        df.write.format("fairlead").option("kafka.bootstrap.servers", cluster).option(
            "topic", "out-batch"
        ).save()


# Streams


@pytest.fixture(scope="module")
def streamed(spark: Any, cluster: str) -> Iterator[Received]:
    """The streaming reads of the guide, started before the records that they find: `streamed(name)`
    is what one of them got."""
    frames = {
        "one": stream(spark, cluster, subscribe="topic1").selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)"
        ),
        "headers": stream(spark, cluster, subscribe="topic1", includeHeaders="true").selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)", "headers"
        ),
        "several": stream(spark, cluster, subscribe="topic1,topic2").selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)"
        ),
        "pattern": stream(spark, cluster, subscribePattern="topic.*").selectExpr(
            "CAST(key AS STRING)", "CAST(value AS STRING)"
        ),
    }
    named = [frame.selectExpr(f"'{name}' AS example", "*") for name, frame in frames.items()]
    together = reduce(lambda left, right: left.unionByName(right, allowMissingColumns=True), named)

    def started() -> Any:
        query = together.writeStream.format("memory").queryName("examples").start()
        query.processAllAvailable()  # latest is where it stands now
        return query

    query = until_workers_start(started)
    try:
        produce(cluster)
        query.processAllAvailable()
        yield lambda name: spark.table("examples").where(f"example = '{name}'").collect()
    finally:
        query.stop()


def stream(spark: Any, servers: str, **options: str) -> Any:
    reader = spark.readStream.format("fairlead").option("kafka.bootstrap.servers", servers)
    for name, value in options.items():
        reader = reader.option(name, value)
    return reader.load()


def test_stream_one_topic(streamed: Received) -> None:
    rows = streamed("one")
    assert pairs(rows) == rows_of("topic1")
    assert len(rows) == ROWS * 2


def test_stream_one_topic_with_headers(streamed: Received) -> None:
    assert {(row.value, row.headers[0].key, bytes(row.headers[0].value)) for row in streamed("headers")} == {
        (f"v{number}", "n", b"%d" % number) for number in range(ROWS * 2)
    }


def test_stream_several_topics(streamed: Received) -> None:
    assert pairs(streamed("several")) == rows_of("topic1", "topic2")


def test_stream_a_pattern(streamed: Received) -> None:
    assert pairs(streamed("pattern")) == rows_of("topic1", "topic2")


@pytest.fixture(scope="module")
def copied(spark: Any, cluster: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """The streaming writes of the guide, Kafka to Kafka, through what is there."""
    checkpoints: Path = tmp_path_factory.mktemp("checkpoints")
    df = stream(spark, cluster, subscribe="topic2", startingOffsets="""{"topic2":{"0":-2}}""")
    option = (
        df.selectExpr("CAST(key AS STRING)", "CAST(value AS STRING)")
        .writeStream.format("fairlead")
        .option("kafka.bootstrap.servers", cluster)
        .option("topic", "out-stream")
        .option("checkpointLocation", str(checkpoints / "option"))
    )
    column = (
        df.selectExpr(
            "concat('stream-', 1 + offset % 2) AS topic",
            "CAST(key AS STRING)",
            "CAST(value AS STRING)",
        )
        .writeStream.format("fairlead")
        .option("kafka.bootstrap.servers", cluster)
        .option("checkpointLocation", str(checkpoints / "column"))
    )
    for writer in (option, column):
        assert until_workers_start(
            lambda writer=writer: writer.trigger(availableNow=True).start().awaitTermination(200)
        )  # type: ignore[misc]


@pytest.mark.usefixtures("copied")
def test_stream_write_to_the_topic_of_an_option(cluster: str) -> None:
    rows = received(cluster, "out-stream")
    assert {(key.decode(), value.decode()) for key, value in rows} == rows_of("topic2")


@pytest.mark.usefixtures("copied")
def test_stream_write_to_the_topics_of_a_column(cluster: str) -> None:
    first, second = (received(cluster, topic) for topic in ("stream-1", "stream-2"))
    assert {(key.decode(), value.decode()) for key, value in first + second} == rows_of("topic2")
    assert len(first) == len(second)


def received(servers: str, topic: str) -> list[tuple[bytes, bytes]]:
    """Key and value of each record of a topic of one partition, sorted."""
    partition = fairlead_kafka.TopicPartition(topic, 0)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        end = consumer.end_offsets([partition])[partition]
        tables = list(consumer.read_range(partition, 0, end, columns=["key", "value"], timeout_s=PATIENCE_S))
    return sorted((row["key"], row["value"]) for table in tables for row in table.to_pylist())
