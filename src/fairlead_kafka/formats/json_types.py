"""Which Arrow types JSON is first read into (wire types), and from there into the types that are
asked for.

A wire type is one that JSON itself has: dates, timestamps and binaries are strings there, floats
are doubles. Both readers in `json_blocks` (Arrow's parser for whole blocks, Python's for single
rows) give wire types, and this module converts them, so that a value's result is the same with
either. Machine code (`json_reading`) reads dates and timestamps of the usual forms, and leaves all
others to this module.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

_HAS_ZONE = ":.*[Zz+-]"
"""A zone follows the time of day, which has a colon; the hyphens of the date come before it."""
_BEYOND_MICROSECONDS = r"(\.\d{6})\d+"


def wire_type(kind: pa.DataType, where: str = "") -> pa.DataType:
    """The Arrow type that JSON is read into for `kind`. Raises ValueError naming the field that
    JSON cannot give."""
    types = pa.types
    if types.is_floating(kind):
        return pa.float64()
    if types.is_boolean(kind) or types.is_signed_integer(kind) or types.is_decimal128(kind):
        return kind
    if types.is_string(kind) or types.is_binary(kind) or types.is_date32(kind):
        return pa.string()
    if types.is_timestamp(kind) and kind.unit == "us" and kind.tz in (None, "UTC"):
        return pa.string()
    if types.is_list(kind):
        inner = kind.value_field
        return pa.list_(pa.field("element", wire_type(inner.type, f"{where}[]"), inner.nullable))
    if types.is_map(kind) and types.is_string(kind.key_type):
        inner = kind.item_field
        return pa.map_(pa.string(), pa.field("value", wire_type(inner.type, f"{where}[]"), inner.nullable))
    if types.is_struct(kind):
        names = [field.name for field in kind]
        if not names:
            raise ValueError(f"{_named(where)}: a struct needs a field at least")
        if len(set(names)) < len(names):
            raise ValueError(f"{_named(where)}: a name of a field is there twice")
        return pa.struct(
            [
                pa.field(field.name, wire_type(field.type, f"{where}.{field.name}"), field.nullable)
                for field in kind
            ]
        )
    raise ValueError(f"{_named(where)}: {kind} cannot be read from JSON; declare it string, or leave it out")


def has_map(kind: pa.DataType) -> bool:
    """Whether there is a map somewhere, which Arrow's parser of JSON does not have."""
    return pa.types.is_map(kind) or any(has_map(kind.field(index).type) for index in range(kind.num_fields))


def has_decimal(kind: pa.DataType) -> bool:
    """Whether there is a decimal somewhere, for which numbers must not become floats on the way."""
    return pa.types.is_decimal(kind) or any(
        has_decimal(kind.field(index).type) for index in range(kind.num_fields)
    )


def relaxed(kind: pa.DataType) -> pa.DataType:
    """A wire type without maps in which everything may be null: Arrow's parser refuses a null
    struct whose fields are required."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, relaxed(field.type)) for field in kind])
    return pa.list_(pa.field("element", relaxed(kind.value_type))) if pa.types.is_list(kind) else kind


def lacks_required(array: pa.Array, kind: pa.DataType) -> bool:
    """True if a value that `kind` requires is null, in a struct that is not null, in an array of
    type `relaxed(kind)`."""
    if pa.types.is_list(kind):
        return (not kind.value_field.nullable and array.values.null_count > 0) or lacks_required(
            array.values, kind.value_type
        )
    if not pa.types.is_struct(kind):
        return False
    below = zip(array.flatten(), kind, strict=True)
    return any(
        (not field.nullable and child.null_count > array.null_count) or lacks_required(child, field.type)
        for child, field in below
    )


def convert(array: pa.Array, target: pa.DataType) -> pa.Array:
    """An array of a wire type, of offset 0, as one of `target`. Raises ArrowInvalid or ValueError
    if a value does not fit."""
    if array.type.equals(target):
        return array
    if pa.types.is_struct(target):
        # What lies under a null struct need not be null itself; flatten makes it so.
        below = (
            array.flatten()
            if array.null_count
            else [array.field(index) for index in range(target.num_fields)]
        )
        children = [_convert_field(child, target.field(index)) for index, child in enumerate(below)]
        return pa.Array.from_buffers(target, len(array), array.buffers()[:1], children=children)
    if pa.types.is_list(target):
        return pa.Array.from_buffers(
            target, len(array), array.buffers()[:2], children=[convert(array.values, target.value_type)]
        )
    if pa.types.is_map(target):
        entries = pa.StructArray.from_arrays(
            [array.keys, convert(array.items, target.item_type)], fields=[target.key_field, target.item_field]
        )
        return pa.Array.from_buffers(target, len(array), array.buffers()[:2], children=[entries])
    return _leaf(target)(array)


def _convert_field(array: pa.Array, field: pa.Field) -> pa.Array:
    try:
        return convert(array, field.type)
    except (pa.ArrowException, ValueError) as error:
        raise ValueError(f"{field.name}: {error}") from None


def _leaf(target: pa.DataType) -> Callable[[pa.Array], pa.Array]:
    if pa.types.is_timestamp(target):
        return _timestamps if target.tz is not None else _local_timestamps
    if pa.types.is_binary(target):
        return _from_base64
    return lambda array: array.cast(target)


def _timestamps(strings: pa.Array) -> pa.Array:
    """Timestamps in UTC from ISO 8601 texts with a `T` or a space; without a zone they are UTC.

    More than six digits of a second are cut off.
    """
    # Arrow takes either all with a zone or all without; usually they are alike.
    for kind in (pa.timestamp("us", "UTC"), pa.timestamp("us")):
        try:
            return strings.cast(kind).view(pa.timestamp("us", "UTC"))
        except pa.ArrowInvalid:
            continue
    strings = _to_microseconds(strings)
    zoned = pc.match_substring_regex(strings, _HAS_ZONE)
    without = pc.if_else(zoned, None, strings).cast(pa.timestamp("us")).view(pa.timestamp("us", "UTC"))
    return pc.coalesce(pc.if_else(zoned, strings, None).cast(pa.timestamp("us", "UTC")), without)


def _local_timestamps(strings: pa.Array) -> pa.Array:
    return _to_microseconds(strings).cast(pa.timestamp("us"))


def _to_microseconds(strings: pa.Array) -> pa.Array:
    """Texts of times with fractions of a second cut to six digits: Java writes nine, .NET seven."""
    if pc.any(pc.match_substring_regex(strings, _BEYOND_MICROSECONDS)).as_py():
        return pc.replace_substring_regex(strings, _BEYOND_MICROSECONDS, r"\1")
    return strings


def _from_base64(strings: pa.Array) -> pa.Array:
    """Binaries from base64 texts, as Spark's `from_json` reads them."""
    values = [
        None if text is None else binascii.a2b_base64(text, strict_mode=True) for text in strings.to_pylist()
    ]
    return pa.array(values, pa.binary())


def _named(where: str) -> str:
    return f"field {where.lstrip('.')}" if where else "the schema"
