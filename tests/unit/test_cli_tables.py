"""No table cuts a word, however narrow the terminal: it wraps between words, or tells its rows one
by one."""

from __future__ import annotations

import json
import random
from io import StringIO

import pytest
from rich.console import Console

from fairlead_kafka.cli import application, terminal
from fairlead_kafka.cli.pipeline_report import print_findings, print_flows
from fairlead_kafka.cli.tables import FittingTable
from fairlead_kafka.cli.terminal import rows_table
from fairlead_kafka.spark.pipelines.counters import FlowCounters
from fairlead_kafka.spark.pipelines.findings import Finding
from fairlead_kafka.spark.pipelines.running import RunResult


def shown(what: object, width: int) -> str:
    console = Console(width=width, file=StringIO(), highlight=False)
    console.print(what)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def words_of(table: FittingTable) -> list[str]:
    return [word for column in table.columns for cell in column.cells for word in str(cell).split()]


def test_a_table_that_fits_is_a_table() -> None:
    table = FittingTable("topic", "partition", title="Topics")
    table.add_row("orders", "0")
    table.add_row("a-much-longer-name", "12")
    assert [line.rstrip() for line in shown(table, 80).splitlines()] == [
        "Topics",
        "topic               partition",
        "orders              0",
        "a-much-longer-name  12",
    ]


def test_words_wrap_where_that_is_enough() -> None:
    table = FittingTable("experiment", "measures")
    table.add_row("kip794", "Latency and evenness while one broker of three is slow")
    text = shown(table, 40)
    assert max(map(len, text.splitlines())) <= 40
    assert [word for word in words_of(table) if word not in text.split()] == []
    assert text.startswith("experiment")


def test_what_does_not_fit_is_told_row_by_row() -> None:
    rows = [
        {"flow": f"to_{name}", "rows_in": 102_000, "rows_out": None, "seconds": 1.5}
        for name in ("quarantine", "by_host")
    ]
    assert shown(rows_table(rows, thousands=True), 30) == (
        "to_quarantine\n  rows_in 102,000  seconds 1.5\nto_by_host\n  rows_in 102,000  seconds 1.5\n"
    )


def test_ports_and_offsets_are_shown_as_they_are_typed() -> None:
    assert shown(rows_table([{"port": 9092, "offset": 1_234_567}]), 30).splitlines()[1].split() == [
        "9092",
        "1234567",
    ]


@pytest.mark.parametrize("seed", range(20))
def test_no_word_is_cut_at_any_width(seed: int) -> None:
    rng = random.Random(seed)
    names = [f"column_{number}" for number in range(rng.randint(2, 12))]
    table = FittingTable(*names)
    for _ in range(rng.randint(1, 5)):
        table.add_row(
            *(" ".join("x" * rng.randint(1, 14) for _ in range(rng.choice([1, 1, 1, 4]))) for _ in names)
        )
    for width in (40, 60, 80, 100, 140, 400):
        text = shown(table, width)
        assert "…" not in text
        assert max(map(len, text.splitlines())) <= width
        missing = [word for word in words_of(table) if word not in text.split()]
        assert missing == [], (width, text)


def test_the_report_of_a_pipeline_is_whole_in_80_columns() -> None:
    flow = FlowCounters(
        "to_quarantine",
        "quarantine",
        state="completed",
        rows_in=1_002_000,
        rows_out=11_120,
        bytes_in=7_000_000,
        lag=12,
    )
    console = Console(width=80, file=StringIO(), highlight=False)
    print_flows(console, RunResult([flow, flow], 55.0))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "rows in 1,002,000" in text


NAMES = ["orders:key:eu", "[bold]x[/bold]", "tail\\", "[tail\\", "\\[red]x", "a[/]b"]
"""Names of groups and transactions may be any text: they are shown as they are."""


@pytest.mark.parametrize("width", [20, 80])
@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_exactly_in_every_column(name: str, width: int) -> None:
    table = rows_table([{"group": name, "transactional_id": name, "state": "Empty"}])
    console = Console(width=width, file=StringIO(), highlight=False, emoji=False)
    console.print(table)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert text.replace("\n", " ").split().count(name) == 2, text
    assert shown(table, width) == text  # nor does it depend on the console


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_exactly_in_lines_errors_and_progress(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, "output", terminal._FirstUse(stderr=False))
        patch.setattr(terminal, "errors", terminal._FirstUse(stderr=True))
        patch.setattr(application, "errors", terminal.errors)
        terminal.print_each("deleted", lambda: {name: None})
        application._say("failed", name)
        with terminal.progress(name) as said:
            said(name)
    assert capsys.readouterr() == (f"deleted: {name}\n", f"failed: {name}\n{name} …\n{name} …\n")


@pytest.mark.parametrize("name", NAMES)
def test_names_are_shown_exactly_in_findings_and_flows(name: str) -> None:
    console = Console(width=400, file=StringIO(), highlight=False, emoji=False)
    print_findings([Finding(name, 0, "rule", name, name)], console)
    print_flows(console, RunResult([FlowCounters(name, name)], 1.0))
    lines = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    assert lines[:2] == [f"{name}: error rule: {name}", f"    {name}"]
    assert lines[3].split()[:2] == [name, name]


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("a\x9b2Jb", r"a\x9b2Jb"),
        ("over\rwritten\x08", r"over\rwritten\x08"),
        ("turned\u202eround", r"turned\u202eround"),
        ("two\nlines\there", r"two\nlines\there"),
        ("half\ud800", r"half\ud800"),
        ("äöü 漢字 🎣 [x]", "äöü 漢字 🎣 [x]"),
    ],
)
def test_no_name_of_a_stranger_tells_the_terminal_what_to_do(
    capsys: pytest.CaptureFixture[str], name: str, told: str
) -> None:
    terminal.show_rows([{"group": name, "members": [name], "lag": 5}], None)
    assert capsys.readouterr().out.split("\n")[1].rstrip() == f"{told}  {told}    5"
    terminal.print_each("deleted", lambda: {name: None})
    assert capsys.readouterr().out == f"deleted: {told}\n"


def test_texts_and_json_hold_no_commands_to_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.output.print("two\nlines \x1b]0;title\x9c", markup=False)
    assert capsys.readouterr().out == "two\nlines \\x1b]0;title\\x9c\n"
    application._say("UsageError", "no group \x1b[2J")
    assert capsys.readouterr().err == "UsageError: no group \\x1b[2J\n"
    row = {"group": "\x1b\x9b\u202e ä"}
    terminal.write_rows([row], "-")
    written = capsys.readouterr().out
    assert written == '{"group": "\\u001b\\u009b\\u202e ä"}\n'
    assert json.loads(written) == row
    terminal.write_json(row, "-")
    assert json.loads(capsys.readouterr().out) == row
