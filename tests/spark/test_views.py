"""The views through Spark: planned into tasks, joined and counted like any table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

import fairlead_kafka
from fairlead_kafka.base.ids import TopicPartition


def test_batches_add_up_to_the_records_of_a_topic(
    read: Callable[..., Any], new_topic: Callable[..., str]
) -> None:
    # A thousand rows for each partition, for a share of the tasks goes with a partition's part of
    # all.
    places = pa.array([row % 3 for row in range(3_000)], pa.int32())
    topic = new_topic(
        table=pa.table({"value": pa.array([b"x" * 100] * 3_000, pa.binary()), "partition": places})
    )
    batches = read(view="batches", subscribe=topic, minPartitions=8)
    assert batches.rdd.getNumPartitions() >= 8
    wrong = "count_if(is_control or ratio <> 1.0 or max_timestamp < base_timestamp)"
    records, size_bytes, wrongs = batches.selectExpr("sum(records)", "sum(size_bytes)", wrong).first()
    assert (records, wrongs) == (3_000, 0)
    assert size_bytes > 300_000


def test_the_lag_of_a_group_is_a_column(
    read: Callable[..., Any], new_topic: Callable[..., str], servers: str
) -> None:
    topic = new_topic(1, pa.table({"value": pa.array([b"x"] * 10, pa.binary())}))
    with fairlead_kafka.Consumer(
        {"bootstrap.servers": servers, "group.id": f"of-{topic}", "enable.auto.commit": "false"}
    ) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        consumer.commit({TopicPartition(topic, 0): 4})
    found = (
        read(view="offsets", groups=f"of-{topic}")
        .select("topic", "partition", "committed", "end", "lag")
        .collect()
    )
    assert [tuple(row) for row in found] == [(topic, 0, 4, 10, 6)]


def test_topics_are_rows_by_partition(read: Callable[..., Any], new_topic: Callable[..., str]) -> None:
    topic = new_topic(2, pa.table({"value": pa.array([b"x"] * 10, pa.binary())}))
    found = read(view="topics", subscribe=topic).selectExpr(
        "partition", "size(replicas) as replicas", "configs['cleanup.policy'] as policy"
    )
    assert sorted(tuple(row) for row in found.collect()) == [(0, 1, "delete"), (1, 1, "delete")]
