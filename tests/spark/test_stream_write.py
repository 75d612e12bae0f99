"""Streaming writes: what a query reads is in the topic when it has ended; with exactly-once, once
and for all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fairlead_kafka
from fairlead_kafka import TopicPartition
from tests.support.waiting import PATIENCE_S, until_transactions_are_over

NewTopic = Callable[..., str]
Stream = Callable[..., Any]
Visible = Callable[[str], list[bytes]]
ROWS = 2_000
PARTITIONS = 3
ONCE = {"deliveryGuarantee": "exactly-once"}


@pytest.fixture
def lines(spark: Any, tmp_path: Path) -> Any:
    """A stream of two files of numbered lines, a file for each micro-batch."""
    folder = tmp_path / "lines"
    folder.mkdir()
    for number in range(2):
        rows = range(number * ROWS // 2, (number + 1) * ROWS // 2)
        (folder / f"{number}.txt").write_text("".join(f"v{row}\n" for row in rows))
    return spark.readStream.option("maxFilesPerTrigger", 1).text(str(folder))


@pytest.fixture
def stream(servers: str, tmp_path: Path) -> Stream:
    """`stream(frame, topic=…)`: writes everything that is there and returns the ended query."""

    def run(frame: Any, output_mode: str = "append", **options: object) -> Any:
        writer = (
            frame.writeStream.format("fairlead")
            .option("kafka.bootstrap.servers", servers)
            .outputMode(output_mode)
        )
        writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
        for name, value in options.items():
            writer = writer.option(name, value)
        query = writer.start()
        assert query.awaitTermination(200)
        return query

    return run


@pytest.fixture
def visible(servers: str) -> Visible:
    """`visible(topic)`: the values of all its records, for a reader of committed data, in order of
    partitions and offsets."""

    def read(topic: str) -> list[bytes]:
        until_transactions_are_over(servers)
        found: list[bytes] = []
        with fairlead_kafka.Consumer(
            {"bootstrap.servers": servers, "isolation.level": "read_committed"}
        ) as consumer:
            numbers = [one.partition for one in consumer.partitions_for(topic)]
            for of, end in consumer.end_offsets(
                [TopicPartition(topic, number) for number in numbers]
            ).items():
                for table in consumer.read_range(of, 0, end, timeout_s=PATIENCE_S):
                    found += table["value"].to_pylist()
        return found

    return read


def test_every_row_of_every_micro_batch_is_written(
    lines: Any, stream: Stream, visible: Visible, new_topic: NewTopic
) -> None:
    topic = new_topic()
    query = stream(lines, topic=topic)
    assert len(query.recentProgress) >= 2
    assert sorted(visible(topic)) == sorted(b"v%d" % row for row in range(ROWS))


def test_a_complete_result_is_written_again_with_every_batch(
    lines: Any, stream: Stream, visible: Visible, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=1)
    stream(lines.groupBy().count().selectExpr("cast(count AS string) AS value"), "complete", topic=topic)
    assert visible(topic) == [b"%d" % (ROWS // 2), b"%d" % ROWS]


def test_a_batch_that_spark_repeats_is_committed_once(
    lines: Any, stream: Stream, visible: Visible, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic()
    stream(lines, topic=topic, **ONCE)
    for noted in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        noted.unlink()  # as if the driver had died before it could note that the last batch is committed
    stream(lines, topic=topic, **ONCE)
    assert sorted(visible(topic)) == sorted(b"v%d" % row for row in range(ROWS))


def test_a_batch_write_is_named_and_committed_once(
    spark: Any, servers: str, visible: Visible, new_topic: NewTopic
) -> None:
    topic = new_topic()

    def write(version: int, rows: int) -> None:
        frame = (
            spark.range(0, rows, 1, 2)
            .selectExpr(f"concat('{version} ', id) AS value")
            .write.format("fairlead")
            .mode("append")
        )
        frame = frame.option("kafka.bootstrap.servers", servers).option("topic", topic).options(**ONCE)
        frame.option("txnAppId", topic).option("txnVersion", version).save()

    write(3, 10)
    write(3, 10)
    write(2, 10)
    write(4, 1)
    assert sorted(visible(topic)) == sorted([b"3 %d" % row for row in range(10)] + [b"4 0"])


def test_nothing_of_a_write_that_fails_is_visible(
    spark: Any, servers: str, visible: Visible, new_topic: NewTopic
) -> None:
    topic = new_topic()
    frame = spark.range(0, 100, 1, 2).selectExpr(
        "if(id = 99, raise_error('no more'), cast(id AS string)) AS value"
    )
    writer = (
        frame.write.format("fairlead")
        .mode("append")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", topic)
    )
    with pytest.raises(Exception, match="no more"):
        writer.options(**ONCE).save()
    assert visible(topic) == []


def test_a_stream_that_could_not_be_committed_is_refused_before_a_task_writes(
    lines: Any, stream: Stream, servers: str, new_topic: NewTopic
) -> None:
    topic, log = new_topic(), new_topic(1)  # with cleanup.policy=delete
    with pytest.raises(Exception, match=r"commitLogTopic: the topic .* has cleanup\.policy=delete") as failed:
        stream(lines, topic=topic, commitLogTopic=log, **ONCE)
    assert "Lost task" not in str(failed.value)
    with fairlead_kafka.Consumer({"bootstrap.servers": servers}) as consumer:
        assert set(
            consumer.end_offsets([TopicPartition(topic, number) for number in range(PARTITIONS)]).values()
        ) == {0}
