"""Protobuf, framed for a Schema Registry or plain (extra `protobuf`)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats.building import Reasons, array_of, build, one_line
from fairlead_kafka.formats.context import SerializationContext
from fairlead_kafka.formats.framing import (
    MAGIC,
    PREFIX_BYTES,
    WRITING,
    FrameConfig,
    Writer,
    frame_config,
    named_schema,
)
from fairlead_kafka.formats.kernels import Int64
from fairlead_kafka.formats.registry import (
    PROTOBUF,
    SCHEMAS_KEPT_MAX,
    SchemaReference,
    SchemaRegistry,
    StoredSchema,
    registry_of,
)
from fairlead_kafka.formats.slots import NotByColumn, in_blocks, pieces_of, placed

try:
    from google.protobuf.descriptor import Descriptor, FileDescriptor
    from google.protobuf.message import Message

    from fairlead_kafka.formats.protobuf_columns import Plan, decode, encode, plan_of
    from fairlead_kafka.formats.protobuf_types import arrow_type, filled, value_of
except ImportError as error:  # pragma: no cover
    raise ConfigError(f"Protobuf needs protobuf ({error}); pip install 'fairlead-kafka[protobuf]'") from None

if TYPE_CHECKING:
    from confluent_kafka.schema_registry import SchemaRegistryClient

_KNOWN_TYPES = "google/protobuf/"
"""Files that every registry and every library of Protobuf has."""


class ProtobufSerializer:
    """Writes messages, or dictionaries of their fields, as Protobuf; in tables, columns of structs.

    With a Schema Registry in Confluent's wire format, without one plain. confluent-kafka's
    ProtobufSerializer writes the same bytes.
    """

    def __init__(
        self,
        message: type[Message],
        registry: SchemaRegistry | SchemaRegistryClient | Mapping[str, object] | None,
        conf: Mapping[str, object] | None = None,
    ) -> None:
        """`message`: the class that protoc made. `registry`: one, its settings, or None. `conf`:
        as AvroSerializer's. ConfigError for what is wrong; the registry is asked with the first
        message, and the files that the message's imports are registered under their names."""
        self._config = frame_config(conf, WRITING)
        self._message = message
        self._descriptor: Descriptor = message.DESCRIPTOR
        self._registry = None if registry is None else registry_of(registry)
        self._plan = _plan_or_none(self._descriptor)
        self._indexes = _indexes(self._descriptor)
        self._text = b64encode(self._descriptor.file.serialized_pb).decode()
        self._writer: Writer | None = None

    def __call__(self, value: object, context: SerializationContext) -> bytes | None:
        """The bytes of a message. ValueError or TypeError for a value that is neither a message of
        this class nor a dictionary of its fields, RegistryFailed if the registry does not answer;
        None stays null."""
        if value is None:
            return None
        payload = self._payload(value)
        if self._registry is None:
            return payload
        writer = self._writing()
        return writer.framed(self._schema(writer, context), payload, context, self._indexes)

    def encode_column(self, array: pa.Array, context: SerializationContext) -> tuple[pa.Array, Reasons]:
        """A binary column and the reasons by row; structs that do not fit the message are null in
        it."""
        prefix = b""
        if self._registry is not None:
            writer = self._writing()
            prefix = writer.prefix(self._schema(writer, context)) + self._indexes

        def block(part: pa.Array) -> tuple[pa.Array, Reasons]:
            done: list[tuple[Int64, pa.Array]] = []
            left = part.is_valid().to_numpy(zero_copy_only=False)
            if self._plan is not None:
                try:
                    made, bad = encode(self._plan, part, prefix)
                    good = np.flatnonzero(left & ~bad)
                    done.append((good, made.take(pa.array(good))))
                    left = left & bad
                except NotByColumn:
                    pass
            rest = np.flatnonzero(left)
            values: list[bytes | None] = []
            reasons: Reasons = {}
            for row, value in zip(rest.tolist(), part.take(pa.array(rest)).to_pylist(), strict=True):
                try:
                    values.append(prefix + self._payload(value))
                except Exception as error:  # the library raises whatever it stumbles over
                    values.append(None)
                    reasons[row] = one_line(error)
            done.append((rest, pa.array(values, pa.binary())))
            return placed(done, len(part), pa.binary()), reasons

        return in_blocks(array, block, pa.binary())

    def _payload(self, value: object) -> bytes:
        if isinstance(value, Mapping):
            value = filled(self._message(), value)
        if not isinstance(value, self._message):
            raise TypeError(f"{value!r} is neither a {self._descriptor.name} nor a dictionary of its fields")
        data: bytes = value.SerializeToString(deterministic=True)
        return data

    def _writing(self) -> Writer:
        """The writer, once the imports of the message's file are in the registry."""
        if self._writer is None:
            assert self._registry is not None, "it was asked for"
            references = (
                []
                if self._config.use_latest
                else _registered(self._registry, self._descriptor.file, self._config)
            )
            self._writer = Writer(self._registry, self._config, PROTOBUF, references)
        return self._writer

    def _schema(self, writer: Writer, context: SerializationContext) -> StoredSchema:
        return writer.schema(context, self._descriptor.full_name, self._text)


class ProtobufDeserializer:
    """Reads Protobuf as messages; in tables, as columns of structs. Confluent's framings with a
    schema id and with a GUID in a header are read.

    As with confluent-kafka's ProtobufDeserializer, no registry is needed to read, since Protobuf's
    fields are numbered.
    """

    def __init__(self, message: type[Message], *, framed: bool = True, unsigned: bool = True) -> None:
        """`message`: the class that protoc made. `framed`: messages are in Confluent's wire format,
        else plain. `unsigned`: columns have unsigned types; else wider ones that are signed."""
        self._message = message
        self._framed = framed
        self._unsigned = unsigned
        self._plan = _plan_or_none(message.DESCRIPTOR)

    def __call__(self, data: bytes | None, context: SerializationContext | None = None) -> Message | None:
        """The message. ValueError for bytes that do not parse; None for a null."""
        if data is None:
            return None
        payload, start = data, 0
        if self._framed:
            _, payload, start = named_schema(data, context)
            start = _skip_indexes(payload, start) if start else 0
        message = self._message()
        try:
            message.ParseFromString(payload[start:])
        except Exception as error:  # DecodeError, and what else the library raises
            raise ValueError(f"not a {message.DESCRIPTOR.name}: {one_line(error)}") from None
        return message

    def arrow_type(self) -> pa.DataType:
        """The type of columns. ConfigError for a message that no column can hold."""
        try:
            return arrow_type(self._message.DESCRIPTOR, self._unsigned)
        except ValueError as error:
            raise ConfigError(f"ProtobufDeserializer: {error}") from None

    def decode_column(
        self, array: pa.Array, context: SerializationContext | None = None
    ) -> tuple[pa.Array, Reasons]:
        """A column of the message's struct and the reasons by row; bytes that do not parse are null
        in it."""
        target = self.arrow_type()

        def block(part: pa.Array) -> tuple[pa.Array, Reasons]:
            pieces = pieces_of(part)
            done: list[tuple[Int64, pa.Array]] = []
            left = pieces.given.copy()
            if self._plan is not None:
                starts = pieces.starts + (PREFIX_BYTES + 1 if self._framed else 0)
                usual = pieces.given & (starts <= pieces.ends)
                if self._framed:
                    rows = np.flatnonzero(usual)
                    at = pieces.starts[rows]
                    head = (pieces.data[at] == MAGIC) & (pieces.data[at + PREFIX_BYTES] == 0)
                    usual[rows] = head
                rows = np.flatnonzero(usual)
                values, bad = decode(self._plan, target, pieces.data, starts[rows], pieces.ends[rows])
                left[rows[~bad]] = False
                done.append((rows[~bad], values.filter(pa.array(~bad)) if bad.any() else values))
            reasons: Reasons = {}
            rest = np.flatnonzero(left)
            if len(rest):
                values, found = self._one_by_one(part.take(pa.array(rest)), target)
                done.append((rest, values))
                reasons = {int(rest[row]): why for row, why in found.items()}
            return placed(done, len(part), target), reasons

        return in_blocks(array.cast(pa.binary()), block, target)

    def _one_by_one(self, array: pa.Array, target: pa.DataType) -> tuple[pa.Array, Reasons]:
        values: list[object] = []
        reasons: Reasons = {}
        for row, data in enumerate(array.to_pylist()):
            value: object = None
            try:
                message = self(data)
                value = None if message is None else value_of(message)
            except ValueError as error:
                reasons[row] = one_line(error)
            values.append(value)
        make: Callable[[list[object]], pa.Array] = lambda some: array_of(some, target)  # noqa: E731
        return build(values, make, reasons), reasons


@lru_cache(SCHEMAS_KEPT_MAX)
def _plan_or_none(descriptor: Descriptor) -> Plan | None:
    try:
        arrow_type(descriptor)  # a message that holds itself has no plan either
        return plan_of(descriptor)
    except (NotByColumn, ValueError):
        return None


def _indexes(descriptor: Descriptor) -> bytes:
    """Confluent's message indexes: the bytes that say which message of its file `descriptor` is,
    from the outermost inwards."""
    path: list[int] = []
    while descriptor.containing_type is not None:
        siblings = [each.name for each in descriptor.containing_type.nested_types]
        path.insert(0, siblings.index(descriptor.name))
        descriptor = descriptor.containing_type
    path.insert(0, list(descriptor.file.message_types_by_name).index(descriptor.name))
    if path == [0]:
        return b"\0"
    return b"".join(_varint(2 * number) for number in (len(path), *path))


def _varint(number: int) -> bytes:
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    return bytes([*made, number])


def _skip_indexes(data: bytes, start: int) -> int:
    """The position behind Confluent's message indexes, which begin at `start`. ValueError if they
    do not end."""
    count, at = _read_varint(data, start)
    for _ in range(count // 2):
        _, at = _read_varint(data, at)
    return at


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 35, 7):
        if at >= len(data):
            break
        number |= (data[at] & 127) << shift
        at += 1
        if data[at - 1] < 128:
            return number, at
    raise ValueError("the message indexes after the schema's id are cut off")


def _registered(registry: SchemaRegistry, file: FileDescriptor, config: FrameConfig) -> list[SchemaReference]:
    """References to a file's imports, each registered under its name, or found there."""
    made: list[SchemaReference] = []
    for dependency in file.dependencies:
        if dependency.name.startswith(_KNOWN_TYPES):
            continue
        below = _registered(registry, dependency, config)
        text = b64encode(dependency.serialized_pb).decode()
        if config.auto_register:
            registry.register(dependency.name, PROTOBUF, text, below, normalize=config.normalize)
        found = registry.lookup(dependency.name, PROTOBUF, text, below, normalize=config.normalize)
        made.append(SchemaReference(dependency.name, dependency.name, found.version or 1))
    return made
