"""The report as a picture: bytes per partition beside those with other policies, batches, hot keys,
linger and batch size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from fairlead_kafka.cli.skew.document import ReplayRow, Report, Step
from fairlead_kafka.lab.plotting import Bars, Lines, figure

PARTITIONS_AS_BARS_MAX = 32
"""More are drawn as a line, from the largest to the smallest."""
COMPARED = ("keyed", "uniform")
"""Policies whose partitions are drawn beside the topic's own."""
KEY_LETTERS_MAX = 28


def draw(report: Report, path: Path) -> None:
    """Draw a report into the file `path`, .svg or .png. Unplottable without matplotlib, or for a
    topic that is empty."""
    rows = [] if report["replay"] is None else report["replay"]["rows"]
    batch_size, linger_ms = report["batch_size"], rows[0]["linger_ms"] if rows else None
    by_policy = [row for row in rows if (row["batch_size"], row["linger_ms"]) == (batch_size, linger_ms)]
    panels = [_partitions(report, by_policy), *_batches(report), *_keys(report), *_settings(rows, by_policy)]
    figure(
        path,
        panels,
        title=f"{report['topic']}: {report['looked_at']['records']:,} records over "
        f"{len(report['partitions'])} partitions",
        columns=2,
    )


def _partitions(report: Report, by_policy: Sequence[ReplayRow]) -> Bars | Lines:
    columns = {"the topic": [row["size_bytes"] for row in report["partitions"]]}
    records = report["looked_at"]["records"]
    if (
        report["replay"] is not None and report["replay"]["records"] == records
    ):  # of a part, bytes would not compare
        columns |= {
            f"replayed {row['policy']}": row["partition_bytes"]
            for row in by_policy
            if row["policy"] in COMPARED
        }
    if len(report["partitions"]) <= PARTITIONS_AS_BARS_MAX:
        return Bars(
            "Bytes per partition",
            [str(row["partition"]) for row in report["partitions"]],
            columns,
            "bytes of batches",
        )
    ranks = list(range(1, len(report["partitions"]) + 1))
    series = {name: (ranks, sorted(sizes, reverse=True)) for name, sizes in columns.items()}
    return Lines("Bytes per partition, largest first", series, "rank of the partition", "bytes of batches")


def _batches(report: Report) -> Iterator[Bars]:
    steps = report["batches"]["records_per_batch"]["histogram"]
    yield Bars(
        "Records per batch",
        [_range(step) for step in steps],
        {"batches": [step["batches"] for step in steps]},
        "batches",
        steps=True,
    )
    steps = report["batches"]["fill_percent"]["histogram"]
    names = ["100 and more" if step["from"] >= 100 else f"{step['from']}–{step['to']} %" for step in steps]
    yield Bars(
        f"Batch fill, of {report['batch_size']:,} bytes",
        names,
        {"batches": [step["batches"] for step in steps]},
        "batches",
        steps=True,
    )


def _range(step: Step) -> str:
    return str(step["from"]) if step["to"] == step["from"] + 1 else f"{step['from']:,}–{step['to'] - 1:,}"


def _keys(report: Report) -> Iterator[Bars]:
    hottest = report["keys"]["hottest"]
    if hottest:
        names = [
            key if len(key) <= KEY_LETTERS_MAX else key[: KEY_LETTERS_MAX - 1] + "…"
            for key in (row["key"] for row in hottest)
        ]
        shares = [100 * row["share"] for row in hottest]
        yield Bars(
            "Hot keys",
            names,
            {"share": shares},
            f"percent of records; an even partition has {100 / len(report['partitions']):.3g}",
            steps=True,
        )


def _settings(rows: Sequence[ReplayRow], by_policy: Sequence[ReplayRow]) -> Iterator[Bars]:
    if by_policy:
        policies = [row["policy"] for row in by_policy]
        spread = [row["max_over_mean"] for row in by_policy]
        yield Bars(
            "Largest partition by the mean, replayed",
            policies,
            {"max": spread},
            "1: all partitions have the same bytes",
        )
    if rows:
        named = [f"{row['policy']}, {row['batch_size']:,} B, {row['linger_ms']} ms" for row in rows]
        yield Bars(
            "Records per batch, replayed",
            named,
            {"records": [row["records_per_batch"] for row in rows]},
            "records",
            steps=True,
        )
