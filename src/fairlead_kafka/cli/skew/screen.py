"""The report on a terminal: tables with bars."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from fairlead_kafka.cli.skew.document import Histogram, Keys, Replay, Report, Step
from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import counted, rows_table

BAR_LETTERS = 20
PARTITIONS_SHOWN = 64
"""More are cut: the largest of them are shown, and the others are in the report as JSON."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def renderables(report: Report) -> Iterator[RenderableType]:
    """The parts of the report to print, from top to bottom."""
    yield _headline(report)
    title = (
        "Partitions"
        if len(report["partitions"]) <= PARTITIONS_SHOWN
        else f"The {PARTITIONS_SHOWN} largest partitions"
    )
    yield from _section(title, _partitions(report))
    yield from _section("Records per batch", _histogram(report["batches"]["records_per_batch"], _powers))
    full = f"Batch fill, percent of {report['batch_size']:,} bytes"
    yield from _section(full, _histogram(report["batches"]["fill_percent"], _percents))
    yield from _section("Hot keys", *_keys(report["keys"]))
    yield from _section(*_replay(report["replay"]))


def bar(value: float, largest: float, letters: int = BAR_LETTERS) -> str:
    """`value` as a line of blocks, `letters` long if it is `largest`, to an eighth of a letter."""
    eighths = round(8 * letters * value / largest) if largest else 0
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _section(title: str, *parts: RenderableType | None) -> Iterator[RenderableType]:
    shown = [part for part in parts if part is not None]
    if shown:
        yield Text(f"\n{title}", style="bold")
        yield from shown


def _headline(report: Report) -> Text:
    seen, spread = report["looked_at"], report["balance"]["size_bytes"]
    part = (
        "all of it"
        if seen["whole_topic"]
        else f"the newest {seen['offsets']:,} of {seen['offsets_in_topic']:,} offsets"
    )
    codecs = ", ".join(name for name in report["batches"]["codecs"]) or "none"
    return Text(
        f"{report['topic']}: {len(report['partitions'])} partitions, {counted(seen['records'])} in "
        f"{seen['batches']:,} batches, "
        f"{seen['size_bytes']:,} bytes ({codecs}; ratio {report['batches']['ratio']:g}); {part}.\n"
        f"The largest partition has {spread['max_over_mean']:.2f} times the mean, the smallest "
        f"{spread['min_over_mean']:.2f} times; "
        f"variation {spread['variation']:.1%}."
    )


def _partitions(report: Report) -> Table | None:
    rows = report["partitions"]
    if len(rows) > PARTITIONS_SHOWN:
        rows = sorted(rows, key=lambda row: -row["size_bytes"])[:PARTITIONS_SHOWN]
    largest = max((row["size_bytes"] for row in rows), default=0)
    columns = ("partition", "leader", "records", "batches", "records_per_batch", "size_bytes")
    shown: list[Mapping[str, object]] = [dict(row) for row in rows]
    return _barred(
        [{name: row[name] for name in columns} for row in shown], [row["size_bytes"] for row in rows], largest
    )


def _histogram(figures: Histogram, named: Callable[[Step], str]) -> Table | None:
    steps = figures["histogram"]
    rows = [
        {f"mean {figures['mean']:,g}, median {figures['median']:,}": named(step), "batches": step["batches"]}
        for step in steps
    ]
    return _barred(
        rows, [step["batches"] for step in steps], max((step["batches"] for step in steps), default=0)
    )


def _powers(step: Step) -> str:
    last = step["to"] - 1
    return f"{step['from']:,}" if last == step["from"] else f"{step['from']:,} to {last:,}"


def _percents(step: Step) -> str:
    return "100 and more" if step["from"] >= 100 else f"{step['from']} to {step['to']}"


def _keys(keys: Keys) -> tuple[RenderableType | None, ...]:
    if not keys["records"]:
        return (None,)
    known = (
        f"{keys['distinct']:,} keys"
        if keys["distinct"] is not None
        else f"more keys than are counted: up to {keys['error_records']:,} records more"
    )
    unkeyed = f"{known}; {keys['unkeyed_records']:,} of {counted(keys['records'])} without a key"
    rows = [
        {
            **row,
            "share": f"{row['share']:.2%}",
            "partition": "several" if row["partition"] is None else str(row["partition"]),
        }
        for row in keys["hottest"]
    ]
    return (
        unkeyed,
        _barred(
            rows,
            [row["records"] for row in keys["hottest"]],
            max((row["records"] for row in keys["hottest"]), default=0),
        ),
    )


def _replay(replay: Replay | None) -> tuple[str, Table | None]:
    if replay is None:
        return ("", None)
    speed = f"at {replay['records_per_s']:,g} records/s" if replay["records_per_s"] else "by their timestamps"
    title = (
        f"What other settings would have done: {counted(replay['records'])} again {speed}, "
        f"{replay['codec']} compression, in virtual time"
    )
    shown = (
        "policy",
        "batch_size",
        "linger_ms",
        "batches",
        "records_per_batch",
        "fill",
        "size_bytes",
        "max_over_mean",
        "variation",
        "p50_ms",
        "p99_ms",
    )
    rows: list[Mapping[str, object]] = [dict(row) for row in replay["rows"]]
    return (title, rows_table([{name: row[name] for name in shown} for row in rows]))


def _barred(rows: Sequence[Mapping[str, object]], values: Sequence[float], largest: float) -> Table | None:
    if not rows:
        return None
    table = rows_table([dict(row) for row in rows])
    filled = FittingTable()
    for column in table.columns:
        filled.add_column(column.header, justify=column.justify)
    filled.add_column("")
    for cells, value in zip(
        zip(*(column.cells for column in table.columns), strict=True), values, strict=True
    ):
        filled.add_row(*cells, bar(value, largest))
    return filled
