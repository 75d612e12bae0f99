"""Avro by column, in machine code, is what fastavro makes of each value, whatever the schema and
whatever the bytes."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.kernel import Kernel
from fairlead_kafka.formats import json_kernel, kernels
from fairlead_kafka.formats.avro_bounds import Bounds
from fairlead_kafka.formats.avro_columns import columns_decoder
from fairlead_kafka.formats.avro_reading import plan_of
from fairlead_kafka.formats.avro_rows import avro_decoder
from fairlead_kafka.formats.avro_schema import AvroSchema
from fairlead_kafka.formats.avro_serde import AvroSerializer
from fairlead_kafka.formats.avro_writing import encode
from fairlead_kafka.formats.context import MessageField, SerializationContext
from tests.support.format_values import AVRO_LEAVES, Kind, structs

EXAMPLES = 60
VALUE = SerializationContext("t", MessageField.VALUE)
ENUM = {"type": "enum", "name": "Colour", "symbols": ["RED", "GREEN"]}
EVERYTHING = {
    "type": "record",
    "name": "Everything",
    "fields": [
        {"name": "colour", "type": ENUM},
        {"name": "maybe", "type": ["Colour", "null"]},
        {"name": "hash", "type": {"type": "fixed", "name": "Hash", "size": 3}},
        {
            "name": "cents",
            "type": {
                "type": "fixed",
                "name": "Cents",
                "size": 9,
                "logicalType": "decimal",
                "precision": 9,
                "scale": 2,
            },
        },
        {
            "name": "long",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 30, "scale": 2},
        },
    ],
}


@contextmanager
def references_serving() -> Iterator[None]:
    """Within it kernels run their reference implementations."""
    served = [
        each
        for module in (kernels, json_kernel)
        for each in vars(module).values()
        if isinstance(each, Kernel)
    ]
    assert len(served) == 6
    for each in served:
        each.serve(each.reference)
    try:
        yield
    finally:
        for each in served:
            each.serve(each.machine_code)


@st.composite
def written(draw: st.DrawFn) -> tuple[Any, list[bytes]]:
    """A schema and values of it."""
    kind: Kind = draw(structs(AVRO_LEAVES, True))
    pairs = draw(st.lists(kind.pairs, min_size=1, max_size=6))
    parsed = fastavro.parse_schema(json.loads(json.dumps(kind.avro)))
    made = []
    for value, _ in pairs:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, value)
        made.append(stream.getvalue())
    return kind.avro, made


def garbled(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes with one changed, left out or put in."""
    at = draw(st.integers(0, len(data)))
    byte = draw(st.sampled_from([0, 1, 2, 3, 127, 128, 255]))
    return draw(
        st.sampled_from(
            [data[:at], data[:at] + bytes([byte]) + data[at + 1 :], data[:at] + bytes([byte]) + data[at:]]
        )
    )


@settings(max_examples=EXAMPLES)
@given(written(), st.data())
def test_columns_are_read_as_values_are_garbled_ones_too(
    case: tuple[Any, list[bytes]], data: st.DataObject
) -> None:
    schema, values = case
    rows: list[bytes | None] = [*values, None, *(garbled(data.draw, value) for value in values)]
    reader = AvroSchema(json.dumps(schema))
    target = reader.arrow_type()
    plan_of(reader, reader)  # raises where there is none
    array = pa.array([b"before", *rows], pa.binary()).slice(1)
    expected, why = avro_decoder(reader, reader, None, target)(array)
    found, reasons = columns_decoder(reader, reader, None, target)(array)
    found.validate(full=True)
    assert (found.to_pylist(), reasons) == (expected.to_pylist(), why)
    with references_serving():
        again, reasons = columns_decoder(reader, reader, None, target)(array)
    assert (again.equals(found), reasons) == (True, why)


@settings(max_examples=EXAMPLES)
@given(written(), st.data())
def test_a_walk_of_the_bounds_takes_what_fastavro_takes(
    case: tuple[Any, list[bytes]], data: st.DataObject
) -> None:
    schema, values = case
    parsed = fastavro.parse_schema(json.loads(json.dumps(schema)))
    bounds = Bounds(AvroSchema(json.dumps(schema)))
    bounds.needed = True
    for value in values:
        bounds.check(b"before" + value, 6)
        if value:
            with pytest.raises(EOFError):
                bounds.check(value[:-1], 0)
        changed = garbled(data.draw, value)
        try:
            fastavro.schemaless_reader(io.BytesIO(changed), parsed, None)
        except Exception:
            continue
        # The walk is stricter: for fastavro branch -1 is the last one, and numbers have any length.
        assert re.match("None|branch -|a number of more than 10", refusal(bounds, changed))


def refusal(bounds: Bounds, data: bytes) -> str:
    try:
        bounds.check(data, 0)
    except (ValueError, EOFError) as error:
        return repr(error) if isinstance(error, EOFError) else str(error)
    return "None"


@settings(max_examples=EXAMPLES)
@given(written())
def test_columns_are_written_as_values_are(case: tuple[Any, list[bytes]]) -> None:
    schema, values = case
    reader = AvroSchema(json.dumps(schema))
    array, _ = avro_decoder(reader, reader, None, reader.arrow_type())(pa.array([None, *values], pa.binary()))
    serializer = AvroSerializer(None, schema)
    made, bad = encode(reader, array.slice(1), b"")
    assert not bad.any()
    assert made.to_pylist() == [
        serializer(value, VALUE) for value in array.slice(1).to_pylist(maps_as_pydicts="strict")
    ]
    with references_serving():
        assert encode(reader, array.slice(1), b"")[0].equals(made)
    prefixed, bad = encode(reader, array, b"head")
    assert [data and data[:4] for data in prefixed.to_pylist()] == [None, *[b"head"] * len(values)]


def test_enums_fixed_and_decimals_and_what_is_none_of_them() -> None:
    kind = pa.struct(
        [
            ("colour", pa.string()),
            ("maybe", pa.string()),
            ("hash", pa.binary()),
            ("cents", pa.decimal128(9, 2)),
            ("long", pa.decimal128(30, 2)),
        ]
    )
    from decimal import Decimal

    fine = {
        "colour": "GREEN",
        "maybe": None,
        "hash": b"abc",
        "cents": Decimal("-0.01"),
        "long": Decimal(-(10**20)),
    }
    rows = [fine, {**fine, "colour": "BLUE"}, {**fine, "hash": b"a"}, {**fine, "cents": None}, fine, None]
    for fields in (EVERYTHING["fields"], EVERYTHING["fields"][:-1]):
        schema = {**EVERYTHING, "fields": fields}
        serializer = AvroSerializer(None, schema)
        made, reasons = serializer.encode_column(pa.array(rows, kind), VALUE)
        assert [data is None for data in made.to_pylist()] == [False, True, True, True, False, True]
        assert list(reasons) == [1, 2, 3]
        assert made[0].as_py() == serializer(fine, VALUE)
        reader = AvroSchema(json.dumps(schema))
        back, _ = columns_decoder(reader, reader, None, reader.arrow_type())(made)
        assert back[0].as_py() == {field["name"]: fine[field["name"]] for field in fields}


def test_a_writer_s_schema_is_resolved_by_column_where_plain_and_by_value_elsewhere() -> None:
    old = {
        "type": "record",
        "name": "V",
        "fields": [
            {
                "name": "gone",
                "type": {"type": "array", "items": {"type": "map", "values": ["null", "string"]}},
            },
            {"name": "n", "type": "int"},
            {"name": "x", "type": ["null", "float"]},
            {"name": "also", "type": ["string", "null"]},
        ],
    }
    new = {
        "type": "record",
        "name": "V",
        "fields": [
            {"name": "x", "type": ["null", "double"]},
            {"name": "n", "type": "long"},
            {"name": "more", "type": ["null", "string"], "default": None},
            {"name": "text", "type": "string", "default": "?"},
            {"name": "five", "type": {"type": "int", "logicalType": "date"}, "default": 5},
        ],
    }
    values = [
        {"gone": [{"a": None, "b": "c"}, {}], "n": -3, "x": 0.5, "also": "x"},
        {"gone": [], "n": 4, "x": None, "also": None},
    ]
    writer = AvroSchema(json.dumps(old))
    made = pa.array([AvroSerializer(None, old)(value, VALUE) for value in values] + [b"\1"], pa.binary())
    for fields in (new["fields"][:-1], new["fields"]):
        reader = AvroSchema(json.dumps({**new, "fields": fields}))
        expected = avro_decoder(reader, writer, None, reader.arrow_type())(made)
        found = columns_decoder(reader, writer, None, reader.arrow_type())(made)
        assert (found[0].to_pylist(), found[1]) == (expected[0].to_pylist(), expected[1])
        assert list(found[1]) == [2]


def test_many_rows_are_as_few() -> None:
    schema = {"type": "record", "name": "N", "fields": [{"name": "n", "type": "long"}]}
    array = pa.StructArray.from_arrays([pa.array(np.arange(200_000))], ["n"])
    made, reasons = AvroSerializer(None, schema).encode_column(array, VALUE)
    assert not reasons
    reader = AvroSchema(json.dumps(schema))
    back, reasons = columns_decoder(reader, reader, None, reader.arrow_type())(made)
    assert (back.field(0).equals(array.field(0)), reasons) == (True, {})


def test_texts_that_are_no_uuid_and_times_beyond_a_day_or_a_calendar_are_as_single_values_have_them() -> None:
    for kind, good, bad in (
        (
            {"type": "string", "logicalType": "uuid"},
            b"\x48" + b"0" * 8 + b"-0000" * 3 + b"-" + b"0" * 12,
            b"\0",
        ),
        ({"type": "int", "logicalType": "time-millis"}, b"\2", b"\1"),
        ({"type": "long", "logicalType": "time-micros"}, b"\2", b"\x80\x80\x80\x80\x80\x80\x80\x01"),
        ({"type": "int", "logicalType": "date"}, b"\xc0\x82\xe6\x02", b"\xc2\x82\xe6\x02"),
        ({"type": "int", "logicalType": "date"}, b"\xf3\xe4W", b"\xf5\xe4W"),
    ):
        schema = {"type": "record", "name": "R", "fields": [{"name": "a", "type": kind}]}
        reader = AvroSchema(json.dumps(schema))
        array = pa.array([good, bad], pa.binary())
        expected = avro_decoder(reader, reader, None, reader.arrow_type())(array)
        found = columns_decoder(reader, reader, None, reader.arrow_type())(array)
        assert (found[0].to_pylist(), found[1]) == (expected[0].to_pylist(), expected[1])
