"""Avro to Arrow: each value by fastavro, then whole columns by Arrow.

Two framings. With a Schema Registry a value is Confluent's wire format: a zero byte, the id of the
schema it was written with in four bytes, then Avro's binary form. Without one, it is the binary
form alone, written with one schema that the options give. Either way it is resolved into the
reader's schema as Avro's specification has it: fields that are new get their default, fields that
are gone are passed over.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import pyarrow as pa
from fastavro import schemaless_reader
from fastavro.types import Schema

from fairlead_kafka.formats.avro_schema import Adapt, AvroSchema
from fairlead_kafka.formats.building import Decode, Reasons, array_of, build, one_line
from fairlead_kafka.formats.framing import MAGIC, PREFIX_BYTES, named_schema
from fairlead_kafka.formats.registry import RegistryFailed, UnknownSchema

WAYS_KEPT_MAX = 1000
"""Schemas of writers that a decoder remembers."""
Way = tuple[Schema, Schema | None, Adapt | None]
"""From bytes to a value: the writer's schema and the reader's as fastavro takes them (None: the
same), and what is done then."""
LookUp = Callable[[int | str], AvroSchema]
"""From an id or GUID to the schema. Raises UnknownSchema, ValueError or RegistryFailed."""


def avro_decoder(
    reader: AvroSchema, writer: AvroSchema, look_up: LookUp | None, target: pa.DataType
) -> Decode:
    """A function from a binary array to an array of `target` and the reasons of the rows that do
    not parse, which are null in it.

    With `look_up`, writers' schemas are looked up by the ids in the values, else `writer` is
    theirs. The function raises RegistryFailed if the registry does not answer.
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
            return _read(data, 0, way)
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
        return _read(payload, start, way)

    return read


def _way(writer: AvroSchema, reader: AvroSchema) -> Way:
    same = writer == reader
    return writer.parsed()[0], None if same else reader.parsed()[0], reader.adapter(same)


def _read(data: bytes, start: int, way: Way) -> object:
    writer, reader, adapt = way
    stream = io.BytesIO(data)
    stream.seek(start)
    value = schemaless_reader(stream, writer, reader)
    left = len(data) - stream.tell()
    if left:
        raise ValueError(f"{left} bytes are left over after the record")
    return value if adapt is None else adapt(value)


def read_value(data: bytes, start: int, writer: Schema, reader: Schema | None) -> object:
    """A value as fastavro gives it, of the bytes from `start` to the end. ValueError if they hold
    more."""
    return _read(data, start, (writer, reader, None))


def reason(error: Exception) -> str:
    """Why a value does not parse, in words."""
    ended = isinstance(error, EOFError) and (not str(error) or "BytesIO" in str(error))
    return "the bytes end before the record does" if ended else one_line(error)
