"""Protobuf to columns and back, by machine code: messages of fields that are not repeated, however
deep. Raises `NotByColumn` for repeated fields and maps, members of a oneof and required fields:
messages with these are read one by one, as are single messages that machine code refuses."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from google.protobuf.descriptor import Descriptor, FieldDescriptor

from fairlead_kafka.formats.kernels import (
    P_BOOL,
    P_BYTES,
    P_FIXED32,
    P_FIXED64,
    P_INT32,
    P_INT64,
    P_MESSAGE,
    P_SFIXED32,
    P_SINT32,
    P_SINT64,
    P_UINT32,
    VARINT_BYTES_MAX,
    WIRE_32,
    WIRE_64,
    WIRE_BYTES,
    WIRE_VARINT,
    Bools,
    Bytes,
    Int64,
    decode_protobuf,
    encode_protobuf,
)
from fairlead_kafka.formats.slots import (
    EMPTY,
    NotByColumn,
    binaries,
    bitmap,
    booleans,
    encoded,
    numbers,
    pieces_of,
)

_F = FieldDescriptor
_KINDS = {
    _F.TYPE_DOUBLE: (P_FIXED64, WIRE_64),
    _F.TYPE_FLOAT: (P_FIXED32, WIRE_32),
    _F.TYPE_INT32: (P_INT32, WIRE_VARINT),
    _F.TYPE_SINT32: (P_SINT32, WIRE_VARINT),
    _F.TYPE_SFIXED32: (P_SFIXED32, WIRE_32),
    _F.TYPE_INT64: (P_INT64, WIRE_VARINT),
    _F.TYPE_SINT64: (P_SINT64, WIRE_VARINT),
    _F.TYPE_SFIXED64: (P_FIXED64, WIRE_64),
    _F.TYPE_UINT32: (P_UINT32, WIRE_VARINT),
    _F.TYPE_FIXED32: (P_FIXED32, WIRE_32),
    _F.TYPE_UINT64: (P_INT64, WIRE_VARINT),
    _F.TYPE_FIXED64: (P_FIXED64, WIRE_64),
    _F.TYPE_BOOL: (P_BOOL, WIRE_VARINT),
    _F.TYPE_STRING: (P_BYTES, WIRE_BYTES),
    _F.TYPE_BYTES: (P_BYTES, WIRE_BYTES),
    _F.TYPE_ENUM: (P_INT32, WIRE_VARINT),
    _F.TYPE_MESSAGE: (P_MESSAGE, WIRE_BYTES),
}


class _Field(NamedTuple):
    """A field, its first slot, its boolean (-1: none), and the plan of its message."""

    field: FieldDescriptor
    slot: int
    valid: int
    below: Plan | None


class Plan(NamedTuple):
    """The operations that read and write a message, and the fields of its struct."""

    fields: tuple[_Field, ...]
    ops: Int64
    slots: int
    valid: int


def plan_of(descriptor: Descriptor) -> Plan:
    """The plan of a message. NotByColumn if machine code cannot read and write it."""
    fields: list[_Field] = []
    ops: list[list[int]] = []
    slots = valid = 0
    for field in descriptor.fields:
        oneof = field.containing_oneof
        if field.is_repeated or field.is_required or (oneof is not None and len(oneof.fields) > 1):
            raise NotByColumn
        if field.type not in _KINDS:
            raise NotByColumn
        kind, wire = _KINDS[field.type]
        below = plan_of(field.message_type) if kind == P_MESSAGE else None
        noted = valid if field.has_presence else -1
        fields.append(_Field(field, slots, noted, below))
        ops.append([kind, slots, field.number, wire, noted])
        slots += 2 if wire == WIRE_BYTES else 1
        valid += noted >= 0
    ops.sort(key=lambda op: op[2])
    return Plan(tuple(fields), np.array(ops, np.int64).reshape(-1), slots, valid)


def decode(
    plan: Plan, target: pa.DataType, source: Bytes, starts: Int64, ends: Int64
) -> tuple[pa.Array, Bools]:
    """The messages from `starts` to `ends`, as an array of structs, and which of them are bad. Bad
    ones have any value in the array, and are left to other code."""
    bad = np.zeros(len(starts), np.bool_)
    return _read(plan, target, source, (starts, ends, np.ones(len(starts), np.bool_)), bad), bad


def _read(
    plan: Plan, target: pa.DataType, source: Bytes, messages: tuple[Int64, Int64, Bools], bad: Bools
) -> pa.Array:
    starts, ends, given = messages
    rows = len(starts)
    values, present = np.zeros(plan.slots * rows, np.int64), np.zeros(plan.valid * rows, np.bool_)
    faults = np.zeros(rows, np.bool_)
    decode_protobuf(source, starts, ends, given, plan.ops, values, present, faults)
    bad |= faults
    columns = values.reshape(plan.slots, rows)
    children = []
    for (field, slot, noted, below), into in zip(plan.fields, target, strict=True):
        valid = None if noted < 0 else present[noted * rows : (noted + 1) * rows]
        if below is not None:
            assert valid is not None, "messages have presence"
            begin, size = columns[slot], columns[slot + 1]
            inside = valid & ~bad
            children.append(_read(below, into.type, source, (begin, begin + size, inside), bad))
        elif field.type in (_F.TYPE_STRING, _F.TYPE_BYTES):
            sizes = np.where(bad, 0, columns[slot + 1])
            children.append(_texts(binaries(source, columns[slot], sizes, valid), into.type, bad))
        else:
            children.append(_numbers(field, columns[slot], into.type, valid, bad))
    return pa.Array.from_buffers(target, rows, [bitmap(given)], children=children)


def _texts(array: pa.Array, target: pa.DataType, bad: Bools) -> pa.Array:
    try:
        return array.cast(target)
    except pa.ArrowInvalid:
        from fairlead_kafka.formats.utf8 import decode_text

        texts, wrong = decode_text(array)
        bad[list(wrong)] = True
        return texts


def _numbers(
    field: FieldDescriptor, found: Int64, target: pa.DataType, valid: Bools | None, bad: Bools
) -> pa.Array:
    if field.enum_type is not None:
        known = field.enum_type.values
        places = pc.index_in(
            pa.array(found, pa.int64()), value_set=pa.array([each.number for each in known], pa.int64())
        )
        missing = places.is_null().to_numpy(zero_copy_only=False)
        bad |= missing if valid is None else missing & valid
        names = pa.array([each.name for each in known], pa.string()).take(places)
        return names if valid is None else pc.if_else(pa.array(valid), names, None)
    if pa.types.is_boolean(target):
        return booleans(found != 0, valid)
    if pa.types.is_decimal(target):
        words = np.zeros((len(found), 2), np.int64)
        words[:, 0] = found
        return pa.Array.from_buffers(target, len(found), [bitmap(valid), pa.py_buffer(words)])
    if field.type == _F.TYPE_FLOAT:
        return numbers(target, found.astype(np.uint32).view(np.float32), valid)
    if field.type == _F.TYPE_DOUBLE:
        return numbers(target, found.view(np.float64), valid)
    return numbers(target, found.astype(f"i{target.bit_width // 8}", copy=False), valid)


def encode(plan: Plan, array: pa.Array, prefix: bytes) -> tuple[pa.Array, Bools]:
    """The structs as messages, each after `prefix`, and which of them are bad; null where null or
    bad. NotByColumn for columns that Arrow does not cast into the fields'."""
    given = array.is_valid().to_numpy(zero_copy_only=False)
    bad = np.zeros(len(array), np.bool_)
    return _written(plan, array, given, np.frombuffer(prefix, np.uint8), bad), bad


def _written(plan: Plan, array: pa.Array, given: Bools, prefix: Bytes, bad: Bools) -> pa.Array:
    if not pa.types.is_struct(array.type):
        raise NotByColumn
    names = [field.name for field in array.type]
    if set(names) != {one.field.name for one in plan.fields}:
        raise NotByColumn
    children = dict(zip(names, array.flatten(), strict=True))
    rows = len(array)
    slots: list[Int64] = []
    present: list[Bools] = []
    sources: list[Bytes] = []
    limit = rows * (len(prefix) + 2 * len(plan.fields) * VARINT_BYTES_MAX) + VARINT_BYTES_MAX
    for field, _, noted, below in plan.fields:
        child = children[field.name]
        valid = child.is_valid().to_numpy(zero_copy_only=False)
        if noted >= 0:
            present.append(valid)
        if below is None and field.type not in (_F.TYPE_STRING, _F.TYPE_BYTES):
            slots.append(_plain_numbers(field, child, valid & given, bad))
            continue
        if below is not None:
            child = _written(below, child, valid & given, EMPTY, bad)
        pieces = pieces_of(_cast(child, pa.string() if field.type == _F.TYPE_STRING else pa.binary()))
        sizes = pieces.ends - pieces.starts
        slots += [pieces.starts + sum(map(len, sources)), sizes]
        limit += int(sizes.sum())
        sources.append(pieces.data)
    fine = given & ~bad
    values = np.concatenate(slots)
    booleans_ = np.concatenate(present) if present else np.empty(0, np.bool_)
    source = np.concatenate(sources) if sources else EMPTY

    def run(out: Bytes, offsets: Int64) -> int:
        return encode_protobuf(plan.ops, rows, values, booleans_, source, prefix, fine, out, offsets)

    return encoded(run, rows, limit, fine)


def _plain_numbers(field: FieldDescriptor, child: pa.Array, there: Bools, bad: Bools) -> Int64:
    if field.enum_type is not None:
        known = field.enum_type.values
        places = pc.index_in(
            _cast(child, pa.string()), value_set=pa.array([each.name for each in known], pa.string())
        )
        missing = places.is_null().to_numpy(zero_copy_only=False)
        bad |= missing & there & child.is_valid().to_numpy(zero_copy_only=False)
        by_place = np.array([each.number for each in known], np.int64)
        return np.where(missing, 0, by_place[places.fill_null(0).to_numpy()])
    kind: Callable[[], pa.DataType] = _ARROW[field.type]
    exact = _cast(child, kind())
    nothing = False if pa.types.is_boolean(exact.type) else 0
    found = exact.fill_null(nothing).to_numpy(zero_copy_only=False)
    if pa.types.is_floating(exact.type):
        found = found.view(f"i{exact.type.bit_width // 8}")
    made: Int64 = found.astype(np.int64, copy=False)
    return made


_ARROW = {
    _F.TYPE_DOUBLE: pa.float64,
    _F.TYPE_FLOAT: pa.float32,
    _F.TYPE_INT32: pa.int32,
    _F.TYPE_SINT32: pa.int32,
    _F.TYPE_SFIXED32: pa.int32,
    _F.TYPE_INT64: pa.int64,
    _F.TYPE_SINT64: pa.int64,
    _F.TYPE_SFIXED64: pa.int64,
    _F.TYPE_UINT32: pa.uint32,
    _F.TYPE_FIXED32: pa.uint32,
    _F.TYPE_UINT64: pa.uint64,
    _F.TYPE_FIXED64: pa.uint64,
    _F.TYPE_BOOL: pa.bool_,
}


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    if array.type.equals(target):
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise NotByColumn from None
