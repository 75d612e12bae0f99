"""Runs the programs and notebooks of `examples/` in this process, and gives what they print."""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path
from typing import Any
from unittest import mock

EXAMPLES = Path(__file__).parents[2] / "examples"


def run_program(name: str, *arguments: str) -> str:
    """Run a program as `python name arguments` would; its standard output."""
    printed = io.StringIO()
    path = str(EXAMPLES / name)
    with mock.patch.object(sys, "argv", [path, *arguments]), contextlib.redirect_stdout(printed):
        runpy.run_path(path, run_name="__main__")
    return printed.getvalue()


def run_notebook(name: str) -> tuple[str, dict[str, Any]]:
    """Run the code cells of a notebook, one after the other; what they print, and their names."""
    notebook = json.loads((EXAMPLES / "notebooks" / name).read_text(encoding="utf-8"))
    names: dict[str, Any] = {"__name__": "__main__"}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for number, cell in enumerate(notebook["cells"]):
            if cell["cell_type"] == "code":
                exec(compile("".join(cell["source"]), f"{name}[{number}]", "exec"), names)
    return printed.getvalue(), names
