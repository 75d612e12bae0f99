"""Writes `wire/schemas.txt` out of kio, which generates its classes from Kafka's own definitions:
`python src/schemas/from_kio.py`.

kio's classes carry everything Kafka's JSON definitions say: order, types, nullability, tags,
defaults, header versions. They are read here and not in users' programs: loading them for the first
few requests of a client took a third of its first second. Two things are undone on the way: kio
names durations and points in time without Kafka's `_ms` (and gives them as `timedelta` and
`datetime`), and wraps numbers and names in types of its own. kio's own readers are not used: see
`fairlead_kafka.wire`.
"""

from __future__ import annotations

import dataclasses
import datetime
import types
import typing
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any
from uuid import UUID

from fairlead_kafka.base.errors import UnsupportedVersion
from fairlead_kafka.wire.schema import Field, Schema, Structure
from fairlead_kafka.wire.schemas import REQUEST, RESPONSE, ZEROS, written_line

FILE = Path(__file__).parents[1] / "fairlead_kafka" / "wire" / "schemas.txt"
NO_UUID = UUID(int=0)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MILLISECOND = datetime.timedelta(milliseconds=1)

# kio's kind -> (ours, what is added to the name)
_KINDS: dict[str, tuple[str, str]] = {
    **{
        kind: (kind, "")
        for kind in (
            "bool",
            "int8",
            "int16",
            "uint16",
            "int32",
            "int64",
            "float64",
            "uuid",
            "string",
            "bytes",
            "records",
        )
    },
    "error_code": ("int16", ""),
    "timedelta_i32": ("int32", "_ms"),
    "timedelta_i64": ("int64", "_ms"),
    "datetime_i64": ("int64", "_ms"),
}


@cache
def versions_of(api_key: int) -> tuple[int, int]:
    """Lowest and highest version of an API whose schemas are known. Raises `UnsupportedVersion` if
    the API itself is unknown."""
    from kio.schema.index import api_key_map, schema_name_map
    from kio.static.constants import EntityType

    if api_key not in api_key_map:
        raise UnsupportedVersion(
            f"API key {api_key} is not one that Fairlead knows; it knows {min(api_key_map)} to "
            f"{max(api_key_map)}"
        )
    versions = [
        version
        for version, kinds in schema_name_map[api_key_map[api_key]].items()
        if EntityType.request in kinds
    ]
    return min(versions), max(versions)


@cache
def load_schema(api_key: int, version: int, direction: str) -> Schema:
    """The schema of a request or response. Raises `UnsupportedVersion` for an API or version that
    is not known."""
    lowest, highest = versions_of(api_key)
    if not lowest <= version <= highest:
        raise UnsupportedVersion(
            f"version {version} of API key {api_key} is not known; Fairlead knows versions {lowest} to "
            f"{highest}"
        )
    from kio.index import load_request_schema, load_response_schema

    load = load_request_schema if direction == REQUEST else load_response_schema
    entity: Any = load(api_key, version)
    return Schema(api_key, version, direction, int(entity.__header_schema__.__version__), _structure(entity))


def _structure(entity: Any) -> Structure:
    return Structure(
        entity.__name__, entity.__flexible__, tuple(_field(field) for field in dataclasses.fields(entity))
    )


def _field(field: dataclasses.Field[object]) -> Field:
    annotation, nullable = _without_none(field.type)
    array = typing.get_origin(annotation) is tuple
    if array:
        annotation, _ = _without_none(typing.get_args(annotation)[0])
    tag = field.metadata.get("tag")
    if dataclasses.is_dataclass(annotation):
        structure, kind, suffix = _structure(annotation), "structure", ""
    else:
        structure, (kind, suffix) = None, _KINDS[field.metadata["kafka_type"]]
        # A missing uuid is all zeros and a missing time is -1: neither is a null on the wire,
        # unlike a list of them.
        nullable = nullable and (array or kind in ("string", "bytes", "records"))
    return Field(
        field.name + suffix, kind, array, nullable, tag, _default(field, kind, array, nullable), structure
    )


def _without_none(annotation: object) -> tuple[object, bool]:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        (inner,) = (argument for argument in typing.get_args(annotation) if argument is not types.NoneType)
        return inner, True
    return annotation, False


def _default(field: dataclasses.Field[object], kind: str, array: bool, nullable: bool) -> object:
    value: object = field.default
    if array:
        return None if value is None or (nullable and value is dataclasses.MISSING) else ()
    if kind == "structure":
        return None if nullable else ...
    if value is dataclasses.MISSING:
        return None if nullable else ZEROS.get(kind, 0)
    if value is None:
        return NO_UUID if kind == "uuid" else -1 if kind == "int64" else None
    return _plain(value)


def _plain(value: object) -> object:
    """A default value without kio's types; durations and times are milliseconds (since 1970)."""
    if isinstance(value, datetime.timedelta):
        return value // _MILLISECOND
    if isinstance(value, datetime.datetime):
        return (value - _EPOCH) // _MILLISECOND
    if isinstance(value, (bool, UUID)):
        return value
    return int(value) if isinstance(value, int) else float(value) if isinstance(value, float) else str(value)


def api_keys() -> list[int]:
    """Every API that kio knows."""
    from kio.schema.index import api_key_map

    return sorted(api_key_map)


def lines() -> Iterator[str]:
    """The lines of `wire/schemas.txt`: for each API and direction, the ranges of versions in which
    its schema is the same."""
    for api_key in api_keys():
        lowest, highest = versions_of(api_key)
        for direction in (REQUEST, RESPONSE):
            schemas = [load_schema(api_key, version, direction) for version in range(lowest, highest + 1)]
            same = groupby(schemas, key=lambda schema: (schema.header_version, schema.body))
            for schemas_in_range in (list(group) for _, group in same):
                yield written_line(schemas_in_range[0], schemas_in_range[-1].version)


if __name__ == "__main__":
    FILE.write_text("".join(f"{line}\n" for line in lines()), encoding="utf-8")
