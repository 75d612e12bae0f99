"""JSON to columns, by machine code: a plan is made of a struct's type once, and then reads whole
blocks of texts.

A plan is operations (`json_kernel`) and functions that make arrays of slots. Structs, however deep,
of texts, whole numbers, floats, booleans, dates and timestamps are planned. Other types raise
`NotByColumn`: lists, maps, decimals and binaries. They go to Arrow's parser, as do single rows that
machine code does not take: `json_columns` sees to both.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from fairlead_kafka.formats.json_kernel import (
    DAY,
    INSTANT,
    LOCAL,
    NUMBER,
    STRUCT,
    TEXT,
    TRUTH,
    WHOLE,
    decode_json,
    powers_of_five,
)
from fairlead_kafka.formats.kernels import OP_FIELDS, Bools, Bytes, Int64
from fairlead_kafka.formats.slots import NotByColumn, binaries, bitmap, booleans, numbers, pieces_of

NESTED_MAX = 32
"""Structs within each other, at most: the kernel calls itself for each."""


class Slots:
    """The slots of a block of texts."""

    def __init__(self, plan: Plan, rows: int) -> None:
        """Slots that are zero yet."""
        self.rows = rows
        self.source: Bytes = np.empty(0, np.uint8)
        self.values = np.zeros(plan.slots * rows, np.int64)
        self.present = np.zeros(len(plan.ops) // OP_FIELDS * rows, np.bool_)

    def slot(self, number: int) -> Int64:
        """A column of numbers."""
        return self.values[number * self.rows : (number + 1) * self.rows]

    def valid(self, number: int) -> Bools:
        """A column of booleans: where the field of an operation is there and not null."""
        return self.present[number * self.rows : (number + 1) * self.rows]


Make = Callable[[Slots], pa.Array]


class Plan(NamedTuple):
    """The operations with their names, the order in which fields are expected, the operations of
    required fields, each behind that of its struct, the number of slots, and the function that
    makes an array of these."""

    ops: Int64
    names: Bytes
    name_offsets: Int64
    order: Int64
    required: tuple[tuple[int, int], ...]
    slots: int
    make: Make

    def array(self, slots: Slots, bad: Bools) -> pa.Array:
        """The array of slots that were filled; null, down to the last field, in rows that are
        bad."""
        if bad.any():
            slots.present.reshape(-1, slots.rows)[:, bad] = False
        return self.make(slots)

    def places(self) -> Int64:
        """An empty table of names."""
        return np.zeros(1 << (2 * len(self.ops) // OP_FIELDS).bit_length(), np.int64)


def plan_of(wire: pa.DataType, target: pa.DataType) -> Plan:
    """The plan that reads objects into structs of `target`; `wire` is the type that JSON has for
    it. NotByColumn if there is none."""
    if not pa.types.is_struct(wire):
        raise NotByColumn
    planning = _Planning()
    planning.ops.append([STRUCT, -1, 0, 0, 0])
    planning.names.append(b"")
    return planning.plan(planning.struct(0, wire, target, 0))


def decode(plan: Plan, text: pa.Array) -> tuple[Slots, Bools]:
    """The slots of the texts, and a boolean for each that is True where machine code did not take
    the text. Assumes that they are UTF-8."""
    pieces = pieces_of(text)
    rows = len(text)
    bad = np.zeros(rows, np.bool_)
    slots = Slots(plan, rows)
    first, last = (int(pieces.starts[0]), int(pieces.ends[-1])) if rows else (0, 0)
    source = pieces.data[first:last]
    slots.valid(0)[:] = pieces.given
    unescaped = np.empty(len(source), np.uint8)
    _, filled = decode_json(
        source, pieces.starts - first, pieces.ends - first, pieces.given, plan.ops, plan.names,
        plan.name_offsets, powers_of_five(), plan.order.copy(), plan.places(), slots.values, slots.present,
        bad, unescaped,
    )  # fmt: skip
    slots.source = np.concatenate([source, unescaped[:filled]]) if filled else source
    for outer, inner in plan.required:
        bad |= slots.valid(outer) & ~slots.valid(inner)
    return slots, bad


class _Planning:
    """A walk through a type."""

    def __init__(self) -> None:
        self.ops: list[list[int]] = []
        self.names: list[bytes] = []
        self._required: list[tuple[int, int]] = []
        self._slots = 0

    def plan(self, make: Make) -> Plan:
        """The plan, when all operations are there."""
        count = len(self.ops)
        order = np.zeros(2 * count, np.int64)
        for number, (kind, _, first, fields, _) in enumerate(self.ops):
            if kind == STRUCT:
                order[count + number] = first
                order[first : first + fields] = [*range(first + 1, first + fields), first]
        return Plan(
            np.array(self.ops, np.int64).reshape(-1),
            np.frombuffer(b"".join(self.names), np.uint8),
            np.cumsum([0, *map(len, self.names)], dtype=np.int64),
            order,
            tuple(self._required),
            self._slots,
            make,
        )

    def struct(self, number: int, wire: pa.DataType, target: pa.DataType, depth: int) -> Make:
        """Add the operations of a struct's fields. Returns the function that makes its column;
        `number` is its own operation."""
        if depth == NESTED_MAX:
            raise NotByColumn
        first = len(self.ops)
        self.ops[number][2:4] = first, wire.num_fields
        for field in wire:
            self.names.append(_quoted(field.name))
            self.ops.append([0, -1, 0, 0, len(self.ops)])
        makes = [
            self._field(first + index, wire.field(index), target.field(index).type, depth)
            for index in range(wire.num_fields)
        ]
        self._required += [(number, first + index) for index, field in enumerate(wire) if not field.nullable]

        def make(slots: Slots) -> pa.Array:
            children = [child(slots) for child in makes]
            return pa.Array.from_buffers(target, slots.rows, [bitmap(slots.valid(number))], children=children)

        return make

    def _field(self, number: int, wire: pa.Field, target: pa.DataType, depth: int) -> Make:
        """Fill in the operation of a field."""
        op = self.ops[number]
        if pa.types.is_struct(target):
            return self.struct(number, wire.type, target, depth + 1)
        slot = op[1] = self._slots
        op[0], make = _leaf(wire.type, target)
        op[2] = target.bit_width if op[0] == WHOLE else 0
        self._slots += 2 if op[0] == TEXT else 1
        return lambda slots: make(slots, slot, slots.valid(number))


def _quoted(name: str) -> bytes:
    """A name as it stands in a text. NotByColumn for one that UTF-8 cannot have."""
    try:
        return b'"%b":' % name.encode()
    except UnicodeEncodeError:
        raise NotByColumn from None


def _leaf(wire: pa.DataType, target: pa.DataType) -> tuple[int, Callable[[Slots, int, Bools], pa.Array]]:
    """The kind of a field's operation, and the function that makes its column of slot and
    booleans."""
    types = pa.types
    if types.is_string(wire):
        if types.is_string(target):
            return TEXT, _texts
        if types.is_date32(target):
            return DAY, lambda slots, slot, valid: numbers(target, slots.slot(slot).astype(np.int32), valid)
        if types.is_timestamp(target) and target.unit == "us" and target.tz in (None, "UTC"):
            kind = LOCAL if target.tz is None else INSTANT
            return kind, lambda slots, slot, valid: numbers(target, slots.slot(slot), valid)
    elif types.is_floating(wire):
        return NUMBER, lambda slots, slot, valid: numbers(
            pa.float64(), slots.slot(slot).view(np.float64), valid
        ).cast(target)
    elif types.is_signed_integer(wire) and wire.equals(target):
        width = np.dtype(f"i{target.bit_width // 8}")
        return WHOLE, lambda slots, slot, valid: numbers(
            target, slots.slot(slot).astype(width, copy=False), valid
        )
    elif types.is_boolean(wire):
        return TRUTH, lambda slots, slot, valid: booleans(slots.slot(slot) != 0, valid)
    raise NotByColumn


def _texts(slots: Slots, slot: int, valid: Bools) -> pa.Array:
    made = binaries(slots.source, slots.slot(slot), slots.slot(slot + 1), valid)
    # What was cut out of UTF-8 at quotation marks is UTF-8: no look at it again.
    return pa.Array.from_buffers(pa.string(), slots.rows, made.buffers())
