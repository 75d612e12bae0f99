"""Avro to Arrow: each value by fastavro, then whole columns by Arrow.

Two framings. With a Schema Registry a value is Confluent's wire format: a zero byte, the id of the
schema it was written with in four bytes, then Avro's binary form. Without one, it is the binary
form alone, written with one schema that the options give. Either way it is resolved into the
reader's schema as Avro's specification has it: fields that are new get their default, fields that
are gone are passed over.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping

import pyarrow as pa
from fastavro import schemaless_reader
from fastavro.types import Schema

from fairlead_kafka.spark.formats.avro_types import Adapt, AvroSchema
from fairlead_kafka.spark.formats.building import Decode, Reasons, array_of, build, one_line
from fairlead_kafka.spark.formats.registry import RegistryFailed, UnknownSchema, schema_by_id

_MAGIC = 0
_HEADER_SIZE_BYTES = 5

Way = tuple[Schema, Schema | None, Adapt | None]
"""From bytes to a value: the writer's schema and the reader's as fastavro takes them (None: the
same), and what is done then."""


def avro_decoder(
    reader: AvroSchema, writer: AvroSchema, registry: Mapping[str, str] | None, target: pa.DataType
) -> Decode:
    """A function from a binary array to an array of `target` and the reasons of the rows that do
    not parse, which are null in it.

    With `registry` (settings of its client), writers' schemas are looked up by the ids in the
    values, else `writer` is theirs. The function raises RegistryFailed if the registry does not
    answer.
    """
    read = _plain(reader, writer) if registry is None else _framed(reader, registry)

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
                    reasons[row] = _reason(error)
            values.append(value)
        return build(values, lambda some: array_of(some, target), reasons), reasons

    return decode


def _plain(reader: AvroSchema, writer: AvroSchema) -> Callable[[bytes], object]:
    way = _way(writer, reader)

    def read(data: bytes) -> object:
        try:
            return _read(data, 0, way)
        except Exception:
            if len(data) > _HEADER_SIZE_BYTES and data[0] == _MAGIC:
                raise ValueError(
                    "not plain Avro; it begins as Confluent's wire format does: set schemaRegistry.url"
                ) from None
            raise

    return read


def _framed(reader: AvroSchema, settings: Mapping[str, str]) -> Callable[[bytes], object]:
    address = tuple(sorted(settings.items()))
    known: dict[int, Way | str] = {}

    def look_up(schema_id: int) -> Way | str:
        try:
            return _way(schema_by_id(address, schema_id), reader)
        except UnknownSchema as error:
            return str(error)
        except ValueError as error:
            return f"schema id {schema_id}: {error}"

    def read(data: bytes) -> object:
        if len(data) < _HEADER_SIZE_BYTES or data[0] != _MAGIC:
            raise ValueError(
                "not in Confluent's wire format: a zero byte and four bytes of the schema's id are missing"
            )
        schema_id = int.from_bytes(data[1:_HEADER_SIZE_BYTES], "big")
        way = known.get(schema_id)
        if way is None:
            way = known[schema_id] = look_up(schema_id)
        if isinstance(way, str):
            raise UnknownSchema(way)
        return _read(data, _HEADER_SIZE_BYTES, way)

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


def _reason(error: Exception) -> str:
    return (
        "the bytes end before the record does"
        if isinstance(error, EOFError) and not str(error)
        else one_line(error)
    )
