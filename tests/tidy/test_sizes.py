"""A file has one reason to exist and 520 lines at most, a function's body 70 (docstring not
counted)."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.support.syntax import statements

ROOT = Path(__file__).parents[2]
FILE_LINES_MAX = 520
"""Lines of at most 110 columns: as much as 400 of 140 held."""
FUNCTION_LINES_MAX = 70
SOURCES = sorted(path for folder in ("src", "tests", "docs") for path in (ROOT / folder).rglob("*.py"))


def _function_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of the body without its docstring; a signature of many options is a table."""
    first = function.body[0]
    documented = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    docstring = (first.end_lineno or 0) - first.lineno + 1 if documented else 0
    return (function.end_lineno or 0) - first.lineno + 1 - docstring


def test_functions_stay_small() -> None:
    too_long = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name} has {_function_lines(node)} lines"
        for path in SOURCES
        for node in statements(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _function_lines(node) > FUNCTION_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)


def test_files_stay_small() -> None:
    lines = {
        path: path.read_text(encoding="utf-8").count("\n")
        for path in SOURCES
        # A table is data: Kafka's error codes are one row per line.
        if path.name != "codes.py"
    }
    too_long = [
        f"{path.relative_to(ROOT)}: {count} lines; split it by reason to exist"
        for path, count in lines.items()
        if count > FILE_LINES_MAX
    ]
    assert not too_long, "\n".join(too_long)
