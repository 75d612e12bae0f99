"""Avro's bytes from strangers: few that ask for all of the stack, of the memory or of the time are
refused, in every place that reads Avro."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import textwrap
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from fairlead_kafka.formats import AvroDeserializer, MessageField, SerializationContext
from fairlead_kafka.formats.avro_bounds import EMPTY_VALUES_MAX, VALUE_DEPTH_MAX, Bounds
from fairlead_kafka.formats.avro_columns import columns_decoder
from fairlead_kafka.formats.avro_reading import plan_of
from fairlead_kafka.formats.avro_schema import NESTED_MAX, AvroSchema
from fairlead_kafka.formats.slots import NotByColumn

VALUE = SerializationContext("t", MessageField.VALUE)
TOO_DEEP = f"records, arrays and maps are nested deeper than {VALUE_DEPTH_MAX}"
TOO_EMPTY = f"more than {EMPTY_VALUES_MAX} values have no bytes"


def record(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def number(value: int) -> bytes:
    zigzag, out = value << 1 ^ value >> 63, bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    return bytes([*out, zigzag])


def array(items: Any) -> dict[str, Any]:
    return {"type": "array", "items": items}


A = record("R", a="int")
LINKED = record("R", a="int", next=["null", "R"])
TREE = record("R", a="int", below=array("R"))
NAMES = record("R", a="int", below={"type": "map", "values": "R"})
NOTHING = {"type": "fixed", "name": "Nothing", "size": 0}


def by_column(writer: Any, data: list[bytes], reader: Any = A) -> tuple[list[Any], dict[int, str]]:
    into = AvroSchema(json.dumps(reader))
    decode = columns_decoder(into, AvroSchema(json.dumps(writer)), None, into.arrow_type())
    found, reasons = decode(pa.array(data, pa.binary()))
    return found.to_pylist(), reasons


def test_a_message_that_is_nested_without_end_does_not_end_the_process() -> None:
    code = f"""
        import tests.unit.test_formats_bounds as t
        data = {LINKED!r}, b"\\2\\2" * 100_000 + b"\\0\\0"
        try:
            t.AvroDeserializer(None, data[0])(data[1], t.VALUE)
        except ValueError as error:
            print(error)
        print(t.by_column(data[0], [data[1]])[1][0])
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.stdout, done.returncode) == (f"{TOO_DEEP}\n" * 2, 0), done.stderr


@pytest.mark.parametrize(
    ("schema", "of_depth"),
    [
        (LINKED, lambda n: b"\2\2" * (n - 1) + b"\2\0"),
        (TREE, lambda n: b"\2\2" * (n // 2 - 1) + b"\2\0" + b"\0" * (n // 2 - 1)),
        (NAMES, lambda n: b"\2\2\2x" * (n // 2 - 1) + b"\2\0" + b"\0" * (n // 2 - 1)),
    ],
)
def test_values_are_read_up_to_a_depth(schema: Any, of_depth: Any) -> None:
    deserializer = AvroDeserializer(None, schema)
    fine, deep = of_depth(VALUE_DEPTH_MAX), of_depth(VALUE_DEPTH_MAX + 2)
    assert deserializer(fine, VALUE) == fastavro.schemaless_reader(
        io.BytesIO(fine), fastavro.parse_schema(schema), None
    )
    with pytest.raises(ValueError, match=TOO_DEEP):
        deserializer(deep, VALUE)
    assert by_column(schema, [fine, deep, fine]) == ([{"a": 1}, None, {"a": 1}], {1: TOO_DEEP})


def test_schemas_whose_values_have_no_end_and_deep_ones_without_names_twice_are_bounded() -> None:
    with pytest.raises(ValueError, match=TOO_DEEP):
        AvroDeserializer(None, record("R", r="R"))(b"", VALUE)
    flat = [record("T0", a="int"), *(record(f"T{n}", t=f"T{n - 1}") for n in range(1, 300))]
    for depth, fine in ((200, True), (201, False)):
        schema = [*flat[:depth], "null"]
        data = number(depth - 1) + b"\2"
        parsed = AvroSchema(json.dumps(schema))
        if fine:
            assert not Bounds(parsed).needed
            assert AvroDeserializer(None, json.dumps(schema))(data, VALUE)
        else:
            with pytest.raises(ValueError, match=TOO_DEEP):
                AvroDeserializer(None, json.dumps(schema))(data, VALUE)


@pytest.mark.parametrize("item", ["null", NOTHING, record("E"), record("P", x="null", y=NOTHING)])
def test_items_without_bytes_are_counted_before_they_are_made(item: Any) -> None:
    schema = record("R", a="int", n=array(item))
    each = len(item["fields"]) if isinstance(item, dict) and item.get("fields") else 1
    for count in (EMPTY_VALUES_MAX // each, EMPTY_VALUES_MAX, 2**40, 2**62):
        data = b"\2" + number(count) + b"\0"
        if count * each == EMPTY_VALUES_MAX:
            assert len(AvroDeserializer(None, schema)(data, VALUE)["n"]) == count
            assert by_column(schema, [data]) == ([{"a": 1}], {})
        elif count > EMPTY_VALUES_MAX:
            assert list(by_column(schema, [data, b"\2\0"])[1]) == [0]
            with pytest.raises(ValueError, match=f"{TOO_EMPTY}|the bytes end"):
                AvroDeserializer(None, schema)(data, VALUE)


def test_records_of_nothing_that_double_are_counted() -> None:
    kind: Any = record("T0", x="null")
    for n in range(1, 60):
        kind = record(f"T{n}", l=kind, r=f"T{n - 1}")
    with pytest.raises(ValueError, match=TOO_EMPTY):
        AvroDeserializer(None, record("R", a=kind))(b"", VALUE)


def test_what_cannot_exceed_a_bound_is_not_walked() -> None:
    nullable = record("P", x=["null", "int"], y=["null", "string"], z=["null", NOTHING])
    for fields in ({"a": array(nullable)}, {"a": "null"}, {"a": {"type": "map", "values": "null"}}):
        assert not Bounds(AvroSchema(json.dumps(record("R", **fields)))).needed
    for fields in ({"a": array("null")}, {"a": ["null", "R"]}, {"a": array(array(NOTHING))}):
        assert Bounds(AvroSchema(json.dumps(record("R", **fields)))).needed
    many = [f"n{n}" for n in range(EMPTY_VALUES_MAX + 1)]
    assert Bounds(AvroSchema(json.dumps(record("R", **dict.fromkeys(many, "null"))))).needed


@pytest.mark.parametrize(
    ("schema", "data", "why"),
    [
        (record("R", x=["null", "R"]), b"\1", "branch -1 of a union of 2"),
        (record("R", x=["null", "R"]), b"\4", "branch 2 of a union of 2"),
        (record("R", s="string", x=["null", "R"]), b"\1", "a length of -1"),
        (record("R", s="string", x=["null", "R"]), b"\4a", "the bytes end before the record does"),
        (record("R", s="long", x=["null", "R"]), b"\x80", "the bytes end before the record does"),
        (record("R", s="long", x=["null", "R"]), b"\xff" * 11, "a number of more than 10 bytes"),
        (record("R", s=array("R")), number(2**62), "the bytes end before the record does"),
        (record("R", s="long", x=["null", "R"]), b"\0\0x", "1 bytes are left over after the record"),
    ],
)
def test_bytes_that_are_no_value_are_told(schema: Any, data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        AvroDeserializer(None, schema)(data, VALUE)


def test_blocks_with_their_size_and_several_blocks_are_walked() -> None:
    data = b"\2" + number(-1) + number(9) + b"\4\0" + number(1) + b"\6\0" + b"\0"
    assert AvroDeserializer(None, TREE)(data, VALUE) == {
        "a": 1, "below": [{"a": 2, "below": []}, {"a": 3, "below": []}],
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "data", "why"),
    [
        ("long", b"\x80", "the bytes end before the record does"),
        ("double", b"", "the bytes end before the record does"),
        (["null", "int"], b"\6", "a branch of a union or a symbol that the schema lacks"),
        ({"type": "enum", "name": "E", "symbols": ["x"]}, b"\6", "a branch of a union or a symbol that"),
    ],
)
def test_the_reason_is_in_words_of_avro_not_of_python(kind: Any, data: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        AvroDeserializer(None, record("R", a=kind))(data, VALUE)
    into = record("R", a="long" if isinstance(kind, list) else kind)
    assert by_column(record("R", a=kind), [data], into)[1][0].startswith(why)


def test_a_writer_s_schema_that_holds_itself_is_read_value_by_value() -> None:
    for schema, data in ((LINKED, b"\2\0"), (TREE, b"\2\0"), (NAMES, b"\2\0")):
        assert by_column(schema, [data, b"\2"]) == (
            [{"a": 1}, None],
            {1: "the bytes end before the record does"},
        )
    items = record("V", n=array(LINKED))
    assert by_column(items, [b"\4\2\0\4\0\0"], record("V", n=array(A)))[0] == [{"n": [{"a": 1}, {"a": 2}]}]


@pytest.mark.parametrize("leaf", ["int", record("E")])
def test_records_that_name_each_other_twice_are_not_planned(leaf: Any) -> None:
    kind: Any = record("T0", x=leaf)
    for n in range(1, 60):
        kind = record(f"T{n}", l=kind, r=f"T{n - 1}")
    schema = record("R", a="int", n=kind)
    reasons = by_column(schema, [b"\2\0\0"])[1]
    assert reasons == {0: TOO_EMPTY if leaf != "int" else "the bytes end before the record does"}
    listed = record("R", a="int", n=array(kind))
    assert by_column(listed, [b"\2\0"]) == ([{"a": 1}], {})
    if leaf == "int":
        with pytest.raises(ValueError, match="too many for a column"):
            AvroSchema(json.dumps(schema)).arrow_type()
    with pytest.raises(NotByColumn):
        plan_of(AvroSchema(json.dumps(schema)), AvroSchema(json.dumps(A)))


def test_lists_whose_items_have_no_bytes_are_not_planned() -> None:
    reader = AvroSchema(json.dumps(A))
    for item in ("null", NOTHING, record("E"), record("P", e=record("E"))):
        for kind in (array(item), array(array(item))):
            with pytest.raises(NotByColumn):
                plan_of(AvroSchema(json.dumps(record("R", a="int", n=kind))), reader)
    for item in (["null", "int"], record("P", e=record("E"), x="int")):
        assert plan_of(AvroSchema(json.dumps(record("R", a="int", n=array(item)))), reader)


def test_schemas_nested_too_deep_are_told() -> None:
    kind: Any = "int"
    for depth in range(1, 401):
        kind = array(kind)
        if depth in (NESTED_MAX - 1, NESTED_MAX, 200, 400):
            schema = AvroSchema(json.dumps(record("R", a=kind)))
            if depth < NESTED_MAX:
                value = b"\2" * depth + b"\6" + b"\0" * depth
                found, reasons = by_column(record("R", a=kind), [value], record("R", a=kind))
                assert (json.dumps(found[0]["a"]), reasons) == ("[" * depth + "3" + "]" * depth, {})
                continue
            with pytest.raises(
                ValueError, match="are nested deeper than 64" if depth < 400 else "nested deeper than 400"
            ):
                schema.arrow_type()
    deep = '{"type": "array", "items": ' * 100_000 + '"int"' + "}" * 100_000
    with pytest.raises(ValueError, match="not an Avro schema"):
        AvroSchema(deep).parsed()


def test_decimals_of_64_bits_are_judged_by_their_digits() -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2}
    schema = record("R", d=kind)
    edges = [-(2**63), 2**63 - 1, -(10**18), 10**18, -(10**18) + 1, 10**18 - 1, -1]
    data = [b"\x10" + edge.to_bytes(8, "big", signed=True) for edge in edges]
    found, reasons = by_column(schema, data, schema)
    assert found == [None] * 4 + [{"d": Decimal(edge).scaleb(-2)} for edge in edges[4:]]
    assert list(reasons) == [0, 1, 2, 3]


def test_a_key_twice_in_a_map_is_once_in_a_column_as_in_a_value() -> None:
    schema = record("R", m={"type": "map", "values": "int"}, n=array({"type": "map", "values": "int"}))
    twice, both, none = b"\4\2k\2\2k\4\0", b"\4\2k\2\2l\4\0", b"\0"
    data = [twice + none, both + none, none + b"\4" + both + twice + b"\0", both + b"\4" + both * 2 + b"\0"]
    found, reasons = by_column(schema, data, schema)
    once, kept = [("k", 2)], [("k", 1), ("l", 2)]
    assert [(row["m"], row["n"]) for row in found] == [
        (once, []), (kept, []), ([], [kept, once]), (kept, [kept, kept]),
    ]  # fmt: skip
    assert not reasons


@pytest.mark.parametrize("item", ["float", "double", "boolean", {"type": "fixed", "name": "F", "size": 3}])
def test_a_list_that_the_reader_leaves_out_ends_where_the_bytes_end(item: Any) -> None:
    writer = record("R", f=array(item), a="int")
    reader = record("R", a="int")
    decode = AvroDeserializer(None, reader, writer_schema=writer)
    with pytest.raises(ValueError, match="the bytes end"):
        decode(b"\x80" * 9 + b"\x01", VALUE)
