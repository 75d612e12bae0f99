"""Protobuf messages in Arrow's types, and conversion value by value by the library, where
`protobuf_columns` cannot.

A field with presence of its own (`optional`, a message, a member of a oneof) is null if it is not
set; any other field has its default. Enums are the names of their values. Well-known types such as
Timestamp are the messages they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

import pyarrow as pa
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message

_F = FieldDescriptor
_TYPES: Mapping[int, pa.DataType] = {
    _F.TYPE_DOUBLE: pa.float64(),
    _F.TYPE_FLOAT: pa.float32(),
    _F.TYPE_INT32: pa.int32(),
    _F.TYPE_SINT32: pa.int32(),
    _F.TYPE_SFIXED32: pa.int32(),
    _F.TYPE_INT64: pa.int64(),
    _F.TYPE_SINT64: pa.int64(),
    _F.TYPE_SFIXED64: pa.int64(),
    _F.TYPE_UINT32: pa.uint32(),
    _F.TYPE_FIXED32: pa.uint32(),
    _F.TYPE_UINT64: pa.uint64(),
    _F.TYPE_FIXED64: pa.uint64(),
    _F.TYPE_BOOL: pa.bool_(),
    _F.TYPE_STRING: pa.string(),
    _F.TYPE_BYTES: pa.binary(),
    _F.TYPE_ENUM: pa.string(),
}
_SIGNED: Mapping[pa.DataType, pa.DataType] = {pa.uint32(): pa.int64(), pa.uint64(): pa.decimal128(20, 0)}


def arrow_type(descriptor: Descriptor, unsigned: bool = True, open_: tuple[str, ...] = ()) -> pa.DataType:
    """The struct of a message. Without `unsigned`, which Spark has not, wider types that are
    signed.

    ValueError, naming the field, for a message that holds itself, or has no fields.
    """
    if descriptor.full_name in open_:
        raise ValueError(f"{descriptor.full_name} holds itself, which no type of a column can")
    if not descriptor.fields:
        raise ValueError(f"{descriptor.full_name} has no fields, and a struct needs one")
    below = (*open_, descriptor.full_name)
    return pa.struct(
        [pa.field(field.name, _field_type(field, unsigned, below)) for field in descriptor.fields]
    )


def _field_type(field: FieldDescriptor, unsigned: bool, open_: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = field.message_type.fields
        return pa.map_(_plain(key, unsigned, open_), pa.field("value", _plain(value, unsigned, open_), False))
    plain = _plain(field, unsigned, open_)
    return pa.list_(pa.field("element", plain, False)) if field.is_repeated else plain


def _plain(field: FieldDescriptor, unsigned: bool, open_: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return arrow_type(field.message_type, unsigned, open_)
    kind = _TYPES[field.type]
    return kind if unsigned else _SIGNED.get(kind, kind)


def message_of(name: str, files: bytes) -> type[Message]:
    """The class of a message by its full name, in a FileDescriptorSet as protoc writes it.

    Files of google/protobuf may be missing there. ValueError if it is not described.
    """
    try:
        described = descriptor_pb2.FileDescriptorSet.FromString(files)
    except DecodeError:
        raise ValueError("not a FileDescriptorSet, as protoc --descriptor_set_out writes it") from None
    pool = descriptor_pool.DescriptorPool()
    by_name = {file.name: file for file in described.file}
    added: set[str] = set()

    def add(file_name: str) -> None:
        if file_name in added:
            return
        added.add(file_name)
        file = by_name.get(file_name)
        if file is None:
            try:
                known = descriptor_pool.Default().FindFileByName(file_name)
            except KeyError:
                raise ValueError(
                    f"{file_name} is not described; call protoc with --include_imports"
                ) from None
            file = descriptor_pb2.FileDescriptorProto.FromString(known.serialized_pb)
        for dependency in file.dependency:
            add(dependency)
        pool.Add(file)

    try:
        for file in described.file:
            add(file.name)
        found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    except TypeError as error:
        raise ValueError(f"the files do not fit together ({error})") from None
    except KeyError:
        raise ValueError(f"there is no message {name}, but files {', '.join(by_name)}") from None
    return found


def is_map(field: FieldDescriptor) -> bool:
    """True if a field is a map."""
    return field.message_type is not None and bool(field.message_type.GetOptions().map_entry)


def value_of(message: Message) -> dict[str, object]:
    """The fields of a message by name, as Arrow takes them. ValueError for a number that its enum
    does not have."""
    made: dict[str, object] = {}
    for field in message.DESCRIPTOR.fields:
        if field.has_presence and not message.HasField(field.name):
            made[field.name] = None
            continue
        found = getattr(message, field.name)
        if is_map(field):
            value = field.message_type.fields_by_name["value"]
            made[field.name] = [(key, _item(value, found[key])) for key in found]
        elif field.is_repeated:
            made[field.name] = [_item(field, item) for item in found]
        else:
            made[field.name] = _item(field, found)
    return made


def _item(field: FieldDescriptor, value: object) -> object:
    if field.message_type is not None:
        return value_of(cast("Message", value))
    if field.enum_type is None:
        return value
    named = field.enum_type.values_by_number.get(value)
    if named is None:
        raise ValueError(f"{field.name}: the enum {field.enum_type.name} has no number {value}")
    return named.name


def filled(message: Message, value: object) -> Message:
    """The message given, after its fields were set from a dictionary; fields that are None stay
    unset.

    ValueError or TypeError, naming the field, for a field that the message lacks, and for a value
    that a field does not take.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{value!r} is no dictionary of {message.DESCRIPTOR.name}'s fields")
    fields = message.DESCRIPTOR.fields_by_name
    for name, item in value.items():
        field = fields.get(name)
        if field is None:
            raise ValueError(f"{message.DESCRIPTOR.name} has no field {name}")
        if item is None:
            continue
        try:
            _set(message, field, item)
        except (TypeError, ValueError, AttributeError) as error:
            raise ValueError(f"{name}: {error}") from None
    return message


def _set(message: Message, field: FieldDescriptor, item: object) -> None:
    target = getattr(message, field.name)
    if is_map(field):
        value = field.message_type.fields_by_name["value"]
        pairs = item.items() if isinstance(item, Mapping) else _items(field, item)
        for key, each in cast("Iterable[tuple[object, object]]", pairs):
            if value.message_type is not None:
                filled(target[key], each)
            else:
                target[key] = _number(value, each)
    elif field.is_repeated:
        for each in _items(field, item):
            if field.message_type is not None:
                filled(target.add(), each)
            else:
                target.append(_number(field, each))
    elif field.message_type is not None:
        target.SetInParent()
        filled(target, item)
    else:
        setattr(message, field.name, _number(field, item))


def _items(field: FieldDescriptor, item: object) -> Iterable[object]:
    if not isinstance(item, Iterable):
        raise TypeError(f"{item!r} is no list of {field.name}")
    return item


def _number(field: FieldDescriptor, value: object) -> object:
    if field.enum_type is None or not isinstance(value, str):
        return value
    named = field.enum_type.values_by_name.get(value)
    if named is None:
        raise ValueError(f"the enum {field.enum_type.name} has no {value!r}")
    return named.number
