"""A message's schema as plain data: the input of the compilers of decoders and encoders, wherever
schemas come from."""

from __future__ import annotations

from typing import NamedTuple

FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "int64": "q",
    "float64": "d",
}
"""Kinds that `struct` packs, and their format letters. All numbers on the wire are big-endian."""
FIXED_SIZES_BYTES = {
    "bool": 1,
    "int8": 1,
    "int16": 2,
    "uint16": 2,
    "int32": 4,
    "int64": 8,
    "float64": 8,
    "uuid": 16,
}


class Field(NamedTuple):
    """One field of a structure in one version.

    `kind` is a key of `FIXED_SIZES_BYTES`, or "string", "bytes", "records", "structure". If `array`
    is true the field is a list of that kind and `nullable` speaks of the list. `tag` is None for a
    field in sequence, else its tag (KIP-482). `default` is what the schema names, or a zero of the
    kind; for lists it is `()` or None, for a structure that is not nullable it is `...` (the
    structure with every field at its default).
    """

    name: str
    kind: str
    array: bool
    nullable: bool
    tag: int | None
    default: object
    structure: Structure | None = None


class Structure(NamedTuple):
    """One structure in one version. `flexible`: compact lengths, and a section of tagged fields at
    the end (KIP-482)."""

    name: str
    flexible: bool
    fields: tuple[Field, ...]

    def sequence(self) -> list[Field]:
        """The fields in sequence."""
        return [field for field in self.fields if field.tag is None]

    def tagged(self) -> list[Field]:
        """The tagged fields by rising tag, as they must be written."""
        return sorted(
            (field for field in self.fields if field.tag is not None), key=lambda field: field.tag or 0
        )


class Schema(NamedTuple):
    """One direction of one version of an API. `header_version`: 1 or 2 for requests, 0 or 1 for
    responses."""

    api_key: int
    version: int
    direction: str
    header_version: int
    body: Structure


def minimum_size_bytes(structure: Structure) -> int:
    """The fewest bytes a structure can take; a list's claimed length is checked against it before
    anything is allocated."""
    size_bytes = 1 if structure.flexible else 0
    for field in structure.sequence():
        size_bytes += minimum_field_bytes(field, structure.flexible)
    return size_bytes


def minimum_field_bytes(field: Field, flexible: bool) -> int:
    """The fewest bytes one field in sequence can take."""
    if field.array or field.kind in ("bytes", "records"):
        return 1 if flexible else 4
    if field.kind == "string":
        return 1 if flexible else 2
    if field.kind == "structure":
        assert field.structure is not None
        return 1 if field.nullable else minimum_size_bytes(field.structure)
    return FIXED_SIZES_BYTES[field.kind]
