"""JSON by column, in machine code, is what Arrow's parser and Python's make of each text, whatever
the text; and what machine code can take it does take."""

from __future__ import annotations

import datetime
import json
import struct
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fairlead_kafka.formats.json_blocks import json_decoder
from fairlead_kafka.formats.json_columns import json_columns_decoder
from fairlead_kafka.formats.json_kernel import (
    EXPONENTS,
    PASSED_DEPTH_MAX,
    STRUCT,
    TEXT,
    decode_json,
    powers_of_five,
)
from fairlead_kafka.formats.json_reading import NESTED_MAX, Plan, Slots, decode, plan_of
from fairlead_kafka.formats.json_types import wire_type
from fairlead_kafka.formats.slots import BLOCK_ROWS, NotByColumn
from tests.property.test_formats_avro import references_serving
from tests.property.test_spark_formats import JSON_PIECES, JSON_VALUES

EXAMPLES = 300
KIND = pa.struct(
    [
        ("a", pa.int32()),
        ("b", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
        ("l", pa.timestamp("us")),
        ("y", pa.date32()),
        ("k", pa.bool_()),
        ("i", pa.int8()),
        ("n", pa.int64()),
        ("f", pa.float32()),
        (
            "o",
            pa.struct(
                [pa.field("x", pa.int16(), False), ("é", pa.string()), ("o", pa.struct([("a", pa.bool_())]))]
            ),
        ),
    ]
)
SOUND = (
    '{"a":1,"b":-0.5e3,"s":"x\\u00e9\\n{}","t":"2026-01-02T03:04:05.678Z",'
    '"o":{"x":7,"é":"\\ud83d\\ude00","o":{"a":true}}}',
    '{"a":null,"b":12345678901234567e-20,"t":"2026-01-02 03:04:05+02:00",'
    '"z":{"no":[1,2.5,{"a":"\\""}]},"o":null,"k":false}',
    ' { "o" : {"x":-32768} , "s":"" , "y":"2024-02-29", "l":"1969-12-31 23:59:59.1234567" } ',
    '{"n":-9223372036854775808,"i":127,"f":0.1,"k":true,"a":-2147483648,"z":[],"zz":null,'
    '"n":9223372036854775807}',
)
PIECES = [
    *JSON_PIECES, "\\u", "d83d", "0", "00", "9", "-", "\\", '"o":{"x":1},', '"k":true,', "1e22", "[[", "]]",
    "T24:",
]  # fmt: skip
VALUES = [
    *JSON_VALUES,
    *("127", "-128", "-129", "32767", "32768", "2147483647", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "00", "-", "1e", "1.", ".5"),
    *("0.1e-400", "4.9e-324", "2.2250738585072014e-308", "1.7976931348623157e308", "9007199254740993"),
    *("9007199254740992.5", "0." + "0" * 30 + "1", "1" * 20, "1" * 300, "1e0005", "1e00005"),
    *('"0001-01-01T00:00:00Z"', '"2026-01-01T00:00:60Z"'),
    *('"2026-01-01 00:00:00+23:59"', '"2026-01-01T00:00:00-24:00"', '"2026-01-01T00:00:00.Z"'),
    *('"2026-01-01T00:00:00.1234567z"', '"1900-02-29"', '"2000-02-29"', '"2026-13-01"', '"2026-01-00"'),
    *('{"x":1,"o":{"a":true}}', '{"x":null}', '{"x":1,"x":2}', '{"o":{},"x":1}', '"\\ud83dx"', '"\\/\\b"'),
    "[" * 70 + "]" * 70,
]  # fmt: skip
names = st.sampled_from(["a", "b", "s", "t", "l", "y", "k", "i", "n", "f", "o", "z", "\\u0061", "", "a b"])
fields = st.builds('"{}":{}'.format, names, st.sampled_from(VALUES))
objects = st.lists(fields, min_size=1, max_size=3).map(lambda some: "{" + ",".join(some) + "}")


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """Sound JSON with some pieces taken out and others put in."""
    row = draw(st.sampled_from(SOUND))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(row)))
        row = row[:start] + draw(st.sampled_from(["", *PIECES])) + row[start + draw(st.integers(0, 3)) :]
    return row


def texts_of(rows: list[str | None]) -> pa.Array:
    return pa.array(
        [None if row is None else row.encode("utf-8", "surrogatepass") for row in rows], pa.binary()
    )


def shown(array: pa.Array) -> str:
    """As text, for NaN is not equal to itself. A zero has no sign in it: Python reads -0 as a whole
    number, which has none."""
    return repr(array.to_pylist()).replace("-0.0", "0.0")


@settings(max_examples=EXAMPLES)
@given(st.lists(st.none() | objects | mutated(), min_size=1, max_size=6))
def test_columns_are_what_blocks_and_single_rows_are(rows: list[str | None]) -> None:
    wire = wire_type(KIND)
    data = texts_of(["before", *rows]).slice(1)
    found, reasons = json_columns_decoder(wire, KIND)(data)
    found.validate(full=True)
    for in_blocks in (True, False):
        expected, why = json_decoder(wire, KIND, in_blocks)(data)
        assert (shown(found), reasons) == (shown(expected), why)
    with references_serving():
        again, why = json_columns_decoder(wire, KIND)(data)
    assert (repr(again.to_pylist()), why) == (repr(found.to_pylist()), reasons)


def run(body: Any, plan: Plan, source: Any, starts: Any, ends: Any) -> tuple[Slots, Any, bytes]:
    """The slots that a body of the kernel fills, the rows that it leaves, and the texts that it
    writes."""
    slots, unescaped = Slots(plan, len(starts)), np.zeros(len(source), np.uint8)
    bad = np.zeros(len(starts), np.bool_)
    wrong, filled = body(
        source, starts, ends, np.ones(len(starts), np.bool_), plan.ops, plan.names, plan.name_offsets,
        powers_of_five(), plan.order.copy(), plan.places(), slots.values, slots.present, bad, unescaped,
    )  # fmt: skip
    assert wrong == bad.sum()
    return slots, bad, unescaped[:filled].tobytes()


@settings(max_examples=EXAMPLES)
@given(
    st.lists(
        objects | mutated() | st.binary(max_size=20).map(lambda data: data.decode("latin-1")),
        min_size=1,
        max_size=6,
    )
)
def test_machine_code_is_its_reference(rows: list[str]) -> None:
    """Row by row, slot by slot, where a row is taken; whatever the bytes, UTF-8 or not."""
    plan = plan_of(wire_type(KIND), KIND)
    data = [row.encode("latin-1", "replace") for row in rows]
    source = np.frombuffer(b"".join(data), np.uint8)
    ends = np.cumsum([len(one) for one in data], dtype=np.int64)
    starts = np.concatenate([[0], ends[:-1]]).astype(np.int64)
    results = []
    for body in (decode_json.machine_code, decode_json.reference):
        slots, bad, texts = run(body, plan, source, starts, ends)
        present = np.where(bad, False, slots.present.reshape(-1, len(rows)))
        values = slots.values.reshape(-1, len(rows)).copy()
        for kind, slot, _, _, valid in plan.ops.reshape(-1, 5).tolist():
            if kind != STRUCT:
                values[slot : slot + 1 + (kind == TEXT)] *= present[valid]
        results.append((bad.tolist(), present.tolist(), values.tolist(), texts))
    assert results[0] == results[1]


def taken(kind: pa.DataType, rows: list[str]) -> list[Any]:
    """The rows, all of which machine code must take."""
    plan = plan_of(wire_type(kind), kind)
    slots, bad = decode(plan, texts_of(list(rows)).cast(pa.string()))
    array = plan.array(slots, bad)
    array.validate(full=True)
    assert not bad.any(), rows[int(np.flatnonzero(bad)[0])]
    found: list[Any] = array.to_pylist()
    return found


doubles = st.floats(-1e280, 1e280).filter(lambda number: number == 0 or abs(number) > 1e-280)
digits = st.integers(0, 10**19 - 1)


@st.composite
def halfway(draw: st.DrawFn) -> str:
    """A number of up to 19 digits near the middle between two doubles."""
    low = draw(st.floats(1e-9, 1e17))
    high = struct.unpack("<d", struct.pack("<q", struct.unpack("<q", struct.pack("<d", low))[0] + 1))[0]
    middle = (Fraction(low) + Fraction(high)) / 2
    scale = 18 - len(str(int(middle))) if middle >= 1 else 18
    number = int(middle * 10**scale) + draw(st.integers(-1, 1))
    return f"{number}e{-scale}"


@settings(max_examples=1000)
@given(
    doubles.map(repr)
    | halfway()
    | st.builds("{}e{}".format, digits, st.sampled_from(EXPONENTS))
    | st.builds("-0.{}{}".format, st.integers(0, 30).map(lambda count: "0" * count), digits)
)
@example("-0")
@example("-0.0e1")
@example("9007199254740993")
@example("9007199254740992.999")
@example("9999999999999999999e288")
@example("1e-300")
def test_doubles_are_the_nearest_ones(text: str) -> None:
    (found,) = taken(pa.struct([("x", pa.float64())]), [f'{{"x":{text}}}'])
    assert struct.pack("<d", found["x"]) == struct.pack("<d", float(text))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | doubles | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
visits = st.fixed_dictionaries(
    {},
    optional={
        "a": st.none() | st.integers(-(2**31), 2**31 - 1),
        "b": st.none() | doubles,
        "s": st.none() | st.text(),
        "k": st.none() | st.booleans(),
        "y": st.dates().map(str),
        "l": st.datetimes().map(str),
        "t": st.datetimes(
            timezones=st.sampled_from([datetime.UTC, datetime.timezone(datetime.timedelta(hours=-3))])
        ).map(datetime.datetime.isoformat),
        "o": st.none()
        | st.fixed_dictionaries({"x": st.integers(-(2**15), 2**15 - 1)}, optional={"é": st.text()}),
        "more": json_values,
        'q"': json_values,
    },
)


@settings(max_examples=EXAMPLES)
@given(
    st.lists(visits, min_size=1, max_size=5),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_what_people_write_is_taken_in_any_order(
    rows: list[Any], indent: int | None, ascii_only: bool, random: Any
) -> None:
    texts = []
    for row in rows:
        fields = list(row.items())
        random.shuffle(fields)
        if ascii_only:  # a name with an escape is not taken
            fields = [(name, {"x": value["x"]} if name == "o" and value else value) for name, value in fields]
        texts.append(json.dumps(dict(fields), indent=indent, ensure_ascii=ascii_only))
    texts = [text for text in texts if 'q\\"' not in text]
    found = taken(KIND, texts)
    expected, reasons = json_decoder(wire_type(KIND), KIND, in_blocks=False)(texts_of(texts))
    assert (found, reasons) == (expected.to_pylist(), {})
    for text, row in zip(texts, found, strict=True):
        read = json.loads(text)
        assert [row[name] for name in "absk"] == [read.get(name) for name in "absk"]


@pytest.mark.parametrize("every", [1, 2, 3, 10, 1000, 5000])
def test_rows_that_do_not_fit_cost_no_other_and_none_is_lost(every: int) -> None:
    kind = pa.struct([("n", pa.int64()), ("s", pa.string())])
    bad = ['{"n":1.5}', "nope", '{"n":1e400}', '{"n":"1"}', "null", '{"\\u006e":7}']
    rows: list[str | None] = [
        bad[row // every % len(bad)] if row % every == 0 else f'{{"n":{row},"s":"s{row}"}}'
        for row in range(3000)
    ]
    rows[5::7] = [None] * len(rows[5::7])
    found, reasons = json_columns_decoder(kind, kind)(texts_of(rows))
    expected, why = json_decoder(kind, kind)(texts_of(rows))
    assert (found.equals(expected), reasons) == (True, why)


def test_many_rows_are_as_few() -> None:
    kind = pa.struct([("n", pa.int64()), ("s", pa.string())])
    count = BLOCK_ROWS * 2 + 5
    rows: list[str | None] = [f'{{"s":"\\n{row}","n":{row}}}' for row in range(count)]
    rows[BLOCK_ROWS + 1] = "nope"
    found, reasons = json_columns_decoder(kind, kind)(texts_of(rows))
    assert list(reasons) == [BLOCK_ROWS + 1]
    assert found.field("n").drop_null().to_pylist() == [row for row in range(count) if row != BLOCK_ROWS + 1]
    assert found.field("s")[count - 1].as_py() == f"\n{count - 1}"


def test_types_that_machine_code_does_not_take_are_read_all_the_same() -> None:
    deep: pa.DataType = pa.int64()
    for _ in range(NESTED_MAX + 1):
        deep = pa.struct([("o", deep)])
    listed = pa.struct([("a", pa.list_(pa.int64()))])
    for kind, text in (
        (deep, '{"o":' * 33 + "1" + "}" * 33),
        (listed, '{"a":[1]}'),
        (pa.int64(), "1"),
    ):
        with pytest.raises(NotByColumn):
            plan_of(wire_type(kind), kind)
        found, reasons = json_columns_decoder(wire_type(kind), kind)(texts_of([text]))
        assert (found.null_count, reasons) == (0, {})
        assert (
            json.loads(text).items() <= found[0].as_py().items()
            if kind != pa.int64()
            else found[0].as_py() == 1
        )


def test_what_is_passed_over_is_bounded_and_bytes_that_lie_are_refused() -> None:
    kind = pa.struct([("a", pa.int64())])
    for depth in (PASSED_DEPTH_MAX, PASSED_DEPTH_MAX + 1):
        for text in (
            '{"z":' + "[" * depth + "]" * depth + "}",
            '{"z":' * (depth + 1) + "1" + "}" * (depth + 1),
        ):
            _, bad = decode(plan_of(kind, kind), pa.array([text]))
            assert bad.tolist() == [depth > PASSED_DEPTH_MAX]
            assert json_columns_decoder(kind, kind)(texts_of([text]))[0].to_pylist() == [{"a": None}]
    plan = plan_of(kind, kind)
    source = np.frombuffer(b'{"a":1}', np.uint8)
    starts, ends = np.array([0, -1, 3, 0, 8], np.int64), np.array([7, 7, 2, 8, 8], np.int64)
    for body in (decode_json.machine_code, decode_json.reference):
        _, bad, _ = run(body, plan, source, starts, ends)
        assert bad.tolist() == [False, True, True, True, True]


def test_bytes_that_are_not_utf8_keep_their_reason() -> None:
    kind = pa.struct([("s", pa.string())])
    data = pa.array([b'{"s":"\xff"}', b'{"s":"ok"}', None, b"\xfe"], pa.binary())
    found, reasons = json_columns_decoder(kind, kind)(data)
    expected, why = json_decoder(kind, kind)(data)
    assert (found.to_pylist(), reasons) == (expected.to_pylist(), why)
    assert sorted(reasons) == [0, 3]
