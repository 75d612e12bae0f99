"""Formats of a write: serialization of the columns key and value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql.types import DataType, StringType

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.spark.compatibility import arrow_type
from fairlead_kafka.spark.formats.layout import (
    FORMATS,
    FieldFormat,
    check_registry,
    meaningless,
    parse_protobuf,
)
from fairlead_kafka.spark.formats.option_rows import REGISTRY_PREFIX

if TYPE_CHECKING:
    from fairlead_kafka.formats.building import Reasons
    from fairlead_kafka.formats.context import SerializationContext

_SWITCHES = ("auto.register.schemas", "normalize.schemas", "use.latest.version")
_STRATEGY = "subject.name.strategy"
Encode = Callable[[pa.Array, "SerializationContext"], tuple[pa.Array, "Reasons"]]


@dataclass(frozen=True)
class WriteFormats:
    """The formats of keys and values in a write, and where rows go that cannot be written."""

    key: FieldFormat = dataclasses.field(default_factory=lambda: FieldFormat("key"))
    value: FieldFormat = dataclasses.field(default_factory=lambda: FieldFormat("value"))
    dead_letter_topic: str | None = None

    @property
    def encoded(self) -> tuple[FieldFormat, ...]:
        """The formats that have to be applied: all but raw and string."""
        return tuple(each for each in (self.key, self.value) if each.kind not in ("raw", "string"))


def parse_write_formats(options: Mapping[str, str]) -> tuple[WriteFormats, list[str]]:
    """The formats that Spark's options ask for, and what is wrong."""
    given = {name.lower(): text.strip() for name, text in options.items()}
    wrong: list[str] = []
    registry = {
        name.removeprefix(REGISTRY_PREFIX): text
        for name, text in given.items()
        if name.startswith(REGISTRY_PREFIX)
    }
    if registry and not registry.get("url"):
        wrong.append("schemaRegistry.url: required with other options of schemaRegistry")
    key, value = (_parse(name, given, registry or None, wrong) for name in ("key", "value"))
    check_registry(registry, (key, value), wrong)
    formats = WriteFormats(key, value, given.get("deadlettertopic") or None)
    if formats.dead_letter_topic is not None and not formats.encoded:
        wrong.append(
            "deadLetterTopic: has no meaning without valueFormat or keyFormat: bytes are written as they are"
        )
    return formats, wrong


def _parse(
    field: str, given: Mapping[str, str], registry: Mapping[str, str] | None, wrong: list[str]
) -> FieldFormat:
    kind = given.get(f"{field}format", "raw").lower()
    if kind not in FORMATS:
        wrong.append(f"{field}Format: must be one of {', '.join(FORMATS)}, got {given[f'{field}format']!r}")
        return FieldFormat(field)
    if kind == "protobuf":
        parsed = parse_protobuf(field, given, registry, wrong)
    else:
        wrong += meaningless(field, ("Descriptor", "Message"), given, kind)
        schema, subject = given.get(f"{field}schema"), given.get(f"{field}subject")
        if kind != "avro":
            for name, text in (("Schema", schema), ("Subject", subject)):
                if text is not None:
                    wrong.append(f"{field}{name}: has no meaning in a write with {field}Format={kind}")
        elif not schema and registry is None:
            wrong.append(f"{field}Schema: required with {field}Format=avro, unless schemaRegistry.url is set")
            return FieldFormat(field)
        parsed = FieldFormat(field, kind, schema, subject, registry if kind == "avro" else None)
    try:
        encoder_of(parsed)
    except (ConfigError, ImportError) as error:
        wrong.append(f"{field}Format: {error}")
    return parsed


def encoder_of(one: FieldFormat) -> Encode | None:
    """A function that makes a column of bytes; None for a column that is written as it is.
    ConfigError for a schema or setting that cannot work; no registry is asked."""
    if one.kind == "json":
        from fairlead_kafka.formats.json_serde import JsonSerializer

        return JsonSerializer().encode_column
    if one.kind == "avro":
        from fairlead_kafka.formats.avro_serde import AvroSerializer

        settings, conf = _registry_of(one)
        if settings is not None and not one.schema:
            conf = {"use.latest.version": True, **conf}
        return AvroSerializer(settings, one.schema or None, conf=conf).encode_column
    if one.kind == "protobuf" and one.message is not None:
        from fairlead_kafka.formats.protobuf_serde import ProtobufSerializer

        return ProtobufSerializer(one.message.message(), *_registry_of(one)).encode_column
    return None


def _registry_of(one: FieldFormat) -> tuple[dict[str, str] | None, dict[str, object]]:
    """Settings of the Schema Registry's client, and settings of the serializer, out of a format's;
    None and nothing without a registry. ConfigError for an invalid setting."""
    if one.registry is None:
        return None, {}
    settings = dict(one.registry)
    conf: dict[str, object] = {}
    for name in _SWITCHES:
        if name in settings:
            text = settings.pop(name).lower()
            if text not in ("true", "false"):
                raise ConfigError(f"schemaRegistry.{name}: must be true or false, got {text!r}")
            conf[name] = text == "true"
    if _STRATEGY in settings:
        conf[_STRATEGY] = settings.pop(_STRATEGY)
    if one.subject is not None:
        subject = one.subject
        conf[_STRATEGY] = lambda context, name: subject
    return settings, conf


def unwritable(one: FieldFormat, kind: DataType) -> str | None:
    """Why a column of type `kind` cannot be written in the format `one`, in words; None if it
    can."""
    if one.kind == "string":
        return None if isinstance(kind, StringType) else f"must be string with {one.field}Format=string"
    try:
        arrow = arrow_type(kind)
        if one.kind == "json":
            from fairlead_kafka.formats.json_writing import check_json

            check_json(arrow)
    except Exception as error:  # Spark has errors of its own for types that Arrow lacks
        return f"cannot be written as {one.kind} ({error})"
    if one.kind == "protobuf" and not pa.types.is_struct(arrow):
        return f"must be a struct with {one.field}Format=protobuf, not {kind.simpleString()}"
    return None
