"""The views of the source, read without Spark: what their rows say, which options they heed, how
they are planned."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StringType, StructField, StructType

import fairlead_kafka
from fairlead_kafka.base.errors import ConfigError, FairleadError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.option_table import OPTIONS, VIEW_OPTIONS
from fairlead_kafka.spark.source import FairleadSource
from fairlead_kafka.spark.views import VIEWS
from tests.support.waiting import until_transactions_are_over


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """A cluster with a topic `filled` of three partitions: 60 records in 6 batches, and a
    transaction in partition 2."""
    with fairlead_kafka.Cluster(brokers=2) as cluster:
        config = {"bootstrap.servers": cluster.bootstrap_servers}
        with fairlead_kafka.Admin(config) as admin:
            topic = fairlead_kafka.NewTopic(
                "filled",
                partitions=3,
                replication_factor=2,
                configs={"retention.ms": "1000000", "flush.ms": "99999"},
            )
            admin.create_topics([topic, fairlead_kafka.NewTopic("empty", partitions=1)])
        # `flush` ends the linger; without it the ten may leave apart on a busy machine.
        kept_together = {
            "compression.type": "lz4",
            "enable.idempotence": "false",
            "acks": "1",
            "linger.ms": 60_000,
        }
        with fairlead_kafka.Producer({**config, **kept_together}) as producer:
            for number in range(6):
                for _ in range(10):
                    producer.send("filled", b"the same again and again " * 10, key=b"k", partition=number % 3)
                producer.flush()
        with fairlead_kafka.Producer({**config, "transactional.id": "x"}) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("filled", b"in a transaction", partition=2)
            producer.commit_transaction()
        until_transactions_are_over(config["bootstrap.servers"])
        with fairlead_kafka.Consumer(
            {**config, "group.id": "readers", "enable.auto.commit": "false"}
        ) as consumer:
            consumer.assign([TopicPartition("filled", 0)])
            consumer.commit({TopicPartition("filled", 0): 15, TopicPartition("filled", 1): 20})
        with fairlead_kafka.Consumer(
            {**config, "group.id": "others", "enable.auto.commit": "false"}
        ) as consumer:
            consumer.assign([TopicPartition("empty", 0)])
            consumer.commit({TopicPartition("empty", 0): 0})
        yield cluster.bootstrap_servers


def source(servers: str, **options: Any) -> FairleadSource:
    """As Spark makes it: option names in lower case."""
    given = {"kafka.bootstrap.servers": servers, **options}
    return FairleadSource({name.lower(): str(value) for name, value in given.items()})


def rows(servers: str, **options: Any) -> list[dict[str, Any]]:
    """The rows of a view, each batch in exactly the schema that Spark compares it with."""
    made = source(servers, **options)
    schema = made.schema()
    reader = made.reader(schema)
    found: list[dict[str, Any]] = []
    for task in reader.partitions():
        for batch in reader.read(task):
            assert isinstance(batch, pa.RecordBatch)
            assert batch.schema == to_arrow_schema(schema, timezone="UTC")
            found += batch.to_pylist()
    return found


def test_the_view_batches_has_a_row_per_record_batch(servers: str) -> None:
    found = rows(servers, view="batches", subscribe="filled")
    shown = sorted(
        (row["partition"], row["base_offset"], row["records"], row["codec"])
        for row in found
        if not row["is_transactional"]
    )
    assert shown == [(number, base, 10, "lz4") for number in range(3) for base in (0, 10)]
    assert [
        (row["partition"], row["records"], row["is_control"]) for row in found if row["is_transactional"]
    ] == [
        (2, 1, False),
        (2, 1, True),
    ]
    compressed = [row for row in found if row["codec"] == "lz4"]
    assert all(
        row["uncompressed_bytes"] > 2_500
        and row["ratio"] == row["size_bytes"] / row["uncompressed_bytes"] < 0.5
        for row in compressed
    )
    assert all(row["producer_id"] is None for row in compressed)


def test_ratios_are_measured_only_if_wanted(servers: str) -> None:
    found = rows(servers, view="Batches", subscribe="filled", measureRatio="false")
    assert {(row["codec"], row["ratio"]) for row in found} == {("lz4", None), ("none", 1.0)}


@pytest.mark.parametrize("tasks", [1, 7, 50])
def test_tasks_that_share_partitions_give_each_batch_once(servers: str, tasks: int) -> None:
    found = rows(servers, view="batches", subscribe="filled", minPartitions=tasks)
    assert sorted((row["partition"], row["base_offset"]) for row in found) == [
        (0, 0), (0, 10), (1, 0), (1, 10), (2, 0), (2, 10), (2, 20), (2, 21),
    ]  # fmt: skip


def test_batches_of_some_offsets_can_be_asked_for(servers: str) -> None:
    asked = {
        "assign": '{"filled": [0]}',
        "startingOffsets": '{"filled": {"0": 5}}',
        "endingOffsets": '{"filled": {"0": 15}}',
    }
    assert [row["base_offset"] for row in rows(servers, view="batches", **asked)] == [0]


def test_the_view_offsets_tells_how_far_behind_each_group_is(servers: str) -> None:
    def told(**options: str) -> list[tuple[Any, ...]]:
        return [
            tuple(row[name] for name in ("group", "topic", "partition", "committed", "end", "lag"))
            for row in rows(servers, view="offsets", **options)
        ]

    others, first, second = (
        ("others", "empty", 0, 0, 0, 0),
        ("readers", "filled", 0, 15, 20, 5),
        ("readers", "filled", 1, 20, 20, 0),
    )
    assert told() == [others, first, second]
    assert (
        told(groups="readers")
        == told(subscribe="filled")
        == told(subscribePattern="fil.*")
        == [first, second]
    )
    with pytest.raises(ConfigError, match="no group missing; `fairlead groups list`"):
        told(groups="readers,missing")


def test_the_view_offsets_names_who_reads(servers: str) -> None:
    config = {
        "bootstrap.servers": servers,
        "group.id": "live",
        "client.id": "mine",
        "auto.offset.reset": "earliest",
    }
    with fairlead_kafka.Consumer(config) as consumer:
        consumer.subscribe(["filled"])
        consumer.poll(30)
        found = rows(servers, view="offsets", groups="live")
        assert [(row["partition"], row["client_id"], row["state"]) for row in found] == [
            (number, "mine", "Stable") for number in range(3)
        ]
        assert all(row["lag"] is None or row["lag"] >= 0 for row in found)


def test_the_view_topics_has_a_row_per_partition(servers: str) -> None:
    found = rows(servers, view="topics")
    assert [(row["topic"], row["partition"]) for row in found] == [
        ("empty", 0),
        *(("filled", number) for number in range(3)),
    ]
    first = found[1]
    assert sorted(first["replicas"]) == sorted(first["in_sync_replicas"]) == [0, 1]
    assert first["leader"] in (0, 1)
    assert (first["start_offset"], first["end_offset"], first["is_internal"]) == (0, 20, False)
    batches = [row["size_bytes"] for row in rows(servers, view="batches", assign='{"filled": [0]}')]
    assert first["size_bytes"] == sum(batches)
    configs = dict(first["configs"])
    assert (configs["retention.ms"], configs["cleanup.policy"], configs["flush.ms"]) == (
        "1000000",
        "delete",
        "99999",
    )
    assert [row["topic"] for row in rows(servers, view="topics", subscribe="empty")] == ["empty"]
    assert any(row["is_internal"] for row in rows(servers, view="topics", subscribe="__consumer_offsets"))
    with pytest.raises(FairleadError, match="missing"):
        rows(servers, view="topics", subscribe="missing")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"view": "rows", "subscribe": "t"}, "view: must be records or batches or offsets or topics"),
        ({"view": "batches"}, "exactly one of assign, subscribe and subscribePattern"),
        (
            {"view": "batches", "subscribe": "t", "includeHeaders": "true"},
            "includeHeaders: has no meaning in the view batches",
        ),
        (
            {"view": "offsets", "startingOffsets": "earliest"},
            "startingOffsets: has no meaning in the view offsets",
        ),
        ({"view": "topics", "groups": "g"}, "groups: has no meaning in the view topics"),
        ({"view": "topics", "kafka.linger.mss": "1"}, "linger.mss"),
        ({"subscribe": "t", "groups": "g"}, "groups: is for the view offsets; set view=offsets"),
        ({"subscribe": "t", "measureRatio": "true"}, "measureRatio: is for the view batches"),
    ],
)
def test_options_that_a_view_does_not_heed_are_refused(options: dict[str, str], said: str) -> None:
    made = source("nowhere:1", **options)
    with pytest.raises(ConfigError) as caught:
        made.reader(made.schema())
    assert said in str(caught.value)


def test_every_option_that_a_view_heeds_is_one() -> None:
    assert {name for heeded in VIEW_OPTIONS.values() for name in heeded} <= {
        option.name for option in OPTIONS
    }
    assert set(VIEW_OPTIONS) == set(VIEWS)


def test_a_view_is_no_stream_and_its_schema_is_fixed() -> None:
    made = source("nowhere:1", view="topics")
    with pytest.raises(ConfigError, match="view: an option for a batch read, not for a streaming read"):
        made.streamReader(made.schema())
    with pytest.raises(ConfigError, match="the view topics has a fixed schema"):
        made.reader(StructType([StructField("topic", StringType())]))
