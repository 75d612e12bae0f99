"""Consoles, progress, JSON reports, and `key=value` settings.

rich takes as long to load as all other modules, so it is loaded with the first line that is
printed.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar, cast

import typer

from fairlead_kafka.base.errors import ConfigError, ItemsFailed
from fairlead_kafka.cli.printable import one_line, printable, printable_json

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table

K = TypeVar("K")
UNBOUNDED_WIDTH = 100_000
"""Columns where there is no terminal: what is written to a file or a pipe is never cut or
wrapped."""
MOST_NUMBER = 2**63 - 1
"""The largest number of Kafka's protocol (int64). Python itself reads at most 4,300 digits."""
_SHOWN_CHARACTERS = 200
"""So much of an argument is repeated in an error: the start says which one is meant."""


class _FirstUse:
    """A console that is made when it is first used."""

    def __init__(self, stderr: bool) -> None:
        self._stderr = stderr

    @cached_property
    def _console(self) -> Console:
        from rich.console import Console

        class UntilBroken(Console):
            def on_broken_pipe(self) -> NoReturn:
                raise BrokenPipeError  # `main` knows what to do; rich would end the process with exit code 1

            def render(
                self, renderable: RenderableType, options: ConsoleOptions | None = None
            ) -> Iterator[Segment]:
                # rich sends its own commands to the terminal as segments of control codes.
                for segment in super().render(renderable, options):
                    yield segment if segment.control else segment._replace(text=printable(segment.text))

        terminal = (sys.stderr if self._stderr else sys.stdout).isatty()
        return UntilBroken(
            stderr=self._stderr,
            highlight=False,
            emoji=False,  # a name such as x:key:y is no picture
            width=None if terminal else UNBOUNDED_WIDTH,
        )

    def __getattr__(self, name: str) -> object:
        return getattr(self._console, name)


output = cast("Console", _FirstUse(stderr=False))
errors = cast("Console", _FirstUse(stderr=True))


def _check_json_file(target: str | None) -> str | None:
    """The target of `--json`, checked before the work starts: a usage error if the report could not
    be written there."""
    if target is None or target == "-":
        return target
    path = Path(target)
    new = not path.exists()
    if new or path.is_file() or path.is_dir():
        try:
            path.open("a").close()
            if new:
                path.unlink()
        except OSError as error:
            raise _unwritable(target, error) from None
    return target


def _unwritable(target: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"--json {target}: cannot be written ({error.strerror}); name a file in a folder that exists, or - "
        "for standard output"
    )


JsonFile = Annotated[
    str | None,
    typer.Option(
        "--json",
        metavar="[FILE]",
        callback=_check_json_file,
        help="Write the report as JSON to this file; without a name, or with -, to standard output.",
    ),
]


def settings(pairs: list[str] | None, option: str = "--property") -> dict[str, str]:
    """`key=value` texts as a dict. ConfigError for one without `=`."""
    parsed = {}
    for pair in pairs or ():
        key, found, value = pair.partition("=")
        if not found or not key.strip():
            raise ConfigError(f"{option} {pair!r}: expected KEY=VALUE, such as linger.ms=5")
        parsed[key.strip()] = value.strip()
    return parsed


def print_each(
    done: str, call: Callable[[], Mapping[K, object]], named: Callable[[K], object] = lambda item: item
) -> None:
    """Call `call` and print a line for each item that `done` was done to, also if others failed;
    ItemsFailed is raised afterwards."""
    failed: ItemsFailed | None = None
    try:
        results = call()
    except ItemsFailed as error:
        failed, results = error, error.results
    for item in results:
        output.print(f"{done}: {one_line(str(named(item)))}", markup=False)
    if failed is not None:
        raise failed


def write_json(report: object, target: str | None) -> None:
    """Write the report to a file, or to standard output for `-`. ConfigError if the file cannot be
    written."""
    if target is None:
        return
    _write(printable_json(json.dumps(report, indent=2, ensure_ascii=False)) + "\n", target)


def write_rows(rows: Iterable[Mapping[str, object]], target: str | None) -> None:
    """Rows as JSON, one object a line, to a file or to standard output for `-`.

    All rows of a listing have the same keys, whatever there is. ConfigError if the file cannot be
    written.
    """
    if target is not None:
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        _write(printable_json("".join(lines)), target)


def show_rows(rows: Sequence[Mapping[str, object]], json_file: str | None) -> None:
    """Print a listing as a table, unless its JSON goes to standard output."""
    if json_file != "-" and rows:
        output.print(rows_table([{key: _in_a_cell(value) for key, value in row.items()} for row in rows]))
    write_rows(rows, json_file)


def _in_a_cell(value: object) -> object:
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value


def _write(text: str, target: str) -> None:
    if target == "-":
        sys.stdout.write(text)
        return
    try:
        Path(target).write_text(text, encoding="utf-8")
    except OSError as error:
        raise _unwritable(target, error) from None


def numbers(option: str, values: str | None, least: int = 0) -> list[int]:
    """The integers in `value`, separated by commas, each once; none for None. ConfigError, which
    names the option, for anything else, and for numbers below `least`."""
    parts = [] if values is None else [value.strip() for value in values.split(",")]
    found = [number for part in parts if (number := whole_number(part)) is not None and number >= least]
    if len(found) < len(parts):
        raise ConfigError(
            f"{option} {_beginning(values or '')}: must be whole numbers from {least} on, of 64 bits at "
            f"most, separated by commas, such as {option} 16,128"
        )
    return list(dict.fromkeys(found))


def whole_number(text: str) -> int | None:
    """The number that decimal digits write; None for anything else, and beyond `MOST_NUMBER`."""
    if not text.isdecimal() or len(text) > len(str(MOST_NUMBER)):
        return None
    number = int(text)
    return number if number <= MOST_NUMBER else None


def _beginning(text: str) -> str:
    return text if len(text) <= _SHOWN_CHARACTERS else f"{text[:_SHOWN_CHARACTERS]}…"


def counted(records: int) -> str:
    """A count with its noun, such as `1 record` or `2,000 records`."""
    return f"{records:,} {'record' if records == 1 else 'records'}"


def rows_table(rows: Sequence[Mapping[str, object]], thousands: bool = False) -> Table:
    """A table of flat rows, a column for each key in order of appearance; numbers to the right.

    With `thousands`, for measured values, numbers are written as 1,000. Without, they are plain, so
    that ports, ids and offsets can be copied.
    """
    from rich.text import Text

    from fairlead_kafka.cli.tables import FittingTable

    table = FittingTable()
    for column in dict.fromkeys(key for row in rows for key in row):
        text = any(isinstance(row.get(column), str) for row in rows)
        table.add_column(column, justify="left" if text else "right")
    for row in rows:
        table.add_row(*(Text(_shown(row.get(str(column.header)), thousands)) for column in table.columns))
    return table


def _shown(value: object, thousands: bool) -> str:
    if value is None:
        return ""
    mark = "," if thousands else ""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:{mark}}"
    if isinstance(value, float):
        return f"{value:{mark}.3f}".rstrip("0").rstrip(".")
    return one_line(str(value))


@contextmanager
def progress(text: str) -> Iterator[Callable[[str], None]]:
    """Context manager: show `text`, what is going on, on standard error. The block's value is a
    function that changes the text. Without a terminal each text is a plain line."""
    from rich.text import Text

    if errors.is_terminal:
        with errors.status(Text(text)) as status:
            yield lambda text: status.update(Text(text))
        return
    errors.print(f"{text} …", markup=False)
    yield lambda text: errors.print(f"{text} …", markup=False)
