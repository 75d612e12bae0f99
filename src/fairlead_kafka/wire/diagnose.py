"""Diagnosis of a failed encoding: which field of the message was at fault."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sized
from uuid import UUID

from fairlead_kafka.base.limits import STRING_MAX_BYTES
from fairlead_kafka.wire.message import ApiMessage
from fairlead_kafka.wire.schema import FIXED_FORMATS, Field, Structure

_EXPECTED = {
    "string": "a str",
    "bytes": "bytes",
    "records": "a buffer or a list of buffers",
    "uuid": "a uuid.UUID",
    "structure": "a Message",
}


def diagnose(body: Structure, message: object, error: Exception) -> str:
    """A sentence that names the first field that does not fit; the error's own words if every field
    seems to."""
    return _structure_fault(body, message, "") or str(error)


def _structure_fault(structure: Structure, message: object, path: str) -> str | None:
    if not isinstance(message, ApiMessage):
        return f"{path or 'the body'} must be a Message, not {message!r}"
    for field in structure.fields:
        if field.name in message.__dict__:
            fault = _field_fault(
                field, structure.flexible, message.__dict__[field.name], f"{path}.{field.name}".lstrip(".")
            )
            if fault:
                return fault
    return None


def _field_fault(field: Field, flexible: bool, value: object, path: str) -> str | None:
    if value is None and (field.nullable or field.kind == "uuid" or field.tag is not None):
        return None
    if not field.array:
        return _value_fault(field, flexible, value, path)
    if (
        value is None
        or isinstance(value, (str, bytes))
        or not (isinstance(value, Sized) and isinstance(value, Iterable))
    ):
        return f"{path} must be a list, not {value!r}"
    for index, element in enumerate(value):
        fault = _value_fault(field, flexible, element, f"{path}[{index}]")
        if fault:
            return fault
    return None


def _value_fault(field: Field, flexible: bool, value: object, path: str) -> str | None:
    if field.structure is not None:
        return _structure_fault(field.structure, value, path)
    if field.kind in FIXED_FORMATS:
        try:
            struct.pack(">" + FIXED_FORMATS[field.kind], value)
        except struct.error:
            return f"{path} must fit {field.kind}, and {value!r} does not"
        return None
    if field.kind == "string" and isinstance(value, str):
        try:
            size_bytes = len(value.encode())
        except UnicodeEncodeError as error:
            return f"{path} is not valid text: {error.reason}"
        if size_bytes > STRING_MAX_BYTES:
            return f"{path} is {size_bytes} bytes of UTF-8; Kafka carries at most {STRING_MAX_BYTES}"
        return None
    accepted: tuple[type, ...] = {"string": (), "uuid": (UUID,)}.get(
        field.kind, (bytes, bytearray, memoryview, list, tuple)
    )
    return None if isinstance(value, accepted) else f"{path} must be {_EXPECTED[field.kind]}, not {value!r}"
