"""What every written page begins with, and its tables."""

from __future__ import annotations

from collections.abc import Iterable

NOTE = "<!-- Written by docs/generate.py (`make docs`) from the code; edits here are lost. -->"


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """A Markdown table."""
    columns = list(header)
    lines = [f"| {' | '.join(columns)} |", "|" + "---|" * len(columns)]
    lines += ["| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines)
