"""No module imports, over any way, one that imports it: what is read first can be understood
alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.support.syntax import statements

SOURCE = Path(__file__).parents[2] / "src"
Graph = dict[str, set[str]]


def _name(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _imported(tree: ast.Module, known: set[str]) -> Iterator[str]:
    """Modules of `known` that a module names in any import: at its top, for types alone, or in a
    function."""
    for node in statements(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "imports are absolute"
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner in known:
                    yield inner
                elif node.module in known:
                    yield node.module


def _graph(sources: dict[str, str]) -> Graph:
    known = set(sources)
    return {name: set(_imported(ast.parse(text), known)) - {name} for name, text in sources.items()}


def _reached(graph: Graph, start: str) -> set[str]:
    found: set[str] = set()
    waiting = list(graph[start])
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += graph[name]
    return found


def _circles(graph: Graph) -> list[list[str]]:
    """The sets of modules that reach each other (strongly connected components of more than
    one)."""
    reached = {name: _reached(graph, name) for name in graph}
    circles = {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in graph
        if name in reached[name]
    }
    return sorted(sorted(circle) for circle in circles)


def test_no_modules_import_each_other() -> None:
    graph = _graph({_name(path): path.read_text() for path in SOURCE.rglob("*.py")})
    assert len(graph) > 700
    assert _circles(graph) == []


def test_imports_for_types_and_in_functions_count() -> None:
    sources = {
        "a": "if TYPE_CHECKING:\n    from b import B\n",
        "b": "def later() -> None:\n    import c\n",
        "c": "from a import A\nimport d",
        "d": "import json",
        "p": "from p.inner import One",
        "p.inner": "from p import other",
        "p.other": "",
    }
    assert _circles(_graph(sources)) == [["a", "b", "c"]]
