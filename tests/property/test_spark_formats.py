"""Formats: what was written is read, whatever its schema; garbage costs its own row and no other;
blocks and rows agree."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type

from fairlead_kafka.formats.json_blocks import json_decoder
from fairlead_kafka.spark.formats import decoder, parse_layout
from fairlead_kafka.spark.formats.ddl import parse_type
from fairlead_kafka.spark.formats.json_schema import wire_type
from tests.support.format_values import AVRO_LEAVES, JSON_LEAVES, Kind, structs, written_json

EXAMPLES = 40
garbage = st.binary(max_size=30) | st.sampled_from(
    [b"{", b"{}}", b'{"f0":', b"[]", b"nope", b"{\n}{", b'{"f0":Inf}', b"\xff{}", b"\x00" * 6]
)


@st.composite
def written(
    draw: st.DrawFn, leaves: tuple[Kind, ...], maps: bool = True
) -> tuple[Kind, list[tuple[Any, Any]]]:
    """A struct and a few values of it."""
    kind = draw(structs(leaves, maps))
    return kind, draw(st.lists(kind.pairs, min_size=1, max_size=6))


def read_as(options: dict[str, str], values: list[bytes | None]) -> tuple[list[Any], list[bytes | None]]:
    """What the values are read as, and those that were rescued, at their rows."""
    layout, wrong = parse_layout({**options, "columns": "value,rescued"})
    assert not wrong
    read = decoder(layout)(pa.table({"value": pa.array(values, pa.binary())}))
    read.validate(full=True)
    assert [row is None or bool(row["reason"]) for row in read["rescued"].to_pylist()] == [True] * len(values)
    return read["value"].to_pylist(), [row and row["value"] for row in read["rescued"].to_pylist()]


@settings(max_examples=EXAMPLES)
@given(written(JSON_LEAVES), written_json)
def test_json_of_any_schema_is_read_as_it_was_written(
    case: tuple[Kind, list[tuple[Any, Any]]], write: Callable[[Any], bytes]
) -> None:
    kind, pairs = case
    read, rescued = read_as(
        {"valueFormat": "json", "valueSchema": kind.spark.json()}, [write(value) for value, _ in pairs]
    )
    assert rescued == [None] * len(pairs)
    assert read == [expected for _, expected in pairs]


@settings(max_examples=EXAMPLES)
@given(written(AVRO_LEAVES))
def test_avro_of_any_schema_is_read_as_it_was_written(case: tuple[Kind, list[tuple[Any, Any]]]) -> None:
    kind, pairs = case
    schema = fastavro.parse_schema(json.loads(json.dumps(kind.avro)))
    values = []
    for value, _ in pairs:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, schema, value)
        values.append(stream.getvalue())
    read, rescued = read_as({"valueFormat": "avro", "valueSchema": json.dumps(kind.avro)}, values)
    assert rescued == [None] * len(pairs)
    assert read == [expected for _, expected in pairs]


@settings(max_examples=EXAMPLES)
@given(
    written(JSON_LEAVES, maps=False),
    st.lists(st.none() | garbage, max_size=5),
    st.randoms(use_true_random=False),
)
def test_garbage_among_json_costs_no_other_row(
    case: tuple[Kind, list[tuple[Any, Any]]], bad: list[bytes | None], random: Any
) -> None:
    kind, pairs = case
    rows = [(json.dumps(value).encode(), expected, True) for value, expected in pairs] + [
        (data, None, False) for data in bad
    ]
    random.shuffle(rows)
    read, rescued = read_as(
        {"valueFormat": "json", "valueSchema": kind.spark.json()}, [data for data, _, _ in rows]
    )
    for (data, expected, sound), value, kept in zip(rows, read, rescued, strict=True):
        if sound:
            assert (value, kept) == (expected, None)
        else:
            assert value is None or kept is None
            assert kept in (None, data)


@settings(max_examples=EXAMPLES)
@given(written(AVRO_LEAVES), st.lists(garbage, min_size=1, max_size=6))
def test_garbage_never_fails_avro(case: tuple[Kind, list[tuple[Any, Any]]], bad: list[bytes]) -> None:
    read, rescued = read_as({"valueFormat": "avro", "valueSchema": json.dumps(case[0].avro)}, bad)
    for data, value, kept in zip(bad, read, rescued, strict=True):
        assert (value is None) == (kept is not None)
        assert kept in (None, data)


@given(st.lists(st.none() | st.binary(max_size=6) | st.text(max_size=6).map(str.encode), max_size=400))
def test_text_is_what_python_takes_for_utf8(values: list[bytes | None]) -> None:
    read, rescued = read_as({"valueFormat": "string"}, values)
    for data, value, kept in zip(values, read, rescued, strict=True):
        try:
            assert (value, kept) == (None if data is None else data.decode(), None)
        except UnicodeDecodeError:
            assert (value, kept) == (None, data)


SCHEMA = (
    "a INT, b DOUBLE, s STRING, d DECIMAL(6, 2), t TIMESTAMP, l ARRAY<BIGINT>, o STRUCT<x: DATE, y: "
    "BOOLEAN NOT NULL>"
)
SOUND = (
    '{"a":1,"b":-0.5e3,"s":"x\\u00e9\\n{}","d":12.5,"t":"2026-01-02T03:04:05.678Z","l":[1,null],"o":{"x":"2026-01-02","y":true}}',
    '{"a":null,"b":1,"d":"7","t":"2026-01-02 03:04:05+02:00","z":{"ignored":[1,2,{}]},"l":[],"o":null}',
    '{ "o" : {"y":false} , "s":"" }',
)
JSON_PIECES = [
    *'{}[]":,\\ntfNI0123456789.eE+- \n\t',
    "null",
    "true",
    "NaN",
    "Inf",
    "-Infinity",
    "\\ud800",
    "\x00",
    "é",
    '"a":2',
    '{"a":3}',
]


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Sound JSON with some pieces taken out and others put in."""
    row = draw(st.sampled_from(SOUND))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(row)))
        row = row[:start] + draw(st.sampled_from(["", *JSON_PIECES])) + row[start + draw(st.integers(0, 3)) :]
    return row


JSON_VALUES = [
    *(
        "0",
        "-0",
        "01",
        "1.0",
        "1e2",
        "-1.25",
        "128",
        "99999999999999999999",
        "1e400",
        "1e999999999",
        "NaN",
        "-NaN",
        "Inf",
        "-Inf",
    ),
    *(
        "Infinity",
        "-Infinity",
        "true",
        "null",
        "[]",
        "[0,null]",
        "[1.5]",
        "{}",
        '{"y":null}',
        '{"y":true,"x":"2026-02-30"}',
        '""',
        '"é"',
    ),
    *(
        '"1.255"',
        '"+.5"',
        '"5."',
        '"1e2"',
        '" 1"',
        '"1_0"',
        '"NaN"',
        '"2026-01-01"',
        '"2026-01-01T00:00Z"',
        '"2026-01-01 25:00:00"',
    ),
    *(
        '"2026-01-01T00:00:00.1234567890+0100"',
        '"2026-01-01T00:00:00+01"',
        '"\\ud83d\\ude00"',
        '"\\ud83d"',
        '"\\u0000"',
        '"\n"',
    ),
]
"""What a field may be given: every one of them goes through a block, unless a block refuses it."""
fields = st.builds('{{"{}":{}}}'.format, st.sampled_from("abdstloz"), st.sampled_from(JSON_VALUES))


@settings(max_examples=300)
@given(st.lists(fields, min_size=1, max_size=1) | st.lists(mutated(), min_size=1, max_size=6))
def test_blocks_of_json_and_single_rows_agree(rows: list[str]) -> None:
    """A row means in a block what it means alone, where it is read by other means."""
    kind = parse_type(SCHEMA)
    wire, target = wire_type(kind), to_arrow_type(kind, timezone="UTC")
    data = pa.array([row.encode("utf-8", "surrogatepass") for row in rows], pa.binary())
    read, reasons = json_decoder(wire, target)(data)
    alone, alone_reasons = json_decoder(wire, target, in_blocks=False)(data)
    assert reasons == alone_reasons
    # By their text, since NaN is not equal to itself; the sign of a zero is lost where -0 is read
    # as a whole number.
    assert repr(read.to_pylist()).replace("-0.0", "0.0") == repr(alone.to_pylist()).replace("-0.0", "0.0")
