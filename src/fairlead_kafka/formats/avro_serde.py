"""Avro, framed for a Schema Registry or plain (extra `avro`)."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.base.json_types import Json
from fairlead_kafka.formats.building import Decode, Reasons
from fairlead_kafka.formats.context import SerializationContext, conversion
from fairlead_kafka.formats.framing import READING, WRITING, Reader, Writer, frame_config, named_schema
from fairlead_kafka.formats.registry import (
    AVRO,
    SCHEMAS_KEPT_MAX,
    SchemaReference,
    SchemaRegistry,
    StoredSchema,
    registry_of,
)

try:
    import fastavro

    from fairlead_kafka.formats.avro_columns import columns_decoder, encode_columns
    from fairlead_kafka.formats.avro_rows import read_value, reason, value_way
    from fairlead_kafka.formats.avro_schema import AvroSchema, stored_avro
except ImportError as error:  # pragma: no cover
    raise ConfigError(f"Avro needs fastavro ({error}); pip install 'fairlead-kafka[avro]'") from None

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from fastavro.types import NamedSchemas, Schema

T = TypeVar("T")


class AvroSerializer:
    """Writes dictionaries as Avro; in tables, columns of structs.

    With a Schema Registry messages are in Confluent's wire format, without one plain.
    confluent-kafka's AvroSerializer writes the same bytes.
    """

    def __init__(
        self,
        registry: SchemaRegistry | SchemaRegistryClient | Mapping[str, object] | None,
        schema: str | Mapping[str, object] | None = None,
        to_dict: Callable[[T, SerializationContext], object] | None = None,
        conf: Mapping[str, object] | None = None,
        *,
        references: Sequence[SchemaReference] = (),
    ) -> None:
        """`registry`: one, its settings, or None for plain Avro. `schema`: Avro's JSON; None with
        `use.latest.version`. `to_dict` turns an object into a dictionary. `conf`:
        auto.register.schemas (True), normalize.schemas, use.latest.version (False),
        subject.name.strategy (TopicNameStrategy), schema.id.location (prefix; or header, a GUID).
        ConfigError for what is wrong; the registry is asked with the first message."""
        config = frame_config(conf, WRITING)
        self._text = schema if isinstance(schema, str) or schema is None else json.dumps(schema)
        self._to_dict = conversion(to_dict)
        self._writer: Writer | None = None
        self._parsed = lru_cache(SCHEMAS_KEPT_MAX)(_parsed)
        self._name: str | None = None
        if registry is not None:
            self._writer = Writer(registry_of(registry), config, AVRO, references)
        elif schema is None or references:
            raise ConfigError("AvroSerializer: without a Schema Registry a schema is needed, whole")
        if self._text is None:
            if not config.use_latest:
                raise ConfigError("AvroSerializer: a schema is needed, or use.latest.version")
        elif not references:
            try:
                self._name = _full_name(AvroSchema(self._text).parsed()[0])
            except ValueError as error:
                raise ConfigError(f"AvroSerializer: {error}") from None
        else:
            self._name = _own_name(self._text)

    def __call__(self, value: object, context: SerializationContext) -> bytes | None:
        """The bytes of a value. Raises InvalidRecord, or what fastavro raises, for a value that
        does not fit the schema, RegistryFailed if the registry does not answer; None stays null."""
        if value is None:
            return None
        if self._to_dict is not None:
            value = self._to_dict(value, context)
        schema = self._schema(context)
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, self._parsed(schema)[0], value)
        if self._writer is None:
            return stream.getvalue()
        return self._writer.framed(schema, stream.getvalue(), context)

    def encode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A binary column and the reasons by row; values that do not fit the schema are null in
        it."""
        schema = self._schema(context)
        prefix = b"" if self._writer is None else self._writer.prefix(schema)
        parsed = self._parsed(schema)[0]

        def one(value: object) -> bytes:
            stream = io.BytesIO()
            fastavro.schemaless_writer(stream, parsed, value)
            return stream.getvalue()

        return encode_columns(stored_avro(schema, "the schema"), array, prefix, one)

    def _schema(self, context: SerializationContext) -> StoredSchema:
        if self._writer is None:
            assert self._text is not None, "it was asked for"
            return StoredSchema(AVRO, self._text)
        return self._writer.schema(context, self._name, self._text)


class AvroDeserializer:
    """Reads Avro as dictionaries; in tables, as columns of structs. Reads what confluent-kafka's
    AvroDeserializer reads: Confluent's framings with a schema id and with a GUID in a header."""

    def __init__(
        self,
        registry: SchemaRegistry | SchemaRegistryClient | Mapping[str, object] | None,
        schema: str | Mapping[str, object] | None = None,
        from_dict: Callable[[T, SerializationContext], object] | None = None,
        conf: Mapping[str, object] | None = None,
        *,
        writer_schema: str | Mapping[str, object] | None = None,
    ) -> None:
        """`registry`: one, its settings, or None for plain Avro. `schema`: the reader's, into which
        messages are resolved; None for the writer's, and with `use.latest.version`, as for columns,
        for the latest of the subject. `writer_schema`: of plain Avro, if it is another. `conf`:
        use.latest.version (False), subject.name.strategy. ConfigError for what is wrong."""
        config = frame_config(conf, READING)
        self._config = config
        self._from_dict = conversion(from_dict)
        self._registry = None if registry is None else registry_of(registry)
        self._fixed = _schema_of(schema)
        self._written = _schema_of(writer_schema) or self._fixed
        if self._registry is None and self._fixed is None:
            raise ConfigError("AvroDeserializer: without a Schema Registry a schema is needed")
        if self._registry is not None:
            if writer_schema is not None:
                raise ConfigError("AvroDeserializer: writer_schema is for plain Avro: messages name theirs")
            self._writers = Reader(
                self._registry, lambda stored: stored_avro(stored, "what the message names")
            )
        self._latest = lru_cache(SCHEMAS_KEPT_MAX)(self._latest_of)
        self._decoders = lru_cache(SCHEMAS_KEPT_MAX)(self._decoder)
        self._ways = lru_cache(SCHEMAS_KEPT_MAX)(value_way)

    def __call__(self, data: bytes | None, context: SerializationContext) -> object:
        """The value that the bytes hold; None for a null. ValueError for bytes that do not parse,
        RegistryFailed if the registry does not answer."""
        if data is None:
            return None
        writer, payload, start = self._written, data, 0
        if self._registry is not None:
            schema_id, payload, start = named_schema(data, context)
            writer = self._writers.of(schema_id)
        assert writer is not None, "it was asked for"
        reader = self._reader(context) if self._fixed is not None or self._config.use_latest else None
        try:
            value = read_value(payload, start, self._ways(writer, reader))
        except Exception as error:  # the library raises whatever it stumbles over
            raise ValueError(reason(error)) from error
        return value if self._from_dict is None else self._from_dict(value, context)

    def decode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A column of the reader's schema and the reasons by row; values that do not parse are null
        in it. RegistryFailed if the registry does not answer, ConfigError if it has no such
        subject."""
        return self._decoders(self._reader(context))(array.cast(pa.binary()))

    def _reader(self, context: SerializationContext) -> AvroSchema:
        if self._fixed is not None:
            return self._fixed
        subject = self._config.strategy(context, None)
        if not subject:
            raise ConfigError("subject.name.strategy: it gave no subject; give a schema")
        return self._latest(subject)

    def _latest_of(self, subject: str) -> AvroSchema:
        assert self._registry is not None, "without one there is a schema"
        try:
            return stored_avro(self._registry.latest(subject), f"the subject {subject}")
        except ValueError as error:
            raise ConfigError(f"AvroDeserializer: {error}; give a schema to read into") from None

    def _decoder(self, reader: AvroSchema) -> Decode:
        look_up = None if self._registry is None else self._writers.of
        try:
            return columns_decoder(reader, self._written or reader, look_up, reader.arrow_type())
        except ValueError as error:
            raise ConfigError(f"AvroDeserializer: {error}") from None


def _parsed(schema: StoredSchema) -> tuple[Schema, NamedSchemas]:
    try:
        return stored_avro(schema, "the schema").parsed()
    except ValueError as error:
        raise InvalidRecord(str(error)) from None


def _schema_of(given: str | Mapping[str, object] | None) -> AvroSchema | None:
    if given is None:
        return None
    schema = AvroSchema(given if isinstance(given, str) else json.dumps(given))
    try:
        schema.parsed()
    except ValueError as error:
        raise ConfigError(f"AvroDeserializer: {error}") from None
    return schema


def _full_name(parsed: Schema) -> str | None:
    if isinstance(parsed, str):
        return parsed
    return str(parsed.get("name") or parsed["type"]) if isinstance(parsed, dict) else None


def _own_name(text: str) -> str | None:
    """The full name in a schema's own JSON; None for a schema without a name. The schemas that it
    refers to are not looked at. ConfigError if the text is not JSON."""
    try:
        schema: Json = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"AvroSerializer: not an Avro schema in JSON ({error})") from None
    if not isinstance(schema, dict):
        return None
    name, space = schema.get("name"), schema.get("namespace")
    if not isinstance(name, str):
        return None
    return f"{space}.{name}" if name and space and "." not in name else name
