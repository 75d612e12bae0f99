"""Tables that cut no word: what is too wide for the terminal is told row by row, as names and
values."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_UNBOUNDED_WIDTH = 100_000
_INDENT = "  "
_BETWEEN = "  "


class FittingTable(Table):
    """A table without lines. Its columns wrap between words; if that does not fit, each row is a
    block of its own.

    A block is the row's first cell and below it, indented, each column's name and value, as many to
    a line as fit.
    """

    def __init__(self, *headers: str, title: str | None = None) -> None:
        super().__init__(
            *headers, box=None, pad_edge=False, title=title, title_justify="left", title_style="bold"
        )

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the table; called by rich."""
        widths = self._widths(console, options)
        if widths is not None:
            for column, width in zip(self.columns, widths, strict=True):
                column.width = width
            yield from super().__rich_console__(console, options)
            return
        if self.title:
            yield Text.from_markup(str(self.title), style="bold")
        for row in zip(*([str(cell) for cell in column.cells] for column in self.columns), strict=True):
            yield from self._block(row, options.max_width)

    def _widths(self, console: Console, options: ConsoleOptions) -> list[int] | None:
        """Width of each column, None if words would have to be cut.

        It is the longest word at least, and the longest cell where there is room.
        """
        unbounded = options.update(max_width=_UNBOUNDED_WIDTH)
        measured = [
            [
                Measurement.get(console, unbounded, _text(cell))
                for cell in (str(column.header), *map(str, column.cells))
            ]
            for column in self.columns
        ]
        least = [max(cell.minimum for cell in cells) for cells in measured]
        wanted = [max(cell.maximum for cell in cells) for cells in measured]
        spare = options.max_width - sum(least) - len(_BETWEEN) * max(0, len(least) - 1)
        if spare < 0:
            return None
        missing = max(sum(wanted) - sum(least), 1)
        return [
            low + min(high - low, spare * (high - low) // missing)
            for low, high in zip(least, wanted, strict=True)
        ]

    def _block(self, row: tuple[str, ...], width: int) -> Iterator[Text]:
        names = [str(column.header) for column in self.columns]
        numbered = names[0] and _plain(row[0]).strip().isdecimal()  # a number alone says nothing
        yield Text.from_markup(f"[bold]{f'{names[0]} ' if numbered else ''}{row[0]}[/]", overflow="fold")
        line = ""
        for name, value in zip(names[1:], row[1:], strict=True):
            if not _plain(value):
                continue
            pair = f"[dim]{name}[/] {value}" if name else value
            longer = f"{line}{_BETWEEN}{pair}" if line else f"{_INDENT}{pair}"
            if line and cell_len(_plain(longer)) > width:
                yield _text(line)
                longer = f"{_INDENT}{pair}"
            line = longer
        if line:
            yield _text(line)


def _plain(markup: str) -> str:
    return _text(markup).plain


def _text(markup: str) -> Text:
    """The text of a cell, its markup parsed but not its emoji: a cell may be a name such as
    `x:key:y`."""
    return Text.from_markup(markup, emoji=False)
