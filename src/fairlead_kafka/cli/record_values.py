"""Keys and values on the command line: bytes to text and back, in the format that an option
names."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from fairlead_kafka.base.errors import ConfigError, FairleadError, InvalidRecord
from fairlead_kafka.base.json_types import read_json
from fairlead_kafka.formats.context import MessageField, SerializationContext


class Format(StrEnum):
    """Formats of keys and values."""

    BYTES = "bytes"
    STRING = "string"
    JSON = "json"
    AVRO = "avro"
    INTEGER = "integer"
    LONG = "long"
    DOUBLE = "double"
    HEX = "hex"
    BASE64 = "base64"


class Schemas(NamedTuple):
    """Places of Avro's schemas: a Schema Registry, or a file of a schema for plain Avro."""

    registry: Mapping[str, str]
    """Settings of the registry; empty: there is none."""
    files: Mapping[MessageField, Path]


class Shown(NamedTuple):
    """A key or value as it is shown: the bytes printed in a plain line, and the value for JSON."""

    plain: bytes
    """The text in lines and kcat formats."""
    value: object
    """The value in JSON."""


Convert = Callable[[object, SerializationContext], object]
Decode = Callable[[bytes, SerializationContext], Shown]
Encode = Callable[[bytes, SerializationContext], bytes]
"""Makes the bytes of a key or value of a piece of a line."""


def decoder(form: Format, field: MessageField, schemas: Schemas) -> Decode:
    """A function that shows keys or values of a format; it raises ValueError for bytes that do not
    parse. ConfigError if the format needs a schema that is not given."""
    if form is Format.BYTES:
        return lambda data, _context: Shown(data, in_json(data))
    if form is Format.HEX:
        return lambda data, _context: _text(data.hex())
    if form is Format.BASE64:
        return lambda data, _context: _text(base64.b64encode(data).decode())
    if form is Format.STRING:
        return lambda data, _context: Shown(data, data.decode())
    if form is Format.JSON:
        return lambda data, _context: Shown(data, read_json(data))
    made: Callable[[bytes, SerializationContext], object] = (
        _avro(field, schemas, "Deserializer") if form is Format.AVRO else _simple(form, "Deserializer")
    )

    def decode(data: bytes, context: SerializationContext) -> Shown:
        value = in_json(made(data, context))
        return Shown(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(), value)

    return decode


def encoder(form: Format, field: MessageField, schemas: Schemas) -> Encode:
    """A function that makes keys or values of a format from texts; it raises ValueError or
    TypeError for a text that does not fit. ConfigError if the format needs a schema that is not
    given."""
    if form is Format.BYTES:
        return lambda text, _context: text
    if form is Format.HEX:
        return lambda text, _context: bytes.fromhex(text.decode())
    if form is Format.BASE64:
        return lambda text, _context: base64.b64decode(text, validate=True)
    if form is Format.STRING:
        return lambda text, _context: text.decode().encode()
    if form is Format.JSON:
        return _checked_json
    if form is Format.AVRO:
        made = _avro(field, schemas, "Serializer")
        return lambda text, context: _bytes(made(read_json(text), context))
    number = _simple(form, "Serializer")
    kind = float if form is Format.DOUBLE else int
    return lambda text, context: _bytes(number(kind(text.decode()), context))


def _text(text: str) -> Shown:
    return Shown(text.encode(), text)


def _checked_json(text: bytes, _context: SerializationContext) -> bytes:
    read_json(text)
    return text


def _bytes(data: object) -> bytes:
    assert isinstance(data, bytes), "a value gives bytes"
    return data


def _simple(form: Format, ending: str) -> Convert:
    from fairlead_kafka.formats import simple

    made: Convert = getattr(simple, form.value.capitalize() + ending)()
    return made


def _avro(field: MessageField, schemas: Schemas, ending: str) -> Convert:
    from fairlead_kafka.formats import avro_serde

    path = schemas.files.get(field)
    schema = None
    if path is not None:
        try:
            schema = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"--{field}-schema {path}: {error.strerror}") from None
    elif not schemas.registry:
        raise ConfigError(
            f"--{field}-format avro: give --schema-registry URL, or --{field}-schema FILE for plain Avro"
        )
    conf = {"use.latest.version": True, "auto.register.schemas": False} if ending == "Serializer" else None
    if schema is not None:
        conf = None
    made: Convert = getattr(avro_serde, "Avro" + ending)(schemas.registry or None, schema, conf=conf)
    return made


def in_json(value: object) -> object:
    """A value as JSON has it. Bytes that are UTF-8 are text; others are `{"base64": ...}`."""
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {str(name): in_json(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [in_json(one) for one in value]
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def from_json(value: object, form: Format) -> bytes | None:
    """The text, of a key or value in JSON, that the encoder of its format takes; None for null.

    ValueError for a value that the format does not have.
    """
    if value is None:
        return None
    if form in (Format.JSON, Format.AVRO):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    if isinstance(value, str):
        return value.encode()
    if isinstance(value, dict) and value.keys() == {"base64"} and form is Format.BYTES:
        try:
            return base64.b64decode(str(value["base64"]), validate=True)
        except binascii.Error as error:
            raise ValueError(f"no base64: {error}") from None
    if isinstance(value, (int, float)) and form in (Format.INTEGER, Format.LONG, Format.DOUBLE):
        return str(value).encode()
    raise ValueError(f"{json.dumps(value)[:60]} is no text; --value-format json sends JSON of any kind")


def complaint(what: str, error: Exception, instead: str) -> FairleadError:
    """The error for a key or value (`what`) that does not fit its format; `instead` is advice."""
    said = str(error) if isinstance(error, FairleadError) else f"{type(error).__name__}: {error}"
    return InvalidRecord(f"{what}: {said}; {instead}")
