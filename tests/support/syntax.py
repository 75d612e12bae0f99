"""Statements of a module, without looking into expressions, which are nine tenths of its tree."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")


def statements(module: ast.Module) -> Iterator[ast.AST]:
    """Every statement, at any depth; with them handlers of exceptions, and cases of a match."""
    todo: list[ast.AST] = list(module.body)
    for node in todo:  # which grows meanwhile
        yield node
        for block in _BLOCKS:
            todo.extend(getattr(node, block, ()))
