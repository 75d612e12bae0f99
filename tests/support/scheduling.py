"""Which test files run in one process, one after another: those that need the same Apache Kafka,
the same Java or the same Spark session, which are then started once in a run."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadScopeScheduling

ROOT = Path(__file__).parents[2]
SHARED = {
    "tests/conformance/": {
        "apache_kafka": "an Apache Kafka",
        "secured": "a secured Apache Kafka, and Kafka's tools",
        "secured_admin": "a secured Apache Kafka, and Kafka's tools",
        "tools": "a secured Apache Kafka, and Kafka's tools",
    },
    "tests/spark/": {"spark": "a Spark session", "read": "a Spark session"},
}
"""Folder → fixture of a session that costs seconds to set up → files that go together. A file goes
with the first of them that it asks for. No group takes longer than a third of a run."""


class FilesTogether(LoadScopeScheduling):
    """Hands out the tests of a file at once, with those of other files of its group."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid.split("::", 1)[0])


@cache
def group_of(file: str) -> str:
    """The group of a test file, or the file where it has none."""
    fixtures = next((found for folder, found in SHARED.items() if file.startswith(folder)), {})
    asked = _asked(ROOT / file) if fixtures else set()
    return next((group for fixture, group in fixtures.items() if fixture in asked), file)


def _asked(path: Path) -> set[str]:
    """Fixtures that the tests and fixtures of a file ask for, or have as a parameter."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    arguments = {
        argument.arg
        for node in nodes
        if isinstance(node, ast.FunctionDef)
        and (node.name.startswith("test_") or any("fixture" in ast.unparse(of) for of in node.decorator_list))
        for argument in node.args.args
    }
    parameters = {
        value.value
        for node in nodes
        if isinstance(node, ast.keyword) and node.arg == "params"
        for value in ast.walk(node)
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }
    return arguments | parameters
