"""Confluent's wire formats: how a message names its schema in a Schema Registry.

    prefix   a zero byte, the schema's id in four bytes, then what the format itself writes
    header   the header `__key_schema_id` or `__value_schema_id`: a byte of 1 and the schema's GUID
             in 16 bytes; the message is what the format itself writes

Both are read. The prefix is written, or with `schema.id.location=header` the header.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from functools import lru_cache
from typing import Generic, NamedTuple, TypeVar

from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.formats.context import (
    MessageField,
    SerializationContext,
    SubjectNameStrategy,
    strategy_of,
    topic_name,
)
from fairlead_kafka.formats.registry import (
    SCHEMAS_KEPT_MAX,
    SchemaReference,
    SchemaRegistry,
    StoredSchema,
    UnknownSchema,
)

T = TypeVar("T")
MAGIC = 0
PREFIX_BYTES = 5
_GUID_MAGIC = 1
_GUID_BYTES = 17
_HEADERS = {MessageField.KEY: "__key_schema_id", MessageField.VALUE: "__value_schema_id"}
_ASKED_AGAIN_AFTER_S = 60.0
"""Seconds until an id that the registry did not know is asked for again: a follower among
registries may lag behind."""
_SWITCHES = {"auto.register.schemas": True, "normalize.schemas": False, "use.latest.version": False}
_LOCATIONS = ("prefix", "header")


class FrameConfig(NamedTuple):
    """Configuration of a serializer or deserializer beside its schema; confluent-kafka's names."""

    auto_register: bool = True
    normalize: bool = False
    use_latest: bool = False
    strategy: SubjectNameStrategy = topic_name
    in_header: bool = False


def frame_config(given: Mapping[str, object] | None, names: Sequence[str]) -> FrameConfig:
    """The parsed configuration, of which only the configs `names` are allowed. ConfigError for any
    other, and for a value that does not fit."""
    given = given or {}
    for name in given:
        if name not in names:
            raise ConfigError(f"{name}: not one of {', '.join(names)}")
    switches: dict[str, bool] = {}
    for name, default in _SWITCHES.items():
        value = given.get(name, default)
        if not isinstance(value, bool):
            raise ConfigError(f"{name}: must be True or False, got {value!r}")
        switches[name] = value
    if switches["use.latest.version"] and given.get("auto.register.schemas"):
        raise ConfigError(
            "use.latest.version: set auto.register.schemas to False with it; one of them writes"
        )
    location = given.get("schema.id.location", _LOCATIONS[0])
    if location not in _LOCATIONS:
        raise ConfigError(f"schema.id.location: must be one of {', '.join(_LOCATIONS)}, got {location!r}")
    return FrameConfig(
        switches["auto.register.schemas"] and not switches["use.latest.version"],
        switches["normalize.schemas"],
        switches["use.latest.version"],
        strategy_of(given.get("subject.name.strategy", topic_name)),
        location == "header",
    )


WRITING = (
    "auto.register.schemas",
    "normalize.schemas",
    "use.latest.version",
    "subject.name.strategy",
    "schema.id.location",
)
READING = ("use.latest.version", "subject.name.strategy")


class Writer:
    """Finds the schema that messages of a topic are written with, and frames messages so that they
    name it.

    A schema is registered, or found, once for each subject.
    """

    def __init__(
        self,
        registry: SchemaRegistry,
        config: FrameConfig,
        kind: str,
        references: Sequence[SchemaReference] = (),
    ) -> None:
        self._registry = registry
        self._config = config
        self._kind = kind
        self._references = tuple(references)
        self._kept = lru_cache(SCHEMAS_KEPT_MAX)(self._found)

    def schema(self, context: SerializationContext, name: str | None, text: str | None) -> StoredSchema:
        """The schema to write with: `text`, of full name `name`, or the subject's latest one.

        InvalidRecord if the subject has none, or not this one; RegistryFailed if the registry does
        not answer.
        """
        subject = self._config.strategy(context, name)
        if not subject:
            raise InvalidRecord("subject.name.strategy: it gave no subject")
        return self._kept(subject, text)

    def framed(
        self, schema: StoredSchema, payload: bytes, context: SerializationContext, between: bytes = b""
    ) -> bytes:
        """The message in Confluent's wire format; `between` is the bytes that the format has
        between the id and the payload. InvalidRecord if the header cannot be written: the context
        has no list of headers, or the registry gives no GUIDs."""
        if not self._config.in_header:
            return self.prefix(schema) + between + payload
        headers = context.headers
        if not isinstance(headers, MutableSequence):
            raise InvalidRecord("schema.id.location=header: the context has no list of headers to write to")
        if schema.guid is None:
            raise InvalidRecord("schema.id.location=header: this Schema Registry gives no GUIDs; use prefix")
        name = _HEADERS[MessageField(context.field)]
        headers.append((name, bytes([_GUID_MAGIC]) + uuid.UUID(schema.guid).bytes + between))
        return payload

    def prefix(self, schema: StoredSchema) -> bytes:
        """Bytes that every message of a column begins with. ConfigError if the schema goes into
        headers."""
        if self._config.in_header:
            raise ConfigError("schema.id.location: header is for single records; whole columns take prefix")
        assert schema.schema_id is not None, "a registry gives ids"
        return bytes([MAGIC]) + schema.schema_id.to_bytes(4, "big")

    def _found(self, subject: str, text: str | None) -> StoredSchema:
        try:
            if self._config.use_latest:
                found = self._registry.latest(subject)
                return found.of_kind(self._kind, f"the subject {subject}")
            if text is None:
                raise InvalidRecord("a schema is needed, or use.latest.version with a Schema Registry")
            ask = self._registry.register if self._config.auto_register else self._registry.lookup
            return ask(subject, self._kind, text, self._references, normalize=self._config.normalize)
        except UnknownSchema as error:
            raise InvalidRecord(f"{error}; set auto.register.schemas, or register it first") from None


class Reader(Generic[T]):
    """Calls `make` for each schema that messages name, once for each schema, and keeps the
    results."""

    def __init__(self, registry: SchemaRegistry, make: Callable[[StoredSchema], T]) -> None:
        """`make` raises ValueError for a schema that cannot be used."""
        self._registry = registry
        self._make = make
        self._kept = lru_cache(SCHEMAS_KEPT_MAX)(self._found)
        self._refused: dict[int | str, tuple[float, str]] = {}

    def of(self, schema: int | str) -> T:
        """The result of `make` for the schema with this id or GUID.

        UnknownSchema if there is none or it cannot be used, RegistryFailed if the registry does not
        answer.
        """
        refused = self._refused.get(schema)
        if refused is not None and time.monotonic() < refused[0]:
            raise UnknownSchema(refused[1])
        try:
            return self._kept(schema)
        except ValueError as error:
            if len(self._refused) >= SCHEMAS_KEPT_MAX:
                self._refused.clear()
            self._refused[schema] = time.monotonic() + _ASKED_AGAIN_AFTER_S, str(error)
            raise UnknownSchema(str(error)) from None

    def _found(self, schema: int | str) -> T:
        found = self._registry.by_id(schema) if isinstance(schema, int) else self._registry.by_guid(schema)
        try:
            return self._make(found)
        except UnknownSchema:
            raise
        except ValueError as error:
            raise ValueError(
                f"schema {'id' if isinstance(schema, int) else 'GUID'} {schema}: {error}"
            ) from None


def named_schema(data: bytes, context: SerializationContext | None) -> tuple[int | str, bytes, int]:
    """The id or GUID that a message names, the bytes after it, and where in those the rest begins.

    ValueError if it names none.
    """
    if context is not None and context.headers:
        wanted = _HEADERS[MessageField(context.field)]
        items = context.headers.items() if isinstance(context.headers, Mapping) else context.headers
        for name, value in items:
            if name == wanted and value is not None:
                if len(value) < _GUID_BYTES or value[0] != _GUID_MAGIC:
                    raise ValueError(f"the header {wanted} is not a byte of 1 and a GUID")
                return str(uuid.UUID(bytes=bytes(value[1:_GUID_BYTES]))), data, 0
    if len(data) < PREFIX_BYTES or data[0] != MAGIC:
        raise ValueError(
            "not in Confluent's wire format: a zero byte and four bytes of the schema's id are missing"
        )
    return int.from_bytes(data[1:PREFIX_BYTES], "big"), data, PREFIX_BYTES
