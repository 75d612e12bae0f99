"""Tables that cut no word: a table that is too wide for the terminal is printed row by row, as
names and values."""

from __future__ import annotations

from collections.abc import Iterator

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

_UNBOUNDED_WIDTH = 100_000
_INDENT = "  "
_BETWEEN = "  "


class FittingTable(Table):
    """A table without lines. Its columns wrap between words; if that does not fit, each row is a
    block of its own.

    A block has the row's first cell and, below it and indented, each column's name and value, as
    many in a line as fit.
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
        for row in zip(*(map(_text, column.cells) for column in self.columns), strict=True):
            yield from self._block(row, options.max_width)

    def _widths(self, console: Console, options: ConsoleOptions) -> list[int] | None:
        """Width of each column, in characters: the longest word at least, and the longest cell if
        there is room. None if words would have to be cut."""
        unbounded = options.update(max_width=_UNBOUNDED_WIDTH)
        measured = [
            [Measurement.get(console, unbounded, _text(cell)) for cell in (column.header, *column.cells)]
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

    def _block(self, row: tuple[Text, ...], width: int) -> Iterator[Text]:
        names = [_text(column.header) for column in self.columns]
        numbered = names[0].plain and row[0].plain.strip().isdecimal()  # a number alone says nothing
        head = Text.assemble(names[0], " ", row[0]) if numbered else row[0].copy()
        head.stylize("bold")
        head.overflow = "fold"
        yield head
        line = Text()
        for name, value in zip(names[1:], row[1:], strict=True):
            if not value.plain:
                continue
            pair = Text.assemble((name.plain, "dim"), " ", value) if name.plain else value
            longer = Text.assemble(line, _BETWEEN, pair) if line else Text.assemble(_INDENT, pair)
            if line and cell_len(longer.plain) > width:
                yield line
                longer = Text.assemble(_INDENT, pair)
            line = longer
        if line:
            yield line


def _text(cell: RenderableType) -> Text:
    """The text of a cell: as it is, or with the markup of a `str`. (Names are `Text`, for they may
    look like markup, or end with a backslash.)"""
    return cell if isinstance(cell, Text) else Text.from_markup(str(cell), emoji=False)
