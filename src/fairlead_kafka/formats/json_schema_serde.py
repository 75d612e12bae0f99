"""JSON that a JSON Schema describes, framed for a Schema Registry (extra `jsonschema`).

Values are checked one by one, by a validator in machine code; columns are written and read like
those without a schema.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NoReturn, TypeVar

import pyarrow as pa

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.json_types import JsonObject, read_json
from fairlead_kafka.formats.building import Reasons, one_line
from fairlead_kafka.formats.context import SerializationContext, conversion
from fairlead_kafka.formats.framing import WRITING, FrameConfig, Reader, Writer, frame_config, named_schema
from fairlead_kafka.formats.json_serde import JsonDeserializer, JsonSerializer
from fairlead_kafka.formats.registry import (
    JSON,
    SCHEMAS_KEPT_MAX,
    SchemaReference,
    SchemaRegistry,
    StoredSchema,
    registry_of,
)

try:
    import jsonschema_rs
except ImportError as error:  # pragma: no cover
    raise ConfigError(
        f"JSON Schema needs jsonschema-rs ({error}); pip install 'fairlead-kafka[jsonschema]'"
    ) from None

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

T = TypeVar("T")
Check = Callable[[object], None]
"""Raises ValueError, saying where and why, for a value that a schema does not allow."""


class JsonSchemaSerializer:
    """Writes dictionaries as JSON that a schema allows, in Confluent's wire format; in tables,
    columns of structs. It is compatible with confluent-kafka's JSONSerializer."""

    def __init__(
        self,
        registry: SchemaRegistry | SchemaRegistryClient | Mapping[str, object],
        schema: str | Mapping[str, object] | None = None,
        to_dict: Callable[[T, SerializationContext], object] | None = None,
        conf: Mapping[str, object] | None = None,
        *,
        references: Sequence[SchemaReference] = (),
    ) -> None:
        """`schema`: JSON Schema; None with `use.latest.version`. `conf` as AvroSerializer's, and
        `validate` (True). ConfigError for what is wrong."""
        self._validates, config = _split(conf, (*WRITING, "validate"))
        self._text = schema if isinstance(schema, str) or schema is None else json.dumps(schema)
        if self._text is None and not config.use_latest:
            raise ConfigError("JsonSchemaSerializer: a schema is needed, or use.latest.version")
        self._name = None if self._text is None else _title(self._text)
        self._to_dict = conversion(to_dict)
        self._writer = Writer(registry_of(registry), config, JSON, references)
        self._checks = lru_cache(SCHEMAS_KEPT_MAX)(check_of)
        self._json = JsonSerializer()

    def __call__(self, value: object, context: SerializationContext) -> bytes | None:
        """The bytes of a message with `value` as JSON. ValueError for a value that the schema does
        not allow, RegistryFailed if the registry does not answer; None stays null."""
        if value is None:
            return None
        if self._to_dict is not None:
            value = self._to_dict(value, context)
        schema = self._writer.schema(context, self._name, self._text)
        if self._validates:
            self._checks(schema)(value)
        payload = self._json(value)
        assert payload is not None, "only None is null"
        return self._writer.framed(schema, payload, context)

    def encode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A binary column and the reasons by row; values that the schema does not allow are null in
        it."""
        schema = self._writer.schema(context, self._name, self._text)
        prefix = self._writer.prefix(schema)
        texts, reasons = self._json.encode_column(array)
        made: list[bytes | None] = []
        check = self._checks(schema)
        for row, text in enumerate(texts.to_pylist()):
            if text is not None and self._validates:
                try:
                    check(read_json(text))
                except ValueError as error:
                    text, reasons[row] = None, one_line(error)
            made.append(None if text is None else prefix + text)
        return pa.array(made, pa.binary()), reasons


class JsonSchemaDeserializer:
    """Reads JSON in Confluent's wire format as dictionaries; in tables, as columns of a type. It is
    compatible with confluent-kafka's JSONDeserializer."""

    def __init__(
        self,
        registry: SchemaRegistry | SchemaRegistryClient | Mapping[str, object],
        schema: str | Mapping[str, object] | None = None,
        from_dict: Callable[[T, SerializationContext], object] | None = None,
        conf: Mapping[str, object] | None = None,
        *,
        type: pa.DataType | pa.Schema | None = None,
    ) -> None:
        """`schema`: what values must be; None: each what its writer's schema says. `conf`:
        `validate` (True). `type`: what `poll_table` gives. ConfigError for what is wrong."""
        self._validates, _ = _split(conf, ("validate",))
        text = schema if isinstance(schema, str) or schema is None else json.dumps(schema)
        self._fixed = None if text is None else check_of(StoredSchema(JSON, text))
        self._writers = Reader(
            registry_of(registry), lambda found: check_of(found.of_kind(JSON, "what the message names"))
        )
        self._from_dict = conversion(from_dict)
        self._json = JsonDeserializer(type)

    def __call__(self, data: bytes | None, context: SerializationContext) -> object:
        """The value that the bytes hold. ValueError for what is not JSON or what the schema does
        not allow, RegistryFailed if the registry does not answer; None for a null."""
        if data is None:
            return None
        value = read_json(self._payload(data, context))
        return value if self._from_dict is None else self._from_dict(value, context)

    def decode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A column of `type` and the reasons by row; values that do not fit it or the schema are
        null in it."""
        payloads: list[bytes | None] = []
        refused: Reasons = {}
        for row, data in enumerate(array.cast(pa.binary()).to_pylist()):
            payload = None
            if data is not None:
                try:
                    payload = self._payload(data, context)
                except ValueError as error:
                    refused[row] = one_line(error)
            payloads.append(payload)
        made, reasons = self._json.decode_column(pa.array(payloads, pa.binary()))
        return made, {**reasons, **refused}

    def _payload(self, data: bytes, context: SerializationContext) -> bytes:
        schema, payload, start = named_schema(data, context)
        payload = payload[start:]
        if self._validates:
            check = self._fixed or self._writers.of(schema)
            check(read_json(payload))
        return payload


def check_of(schema: StoredSchema) -> Check:
    """A function that checks values against a schema and the schemas that it refers to. ConfigError
    if it is no JSON Schema."""
    try:
        resources = [(name, _schema(text)) for name, text in schema.imports]
        registry = jsonschema_rs.Registry(resources) if resources else None
        validator = jsonschema_rs.validator_for(
            _schema(schema.text), registry=registry, retriever=_not_fetched
        )
    except ValueError as error:  # json's and jsonschema_rs' own errors are some
        raise ConfigError(f"not a JSON Schema ({one_line(error)})") from None

    def check(value: object) -> None:
        error = next(iter(validator.iter_errors(value)), None)
        if error is not None:
            where = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
            )
            raise ValueError(f"{where.lstrip('.')}: {error.message}" if where else error.message)

    return check


def _schema(text: str) -> JsonObject | bool:
    schema = read_json(text)
    if not isinstance(schema, dict | bool):
        raise ValueError(f"an object, true or false is needed, not {text[:40]}")
    return schema


def _not_fetched(uri: str) -> NoReturn:
    """Raise ValueError for a schema that refers to `uri`, which the registry does not have: nothing
    is fetched from addresses."""
    raise ValueError(f"{uri} is none of the schema's references")


def _split(conf: Mapping[str, object] | None, names: Sequence[str]) -> tuple[bool, FrameConfig]:
    conf = dict(conf or {})
    validates = conf.pop("validate", True)
    if not isinstance(validates, bool):
        raise ConfigError(f"validate: must be True or False, got {validates!r}")
    return validates, frame_config(conf, names)


def _title(text: str) -> str | None:
    """The schema's title, which names of subjects are made of; None without one. ConfigError if
    `text` is no JSON."""
    try:
        schema = read_json(text)
    except ValueError as error:
        raise ConfigError(f"JsonSchemaSerializer: not a JSON Schema ({error})") from None
    title = schema.get("title") if isinstance(schema, dict) else None
    return title if isinstance(title, str) else None
