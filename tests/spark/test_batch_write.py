"""Batch writes: every accepted column, and errors that a user can act on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Read = Callable[..., Any]
NewTopic = Callable[..., str]
ROWS = 5_000


@pytest.fixture
def write(servers: str) -> Callable[..., None]:
    """`write(frame, topic=…)`: appends the frame."""

    def save(frame: Any, mode: str = "append", **options: object) -> None:
        writer = frame.write.format("fairlead").mode(mode).option("kafka.bootstrap.servers", servers)
        for name, value in options.items():
            writer = writer.option(name, value)
        writer.save()

    return save


def test_strings_and_binaries_are_written_as_they_are(
    spark: Any, read: Read, write: Callable[..., None], new_topic: NewTopic
) -> None:
    topic = new_topic()
    frame = spark.range(ROWS).selectExpr(
        "if(id % 3 = 0, null, concat('k', id)) AS key", "cast(concat('v', id) AS binary) AS value"
    )
    write(frame, topic=topic)
    rows = read(subscribe=topic).collect()
    assert {(row.key and bytes(row.key), bytes(row.value)) for row in rows} == {
        (None if number % 3 == 0 else b"k%d" % number, b"v%d" % number) for number in range(ROWS)
    }
    assert len(rows) == ROWS


def test_a_topic_column_sends_each_row_its_way(
    spark: Any, read: Read, write: Callable[..., None], new_topic: NewTopic
) -> None:
    topics = [new_topic(), new_topic()]
    write(
        spark.range(100).selectExpr(
            f"if(id < 30, '{topics[0]}', '{topics[1]}') AS topic", "cast(id AS string) AS value"
        )
    )
    assert [read(subscribe=topic).count() for topic in topics] == [30, 70]


def test_the_topic_option_goes_over_the_column(
    spark: Any, read: Read, write: Callable[..., None], new_topic: NewTopic
) -> None:
    topic = new_topic()
    write(spark.range(10).selectExpr("'elsewhere' AS topic", "cast(id AS string) AS value"), topic=topic)
    assert read(subscribe=topic).count() == 10


def test_headers_and_explicit_partitions_are_kept(
    spark: Any, read: Read, write: Callable[..., None], new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=4)
    frame = spark.range(40).selectExpr(
        "cast(id AS string) AS value",
        "cast(id % 4 AS int) AS partition",
        "array(named_struct('key', 'n', 'value', cast(cast(id AS string) AS binary))) AS headers",
    )
    write(frame, topic=topic)
    for row in read(subscribe=topic, includeHeaders="true").collect():
        assert row.partition == int(row.value) % 4
        assert [(header.key, header.value) for header in row.headers] == [("n", row.value)]


def test_what_is_read_can_be_written_again(
    read: Read, write: Callable[..., None], new_topic: NewTopic, spark: Any
) -> None:
    first, second = new_topic(), new_topic()
    write(
        spark.range(ROWS).selectExpr("cast(id AS string) AS key", "cast(id AS string) AS value"), topic=first
    )
    write(read(subscribe=first).select("key", "value", "partition"), topic=second)
    assert (
        read(subscribe=second)
        .selectExpr("key", "partition")
        .exceptAll(read(subscribe=first).selectExpr("key", "partition"))
        .count()
        == 0
    )


@pytest.mark.parametrize(
    ("columns", "options", "said"),
    [
        ("cast(id AS string) AS key", {"topic": "t"}, "column value: required"),
        ("id AS value", {"topic": "t"}, "column value: must be string or binary, not bigint"),
        ("cast(id AS string) AS value", {}, "no topic: set the option topic"),
        ("cast(id AS string) AS value, id AS extra", {"topic": "t"}, "column extra: not one of"),
        ("cast(id AS string) AS value", {"topic": "t", "subscribe": "t"}, "subscribe: an option for read"),
        ("cast(null AS string) AS topic, cast(id AS string) AS value", {}, "null topic"),
    ],
)
def test_a_wrong_write_says_what_is_wrong(
    spark: Any, write: Callable[..., None], columns: str, options: dict[str, str], said: str
) -> None:
    with pytest.raises(Exception, match=said):
        write(spark.range(3).selectExpr(*columns.split(", ")), **options)


def test_a_topic_is_never_overwritten(spark: Any, write: Callable[..., None]) -> None:
    with pytest.raises(Exception, match=r"cannot be overwritten"):
        write(spark.range(3).selectExpr("cast(id AS string) AS value"), mode="overwrite", topic="t")
