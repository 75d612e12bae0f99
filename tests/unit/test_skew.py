"""The parts of `fairlead skew`: what is looked at, the sketch of hot keys, histograms, and the
replay through the real producer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.skew.hot_keys import KEY_MAX_BYTES, HotKeys, shown
from fairlead_kafka.cli.skew.picture import draw
from fairlead_kafka.cli.skew.replay import (
    POLICIES,
    SUBMISSION_MAX_BYTES,
    Case,
    Cluster,
    Records,
    replay,
    submissions,
)
from fairlead_kafka.cli.skew.report import Questions
from fairlead_kafka.cli.skew.screen import bar
from fairlead_kafka.cli.skew.spread import Spread
from fairlead_kafka.cli.skew.tally import GAP_MAX_MS, in_order, submission_order
from fairlead_kafka.cli.skew.window import newest
from fairlead_kafka.partitioning import keyed_partitions
from fairlead_kafka.records import columns_from_arrow, columns_from_lists


def of(number: int) -> TopicPartition:
    return TopicPartition("t", number)


def test_a_window_takes_the_newest_share_of_each_partition() -> None:
    window = newest({of(0): 10, of(1): 0, of(2): 5}, {of(0): 110, of(1): 900, of(2): 5}, 100)
    assert window.ranges == {of(0): (100, 110), of(1): (810, 900), of(2): (5, 5)}
    assert (window.offsets, window.offsets_in_topic, window.whole) == (100, 1000, False)
    assert newest({of(0): 10}, {of(0): 110}, 0).whole
    assert newest({of(0): 10}, {of(0): 110}, 100).ranges == {of(0): (10, 110)}
    assert newest({of(0): 10, of(1): 0}, {of(0): 11, of(1): 10_000}, 10).ranges[of(0)] == (10, 11), (
        "a small partition is not left out"
    )


def test_spread_tells_how_far_from_even_parts_are() -> None:
    assert Spread.of([5, 5, 5]) == Spread.of([]) == Spread.of([0, 0]) == (1.0, 1.0, 0.0)
    assert Spread.of([1, 3]) == (1.5, 0.5, 0.5)


# Hot keys


def add(keys: HotKeys, items: list[bytes | None], partition: int = 0) -> None:
    sizes = [0 if item is None else len(item) for item in items]
    keys.add(
        partition,
        pa.chunked_array([pa.array(items, pa.binary())]),
        pa.chunked_array([pa.array(sizes, pa.int64())]),
    )


def test_counts_are_exact_while_there_is_room() -> None:
    keys = HotKeys()
    add(keys, [b"a", None, b"b", b"a"])
    add(keys, [b"a", b"cc"], partition=1)
    add(keys, [None])
    assert [(one.key, one.records, one.size_bytes, one.partition) for one in keys.hottest(9)] == [
        (b"a", 3, 3, None),
        (b"b", 1, 1, 0),
        (b"cc", 1, 2, 1),
    ]
    assert (keys.records, keys.unkeyed, keys.distinct, keys.error) == (7, 2, 3, 0)


@pytest.mark.parametrize("seed", range(5))
def test_beyond_its_room_no_count_is_wrong_by_more_than_it_says(seed: int) -> None:
    rng, capacity = np.random.default_rng(seed), 20
    keys, true = HotKeys(capacity), Counter[bytes]()
    for _ in range(30):
        items: list[bytes | None] = [b"%d" % number for number in rng.zipf(1.3, 200) % 1_000]
        true.update(item for item in items if item is not None)
        add(keys, items)
    held = {one.key: one.records for one in keys.hottest(10_000)}
    assert 0 < keys.error <= keys.records / capacity
    assert len(held) <= capacity
    assert all(held[key] <= true[key] <= held[key] + keys.error for key in held)
    assert all(count <= keys.error for key, count in true.items() if key not in held), (
        "none that is hot is missed"
    )
    assert keys.hottest(1)[0].key == true.most_common(1)[0][0]


def test_a_sketch_of_long_keys_is_bounded_too() -> None:
    keys = HotKeys()
    add(keys, [b"x" * 100_000, b"x" * 100_001])
    assert [(len(one.key), one.records) for one in keys.hottest(5)] == [(KEY_MAX_BYTES, 2)]


def test_keys_are_shown_as_text_where_they_are_text() -> None:
    assert [shown(key) for key in (b"host-1", "ü".encode(), b"\xff\x00", b"a\nb")] == [
        "host-1",
        "ü",
        "0xff00",
        "0x610a62",
    ]


# The order and the times of a replay


def test_records_of_one_millisecond_are_dealt_out_evenly_and_partitions_stay_in_order() -> None:
    partitions = np.array([0] * 4 + [1] * 2 + [2], np.int32)
    times = np.array([5, 5, 5, 5, 5, 5, 4], np.int64)
    order = submission_order(partitions, times).tolist()
    assert order == [6, 0, 4, 1, 2, 5, 3]


def test_arrivals_follow_the_timestamps_and_nights_are_short() -> None:
    def table(partition: int, times_ms: list[int]) -> pa.Table:
        count = len(times_ms)
        return pa.table(
            {
                "partition": pa.array([partition] * count, pa.int32()),
                "offset": pa.array(range(count), pa.int64()),
                "timestamp": pa.array(
                    [1_000 * time_ms for time_ms in times_ms], pa.timestamp("us", tz="UTC")
                ),
                "key": pa.array([None] * count, pa.binary()),
                "value": pa.array([b"%d" % time_ms for time_ms in times_ms], pa.binary()),
                "headers": pa.nulls(
                    count, pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
                ),
            }
        )

    tables = [table(0, [1_000, 1_007, 90_000_000]), table(1, [1_003])]
    records = in_order(tables, None)
    assert records is not None
    assert records.arrivals_ms.tolist() == [0, 3, 7, 7 + GAP_MAX_MS]
    assert records.columns.values is not None
    assert records.columns.values.to_list() == [b"1000", b"1003", b"1007", b"90000000"]
    even = in_order(tables, 500.0)
    assert even is not None
    assert even.arrivals_ms.tolist() == [0, 2, 4, 6]
    assert in_order([], None) is None


def test_a_turn_ends_with_its_millisecond_and_fits_into_memory() -> None:
    sizes = np.array([10, SUBMISSION_MAX_BYTES - 10, 1, 5, 2 * SUBMISSION_MAX_BYTES, 7], np.int64)
    assert list(submissions(np.array([0, 0, 0, 1, 1, 1]), sizes)) == [(0, 2), (2, 3), (3, 4), (4, 5), (5, 6)]


# The replay

CLUSTER = Cluster((0, 1, 2, 0, 1, 2), "none")


def some(count: int, rate: float, codec_friendly: bool = False) -> Records:
    """Records with one of forty keys, some far hotter than others, at `rate` a second."""
    rng = np.random.default_rng(7)
    keys: list[bytes | None] = [b"key-%d" % (number % 40) for number in rng.zipf(1.2, count)]
    values: list[bytes | None] = [(b"same " * 40 if codec_friendly else rng.bytes(200)) for _ in range(count)]
    return Records(
        columns_from_lists(keys, values, None, [1_000] * count),
        (np.arange(count) * 1000 / rate).astype(np.int64),
    )


def test_keyed_records_go_where_their_keys_hash_to_and_others_are_spread() -> None:
    records = some(1_500, 1e9)
    rows = {policy: replay(records, Case(policy, 4_096, 5), CLUSTER) for policy in POLICIES}
    assert all(row["failed"] == 0 for row in rows.values())
    assert records.columns.keys is not None
    hashed = np.bincount(keyed_partitions(records.columns.keys, 6), minlength=6)
    held = np.array(rows["keyed"]["partition_bytes"])
    assert np.allclose(held / held.sum(), hashed / hashed.sum(), atol=0.02)
    assert rows["keyed"]["max_over_mean"] > 1.5 > 1.15 > rows["uniform"]["max_over_mean"]
    assert rows["round_robin"]["max_over_mean"] < 1.01
    assert rows["late"]["max_over_mean"] < 1.15
    total = sum(rows["uniform"]["partition_bytes"])
    assert rows["uniform"]["size_bytes"] == total > 1_500 * 200


def test_linger_makes_batches_larger_and_records_wait_longer() -> None:
    records = some(300, 1_000)
    now, later = (replay(records, Case("uniform", 16_384, linger_ms), CLUSTER) for linger_ms in (0, 40))
    assert later["records_per_batch"] > 3 * now["records_per_batch"]
    assert later["p50_ms"] > 10 > now["p50_ms"]
    assert later["size_bytes"] < now["size_bytes"]


def test_batch_size_bounds_batches_and_the_topics_codec_counts() -> None:
    records = some(600, 1e9, codec_friendly=True)
    small, large = (replay(records, Case("uniform", size, 5), CLUSTER) for size in (1_024, 16_384))
    assert small["batches"] > 8 * large["batches"]
    assert small["fill"] <= 1.0
    packed = replay(records, Case("uniform", 16_384, 5), Cluster(CLUSTER.leaders, "zstd"))
    assert packed["size_bytes"] < large["size_bytes"] / 3


def test_a_seed_tells_the_same_story() -> None:
    records = some(400, 1e9)
    case = Case("adaptive", 1_024, 5)
    assert replay(records, case, CLUSTER, 3) == replay(records, case, CLUSTER, 3)
    assert (
        replay(records, case, CLUSTER, 3)["partition_bytes"]
        != replay(records, case, CLUSTER, 4)["partition_bytes"]
    )


def test_null_values_and_headers_are_replayed_as_they_are_and_records_may_be_large() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    table = pa.table(
        {
            "key": pa.array([b"k", None, b"l"], pa.binary()),
            "value": pa.array([None, b"v", b"x" * 3_000_000], pa.binary()),
            "headers": pa.array(
                [[{"key": "h", "value": b"1" * 500}], None, [{"key": "i", "value": None}]], kind
            ),
        }
    )
    columns = columns_from_arrow(table)[0][0]
    row = replay(Records(columns, np.array([0, 5, 9])), Case("keyed", 16_384, 0), CLUSTER)
    assert (row["failed"], row["batches"]) == (0, 3)
    assert 3_000_500 < row["size_bytes"] < 3_001_000


def test_cases_are_every_policy_then_sizes_and_lingers_one_at_a_time() -> None:
    questions = Questions(0, 0, ("keyed", "uniform"), (100, 200), (5, 0), None, 10, 1)
    assert questions.cases(True) == [
        Case("keyed", 100, 5),
        Case("uniform", 100, 5),
        Case("keyed", 200, 5),
        Case("keyed", 100, 0),
    ]
    assert {case.policy for case in questions.cases(False)} == {"uniform", "late"}, (
        "without keys nothing is keyed"
    )


# Shown


def test_bars_are_drawn_to_an_eighth() -> None:
    assert [bar(value, 16, 2) for value in (16, 8, 1, 0)] == ["██", "█", "▏", ""]
    assert bar(0, 0) == ""


def report(partitions: int = 3, replayed: bool = True) -> dict[str, Any]:
    row = {
        "policy": "uniform",
        "batch_size": 100,
        "linger_ms": 5,
        "max_over_mean": 1.1,
        "records_per_batch": 2.0,
    }
    steps = [{"from": 0, "to": 10, "batches": 3}, {"from": 100, "to": 201, "batches": 1}]
    return {
        "topic": "t",
        "batch_size": 100,
        "looked_at": {"records": 60},
        "partitions": [{"partition": number, "size_bytes": number * 100} for number in range(partitions)],
        "batches": {
            "records_per_batch": {"histogram": [{"from": 1, "to": 2, "batches": 4}]},
            "fill_percent": {"histogram": steps},
        },
        "keys": {"hottest": [{"key": "k" * 50, "share": 0.5}]},
        "replay": {"records": 60, "rows": [{**row, "partition_bytes": [100] * partitions}]}
        if replayed
        else None,
    }


def test_the_picture_shows_the_topic_beside_what_uniform_would_have_made_of_it(tmp_path: Path) -> None:
    for name in ("one.svg", "two.svg"):
        draw(report(), tmp_path / name)
    text = (tmp_path / "one.svg").read_text()
    assert all(
        said in text
        for said in (
            "t: 60 records over 3 partitions",
            "the topic",
            "replayed uniform",
            "100 and more",
            "k" * 27 + "…",
        )
    )
    assert text == (tmp_path / "two.svg").read_text()
    draw(report(200, replayed=False), tmp_path / "many.svg")
    assert "rank of the partition" in (tmp_path / "many.svg").read_text()
