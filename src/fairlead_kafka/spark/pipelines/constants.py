"""Values of expressions, found without running them.

These are texts, numbers, lists, dictionaries, names bound to them, and Spark's settings.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass


class _Unknown:
    """The class of UNKNOWN: a value that is known only when the program runs."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = _Unknown()


@dataclass(frozen=True)
class Setting:
    """A value of a dictionary, with the line it is written in and the key of the specification that
    it came from, if any."""

    value: object
    line: int
    configured_by: str | None = None


@dataclass(frozen=True)
class Configured:
    """A text out of the specification's configuration."""

    text: str
    key: str


Settings = dict[str, Setting]
Names = Mapping[str, object]


def constant(node: ast.AST, names: Names, configuration: Mapping[str, str]) -> object:
    """The value of an expression, `UNKNOWN` if it cannot be told. A dictionary is given as
    `Settings`."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Name):
        return names.get(node.id, UNKNOWN)
    if isinstance(node, ast.JoinedStr):
        return _joined(node, names, configuration)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        left, right = (plain(constant(side, names, configuration)) for side in (node.left, node.right))
        return left + right if isinstance(left, str) and isinstance(right, str) else UNKNOWN
    if isinstance(node, (ast.List, ast.Tuple)):
        return [constant(one, names, configuration) for one in node.elts]
    if isinstance(node, ast.Dict):
        return _dictionary(list(zip(node.keys, node.values, strict=True)), names, configuration)
    if isinstance(node, ast.Call):
        return _called(node, names, configuration)
    return UNKNOWN


def plain(value: object) -> object:
    """The value itself, without the key of the specification that it came from."""
    return value.text if isinstance(value, Configured) else value


def text_of(node: ast.AST | None, names: Names, configuration: Mapping[str, str]) -> str | None:
    """The text that an expression is, None if it is none or cannot be told."""
    value = plain(constant(node, names, configuration)) if node is not None else None
    return value if isinstance(value, str) else None


def setting(node: ast.expr, names: Names, configuration: Mapping[str, str]) -> Setting:
    """The value of an expression, with its place."""
    value = constant(node, names, configuration)
    if isinstance(value, Configured):
        return Setting(value.text, node.lineno, value.key)
    return Setting(value, node.lineno)


def settings_of(call: ast.Call, names: Names, configuration: Mapping[str, str]) -> Settings | None:
    """The keyword arguments of a call, `**` of dictionaries included; None if some cannot be
    told."""
    pairs: list[tuple[ast.expr | None, ast.expr]] = [
        (None if keyword.arg is None else ast.Constant(keyword.arg), keyword.value)
        for keyword in call.keywords
    ]
    found = _dictionary(pairs, names, configuration)
    return None if isinstance(found, _Unknown) else found


def _dictionary(
    pairs: list[tuple[ast.expr | None, ast.expr]], names: Names, configuration: Mapping[str, str]
) -> Settings | _Unknown:
    found: Settings = {}
    for key_node, value_node in pairs:
        if key_node is None:
            inner = constant(value_node, names, configuration)
            if not isinstance(inner, dict):
                return UNKNOWN
            found |= inner
            continue
        key = plain(constant(key_node, names, configuration))
        if not isinstance(key, str):
            return UNKNOWN
        found[key] = setting(value_node, names, configuration)
    return found


def _joined(node: ast.JoinedStr, names: Names, configuration: Mapping[str, str]) -> object:
    text = ""
    for part in node.values:
        value = plain(
            constant(part.value if isinstance(part, ast.FormattedValue) else part, names, configuration)
        )
        if not isinstance(value, (str, int)):
            return UNKNOWN
        text += str(value)
    return text


def _called(node: ast.Call, names: Names, configuration: Mapping[str, str]) -> object:
    called = ast.unparse(node.func)
    if called == "dict" and not node.args:
        return settings_of(node, names, configuration) or UNKNOWN
    if called == "spark.conf.get" and node.args:
        key = plain(constant(node.args[0], names, configuration))
        if isinstance(key, str) and key in configuration:
            return Configured(configuration[key], key)
        return constant(node.args[1], names, configuration) if len(node.args) > 1 else UNKNOWN
    return UNKNOWN
