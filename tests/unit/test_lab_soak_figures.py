"""The arithmetic of a soak: slopes with their noise, latencies in buckets, tallies, and the
verdict."""

from __future__ import annotations

import random
from math import inf, isnan, sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from fairlead_kafka.lab import soak
from fairlead_kafka.lab.peers.soak import PARTITIONS, numbers_of, values_of
from fairlead_kafka.lab.peers.soak_auditor import Transactions
from fairlead_kafka.lab.soak_figures import (
    Latencies,
    Tally,
    differences,
    slope,
    slope_rows,
    student_t_p_value,
    throughput_ratio,
)


def test_a_line_has_its_slope_and_no_error() -> None:
    line = slope([1, 2, 3, 4], [10, 12, 14, 16])
    assert line.slope == pytest.approx(2)
    assert line.stderr == pytest.approx(0)
    assert line.p_value == pytest.approx(0)


def test_what_stays_the_same_is_steady() -> None:
    line = slope([1, 2, 3], [7, 7, 7])
    assert (line.slope, line.stderr, line.p_value) == (0, 0, 1)


def test_the_error_is_that_of_least_squares_where_neighbours_are_unlike() -> None:
    xs, ys = [0.0, 1.0, 2.0, 3.0, 4.0], [1.0, -1.0, 1.0, -1.0, 1.0]
    line = slope(xs, ys)
    squares = sum((y - 0.2) ** 2 for y in ys)
    assert line.slope == pytest.approx(0)
    assert line.stderr == pytest.approx(sqrt(squares / 3 / 10))
    assert line.degrees_of_freedom == 3
    assert line.p_value == pytest.approx(1)


def test_steps_that_stay_are_worth_fewer_looks() -> None:
    xs = [float(x) for x in range(40)]
    stepped = [0.0] * 10 + [1.0] * 10 + [0.0] * 10 + [1.0] * 10
    shuffled = list(stepped)
    random.Random(1).shuffle(shuffled)
    assert slope(xs, stepped).stderr > 2 * slope(xs, shuffled).stderr


def test_what_rises_is_told_from_noise() -> None:
    rng = random.Random(7)
    xs = [float(x) for x in range(40)]
    assert slope(xs, [0.2 * x + rng.gauss(0, 1) for x in xs]).p_value < 0.0001
    assert sum(slope(xs, [rng.gauss(0, 1) for _ in xs]).p_value < 0.05 for _ in range(100)) <= 10


@pytest.mark.parametrize(
    ("t", "degrees_of_freedom", "p_value"),
    [(0, 7, 1), (12.706, 1, 0.05), (63.657, 1, 0.01), (2.228, 10, 0.05), (3.646, 30, 0.001), (inf, 1, 0)],
)
def test_p_values_are_those_of_tables_of_t(t: float, degrees_of_freedom: float, p_value: float) -> None:
    assert student_t_p_value(t, degrees_of_freedom) == pytest.approx(p_value, abs=3e-5)


@pytest.mark.parametrize("points", [([], []), ([1.0, 2.0], [1.0, 2.0]), ([1.0, 1.0, 1.0], [1.0, 2.0, 3.0])])
def test_too_few_points_have_no_slope(points: tuple[list[float], list[float]]) -> None:
    line = slope(*points)
    assert isnan(line.slope)
    assert isnan(line.stderr)
    assert isnan(line.p_value)


def _rows(**columns: list[Any]) -> list[dict[str, Any]]:
    count = len(next(iter(columns.values())))
    return [
        {"minute": float(row + 1), "process": "p", **{name: values[row] for name, values in columns.items()}}
        for row in range(count)
    ]


def test_slopes_leave_the_warm_up_out_and_are_per_hour() -> None:
    (row,) = slope_rows(_rows(rss_mb=[500.0, 400.0, 300.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0]))
    assert (row["process"], row["metric"], row["per_hour"], row["stderr"]) == ("p", "rss_mb", 60.0, 0.0)
    assert (row["first"], row["last"], row["mean"], row["steady"]) == (10.0, 15.0, 12.5, False)


@pytest.mark.parametrize(("rise", "steady"), [(0.9, True), (-0.9, True), (1.1, False), (-1.1, False)])
def test_a_rise_of_a_hundredth_over_all_looks_is_none(rise: float, steady: bool) -> None:
    looks = [100.0 + rise * look / 60 for look in range(61)]
    (row,) = slope_rows(_rows(rss_mb=[0.0] * 30 + looks))
    assert row["stderr"] == pytest.approx(0, abs=0.001)
    assert row["steady"] is steady


def test_of_many_level_processes_none_is_called_unsteady_and_one_that_rises_is() -> None:
    rng, reports, beyond_two_errors = random.Random(3), [], 0
    for _ in range(20):
        rows = [
            {"minute": float(minute), "process": str(number), "heap_mb": rng.gauss(20, 1)}
            for number in range(66)
            for minute in range(1, 61)
        ]
        report = slope_rows(rows)
        reports.append(all(row["steady"] for row in report))
        beyond_two_errors += sum(abs(row["per_hour"]) > 2 * row["stderr"] for row in report)
    assert sum(reports) >= 18
    assert beyond_two_errors > 20  # in each report one and more, if that were the rule
    for row in rows[:60]:
        row["heap_mb"] += row["minute"] / 10
    assert [row["process"] for row in slope_rows(rows) if not row["steady"]] == ["0"]


def test_a_row_without_a_figure_is_no_point() -> None:
    (row,) = slope_rows(_rows(threads=[9, 9, 4, 4, None, 4, 4, None, 4]))
    assert (row["metric"], row["per_hour"], row["steady"]) == ("threads", 0.0, True)


def test_the_last_sixth_is_compared_with_the_first() -> None:
    rates = [1.0] * 9 + [100.0, 102.0, 0.0] + [7.0] * 12 + [0.0, 90.0, 100.0]
    assert len(rates) == 27
    rows = _rows(records_per_s=rates)
    assert throughput_ratio(rows, "p") == pytest.approx(190 / 202, abs=1e-4)
    assert throughput_ratio(rows, "another") is None
    assert throughput_ratio(_rows(records_per_s=[1.0]), "p") is None


def test_percentiles_are_of_all_and_at_most_a_twentieth_too_high() -> None:
    latencies = Latencies()
    assert latencies.percentile(0.5) is None
    for each in range(1, 101):
        latencies.add(float(each))
    latencies.add(1e9, 0)
    for share, exact in ((0.5, 50), (0.99, 99), (1.0, 100)):
        found = latencies.percentile(share)
        assert found is not None
        assert exact <= found <= exact * 1.06
    latencies.add(0.0)
    latencies.add(1e12)  # beyond the last bucket
    assert latencies.percentile(0.001) == 0.01


def test_what_is_lost_and_what_is_there_twice_is_told_by_partition() -> None:
    acknowledged, read = Tally(), Tally()
    acknowledged.add("a-0", np.arange(10))
    acknowledged.add("a-1", np.arange(10, 20))
    acknowledged.add("a-2", np.array([30]))
    read.add("a-0", np.arange(4))
    read.add("a-0", np.arange(4, 10))
    assert differences(acknowledged, acknowledged, 0) == {"lost": 0, "duplicated": 0, "differing": 0}
    read.add("a-1", np.arange(10, 17))
    read.add("a-2", np.array([30, 30]))
    assert differences(acknowledged, read, 0) == {"lost": 3, "duplicated": 1, "differing": 0}
    assert differences(acknowledged, read, 5)["duplicated"] == 0
    read.add("a-1", np.array([99, 98, 97]))
    assert differences(acknowledged, read, 0) == {"lost": 0, "duplicated": 1, "differing": 1}
    assert Tally.from_json(read.to_json()) == read


def test_numbers_go_through_values() -> None:
    numbers = np.array([0, 1, 2**40, 255])
    values = values_of(numbers, 20)
    assert {len(each.as_py()) for each in values} == {20}
    assert numbers_of(values).tolist() == numbers.tolist()
    assert numbers_of(values.slice(2)).tolist() == [2**40, 255]
    assert numbers_of(pa.array([], pa.binary())).tolist() == []


def test_transactions_are_whole_or_torn() -> None:
    seen = Transactions()
    seen.take(np.arange(10, 20))
    seen.take(np.arange(20, 25))
    assert (seen.whole, seen.torn, seen.aborted_seen) == (1, 1, 0)
    seen.take(np.arange(25, 30))
    assert (seen.whole, seen.torn) == (2, 0)
    seen.take(np.array([83, 15]))  # of one that is aborted, and one there for the second time
    assert (seen.whole, seen.torn, seen.aborted_seen) == (2, 1, 1)


def _final(**more: Any) -> dict[str, Any]:
    return {"records": 0, "tally": {}, "counts": {}, "first_error": "", **more}


def _finals() -> dict[str, dict[str, Any]]:
    """What the clients say when all is well."""
    sent, in_transactions = Tally(), Tally()
    for partition in range(PARTITIONS):
        sent.add(f"soak-unkeyed-{partition}", np.arange(partition, 60, PARTITIONS))
    in_transactions.add("soak-transactional-0", np.arange(10, 20))
    audit = {
        "transactions_whole": 1,
        "transactions_torn": 0,
        "aborted_seen": 0,
        "disorder": 0,
        "ends_differ": 0,
        "read_again": 70,
        "newest": {"3": 4, "5": -1},
    }
    return {
        "unkeyed": _final(records=60, tally=sent.to_json()),
        "keyed": _final(),
        "compacted": _final(records=9, tally={"soak-compacted-0": [9, 1]}, newest={"3": 4, "6": -1}),
        "transactional": _final(
            records=10,
            tally=in_transactions.to_json(),
            counts={"committed": 1, "aborted": 2, "offsets_checked": 1},
        ),
        "groups": _final(counts={"groups": 3, "offsets_checked": 9, "offsets_wrong": 0}),
        "topics": _final(counts={"topics": 4, "topics_wrong": 0}),
        "auditor": _final(
            records=70,
            tally={**sent.to_json(), **in_transactions.to_json(), "soak-compacted-0": [7, 1]},
            **audit,
        ),
    }


def test_the_verdict_is_good_where_all_is_there() -> None:
    row = soak.comparison(_finals(), 3, 0.99)
    assert not any(row[column] for column in soak.WRONG)
    assert (row["kills"], row["acknowledged"], row["transactions"], row["aborted"]) == (3, 79, 1, 2)
    assert (row["offsets_checked"], row["topics"], row["throughput_ratio"]) == (10, 4, 0.99)
    assert soak.sound([row])
    assert not soak.sound([])


@pytest.mark.parametrize(
    ("role", "change", "column", "wrong"),
    [
        ("auditor", {"aborted_seen": 1}, "aborted_seen", 1),
        ("auditor", {"disorder": 1}, "disorder", 1),
        ("auditor", {"ends_differ": 1}, "disorder", 1),
        ("auditor", {"transactions_torn": 1}, "torn", 1),
        ("auditor", {"transactions_whole": 0}, "torn", 1),
        ("auditor", {"newest": {"3": 3}}, "compacted_wrong", 1),
        ("auditor", {"newest": {}}, "compacted_wrong", 1),
        ("auditor", {"newest": {"3": 4, "6": 2}}, "compacted_wrong", 1),
        ("auditor", {"tally": {}}, "lost", 70),
        ("unkeyed", {"tally": {}}, "duplicated", 60),
        ("topics", {"counts": {"topics": 4, "topics_wrong": 1}}, "topics_wrong", 1),
        ("groups", {"counts": {"offsets_checked": 9, "offsets_wrong": 2}}, "offsets_wrong", 2),
    ],
)
def test_the_verdict_names_what_is_wrong(role: str, change: dict[str, Any], column: str, wrong: int) -> None:
    finals = _finals()
    finals[role] |= change
    row = soak.comparison(finals, 0, None)
    assert {each: row[each] for each in soak.WRONG if row[each]} == {column: wrong}
    assert not soak.sound([row])
