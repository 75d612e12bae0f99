"""`Json`: the type of a value that came out of JSON, or may go into it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
"""A JSON value. What `json.loads` gives is one; ask with `isinstance` which before it is used.

Mappings and sequences, not dicts and lists, so that a `dict[str, int]` is one as well.
"""
JsonObject: TypeAlias = Mapping[str, Json]
"""A JSON object: names and values."""
