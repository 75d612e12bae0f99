"""Output of `fairlead pipeline`: findings of a check, and the counters of a run's flows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import output

if TYPE_CHECKING:
    from fairlead_kafka.spark.pipelines.counters import FlowCounters
    from fairlead_kafka.spark.pipelines.findings import Finding
    from fairlead_kafka.spark.pipelines.running import RunResult

_COLORS = {"error": "red", "warning": "yellow"}


def print_findings(findings: list[Finding], to: Console = output) -> None:
    """Print each finding as two lines: where and what, as compilers write it, then what to do."""
    for one in findings:
        to.print(
            Text.assemble(
                f"{one.place}: ", (one.severity, _COLORS[one.severity]), f" {one.rule}: {one.what}"
            ),
            soft_wrap=True,
        )
        to.print(f"    {one.fix}", markup=False, soft_wrap=True)


def print_flows(to: Console, result: RunResult) -> None:
    """Print the final table: a row for each flow."""
    table = FittingTable()
    for name in ("flow", "into", "state"):
        table.add_column(name)
    for name in ("rows in", "rows out", "MB in", "quarantined", "late", "lag", "lost", "seconds"):
        table.add_column(name, justify="right")
    for flow in result.flows:
        table.add_row(
            Text(flow.flow),
            Text(flow.target),
            flow.state,
            f"{flow.rows_in:,}",
            _number(flow.rows_out),
            "" if flow.bytes_in is None else f"{flow.bytes_in / 1e6:,.2f}",
            f"{flow.quarantined:,}",
            f"{flow.late:,}",
            _number(flow.lag),
            f"[red]{flow.lost:,}[/]" if flow.lost else "0",
            f"{flow.seconds:.2f}",
        )
    to.print(table)
    for flow in result.flows:
        for name, count in flow.failed_expectations.items():
            if count:
                to.print(
                    f"{flow.flow}: {count:,} {'row fails' if count == 1 else 'rows fail'} “{name}”",
                    markup=False,
                )
        if flow.waiting:
            to.print(f"{flow.flow}: {_open_windows(flow)}", markup=False, soft_wrap=True)
    to.print(f"{'failed' if result.failure else 'completed'} in {result.seconds:.1f} s; lost: {result.lost}")


def _open_windows(flow: FlowCounters) -> str:
    """A text that says how many rows wait in open windows, and until when: later records close a
    window, not the clock."""
    rows = f"{flow.waiting:,} {'row waits' if flow.waiting == 1 else 'rows wait'} in open windows"
    if flow.watermark is None:
        return f"{rows}, until records have brought a watermark"
    return f"{rows}, until later records have brought the watermark, now {flow.watermark}, past their ends"


def _number(value: int | None) -> str:
    return "" if value is None else f"{value:,}"


def summed(before: RunResult | None, last: RunResult) -> RunResult:
    """Two runs as one: their counts added up, with the states and the lag of the last."""
    if before is None:
        return last
    earlier = {flow.flow: flow for flow in before.flows}
    for flow in last.flows:
        if flow.flow in earlier:
            flow.add_earlier(earlier[flow.flow])
    last.seconds += before.seconds
    if not last.flows:
        last.flows = before.flows
    return last
