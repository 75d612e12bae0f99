"""Every message's schema, read from `schemas.txt`: a line for each API, direction and range of
versions in which it is the same.

A line is `API_KEY DIRECTION LOWEST HIGHEST HEADER_VERSION BODY`, the body in JSON: a structure is
{name, flexible, fields}, a field {name, kind} and, where they differ from the usual, `array`,
`nullable`, `tag`, `default` (otherwise the zero of its kind) and `structure`. The file is written
by `src/schemas/from_kio.py`, and a test compares it with Kafka's definitions. A line is decoded
when its version is first used.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, NotRequired, TypedDict, cast
from uuid import UUID

from fairlead_kafka.base.errors import UnsupportedVersion
from fairlead_kafka.wire.schema import Field, Schema, Structure

if TYPE_CHECKING:
    from importlib.abc import ResourceLoader

REQUEST, RESPONSE = "request", "response"
_NO_UUID = UUID(int=0)
ZEROS: dict[str, object] = {
    "bool": False,
    "float64": 0.0,
    "uuid": _NO_UUID,
    "string": "",
    "bytes": b"",
    "records": b"",
    "structure": ...,
}
"""The zero of each kind; of those that are not here it is 0."""


@cache
def versions_of(api_key: int) -> tuple[int, int]:
    """Lowest and highest version of an API whose schemas are known. Raises `UnsupportedVersion` if
    the API itself is unknown."""
    lines = _lines().get((api_key, REQUEST))
    if lines is None:
        known = [key for key, _ in _lines()]
        raise UnsupportedVersion(
            f"API key {api_key} is not one that Fairlead knows; it knows {min(known)} to {max(known)}"
        )
    return lines[0][0], lines[-1][1]


@cache
def load_schema(api_key: int, version: int, direction: str) -> Schema:
    """The schema of a request or response. Raises `UnsupportedVersion` for an API or version that
    is not known."""
    lowest, highest = versions_of(api_key)
    for first, last, header_version, body in _lines()[api_key, direction]:
        if first <= version <= last:
            return Schema(api_key, version, direction, header_version, _body(body))
    raise UnsupportedVersion(
        f"version {version} of API key {api_key} is not known; Fairlead knows versions {lowest} to {highest}"
    )


@cache
def _lines() -> dict[tuple[int, str], list[tuple[int, int, int, str]]]:
    """Lines of the schema file by (API key, direction), in order of versions: lowest and highest
    version, header version, and the body as it is written."""
    loader = cast("ResourceLoader", __spec__.loader)  # all of Python's are; it also reads out of an archive
    found: dict[tuple[int, str], list[tuple[int, int, int, str]]] = {}
    for line in loader.get_data(__file__.replace("schemas.py", "schemas.txt")).decode().splitlines():
        api_key, direction, lowest, highest, header_version, body = line.split(" ", 5)
        found.setdefault((int(api_key), direction), []).append(
            (int(lowest), int(highest), int(header_version), body)
        )
    return found


@cache
def _body(written: str) -> Structure:
    return _structure(json.loads(written))


class _WrittenField(TypedDict):
    """A field as the schema file has it; a key that is left out is false, or a zero of the kind."""

    name: str
    kind: str
    array: NotRequired[bool]
    nullable: NotRequired[bool]
    tag: NotRequired[int]
    default: NotRequired[object]
    structure: NotRequired[_WrittenStructure]


class _WrittenStructure(TypedDict):
    """A structure as the schema file has it."""

    name: str
    flexible: bool
    fields: list[_WrittenField]


def _structure(read: _WrittenStructure) -> Structure:
    return Structure(read["name"], read["flexible"], tuple(map(_field, read["fields"])))


def _field(read: _WrittenField) -> Field:
    kind, array, inner = read["kind"], read.get("array", False), read.get("structure")
    default = read.get("default", _zero(kind, array))
    structure = None if inner is None else _structure(inner)
    return Field(read["name"], kind, array, read.get("nullable", False), read.get("tag"), default, structure)


def _zero(kind: str, array: bool) -> object:
    return () if array else ZEROS.get(kind, 0)


def known_schemas() -> Iterator[Schema]:
    """Every schema of the file, each at the lowest version that has it."""
    for (api_key, direction), lines in _lines().items():
        for lowest, _, header_version, body in lines:
            yield Schema(api_key, lowest, direction, header_version, _body(body))


# Writing


def written_line(schema: Schema, highest: int) -> str:
    """The line of a schema that is the same from its own version to `highest`."""
    body = json.dumps(_written_structure(schema.body), separators=(",", ":"))
    return f"{schema.api_key} {schema.direction} {schema.version} {highest} {schema.header_version} {body}"


def _written_structure(structure: Structure) -> _WrittenStructure:
    return {
        "name": structure.name,
        "flexible": structure.flexible,
        "fields": [_written_field(field) for field in structure.fields],
    }


def _written_field(field: Field) -> _WrittenField:
    found: _WrittenField = {"name": field.name, "kind": field.kind}
    if field.array:
        found["array"] = True
    if field.nullable:
        found["nullable"] = True
    if field.tag is not None:
        found["tag"] = field.tag
    if field.default != _zero(field.kind, field.array):
        found["default"] = field.default
    if field.structure is not None:
        found["structure"] = _written_structure(field.structure)
    return found
