"""Filters that Spark hands over become ranges; what is not met exactly goes back to Spark."""

from __future__ import annotations

import pickle
import sys
import types
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql.datasource import (
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    IsNotNull,
    IsNull,
    LessThan,
    LessThanOrEqual,
    Not,
    StringStartsWith,
)

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.filters import Wanted
from fairlead_kafka.spark.offsets import OffsetRange
from fairlead_kafka.spark.planners import filters_pushed_down

RANGES = [OffsetRange(TopicPartition(topic, number), 10, 20) for topic in ("a", "b") for number in (0, 1)]
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
NOON_MS = round(NOON.timestamp() * 1000)


def left(
    *filters: Filter, late_enough: dict[TopicPartition, int | None] | None = None
) -> list[tuple[str, int, int, int]]:
    wanted = Wanted()
    wanted.take(filters)
    wanted = pickle.loads(pickle.dumps(wanted))
    return [
        (one.partition.topic, one.partition.partition, one.start, one.end)
        for one in wanted.narrow(RANGES, late_enough or {})
    ]


def test_partitions_and_topics_are_chosen() -> None:
    assert left(EqualTo(("partition",), 1)) == [("a", 1, 10, 20), ("b", 1, 10, 20)]
    assert left(EqualNullSafe(("topic",), "b"), GreaterThan(("partition",), 0)) == [("b", 1, 10, 20)]
    assert left(In(("partition",), (1, 7)), LessThanOrEqual(("topic",), "a")) == [("a", 1, 10, 20)]
    assert left(GreaterThanOrEqual(("partition",), 1), LessThan(("topic",), "b")) == [("a", 1, 10, 20)]
    assert left(EqualTo(("topic",), "c")) == []


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        ([EqualTo(("offset",), 12)], (12, 13)),
        ([GreaterThan(("offset",), 12)], (13, 20)),
        ([GreaterThanOrEqual(("offset",), 12), LessThan(("offset",), 15)], (12, 15)),
        ([LessThanOrEqual(("offset",), 12)], (10, 13)),
        ([In(("offset",), (11, 14, None))], (11, 15)),
        ([In(("offset",), (None,))], None),
        ([GreaterThan(("offset",), 19)], None),
        ([LessThan(("offset",), 12), GreaterThan(("offset",), 15)], None),
    ],
)
def test_offsets_cut_the_ranges(filters: list[Filter], expected: tuple[int, int] | None) -> None:
    assert left(EqualTo(("topic",), "a"), EqualTo(("partition",), 0), *filters) == (
        [("a", 0, *expected)] if expected else []
    )


def test_a_time_says_where_to_begin_and_no_more() -> None:
    a0, a1 = TopicPartition("a", 0), TopicPartition("a", 1)
    found: dict[TopicPartition, int | None] = {a0: 15, a1: None}
    assert left(EqualTo(("topic",), "a"), GreaterThanOrEqual(("timestamp",), NOON), late_enough=found) == [
        ("a", 0, 15, 20)
    ]
    assert left(EqualTo(("topic",), "a"), LessThan(("timestamp",), NOON)) == [
        ("a", 0, 10, 20),
        ("a", 1, 10, 20),
    ]


@pytest.mark.parametrize(
    ("one", "low_ms"),
    [
        (GreaterThanOrEqual(("timestamp",), NOON), NOON_MS),
        (GreaterThan(("timestamp",), NOON), NOON_MS + 1),
        (EqualTo(("timestamp",), NOON), NOON_MS),
        (GreaterThanOrEqual(("timestamp",), NOON + timedelta(microseconds=1)), NOON_MS + 1),
        (GreaterThan(("timestamp",), NOON + timedelta(microseconds=999)), NOON_MS + 1),
        (GreaterThanOrEqual(("timestamp",), NOON.astimezone(timezone(timedelta(hours=5)))), NOON_MS),
        (GreaterThanOrEqual(("timestamp",), NOON.replace(tzinfo=None)), NOON_MS),
        (GreaterThanOrEqual(("timestamp",), datetime(1960, 1, 1, tzinfo=UTC)), 0),
    ],
)
def test_times_are_rounded_to_the_next_record_that_may_match(one: Filter, low_ms: int) -> None:
    wanted = Wanted()
    assert wanted.take([one]) == [one]
    partition = TopicPartition("a", 0)
    assert wanted.times([partition]) == {partition: low_ms}


def test_only_what_is_met_exactly_is_kept_from_spark() -> None:
    met = [
        IsNotNull(("offset",)),
        EqualTo(("offset",), 3),
        LessThan(("partition",), 3),
        In(("topic",), ("a",)),
    ]
    back: list[Filter] = [
        IsNotNull(("key",)),
        IsNull(("key",)),
        EqualTo(("key",), b"k"),
        EqualTo(("value", "field"), 3),
        EqualTo(("offset", "field"), 3),
        In(("offset",), (3, 5)),
        Not(EqualTo(("partition",), 3)),
        StringStartsWith(("topic",), "a"),
        GreaterThan(("timestamp",), NOON),
        EqualTo(("partition",), None),
    ]
    assert Wanted().take([*met, *back]) == back


def test_filters_are_taken_only_where_spark_hands_them_over(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not filters_pushed_down()
    worker: Any = types.ModuleType("pyspark.sql.worker.data_source_pushdown_filters")
    monkeypatch.setitem(sys.modules, worker.__name__, worker)
    assert filters_pushed_down()
