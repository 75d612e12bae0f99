"""Avro, Protobuf and JSON of a stranger into the deserializers: by record and by column, with
machine code and its references, which must agree."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pyarrow as pa

from fairlead_kafka.base.kernel import Kernel
from fairlead_kafka.formats import (
    AvroDeserializer,
    JsonDeserializer,
    MessageField,
    ProtobufDeserializer,
    SerializationContext,
    json_kernel,
)
from fairlead_kafka.formats import kernels as kernels_of_formats
from fairlead_kafka.formats.avro_columns import columns_decoder
from fairlead_kafka.formats.avro_rows import avro_decoder
from fairlead_kafka.formats.avro_schema import AvroSchema
from fairlead_kafka.formats.json_blocks import json_decoder
from fairlead_kafka.formats.json_types import wire_type
from tests.fuzz import checked_kernels
from tests.fuzz.messages import garbled
from tests.fuzz.tape import Tape
from tests.support.protobuf_messages import message_class

VALUE = SerializationContext("t", MessageField.VALUE)
DEEPEST = 4
ROWS = 4
LEAVES: tuple[Any, ...] = (
    "long", "int", "string", "bytes", "boolean", "float", "double",
    {"type": "long", "logicalType": "timestamp-millis"},
    {"type": "bytes", "logicalType": "decimal", "precision": 18, "scale": 2},
    {"type": "string", "logicalType": "uuid"},
    {"type": "int", "logicalType": "time-millis"},
    {"type": "int", "logicalType": "date"},
)  # fmt: skip
JSON_KINDS = (
    pa.struct([("a", pa.int64()), ("b", pa.string())]),
    pa.struct([("a", pa.float64()), ("b", pa.list_(pa.struct([("c", pa.bool_())])))]),
    pa.struct([("a", pa.decimal128(18, 4)), ("b", pa.timestamp("us", "UTC"))]),
    pa.struct([("b", pa.timestamp("us", "UTC")), ("a", pa.float64()), ("c", pa.date32()), ("d", pa.int16())]),
    pa.struct(
        [("c", pa.struct([pa.field("b", pa.string(), False), ("a", pa.bool_())])), ("a", pa.float32())]
    ),
)
JSON_TEXTS = (
    b'{"a": 1, "b": "x"}', b'{"a": 1e3, "b": [{"c": true}, null]}',
    b'{"a": "1.5", "b": "2026-01-01T00:00:00Z"}', b"{}", b"null", b"[" * 3000, b'{"a":' * 3000,
    b'{"b":"2026-01-01 00:00:00.12+01:00","a":-12.345678901234567e-8,"c":"2024-02-29","d":-32768}',
    b'{"c":{"b":"\\ud83d\\ude00\\n","a":true},"x":[{"y":"\\u00e9"},[],-0.5e3,null],"a":0.1}',
)  # fmt: skip


@cache
def served() -> tuple[Kernel[..., Any], ...]:
    """The kernels of the formats."""
    return tuple(
        each
        for module in (kernels_of_formats, json_kernel)
        for each in vars(module).values()
        if isinstance(each, Kernel)
    )


def prepare() -> None:
    """Compile the kernels that check what they touch."""
    checked_kernels.load()


@contextmanager
def serving(choose: Callable[[Kernel[..., Any]], Any]) -> Iterator[None]:
    """Run other bodies of the kernels within it."""
    for each in served():
        each.serve(choose(each))
    try:
        yield
    finally:
        for each in served():
            each.serve(each.machine_code)


class _Writer:
    """A schema off the tape, and values of it."""

    def __init__(self, tape: Tape) -> None:
        self._tape, self._names = tape, 0
        self.schema = self._record(0)

    def _record(self, depth: int) -> dict[str, Any]:
        self._names += 1
        name = f"R{self._names}"
        fields = [{"name": f"f{n}", "type": self._type(depth + 1, name)} for n in range(self._tape.below(5))]
        if not depth:
            fields.append({"name": "a", "type": "int"})
        return {"type": "record", "name": name, "fields": fields}

    def _type(self, depth: int, name: str) -> Any:
        how = self._tape.below(10) if depth < DEEPEST else 0
        if how == 5:
            return ["null", self._type(DEEPEST, name)]
        if how == 6:
            return {"type": "array", "items": self._type(depth + 1, name)}
        if how == 7:
            return {"type": "map", "values": self._type(depth + 1, name)}
        if how == 8:
            return self._record(depth)
        if how == 9:
            return self._tape.pick((["null", name], {"type": "array", "items": name}, "null"))
        if self._tape.chance(30):
            self._names += 1
            sizes = {"type": "fixed", "name": f"F{self._names}", "size": self._tape.below(4)}
            return self._tape.pick(
                (sizes, {"type": "enum", "name": f"E{self._names}", "symbols": ["A", "B"]})
            )
        return self._tape.pick(LEAVES)

    def value(self, schema: Any) -> bytes:
        """Bytes of a value; where the schema holds itself, of the least."""
        if isinstance(schema, list):
            chosen = self._tape.chance(128) and not str(schema[1]).startswith("R")
            return b"\2" + self.value(schema[1]) if chosen else b"\0"
        told = schema if isinstance(schema, dict) else {"type": schema}
        kind = told["type"]
        if kind == "record":
            return b"".join(self.value(field["type"]) for field in told["fields"])
        if kind in ("array", "map"):
            if self._tape.chance(128) or str(told.get("items")).startswith("R"):
                return b"\0"
            item = self.value(told["items"] if kind == "array" else told["values"])
            return b"\4" + (item if kind == "array" else b"\2k" + item) * 2 + b"\0"
        if kind in ("string", "bytes"):
            size = self._tape.below(9)
            return bytes([size * 2]) + self._tape.raw(size)
        sizes = {"boolean": 0, "float": 4, "double": 8, "null": 0, "fixed": told.get("size", 0)}
        return b"\1" if kind == "boolean" else self._tape.raw(sizes[kind]) if kind in sizes else b"\2"


def avro(tape: Tape) -> int:
    """Sound values and garbled ones, into the whole schema or a field of it."""
    made = _Writer(tape)
    values = [made.value(made.schema) for _ in range(ROWS)]
    rows = [*values, *(garbled(value, tape) for value in values)]
    writer = AvroSchema(json.dumps(made.schema))
    reader = AvroSchema(json.dumps({**made.schema, "fields": made.schema["fields"][-1:]}))
    if tape.chance(128):
        reader = writer
    read = AvroDeserializer(None, reader.text, writer_schema=writer.text)
    for row in rows:
        _one(read, row)
    try:
        target = reader.arrow_type()
    except ValueError:  # no type in columns
        return ROWS
    array = pa.array(rows, pa.binary())
    expected = avro_decoder(reader, writer, None, target)(array)
    _agree(lambda: columns_decoder(reader, writer, None, target)(array), expected)
    return ROWS


def protobuf(tape: Tape) -> int:
    """Messages of noise, and of noise in sound ones."""
    kind = message_class(tape.pick(("Visit", "Repeated", "Tree")))
    sound = b"\x08\x05\x12\x01h\x18\xc8\x01"
    rows = [garbled(sound, tape) for _ in range(ROWS)] + [tape.raw(tape.below(30))]
    read = ProtobufDeserializer(kind)
    if kind.DESCRIPTOR.name == "Tree":
        for row in rows:
            _one(read, row)
        return ROWS
    array = pa.array(rows, pa.binary())
    _agree(lambda: read.decode_column(array, VALUE), None)
    return ROWS


def texts(tape: Tape) -> int:
    """JSON, alone and beside others: what becomes of a row is the same."""
    kind = tape.pick(JSON_KINDS)
    rows = [garbled(tape.pick(JSON_TEXTS), tape) for _ in range(ROWS)]
    read = JsonDeserializer(kind)
    array = pa.array(rows, pa.binary())
    _agree(lambda: read.decode_column(array), None)
    found, reasons = read.decode_column(array)
    expected, why = json_decoder(wire_type(kind), kind, in_blocks=False)(array)
    columns, singles = (_unsigned(found), _kinds(reasons)), (_unsigned(expected), _kinds(why))
    assert columns == singles, f"by column {columns}, by row {singles}"
    for number, row in enumerate(rows):
        _one(read, row)
        alone, why = read.decode_column(pa.array([row], pa.binary()))
        assert (alone[0], _kinds(why).get(0)) == (found[number], _kinds(reasons).get(number)), row
    return ROWS


def _unsigned(array: pa.Array) -> str:
    """As text, without signs of zeros: Python reads -0 as a whole number."""
    return str(array.to_pylist()).replace("-0.0", "0.0")


def _kinds(reasons: dict[int, str]) -> dict[int, str]:
    """The reasons, but for those of JSON nested about a thousand deep: where Python's parser
    gives up there depends on its caller."""
    deep = re.compile(r"recursion|at character (9[0-9]{2}|[0-9]{4,})$")
    return {row: "deep" if deep.search(why) else why for row, why in reasons.items()}


def _shown(array: pa.Array) -> str:
    """The values as text; as Arrow shows them where Python cannot, such as days after the year
    9999."""
    try:
        return str(array.to_pylist())
    except OverflowError:
        return array.to_string(window=ROWS, container_window=1000)


def _one(read: Any, data: bytes) -> None:
    try:
        read(data, VALUE)
    except ValueError:
        return


def _agree(decode: Callable[[], tuple[pa.Array, Any]], expected: tuple[pa.Array, Any] | None) -> None:
    found, reasons = decode()
    found.validate(full=True)
    checked = checked_kernels.load()
    for choose in (lambda each: checked[each.__name__], lambda each: each.reference):
        with serving(choose):
            again, why = decode()
        assert (_shown(again), _kinds(why)) == (_shown(found), _kinds(reasons))
    if expected is not None:  # as texts: not a number is not equal to itself
        one, other = (_shown(found), reasons), (_shown(expected[0]), expected[1])
        assert one == other, f"by column {one}, by value {other}"


def run(tape: Tape) -> int:
    """One of the formats."""
    return tape.pick((avro, protobuf, texts))(tape)
