"""Avro to Arrow: each value by fastavro, then whole columns by Arrow.

There are two framings. With a Schema Registry a value is Confluent's wire format: a zero byte, the
id of the schema it was written with in four bytes, then Avro's binary form. Without one, it is the
binary form alone, written with one schema that the options give. Either way it is resolved into the
reader's schema as Avro's specification has it: new fields get their default, removed fields are
ignored.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import NamedTuple

import pyarrow as pa
from fastavro import schemaless_reader
from fastavro.types import Schema

from fairlead_kafka.formats.avro_bounds import Bounds
from fairlead_kafka.formats.avro_schema import Adapt, AvroSchema
from fairlead_kafka.formats.building import Decode, Reasons, array_of, build, one_line
from fairlead_kafka.formats.framing import MAGIC, PREFIX_BYTES, named_schema
from fairlead_kafka.formats.registry import RegistryFailed, UnknownSchema

WAYS_KEPT_MAX = 1000
"""Bound on the writers' schemas that a decoder remembers."""
_ENDED = "the bytes end before the record does"
LookUp = Callable[[int | str], AvroSchema]
"""Function from a schema's id or GUID to the schema. Raises UnknownSchema, ValueError or
RegistryFailed."""


class Way(NamedTuple):
    """The schemas to read bytes with, as fastavro takes them (`reader`: None for the writer's), and
    the function applied to fastavro's value."""

    writer: Schema
    reader: Schema | None
    adapt: Adapt | None
    bounds: Bounds


def avro_decoder(
    reader: AvroSchema, writer: AvroSchema, look_up: LookUp | None, target: pa.DataType
) -> Decode:
    """A function from a binary array to an array of `target` and the reasons of the rows that do
    not parse, which are null in it.

    With `look_up`, writers' schemas are looked up by the ids in the values, else all values are
    written with `writer`. The function raises RegistryFailed if the registry does not answer.
    """
    read = _plain(reader, writer) if look_up is None else _framed(reader, look_up)

    def decode(array: pa.Array) -> tuple[pa.Array, Reasons]:
        values: list[object] = []
        reasons: Reasons = {}
        for row, data in enumerate(array.to_pylist()):
            value = None
            if data is not None:
                try:
                    value = read(data)
                except RegistryFailed:
                    raise
                except Exception as error:
                    # Bytes may say anything, and the library raises whatever it then stumbles over.
                    reasons[row] = reason(error)
            values.append(value)
        return build(values, lambda some: array_of(some, target), reasons), reasons

    return decode


def _plain(reader: AvroSchema, writer: AvroSchema) -> Callable[[bytes], object]:
    way = _way(writer, reader)

    def read(data: bytes) -> object:
        try:
            return read_value(data, 0, way)
        except Exception:
            if len(data) > PREFIX_BYTES and data[0] == MAGIC:
                raise ValueError(
                    "not plain Avro; it begins as Confluent's wire format does: set schemaRegistry.url"
                ) from None
            raise

    return read


def _framed(reader: AvroSchema, look_up: LookUp) -> Callable[[bytes], object]:
    known: dict[int | str, Way | str] = {}

    def found(schema_id: int | str) -> Way | str:
        writer = look_up(schema_id)  # which remembers what is not known, for as long as it sees fit
        try:
            return _way(writer, reader)
        except ValueError as error:
            return f"schema id {schema_id}: {error}"

    def read(data: bytes) -> object:
        schema_id, payload, start = named_schema(data, None)
        way = known.get(schema_id)
        if way is None:
            if len(known) >= WAYS_KEPT_MAX:
                known.clear()
            way = known[schema_id] = found(schema_id)
        if isinstance(way, str):
            raise UnknownSchema(way)
        return read_value(payload, start, way)

    return read


def _way(writer: AvroSchema, reader: AvroSchema) -> Way:
    return value_way(writer, reader)._replace(adapt=reader.adapter(writer == reader))


def value_way(writer: AvroSchema, reader: AvroSchema | None) -> Way:
    """The way to read values as fastavro gives them, without columns; `reader`: None for the
    writer's schema. ValueError if a schema is not Avro."""
    resolved = None if reader is None or reader == writer else reader.parsed()[0]
    return Way(writer.parsed()[0], resolved, None, Bounds(writer))


def read_value(data: bytes, start: int, way: Way) -> object:
    """The value of the bytes from `start` to the end. ValueError if bytes are left over after it;
    fastavro's exceptions, of any class, if the bytes are not a value of the schema."""
    way.bounds.check(data, start)
    stream = io.BytesIO(data)
    stream.seek(start)
    value = schemaless_reader(stream, way.writer, way.reader)
    left = len(data) - stream.tell()
    if left:
        raise ValueError(f"{left} bytes are left over after the record")
    return value if way.adapt is None else way.adapt(value)


def reason(error: Exception) -> str:
    """The reason why a value does not parse, in words."""
    said = str(error)
    if isinstance(error, EOFError) and (not said or "BytesIO" in said):
        return _ENDED
    # fastavro takes a byte where there is none, or a symbol or branch that is not in a list.
    if isinstance(error, IndexError):
        return _ENDED if "string index" in said else "a branch of a union or a symbol that the schema lacks"
    return one_line(error)
