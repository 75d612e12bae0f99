"""Avro to columns, by machine code: a plan is made of a writer's and a reader's schema once, and
then reads whole blocks of values.

A plan is operations (`kernels.decode_avro`) and a function that makes an array of slots. Records,
arrays, maps, unions of null and another type, and all logical types of `avro_schema` are planned.
Other schemas raise `NotByColumn`: aliases, most resolutions of one type into another, decimals of
more than 18 digits, defaults that are no plain value, lists whose items may have no bytes, and
schemas that are recursive, nested deep or take many operations. They are read value by value, as
are single values that machine code refuses: `avro_columns` does both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.formats.avro_schema import NESTED_MAX, Avro, AvroSchema, Definition
from fairlead_kafka.formats.kernels import (
    BOOLEAN,
    BYTES,
    DOUBLE,
    ENUM,
    FIXED,
    FLOAT,
    INT,
    LIST,
    LONG,
    UNION,
    Bools,
    Bytes,
    Int64,
    decode_avro,
)
from fairlead_kafka.formats.slots import NotByColumn, binaries, bitmap, booleans, numbers

DIGITS_MAX = 18
"""Most digits of a decimal that fits in 64 bits, whatever its digits are."""
STEPS_MAX = 65_536
"""Bound on steps of planning, two for a field at most and four within a list: more than ten
thousand fields. Small records that name each other twice may take a billion steps."""
FIRST_US, LAST_US = -62_135_596_800_000_000, 253_402_300_799_999_999
"""The years 1 to 9999, in microseconds since 1970."""
FIRST_DAY, LAST_DAY = -719_162, 2_932_896
"""The years 1 to 9999, in days since 1970."""
_NUMBERS = {"int": INT, "long": LONG, "boolean": BOOLEAN, "float": FLOAT, "double": DOUBLE}
_BOUNDS = {
    "time-millis": (0, 86_400_000 - 1),
    "time-micros": (0, 86_400_000_000 - 1),
    "date": (FIRST_DAY, LAST_DAY),
}
"""The least and the greatest value of logical types that do not take every number."""
_UUID = "^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"
_WIDENED = {("int", "long"), ("int", "float"), ("int", "double"), ("long", "float"), ("long", "double"),
            ("float", "double")}  # fmt: skip
_Op = list[int]


class Slots:
    """The slots of a block of values, as the kernel filled them, and which rows have values that do
    not fit."""

    def __init__(self, source: Bytes, ends: Int64, owners: Int64, bad: Bools, plan: Plan) -> None:
        """A reader of the values in `source`. `ends`: where the value that a row is of ends;
        `owners`: which value that is; `bad`: of the values, and noted there."""
        self.rows = len(ends)
        self.source, self.ends, self._owners, self.bad = source, ends, owners, bad
        self.values = np.zeros(plan.slots * self.rows, np.int64)
        self.present = np.zeros(plan.valid * self.rows, np.bool_)

    def slot(self, number: int) -> Int64:
        """Get a column of numbers by its slot."""
        return self.values[number * self.rows : (number + 1) * self.rows]

    def valid(self, number: int | None) -> Bools | None:
        """A column of booleans; None for a column that is never null."""
        return None if number is None else self.present[number * self.rows : (number + 1) * self.rows]

    def spoil(self, rows: Bools) -> None:
        """Note that the values of `rows` do not fit."""
        if rows.any():
            self.bad[self._owners[rows]] = True

    @property
    def fine(self) -> Bools:
        """The rows whose values are not bad."""
        fine: Bools = ~self.bad[self._owners]
        return fine

    def below(self, counts: Int64) -> tuple[Int64, Int64]:
        """Ends and owners of the rows of a list's items: `counts` says how many items each row
        has."""
        return np.repeat(self.ends, counts), np.repeat(self._owners, counts)


Make = Callable[[Slots], pa.Array]


class Plan(NamedTuple):
    """The operations, the numbers of slots and of booleans that they fill, and the function that
    makes an array of these."""

    ops: Int64
    slots: int
    valid: int
    make: Make


def plan_of(writer: AvroSchema, reader: AvroSchema) -> Plan:
    """The plan that reads a writer's values into `reader.arrow_type()`. NotByColumn if machine code
    cannot read them."""
    written, written_names = cast("tuple[Avro, dict[str, Definition]]", writer.parsed())
    wanted, wanted_names = cast("tuple[Avro, dict[str, Definition]]", reader.parsed())
    planning = _Planning(written_names, wanted_names, iter(range(STEPS_MAX)))
    make = planning.value(written, wanted, reader.arrow_type())
    return planning.plan(make)


def decode(plan: Plan, source: Bytes, starts: Int64, ends: Int64) -> tuple[pa.Array, Bools]:
    """The values from `starts` to `ends` as an array, and a boolean for each that is True where
    machine code did not take the value. The array has anything there."""
    bad = np.zeros(len(starts), np.bool_)
    slots = Slots(source, ends, np.arange(len(starts)), bad, plan)
    faults = np.zeros(len(starts), np.bool_)
    ones = np.ones(len(starts), np.int64)
    decode_avro(source, starts, ends, ones, 1, plan.ops, slots.rows, slots.values, slots.present, faults)
    bad |= faults
    return plan.make(slots), bad


class _Planning:
    """A walk through the writer's and the reader's schema at once, which collects a plan's
    operations."""

    def __init__(
        self, written: dict[str, Definition], wanted: dict[str, Definition], left: Iterator[int]
    ) -> None:
        """`written` and `wanted`: the writer's and the reader's schema. `left`: how many more steps
        may be taken, here and in the plans of items."""
        self._written, self._wanted, self._left = written, wanted, left
        self._ops: list[_Op] = []
        self._slots = self._valid = 0

    def plan(self, make: Make) -> Plan:
        """The plan, once all operations are collected; `make` makes its array."""
        return Plan(np.array(self._ops, np.int64).reshape(-1), self._slots, self._valid, make)

    def value(self, written: Avro, wanted: Avro, target: pa.DataType) -> Make:
        """Add the operations of a value. Returns the function that makes its column."""
        valid: int | None = None
        inner = branch(wanted)
        if isinstance(written, list):
            if len(written) != 2 or "null" not in written:
                raise NotByColumn
            op = [UNION, -1, written.index("null"), 0, self._new_valid()]
            valid, required = op[4], not isinstance(wanted, list)
            begun = self._add(op)
            make = self._plain(branch(written), inner, target, valid)
            op[3] = len(self._ops) - begun
            return _required(make, valid) if required else make
        return self._plain(written, inner, target, valid)

    def skipped(self, written: Avro, depth: int = 0) -> None:
        """Add the operations that pass over a value that the reader's schema lacks. The value lies
        `depth` types deep within one that the reader has."""
        if depth > NESTED_MAX:  # or without end: the type may hold itself
            raise NotByColumn
        self._spend()
        if isinstance(written, list):
            if len(written) != 2 or "null" not in written:
                raise NotByColumn
            op = [UNION, -1, written.index("null"), 0, -1]
            begun = self._add(op)
            self.skipped(branch(written), depth)
            op[3] = len(self._ops) - begun
            return
        described = definition(written, self._written)
        kind = str(described["type"])
        if kind == "record":
            for field in described["fields"]:
                self.skipped(field["type"], depth + 1)
        elif kind in ("array", "map"):
            op = [LIST, -1, 0, 0, -1]
            begun = self._add(op)
            if kind == "map":
                self._add([BYTES, -1, 0, 0, -1])
            self._skipped_item(
                described["items"] if kind == "array" else described["values"], begun, depth + 1
            )
            op[3] = len(self._ops) - begun
        elif kind in _NUMBERS:
            self._add([_NUMBERS[kind], -1, 0, 0, -1])
        elif kind in ("bytes", "string", "fixed", "enum"):
            self._add(bytes_op(described, -1) if kind != "enum" else enum_op(described, -1))
        else:
            raise NotByColumn

    def _skipped_item(self, written: Avro, begun: int, depth: int) -> None:
        """Add the operations that pass over an item of the list whose operations begin at
        `begun`."""
        self.skipped(written, depth)
        if len(self._ops) == begun:  # without bytes: the kernel bounds how many there are by bytes
            raise NotByColumn

    def _plain(self, written: Avro, wanted: Avro, target: pa.DataType, valid: int | None) -> Make:
        """Add the operations of a value that is not a union. Returns the function that makes its
        column."""
        there, here = definition(written, self._written), definition(wanted, self._wanted)
        kind, into = str(there["type"]), str(here["type"])
        if kind in ("record", "array", "map") or into in ("record", "array", "map"):
            if kind != into:
                raise NotByColumn
            return (
                self._record(there, here, target, valid)
                if kind == "record"
                else self._list(there, here, target, valid)
            )
        if _meaning(there) != _meaning(here):
            if (kind, into) not in _WIDENED or _meaning(there)[1:] != _meaning(here)[1:]:
                raise NotByColumn
        elif kind in ("fixed", "enum") and there != here:
            raise NotByColumn
        return self._leaf(there, here, target, valid)

    def _record(self, there: Definition, here: Definition, target: pa.DataType, valid: int | None) -> Make:
        if _short(there) != _short(here) or "aliases" in here:
            raise NotByColumn
        wanted = {field["name"]: field for field in here["fields"]}
        if any("aliases" in field for field in wanted.values()):
            raise NotByColumn
        made: dict[str, Make] = {}
        for field in there["fields"]:
            reader = wanted.get(field["name"])
            if reader is None:
                self.skipped(field["type"])
            else:
                made[field["name"]] = self.value(
                    field["type"], reader["type"], target.field(field["name"]).type
                )
        for name, field in wanted.items():
            if name not in made:
                made[name] = _default(field, target.field(name).type)
        children = [made[field.name] for field in target]

        def make(slots: Slots) -> pa.Array:
            arrays = [child(slots) for child in children]
            return pa.Array.from_buffers(target, slots.rows, [bitmap(slots.valid(valid))], children=arrays)

        return make

    def _list(self, there: Definition, here: Definition, target: pa.DataType, valid: int | None) -> Make:
        is_map = there["type"] == "map"
        slot = self._new_slots(2)
        op = [LIST, slot, 0, 0, -1]
        begun = self._add(op)
        items = _Planning(self._written, self._wanted, self._left)
        if is_map:
            self._add([BYTES, -1, 0, 0, -1])
            keys = items._leaf({"type": "string"}, {"type": "string"}, pa.string(), None)
            self._skipped_item(there["values"], begun, 1)
            values = items.value(there["values"], here["values"], target.item_type)
            entries = pa.struct([target.key_field, target.item_field])
            below = items.plan(
                lambda slots: pa.Array.from_buffers(
                    entries, slots.rows, [None], children=[keys(slots), values(slots)]
                )
            )
        else:
            self._skipped_item(there["items"], begun, 1)
            below = items.plan(items.value(there["items"], here["items"], target.value_type))
        op[3] = len(self._ops) - begun

        def make(slots: Slots) -> pa.Array:
            counts = np.where(slots.fine, slots.slot(slot + 1), 0)
            offsets = np.zeros(slots.rows + 1, np.int32)
            np.cumsum(counts, out=offsets[1:])
            ends, owners = slots.below(counts)
            inner = Slots(slots.source, ends, owners, slots.bad, below)
            faults = np.zeros(slots.rows, np.bool_)
            decode_avro(
                slots.source, slots.slot(slot), slots.ends, counts, 0, below.ops, inner.rows, inner.values,
                inner.present, faults,
            )  # fmt: skip
            slots.spoil(faults)
            buffers = [bitmap(slots.valid(valid)), pa.py_buffer(offsets)]
            made = below.make(inner)
            if is_map:
                slots.spoil(_twice(made.field(0), counts))
            return pa.Array.from_buffers(target, slots.rows, buffers, children=[made])

        return make

    def _leaf(self, there: Definition, here: Definition, target: pa.DataType, valid: int | None) -> Make:
        kind, logical = str(there["type"]), here.get("logicalType")
        types = pa.types
        if kind == "enum":
            slot = self._new_slots(1)
            self._add(enum_op(there, slot))
            symbols = pa.array(there["symbols"], pa.string())  # type: ignore[typeddict-item]
            return lambda slots: symbols.take(numbers(pa.int64(), slots.slot(slot), slots.valid(valid)))
        if kind in ("bytes", "string", "fixed"):
            slot = self._new_slots(2)
            self._add(bytes_op(there, slot))
            if types.is_decimal(target):
                return _decimals(slot, target, valid)
            texts = _texts(slot, target, valid)
            return _uuids(texts) if logical == "uuid" and kind == "string" else texts
        slot = self._new_slots(1)
        self._add([_NUMBERS[kind], slot, 0, 0, -1])
        if types.is_timestamp(target):
            return _instants(slot, 1000 if str(logical).endswith("millis") else 1, target, valid)
        if kind == "boolean":
            return lambda slots: booleans(slots.slot(slot) != 0, slots.valid(valid))
        bounds = _BOUNDS.get(str(logical))
        width = np.dtype(f"{'f' if types.is_floating(target) else 'i'}{target.bit_width // 8}")

        def make(slots: Slots) -> pa.Array:
            found = slots.slot(slot)
            if bounds is not None:
                slots.spoil((found < bounds[0]) | (found > bounds[1]))
            if kind == "float":
                exact = found.astype(np.int32).view(np.float32)
            else:
                exact = found.view(np.float64) if kind == "double" else found  # type: ignore[assignment]
            return numbers(target, exact.astype(width, copy=False), slots.valid(valid))

        return make

    def _add(self, op: _Op) -> int:
        self._spend()
        self._ops.append(op)
        return len(self._ops)

    def _spend(self) -> None:
        if next(self._left, None) is None:
            raise NotByColumn

    def _new_slots(self, count: int) -> int:
        self._slots += count
        return self._slots - count

    def _new_valid(self) -> int:
        self._valid += 1
        return self._valid - 1


def _required(make: Make, valid: int) -> Make:
    """Wrap `make` for a column that may not be null: values that are null are marked bad."""

    def made(slots: Slots) -> pa.Array:
        present = slots.valid(valid)
        assert present is not None, "it was read"
        slots.spoil(~present)
        return make(slots)

    return made


def _texts(slot: int, target: pa.DataType, valid: int | None) -> Make:
    def make(slots: Slots) -> pa.Array:
        sizes = np.where(slots.fine, slots.slot(slot + 1), 0)
        made = binaries(slots.source, slots.slot(slot), sizes, slots.valid(valid))
        if not pa.types.is_string(target):
            return made
        try:
            return made.cast(pa.string())
        except pa.ArrowInvalid:
            from fairlead_kafka.formats.utf8 import decode_text

            texts, wrong = decode_text(made)
            rows = np.zeros(slots.rows, np.bool_)
            rows[list(wrong)] = True
            slots.spoil(rows)
            return texts.fill_null("") if valid is None else texts  # a map's keys are never null

    return make


def _twice(keys: pa.Array, counts: Int64) -> Bools:
    """The rows that have a key twice; `counts` is the number of keys of each row."""
    twice = np.zeros(len(counts), np.bool_)
    if int(counts.max(initial=0)) > 1:
        codes = keys.dictionary_encode().indices.to_numpy()
        of_row = int(codes.max()) + 1
        found, times = np.unique(
            np.repeat(np.arange(len(counts)), counts) * of_row + codes, return_counts=True
        )
        twice[found[times > 1] // of_row] = True
    return twice


def _uuids(texts: Make) -> Make:
    """Make a column of UUIDs from texts; values that are no canonical UUID are marked bad, and so
    left to other code."""

    def make(slots: Slots) -> pa.Array:
        made = texts(slots)
        canonical = pc.match_substring_regex(made, _UUID).fill_null(True)
        slots.spoil(~canonical.to_numpy(zero_copy_only=False))
        return made

    return make


def _instants(slot: int, factor: int, target: pa.DataType, valid: int | None) -> Make:
    def make(slots: Slots) -> pa.Array:
        found = slots.slot(slot)
        slots.spoil((found < FIRST_US // factor) | (found > LAST_US // factor))
        return numbers(target, found * factor, slots.valid(valid))

    return make


def _decimals(slot: int, target: pa.DataType, valid: int | None) -> Make:
    if target.precision > DIGITS_MAX:
        raise NotByColumn
    limit = 10**target.precision

    def make(slots: Slots) -> pa.Array:
        starts, sizes = slots.slot(slot), slots.slot(slot + 1)
        present = slots.valid(valid)
        slots.spoil((sizes > 8) | ((sizes == 0) & (True if present is None else present)))
        sizes = np.where(slots.fine, sizes, 0)
        value = np.zeros(slots.rows, np.int64)
        for byte in range(int(sizes.max(initial=0))):
            rows = np.flatnonzero(sizes > byte)
            next_byte = slots.source[starts[rows] + byte].astype(np.int64)
            value[rows] = next_byte.astype(np.int8) if byte == 0 else (value[rows] << 8) | next_byte
        slots.spoil((value >= limit) | (value <= -limit))
        words = np.empty((slots.rows, 2), np.int64)
        words[:, 0], words[:, 1] = value, value >> 63
        return (
            numbers(target, words.reshape(-1), present)
            if not slots.rows
            else pa.Array.from_buffers(target, slots.rows, [bitmap(present), pa.py_buffer(words)])
        )

    return make


def _default(field: object, target: pa.DataType) -> Make:
    """A column that repeats a field's default: null, or a single value of a primitive type."""
    given = cast("dict[str, object]", field)
    if "default" not in given:
        raise NotByColumn
    default, kind = given["default"], given["type"]
    if default is None:
        return lambda slots: pa.nulls(slots.rows, target)
    if isinstance(kind, list):
        kind = kind[0]
    if kind not in ("boolean", "int", "long", "float", "double", "string"):
        raise NotByColumn
    value = pa.scalar(default, target)
    return lambda slots: pa.repeat(value, slots.rows)


def branch(schema: Avro) -> Avro:
    """The other type, if `schema` is a union of null and one type; else `schema` as it is."""
    return next(branch for branch in schema if branch != "null") if isinstance(schema, list) else schema


def definition(schema: Avro, named: dict[str, Definition]) -> Definition:
    """The definition of a type, whether it is given by name, word or object. NotByColumn for a
    union within a union."""
    if isinstance(schema, str):
        return named.get(schema) or {"type": schema}
    assert not isinstance(schema, list), "unions were unwrapped"
    kind = schema["type"]
    if isinstance(kind, dict) or (isinstance(kind, str) and kind in named):
        return definition(kind, named)
    if isinstance(kind, list):
        raise NotByColumn
    return schema


def _meaning(definition: Definition) -> tuple[object, ...]:
    logical = definition.get("logicalType")
    parts = (definition.get("precision"), definition.get("scale", 0)) if logical == "decimal" else ()
    return (definition["type"], logical, *parts)


def _short(definition: Definition) -> str:
    return str(definition.get("name", "")).rpartition(".")[2]


def bytes_op(definition: Definition, slot: int) -> list[int]:
    """The kernel operation for bytes, strings and fixed, with its first slot."""
    if definition["type"] != "fixed":
        return [BYTES, slot, 0, 0, -1]
    size = int(cast("dict[str, int]", definition)["size"])
    if size < 1:
        raise NotByColumn
    return [FIXED, slot, size, 0, -1]


def enum_op(definition: Definition, slot: int) -> list[int]:
    """The kernel operation for an enum, with its slot."""
    return [ENUM, slot, len(cast("dict[str, list[str]]", definition)["symbols"]), 0, -1]
