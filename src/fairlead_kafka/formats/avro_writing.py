"""Columns to Avro, by machine code: a schema's operations and the slots of an array's columns.

Raises `NotByColumn` for schemas and types of columns that have to be written value by value: other
unions than of null and a type, decimals of more than 18 digits, fields that the column lacks, types
that Arrow does not cast into the schema's. Values that are not the schema's (a null where none may
be, a name that is no symbol) are bad: left to `avro_rows`, which finds the reason.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fairlead_kafka.formats.avro_reading import (
    DIGITS_MAX,
    FIRST_US,
    LAST_US,
    branch,
    bytes_op,
    definition,
    enum_op,
)
from fairlead_kafka.formats.avro_schema import Avro, AvroSchema, Definition
from fairlead_kafka.formats.kernels import (
    BOOLEAN,
    DOUBLE,
    FLOAT,
    INT,
    LIST,
    LONG,
    OP_FIELDS,
    UNION,
    VARINT_BYTES_MAX,
    Bools,
    Bytes,
    Int64,
    encode_avro,
)
from fairlead_kafka.formats.slots import EMPTY, NotByColumn, encoded, pieces_of

_NUMBERS = {"int": INT, "long": LONG, "boolean": BOOLEAN, "float": FLOAT, "double": DOUBLE}
_POWERS = 2 ** np.arange(63, dtype=np.int64)


def encode(schema: AvroSchema, array: pa.Array, prefix: bytes) -> tuple[pa.Array, Bools]:
    """The values as Avro, each after `prefix`, and which of them are bad: do not fit the schema.
    Nulls and bad ones are null."""
    parsed, named = cast("tuple[Avro, dict[str, Definition]]", schema.parsed())
    rows = len(array)
    given = array.is_valid().to_numpy(zero_copy_only=False)
    table = _Table(named, np.arange(rows), given, np.zeros(rows, np.bool_))
    table.value(_not_null(parsed), array, schema.arrow_type())
    head = np.frombuffer(prefix, np.uint8)
    return table.written(head), table.bad


def _not_null(schema: Avro) -> Avro:
    if isinstance(schema, list):
        raise NotByColumn
    return schema


class _Table:
    """The operations and slots that write a table of rows: values, or the items of an array or
    map."""

    def __init__(self, named: dict[str, Definition], owners: Int64, given: Bools, bad: Bools) -> None:
        """`owners` (int64[rows]): the value that each row is an item of, or the row itself; `given`
        (bool[rows]): rows that are not null; `bad` (bool[values]): values that cannot be written,
        of which more are found. `named`: definitions of the schema's named types."""
        self._named, self._owners, self._given, self.bad = named, owners, given, bad
        self._ops: list[list[int]] = []
        self._slots: list[Int64] = []
        self._valid: list[Bools] = []
        self._sources: list[Bytes] = []
        self._source_bytes = 0
        self._limit = 0

    def written(self, prefix: Bytes) -> pa.Array:
        """The rows as a binary array; null for those that are bad or not given."""
        rows = len(self._owners)
        given = self._given & ~self.bad[self._owners]
        slots = np.concatenate(self._slots) if self._slots else np.empty(0, np.int64)
        valid = np.concatenate(self._valid) if self._valid else np.empty(0, np.bool_)
        source = np.concatenate(self._sources) if self._sources else EMPTY
        ops = np.array(self._ops, np.int64).reshape(-1)
        limit = (
            self._limit + rows * (len(prefix) + len(ops) // OP_FIELDS * VARINT_BYTES_MAX) + VARINT_BYTES_MAX
        )

        def run(out: Bytes, offsets: Int64) -> int:
            return encode_avro(ops, rows, slots, valid, source, prefix, given, out, offsets)

        return encoded(run, rows, limit, given)

    def value(self, schema: Avro, array: pa.Array, target: pa.DataType, below: Bools | None = None) -> None:
        """Operations and slots of a column; `below`: the rows in which the value that this column
        is a part of is not null."""
        present = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
        if isinstance(schema, list):
            if len(schema) != 2 or "null" not in schema:
                raise NotByColumn
            op = [UNION, -1, schema.index("null"), 0, len(self._valid)]
            begun = len(self._ops) + 1
            self._ops.append(op)
            there = np.ones(len(array), np.bool_) if present is None else present
            self._valid.append(there)
            self._plain(branch(schema), array, target, there if below is None else there & below)
            op[3] = len(self._ops) - begun
            return
        if present is not None:
            wanted = self._given if below is None else below
            self._spoil(~present & wanted)
        self._plain(schema, array, target, present if below is None else below)

    def _plain(self, schema: Avro, array: pa.Array, target: pa.DataType, below: Bools | None) -> None:
        described = definition(schema, self._named)
        kind = str(described["type"])
        if kind == "record":
            if not pa.types.is_struct(array.type):
                raise NotByColumn
            fields = {field.name: index for index, field in enumerate(array.type)}
            children = (
                array.flatten()
                if array.null_count
                else [array.field(i) for i in range(array.type.num_fields)]
            )
            for field in described["fields"]:
                if field["name"] not in fields:
                    raise NotByColumn
                child = children[fields[field["name"]]]
                self.value(field["type"], child, target.field(field["name"]).type, below)
        elif kind in ("array", "map"):
            self._list(described, array, target)
        elif kind in _NUMBERS:
            self._number(described, array, target, below)
        elif kind == "enum":
            symbols = pa.array(cast("dict[str, list[str]]", described)["symbols"], pa.string())
            found = pc.index_in(_cast(array, pa.string()), value_set=symbols)
            missing = found.is_null().to_numpy(zero_copy_only=False)
            self._spoil(missing & array.is_valid().to_numpy(zero_copy_only=False))
            self._ops.append(enum_op(described, len(self._slots)))
            self._slots.append(found.fill_null(0).to_numpy().astype(np.int64))
        else:
            self._bytes(described, array, target)

    def _number(
        self, described: Definition, array: pa.Array, target: pa.DataType, below: Bools | None
    ) -> None:
        logical = str(described.get("logicalType"))
        if pa.types.is_timestamp(target):
            if not pa.types.is_timestamp(array.type):
                raise NotByColumn
            microseconds = array.cast(pa.timestamp("us", array.type.tz), safe=False).view(pa.int64())
            values = microseconds.fill_null(0).to_numpy()
            self._spoil((values < FIRST_US) | (values > LAST_US))
            values = values // 1000 if logical.endswith("millis") else values
        elif pa.types.is_boolean(target):
            values = _cast(array, target).fill_null(False).to_numpy(zero_copy_only=False).astype(np.int64)
        else:
            exact = _cast(array, target)
            if pa.types.is_date(target):
                exact = exact.view(pa.int32())
            values = exact.fill_null(0).to_numpy()
            if pa.types.is_floating(target):
                values = values.view(np.int64 if target.bit_width == 64 else np.int32)
        self._ops.append([_NUMBERS[str(described["type"])], len(self._slots), 0, 0, -1])
        self._slots.append(values.astype(np.int64, copy=False))

    def _bytes(self, described: Definition, array: pa.Array, target: pa.DataType) -> None:
        op = bytes_op(described, len(self._slots))
        if pa.types.is_decimal(target):
            source, starts, sizes = self._decimals(array, target, op[2])
        else:
            pieces = pieces_of(_cast(array, pa.string() if pa.types.is_string(target) else pa.binary()))
            source, starts, sizes = pieces.data, pieces.starts, pieces.ends - pieces.starts
            if op[2]:
                self._spoil(pieces.given & (sizes != op[2]))
        self._ops.append(op)
        self._slots += [starts + self._source_bytes, sizes]
        self._limit += int(sizes.sum())
        self._add_source(source)

    def _decimals(self, array: pa.Array, target: pa.DataType, fixed_size: int) -> tuple[Bytes, Int64, Int64]:
        if target.precision > DIGITS_MAX or not pa.types.is_decimal(array.type):
            raise NotByColumn
        words = np.frombuffer(_cast(array, target).fill_null(0).buffers()[1], np.int64)
        exact = _cast(array, target).fill_null(0)
        value = words[exact.offset * 2 : (exact.offset + len(exact)) * 2 : 2]
        size = fixed_size or 8
        digits = np.empty((len(value), size), np.uint8)
        digits[:] = np.where(value < 0, 255, 0).astype(np.uint8)[:, None]
        tail = min(size, 8)
        digits[:, size - tail :] = value.astype(">i8").view(np.uint8).reshape(-1, 8)[:, 8 - tail :]
        bits = np.searchsorted(_POWERS, np.abs(value), side="right")
        sizes = np.full(len(value), fixed_size) if fixed_size else (bits + 8) // 8
        if fixed_size:
            self._spoil((bits + 8) // 8 > fixed_size)
        starts = np.arange(1, len(value) + 1) * size - sizes
        return digits.reshape(-1), starts, sizes

    def _list(self, described: Definition, array: pa.Array, target: pa.DataType) -> None:
        is_map = described["type"] == "map"
        if is_map != pa.types.is_map(array.type) or not (is_map or _is_list(array.type)):
            raise NotByColumn
        if is_map:
            array = array.cast(pa.list_(pa.struct([array.type.key_field, array.type.item_field])))
        counts = pc.list_value_length(array).fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
        items = array.flatten()
        owners = np.repeat(self._owners, counts)
        below = _Table(self._named, owners, np.repeat(self._given, counts), self.bad)
        if is_map:
            keys, values = items.flatten()
            below.value("string", keys, pa.string())
            below.value(described["values"], values, target.item_type)
        else:
            below.value(described["items"], items, target.value_type)
        pieces = pieces_of(below.written(EMPTY))
        ends = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(counts, out=ends[1:])
        edges = np.append(pieces.starts, pieces.ends[-1:] if len(pieces.ends) else [0])
        starts = edges[ends[:-1]]
        sizes = edges[ends[1:]] - starts
        self._ops.append([LIST, len(self._slots), 0, 0, -1])
        self._slots += [starts + self._source_bytes, sizes, counts]
        self._limit += int(sizes.sum()) + len(counts)
        self._add_source(pieces.data)

    def _add_source(self, source: Bytes) -> None:
        self._sources.append(source)
        self._source_bytes += len(source)

    def _spoil(self, rows: Bools) -> None:
        rows = rows & self._given
        if rows.any():
            self.bad[self._owners[rows]] = True


def _cast(array: pa.Array, target: pa.DataType) -> pa.Array:
    """The column in the schema's type. NotByColumn if Arrow cannot, or a value does not fit."""
    if array.type.equals(target):
        return array
    try:
        return array.cast(target)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
        raise NotByColumn from None


def _is_list(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind))
