"""Spark's types that JSON can be read into, with the Arrow types in between."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    MapType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

_WIRE_TYPES: dict[type[DataType], pa.DataType] = {
    BooleanType: pa.bool_(),
    ByteType: pa.int8(),
    ShortType: pa.int16(),
    IntegerType: pa.int32(),
    LongType: pa.int64(),
    FloatType: pa.float64(),
    DoubleType: pa.float64(),
    StringType: pa.string(),
    BinaryType: pa.string(),
    DateType: pa.string(),
    TimestampType: pa.string(),
    TimestampNTZType: pa.string(),
}


def wire_type(kind: DataType, where: str = "") -> pa.DataType:
    """The Arrow type that JSON is read into for Spark's `kind`. Raises ValueError naming the field
    that JSON cannot give."""
    if type(kind) in _WIRE_TYPES:
        return _WIRE_TYPES[type(kind)]
    if isinstance(kind, DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, ArrayType):
        return pa.list_(pa.field("element", wire_type(kind.elementType, f"{where}[]"), kind.containsNull))
    if isinstance(kind, MapType):
        if type(kind.keyType) is not StringType:
            raise ValueError(
                f"{_named(where)}: keys of a map are strings in JSON, not {kind.keyType.simpleString()}; use "
                "map<string, …>"
            )
        return pa.map_(
            pa.string(), pa.field("value", wire_type(kind.valueType, f"{where}[]"), kind.valueContainsNull)
        )
    if isinstance(kind, StructType):
        if not kind.fields:
            raise ValueError(f"{_named(where)}: a struct needs a field at least")
        if len(set(kind.names)) < len(kind.names):
            raise ValueError(f"{_named(where)}: a name of a field is there twice")
        fields = [
            pa.field(field.name, wire_type(field.dataType, f"{where}.{field.name}"), field.nullable)
            for field in kind
        ]
        return pa.struct(fields)
    raise ValueError(
        f"{_named(where)}: {kind.simpleString()} cannot be read from JSON; declare it string, or leave it out"
    )


def _named(where: str) -> str:
    return f"field {where.lstrip('.')}" if where else "the schema"
