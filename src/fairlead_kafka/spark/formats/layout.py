"""The layout of a read: its columns and the formats of keys and values, from options that are
checked when the read is planned."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pyspark.sql.types import BinaryType, DataType, StringType, StructField, StructType

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.compatibility import spark_type
from fairlead_kafka.spark.formats.ddl import parse_type
from fairlead_kafka.spark.formats.json_schema import wire_type
from fairlead_kafka.spark.formats.option_rows import REGISTRY_PREFIX

if TYPE_CHECKING:
    from fairlead_kafka.formats.avro_schema import AvroSchema
    from fairlead_kafka.spark.formats.messages import MessageOf

COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
LETTER_COLUMNS = ["key", "value", "topic", "partition", "offset"]
"""Columns that a dead letter is made of."""
HEADERS = "headers"
RESCUED = "rescued"
FORMATS = ("raw", "string", "json", "avro", "protobuf")
RESCUED_TYPE = StructType(
    [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("reason", StringType()),
    ]
)
"""The bytes of what did not parse, null for what did, and why; the whole struct is null where all
parsed."""


@dataclass(frozen=True)
class FieldFormat:
    """Format of keys, or of values.

    `reader` and `writer` are set for avro, `reader` by `Layout.resolved` if a subject names it.
    """

    field: str
    kind: str = "raw"
    schema: str | None = None
    subject: str | None = None
    registry: Mapping[str, str] | None = dataclasses.field(default=None, repr=False)
    reader: AvroSchema | None = None
    writer: AvroSchema | None = None
    message: MessageOf | None = None
    """Message of protobuf, with the files that describe it."""

    def spark_type(self) -> DataType:
        """The type of the column. ValueError names the part of a schema that Spark has no type
        for."""
        if self.kind == "json":
            kind = parse_type(self.schema or "")
            wire_type(kind)
            return kind
        if self.kind == "avro" and self.reader is not None:
            return spark_type(self.reader.arrow_type())
        if self.kind == "protobuf" and self.message is not None:
            return spark_type(self.message.deserializer(framed=False).arrow_type())
        return StringType() if self.kind == "string" else BinaryType()


@dataclass(frozen=True)
class Layout:
    """The columns that a read gives, in order, and the formats of keys and values."""

    columns: tuple[str, ...] = COLUMNS
    key: FieldFormat = FieldFormat("key")
    value: FieldFormat = FieldFormat("value")
    dead_letter_topic: str | None = None

    @property
    def decoded(self) -> tuple[FieldFormat, ...]:
        """The formats that have to be applied: those of columns that are asked for, or that
        `rescued` depends on."""
        wanted = (each for each in (self.key, self.value) if each.kind != "raw")
        kept = RESCUED in self.columns or self.dead_letter_topic is not None
        return tuple(each for each in wanted if kept or each.field in self.columns)

    @property
    def record_columns(self) -> list[str]:
        """The columns of records (topic, key, ...) that this layout is made of, and no others."""
        given = [name for name in self.columns if name != RESCUED]
        needed = [each.field for each in self.decoded]
        if self.dead_letter_topic is not None:
            needed += LETTER_COLUMNS
        return [*given, *(name for name in dict.fromkeys(needed) if name not in given)]

    def resolved(self) -> Layout:
        """The layout with the schemas that only a Schema Registry knows.

        Raises ConfigError, or RegistryFailed if the registry does not answer.
        """
        return replace(self, key=_resolved(self.key), value=_resolved(self.value))


DEFAULT_LAYOUT = Layout()


def _resolved(one: FieldFormat) -> FieldFormat:
    if one.kind != "avro" or one.reader is not None:
        return one
    from fairlead_kafka.formats.avro_schema import stored_avro
    from fairlead_kafka.formats.registry import SchemaRegistry, UnknownSchema

    try:
        with SchemaRegistry(one.registry or {}) as registry:
            reader = stored_avro(registry.latest(one.subject or ""), f"the subject {one.subject}")
        reader.arrow_type()
    except UnknownSchema as error:
        raise ConfigError(
            f"{one.field}Subject: {error}; set {one.field}Subject to a subject that is, or {one.field}Schema"
        ) from None
    except ValueError as error:
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{one.field}Subject: the schema of {one.subject}: {error} ({one.field}Schema)"
        ) from None
    return replace(one, reader=reader)


def read_layout(options: Mapping[str, str]) -> Layout:
    """The layout that Spark's options ask for. Raises one ConfigError that names all that is wrong
    about it."""
    layout, wrong = parse_layout(options)
    if wrong:
        raise ConfigError('options of read.format("fairlead"): ' + "; ".join(wrong))
    return layout


def parse_layout(options: Mapping[str, str]) -> tuple[Layout, list[str]]:
    """The layout that the options ask for, and what is wrong with them. Names of options may be in
    any case."""
    given = {name.lower(): text.strip() for name, text in options.items()}
    wrong: list[str] = []
    registry = {
        name.removeprefix(REGISTRY_PREFIX): text
        for name, text in given.items()
        if name.startswith(REGISTRY_PREFIX)
    }
    if registry and not registry.get("url"):
        wrong.append("schemaRegistry.url: required with other options of schemaRegistry")
    key, value = (_parse_format(field, given, registry or None, wrong) for field in ("key", "value"))
    check_registry(registry, (key, value), wrong)
    letters = given.get("deadlettertopic") or None
    formatted = key.kind != "raw" or value.kind != "raw"
    if letters is not None and not formatted:
        wrong.append("deadLetterTopic: has no meaning without valueFormat or keyFormat: bytes always parse")
    columns = _parse_columns(given, formatted and letters is None, wrong)
    return Layout(columns, key, value, letters), wrong


def check_registry(registry: Mapping[str, str], formats: tuple[FieldFormat, ...], wrong: list[str]) -> None:
    """Add a message to `wrong` if a Schema Registry is given that no format uses."""
    if registry and not any(one.kind in ("avro", "protobuf") for one in formats):
        wrong.append(
            "schemaRegistry.url: has no meaning without valueFormat=avro or keyFormat=avro (or protobuf)"
        )


def _parse_columns(given: Mapping[str, str], rescues: bool, wrong: list[str]) -> tuple[str, ...]:
    with_headers = given.get("includeheaders", "false").lower() == "true"
    there_are = (*COLUMNS, HEADERS, *((RESCUED,) if rescues else ()))
    if "columns" not in given:
        return tuple(name for name in there_are if name != HEADERS or with_headers)
    proper = {name.lower(): name for name in there_are}
    asked = [name.strip() for name in given["columns"].split(",") if name.strip()]
    unknown = [name for name in asked if name.lower() not in proper]
    columns = tuple(dict.fromkeys(proper[name.lower()] for name in asked if name.lower() in proper))
    if unknown:
        hint = (
            f"; {RESCUED} comes with valueFormat or keyFormat other than raw"
            if RESCUED in map(str.lower, unknown)
            else ""
        )
        wrong.append(f"columns: there is no {', '.join(unknown)}, but {', '.join(there_are)}{hint}")
    elif not columns or len(columns) < len(asked):
        wrong.append("columns: name each column once, and one at least")
    if with_headers and HEADERS not in columns:
        wrong.append(
            "columns: includeHeaders=true asks for headers, which columns leaves out; name it there, or drop "
            "includeHeaders"
        )
    return columns


def _parse_format(
    field: str, given: Mapping[str, str], registry: Mapping[str, str] | None, wrong: list[str]
) -> FieldFormat:
    kind = given.get(f"{field}format", "raw").lower()
    schema, writer, subject = (given.get(f"{field}{name}") for name in ("schema", "writerschema", "subject"))
    if kind not in FORMATS:
        wrong.append(f"{field}Format: must be one of {', '.join(FORMATS)}, got {given[f'{field}format']!r}")
        return FieldFormat(field)
    if kind == "protobuf":
        return parse_protobuf(field, given, registry, wrong)
    wrong += meaningless(field, ("Descriptor", "Message"), given, kind)
    if kind == "avro":
        return _parse_avro(field, given, registry, wrong)
    for name, text in (
        ("Schema", schema if kind != "json" else None),
        ("WriterSchema", writer),
        ("Subject", subject),
    ):
        if text is not None:
            wrong.append(f"{field}{name}: has no meaning with {field}Format={kind}")
    if kind == "json" and not schema:
        wrong.append(
            f"{field}Schema: required with {field}Format=json: the fields in Spark's DDL, such as host "
            "STRING, bytes BIGINT"
        )
        return FieldFormat(field)
    parsed = FieldFormat(field, kind, schema)
    try:
        parsed.spark_type()
    except ValueError as error:
        wrong.append(f"{field}Schema: {error}")
    return parsed


def meaningless(field: str, names: tuple[str, ...], given: Mapping[str, str], kind: str) -> list[str]:
    """Messages, for options of a field (key or value) that are given and have no meaning with its
    format `kind`."""
    return [
        f"{field}{name}: has no meaning with {field}Format={kind}"
        for name in names
        if f"{field}{name}".lower() in given
    ]


def parse_protobuf(
    field: str, given: Mapping[str, str], registry: Mapping[str, str] | None, wrong: list[str]
) -> FieldFormat:
    """The format of a field (key or value) that holds Protobuf messages; problems are added to
    `wrong`."""
    wrong += meaningless(field, ("Schema", "WriterSchema"), given, "protobuf")
    path, named = given.get(f"{field}descriptor"), given.get(f"{field}message")
    if not path or not named:
        wrong.append(
            f"{field}Descriptor: required with {field}Format=protobuf, and {field}Message: the file "
            f"that protoc "
            "--include_imports --descriptor_set_out wrote, and the full name of a message"
        )
        return FieldFormat(field)
    try:
        from fairlead_kafka.spark.formats.messages import read_message

        message = read_message(path, named)
    except ValueError as error:
        wrong.append(f"{field}Descriptor: {error}")
        return FieldFormat(field)
    return FieldFormat(field, "protobuf", None, given.get(f"{field}subject"), registry, message=message)


def _parse_avro(
    field: str, given: Mapping[str, str], registry: Mapping[str, str] | None, wrong: list[str]
) -> FieldFormat:
    try:
        from fairlead_kafka.formats.avro_schema import AvroSchema
    except ImportError as error:
        wrong.append(
            f"{field}Format: avro needs fastavro ({error}); pip install 'fairlead-kafka[spark]', also where "
            "executors run"
        )
        return FieldFormat(field)
    schema, written, subject = (given.get(f"{field}{name}") for name in ("schema", "writerschema", "subject"))
    if not schema and registry is None:
        wrong.append(
            f"{field}Schema: required with {field}Format=avro, an Avro schema in JSON, unless "
            "schemaRegistry.url is set"
        )
    if written and (registry is not None or not schema):
        wrong.append(f"{field}WriterSchema: is for avro without schemaRegistry.url, beside {field}Schema")
    if subject and (registry is None or schema):
        wrong.append(
            f"{field}Subject: is for avro with schemaRegistry.url and without {field}Schema, which says it "
            "all itself"
        )
    texts = (("Schema", schema), ("WriterSchema", written))
    for name, text in texts:
        try:
            if text and name == "Schema":
                AvroSchema(text).arrow_type()
            elif text:
                AvroSchema(text).parsed()
        except ValueError as error:
            wrong.append(f"{field}{name}: {error}")
    if not schema and not subject:
        topics = [name.strip() for name in given.get("subscribe", "").split(",") if name.strip()]
        subject = f"{topics[0]}-{field}" if len(topics) == 1 else None
        if registry is not None and subject is None:
            wrong.append(
                f"{field}Subject: required where more than one topic may be read, or set {field}Schema"
            )
    reader = AvroSchema(schema) if schema else None
    return FieldFormat(
        field, "avro", None, subject, registry, reader, AvroSchema(written) if written else reader
    )
