"""Batch reads: columns, ranges of offsets, splitting, and errors that a user can act on."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

ROWS = 1_000
START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = round(START.timestamp() * 1000)

Read = Callable[..., Any]
NewTopic = Callable[..., str]


@pytest.fixture(scope="module")
def table() -> pa.Table:
    """Explicit partitions, a second between two records of a partition, null and empty keys and
    values."""
    numbers = range(ROWS)
    return pa.table(
        {
            "key": pa.array(
                [None if n % 5 == 0 else b"" if n % 5 == 1 else b"k%d" % n for n in numbers], pa.binary()
            ),
            "value": pa.array([None if n % 7 == 0 else b"v%d" % n for n in numbers], pa.binary()),
            "partition": pa.array([n % 2 for n in numbers], pa.int32()),
            "timestamp": pa.array([START_MS + 1000 * (n // 2) for n in numbers], pa.timestamp("ms", "UTC")),
            "headers": pa.array(
                [[{"key": "n", "value": b"%d" % n}] if n % 3 == 0 else None for n in numbers],
                pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])),
            ),
        }
    )


@pytest.fixture
def topic(new_topic: NewTopic, table: pa.Table) -> str:
    return new_topic(partitions=2, table=table)


def test_the_columns_are_those_of_sparks_kafka_source(read: Read, topic: str) -> None:
    assert read(subscribe=topic).schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int>"
    )
    assert (
        read(subscribe=topic, includeHeaders="true").schema["headers"].simpleString()
        == "headers:array<struct<key:string,value:binary>>"
    )


def test_every_record_comes_once_with_all_it_had(read: Read, topic: str, table: pa.Table) -> None:
    rows = (
        read(subscribe=topic, includeHeaders="true").selectExpr("*", "unix_millis(timestamp) AS ms").collect()
    )
    assert len(rows) == ROWS
    expected = table.to_pylist()
    for row in rows:
        sent = expected[row.offset * 2 + row.partition]
        assert (row.key, row.value, row.topic, row.timestampType) == (sent["key"], sent["value"], topic, 0)
        assert row.ms == round(sent["timestamp"].timestamp() * 1000)
        assert [(header.key, bytes(header.value)) for header in row.headers or []] == [
            (h["key"], h["value"]) for h in sent["headers"] or []
        ]


def test_patterns_and_assignments_choose_what_is_read(read: Read, topic: str) -> None:
    assert read(subscribePattern=topic[:-1] + "[0-9]{1,2}").where(f"topic = '{topic}'").count() == ROWS
    assert read(assign=json.dumps({topic: [1]})).count() == ROWS // 2


def test_ranges_by_offset_and_by_time(read: Read, topic: str) -> None:
    starts, ends = json.dumps({topic: {"0": 10, "1": -2}}), json.dumps({topic: {"0": 30, "1": -1}})
    counts = {
        row.partition: row["count"]
        for row in read(subscribe=topic, startingOffsets=starts, endingOffsets=ends)
        .groupBy("partition")
        .count()
        .collect()
    }
    assert counts == {0: 20, 1: ROWS // 2}
    assert (
        read(
            subscribe=topic, startingTimestamp=START_MS + 100_000, endingTimestamp=START_MS + 110_000
        ).count()
        == 20
    )
    by_partition = json.dumps({topic: {"0": START_MS + 490_000, "1": START_MS + 495_000}})
    assert read(subscribe=topic, startingOffsetsByTimestamp=by_partition).count() == 15


def test_a_start_after_every_record_is_an_error_or_the_end(read: Read, topic: str) -> None:
    options = {"subscribe": topic, "startingTimestamp": START_MS + 10**9}
    with pytest.raises(Exception, match="startingOffsetsByTimestampStrategy=latest"):
        read(**options).count()
    assert read(**options, startingOffsetsByTimestampStrategy="latest").count() == 0


def test_ranges_are_split_into_tasks(read: Read, topic: str) -> None:
    assert read(subscribe=topic).rdd.getNumPartitions() == 2
    split = read(subscribe=topic, minPartitions=8)
    assert split.rdd.getNumPartitions() == 8
    assert split.select("partition", "offset").distinct().count() == ROWS
    assert read(subscribe=topic, maxRecordsPerPartition=100).rdd.getNumPartitions() == 10


def test_an_empty_topic_gives_no_rows(read: Read, new_topic: NewTopic) -> None:
    assert read(subscribe=new_topic()).count() == 0


def test_offsets_that_are_gone_fail_or_are_passed_over(read: Read, topic: str) -> None:
    options = {"subscribe": topic, "endingOffsets": json.dumps({topic: {"0": 10**6, "1": -1}})}
    with pytest.raises(Exception, match="failOnDataLoss=false"):
        read(**options).count()
    assert read(**options, failOnDataLoss="false").count() == ROWS


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "exactly one of assign, subscribe and subscribePattern"),
        ({"subscribe": "t", "startingOfset": "earliest"}, "did you mean startingOffsets?"),
        (
            {
                "subscribe": "no-such-topic",
                "kafka.allow.auto.create.topics": "false",
                "kafka.default.api.timeout.ms": "5000",
            },
            "no-such-topic",
        ),
        ({"subscribe": "t", "kafka.fetch.min.byte": "1"}, "did you mean kafka.fetch.min.bytes?"),
    ],
)
def test_a_wrong_read_says_what_is_wrong(read: Read, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match="(?s)" + said.replace("?", r"\?")):
        read(**options).count()


def test_a_schema_of_the_jobs_own_is_refused(spark: Any, servers: str, topic: str) -> None:
    reader = (
        spark.read.format("fairlead")
        .schema("value string")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", topic)
    )
    with pytest.raises(Exception, match="fixed schema"):
        reader.load().count()
