"""The demo's report, for a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from fairlead_kafka.cli.demo.run import DemoResult
from fairlead_kafka.cli.tables import FittingTable

BAR_WIDTH = 14
"""Two bars and their figures fit a terminal of 80 columns."""


def print_report(console: Console, result: DemoResult) -> None:
    """Print the demo's report: top hosts, statuses, bytes per partition, records at each hop,
    seconds, and the line everyone looks for: `lost: 0`."""
    _print_hosts(console, result)
    _print_statuses(console, result)
    _print_partitions(console, result)
    _print_hops(console, result)
    seconds = "  ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in result.seconds.items())
    console.print(f"[bold]seconds[/]  {seconds}")
    if result.quarantined:
        console.print(
            f"{result.quarantined:,} lines did not parse as access-log lines; they are in access.quarantine"
        )
    console.print(f"[bold]lost: {result.lost}[/]")


def _table(title: str, *columns: str) -> FittingTable:
    table = FittingTable(title=title)
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    return table


def _print_hosts(console: Console, result: DemoResult) -> None:
    table = _table("Top hosts, their hours in access.by-host added up", "host", "requests", "bytes", "errors")
    for host in result.top_hosts:
        table.add_row(
            Text(host["host"]),
            f"{host['requests']:,}",
            f"{host['bytes']:,}",
            f"{host['errors'] / host['requests']:.1%}",
        )
    console.print(table, "")


def _print_statuses(console: Console, result: DemoResult) -> None:
    table = _table("Requests by status", "status", "requests", "bytes")
    for status, requests, size_bytes in result.by_status:
        table.add_row(str(status), f"{requests:,}", f"{size_bytes:,}")
    console.print(table, "")


def _print_partitions(console: Console, result: DemoResult) -> None:
    table = _table(
        "Bytes in each partition: keyed by host, and without keys", "partition", *result.partitions
    )
    for column in table.columns[1:]:
        column.justify = "left"
    largest = max((size for sizes in result.partitions.values() for size in sizes), default=1) or 1
    for number, sizes in enumerate(zip(*result.partitions.values(), strict=True)):
        table.add_row(
            str(number),
            *(f"{size:>12,} {'█' * round(BAR_WIDTH * size / largest):<{BAR_WIDTH}}" for size in sizes),
        )
    spread = [
        f"largest / mean {max(sizes) * len(sizes) / max(1, sum(sizes)):>5.2f}"
        for sizes in result.partitions.values()
    ]
    table.add_row("", *spread, style="dim")
    console.print(table, "")


def _print_hops(console: Console, result: DemoResult) -> None:
    table = _table("Every hop, counted", "hop", "in", "out", "")
    for name, entered, left in result.hops:
        table.add_row(
            name,
            f"{entered:,}",
            f"{left:,}",
            "[green]✓[/]" if entered == left else f"[red]{left - entered:+,}[/]",
        )
    console.print(table, "")
