"""Types of JSON values, and functions that read values and check their types.

`Json` is covariant: a `dict[str, int]` is one. Parsed values are dicts and lists; narrow their
types with `isinstance`, or by the functions here, whose errors say which type was expected and
which was found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A value that JSON can carry."""
JsonObject: TypeAlias = dict[str, Json]
"""A JSON object that is built key by key, or was parsed: a flat row of a report, say."""
NESTED_MAX = 500
"""How deep arrays and objects of a text may be nested. Python's parser calls itself for each, up to
a bound that depends on who called it: the same text would be read here and refused there."""
TOO_DEEP = f"arrays and objects are nested too deep: {NESTED_MAX} within each other are read"
_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[\]{}]', re.DOTALL)
"""A string, or a bracket outside of strings. It never goes back: a long string would take a hundred
bytes of memory for each of its characters."""


def read_json(text: str | bytes) -> Json:
    """The value of a JSON text. ValueError for text that is not JSON, for JSON that is nested
    deeper than NESTED_MAX, or than the caller has left of Python's stack, and for integers of more
    digits than Python reads."""
    check_nesting(text)
    try:
        value: Json = json.loads(text)
    except RecursionError:
        raise ValueError("arrays and objects are nested too deep for what is left of the stack") from None
    return value


def check_nesting(text: str | bytes) -> None:
    """ValueError if arrays and objects of a text are nested deeper than NESTED_MAX."""
    if not isinstance(text, str):
        if text.count(b"[") + text.count(b"{") <= NESTED_MAX:
            return
        text = text.decode(json.detect_encoding(text), "surrogatepass")
    elif text.count("[") + text.count("{") <= NESTED_MAX:
        return
    depth = 0
    for found in _BRACKETS.finditer(text):
        bracket = found[0]
        if bracket in "[{":
            depth += 1
            if depth > NESTED_MAX:
                raise ValueError(TOO_DEEP)
        elif bracket in "]}":
            depth -= 1


def json_object(text: str | bytes) -> JsonObject:
    """Parse text that must be one JSON object.

    Raises ValueError if the text is not JSON, or is JSON of another type.
    """
    value = read_json(text)
    if not isinstance(value, dict):
        raise ValueError(f"expected a JSON object, got {type(value).__name__}: {text[:100]!r}")
    return value


def number_at(row: Mapping[str, Json], key: str) -> float:
    """The number under a key; whole numbers stay `int`.

    Raises KeyError if the key is missing, ValueError if its value is no number.
    """
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{key!r} must be a number, got {value!r}")
    return value


def number_or_none(row: Mapping[str, Json], key: str) -> float | None:
    """The number under a key; None if the key is missing, or its value is null.

    Raises ValueError if its value is anything else.
    """
    return None if row.get(key) is None else number_at(row, key)


def integer_at(row: Mapping[str, Json], key: str) -> int:
    """The whole number under a key.

    Raises KeyError if the key is missing, ValueError if its value is no integer.
    """
    value = row[key]
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key!r} must be an integer, got {value!r}")
    return value


def text_at(row: Mapping[str, Json], key: str) -> str:
    """The text under a key.

    Raises KeyError if the key is missing, ValueError if its value is no text.
    """
    value = row[key]
    if not isinstance(value, str):
        raise ValueError(f"{key!r} must be text, got {value!r}")
    return value


def object_at(row: Mapping[str, Json], key: str) -> Mapping[str, Json]:
    """The JSON object under a key.

    Raises KeyError if the key is missing, ValueError if its value is no object.
    """
    value = row[key]
    if not isinstance(value, Mapping):
        raise ValueError(f"{key!r} must be an object, got {value!r}")
    return value


def integers_at(row: Mapping[str, Json], key: str) -> dict[str, int]:
    """The object under a key whose values are all integers: ports by listener, say.

    Raises KeyError if the key is missing, ValueError if there is anything else.
    """
    found = object_at(row, key)
    return {name: integer_at(found, name) for name in found}


def list_at(row: Mapping[str, Json], key: str) -> Sequence[Json]:
    """The list under a key; text is no list.

    Raises KeyError if the key is missing, ValueError if its value is no list.
    """
    value = row[key]
    if isinstance(value, str) or not isinstance(value, Sequence):
        raise ValueError(f"{key!r} must be a list, got {value!r}")
    return value


def integer_list_at(row: Mapping[str, Json], key: str) -> list[int]:
    """The list of integers under a key.

    Raises KeyError if the key is missing, ValueError if there is anything else.
    """
    return [integer_at({key: item}, key) for item in list_at(row, key)]


def objects_at(row: Mapping[str, Json], key: str) -> list[Mapping[str, Json]]:
    """The list of JSON objects under a key: rows, say.

    Raises KeyError if the key is missing, ValueError if there is anything else.
    """
    return [object_at({key: item}, key) for item in list_at(row, key)]
