"""Protobuf by column, in machine code, is what Protobuf's own library makes of each message,
whatever the bytes; and both go through the registry as confluent-kafka's serializers do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats import (
    MessageField,
    ProtobufDeserializer,
    ProtobufSerializer,
    SerializationContext,
)
from fairlead_kafka.formats.protobuf_columns import plan_of
from fairlead_kafka.formats.protobuf_types import value_of
from tests.property.test_formats_avro import garbled, references_serving
from tests.support.protobuf_messages import message_class
from tests.support.schema_registry import schema_registry

EXAMPLES = 80
VALUE = SerializationContext("visits", MessageField.VALUE)
Visit, Other, Repeated, Tree = (message_class(name) for name in ("Visit", "Other", "Repeated", "Tree"))


def _ints(low: int, high: int) -> st.SearchStrategy[int]:
    return st.sampled_from([0, 1, low, high]) | st.integers(low, high)


S32, S64 = _ints(-(2**31), 2**31 - 1), _ints(-(2**63), 2**63 - 1)
U32, U64 = _ints(0, 2**32 - 1), _ints(0, 2**64 - 1)
text = st.text(max_size=8)
others = st.fixed_dictionaries({"x": S32})
visits = st.fixed_dictionaries(
    {
        "id": S64,
        "host": text,
        "status": S32,
        "ratio": st.floats(allow_nan=False),
        "single": st.floats(allow_nan=False, width=32),
        "ok": st.booleans(),
        "data": st.binary(max_size=8),
        "s32": S32,
        "s64": S64,
        "u32": U32,
        "u64": U64,
        "f32": U32,
        "f64": U64,
        "sf32": S32,
        "sf64": S64,
        "colour": st.sampled_from(["UNKNOWN", "RED", "OLD"]),
        "maybe": st.none() | text,
        "count": st.none() | S32,
        "inner": st.none() | st.fixed_dictionaries({"x": S32, "deeper": st.none() | others, "text": text}),
    }
)
repeated = (
    st.fixed_dictionaries(
        {
            "tags": st.lists(text, max_size=3),
            "inner": st.lists(others, max_size=3),
            "by_name": st.dictionaries(text, others, max_size=3),
        }
    )
    | st.fixed_dictionaries({"a": S32})
    | st.fixed_dictionaries({"b": text})
)


def by_one(read: ProtobufDeserializer, data: bytes | None) -> Any:
    """A message as a column has it, or the error."""
    try:
        message = read(data)
        return None if message is None else value_of(message)
    except ValueError as error:
        return str(error)


@settings(max_examples=EXAMPLES)
@given(st.lists(visits, min_size=1, max_size=5), st.data())
def test_columns_are_read_as_messages_are_garbled_ones_too(values: list[Any], data: st.DataObject) -> None:
    write = ProtobufSerializer(Visit, None)
    made = [write(value, VALUE) for value in values]
    assert all(made) or made
    rows: list[bytes | None] = [*made, None, *(garbled(data.draw, each or b"") for each in made)]
    array = pa.array([b"x", *rows], pa.binary()).slice(1)
    read = ProtobufDeserializer(Visit, framed=False)
    column, reasons = read.decode_column(array)
    column.validate(full=True)
    for row, (each, found) in enumerate(zip(rows, column.to_pylist(), strict=True)):
        expected = by_one(read, each)
        if isinstance(expected, str):
            assert (found, reasons[row]) == (None, expected[:200])
        else:
            assert repr(found) == repr(expected)  # repr: zero below zero is another zero
            assert row not in reasons
    with references_serving():
        again, also = read.decode_column(array)
    assert (again.equals(column), also) == (True, reasons)
    signed, _ = ProtobufDeserializer(Visit, framed=False, unsigned=False).decode_column(array)
    for name in ("u32", "u64", "f64"):
        assert signed.field(name).cast(column.field(name).type).equals(column.field(name))


@settings(max_examples=EXAMPLES)
@given(st.lists(st.none() | visits, min_size=1, max_size=5))
def test_columns_are_written_as_messages_are(values: list[Any]) -> None:
    write = ProtobufSerializer(Visit, None)
    array = pa.array([None, *values], ProtobufDeserializer(Visit).arrow_type()).slice(1)
    made, reasons = write.encode_column(array, VALUE)
    assert reasons == {}
    assert made.to_pylist() == [write(value, VALUE) for value in values]
    with references_serving():
        assert write.encode_column(array, VALUE)[0].equals(made)


@settings(max_examples=EXAMPLES)
@given(st.lists(repeated, min_size=1, max_size=5))
def test_repeated_fields_maps_and_oneofs_go_one_by_one(values: list[Any]) -> None:
    write = ProtobufSerializer(Repeated, None)
    read = ProtobufDeserializer(Repeated, framed=False)
    made = [write(value, VALUE) for value in values]
    column, reasons = read.decode_column(pa.array(made, pa.binary()))
    assert (column.to_pylist(), reasons) == ([by_one(read, each) for each in made], {})
    again, reasons = write.encode_column(column, VALUE)
    assert (again.to_pylist(), reasons) == (made, {})


def test_values_that_are_no_message_are_told_by_row() -> None:
    kind = pa.struct([("x", pa.int64())])
    write = ProtobufSerializer(Other, None)
    made, reasons = write.encode_column(pa.array([{"x": 1}, {"x": 2**40}, None], kind), VALUE)
    assert (made.to_pylist(), list(reasons)) == ([b"\x08\x01", None, None], [1])
    _, reasons = write.encode_column(pa.array([{"y": 1}]), VALUE)
    assert reasons == {0: "Other has no field y"}
    colours = pa.array([{"colour": "RED"}, {"colour": "PINK"}])
    made, reasons = ProtobufSerializer(Visit, None).encode_column(colours, VALUE)
    assert reasons == {1: "colour: the enum Colour has no 'PINK'"}
    with pytest.raises(ValueError, match="inner: 7 is no dictionary of Inner's fields"):
        ProtobufSerializer(Visit, None)({"inner": 7}, VALUE)
    lists = [field.name for field in Repeated.DESCRIPTOR.fields if field.is_repeated]  # type: ignore[attr-defined]
    with pytest.raises(ValueError, match=f"{lists[0]}: 7 is no list of {lists[0]}"):
        ProtobufSerializer(Repeated, None)({lists[0]: 7}, VALUE)
    with pytest.raises(TypeError, match="neither a Other nor a dictionary"):
        write(7, VALUE)
    with pytest.raises(ConfigError, match=r"shop\.Tree holds itself"):
        ProtobufDeserializer(Tree).arrow_type()
    assert plan_of(Visit.DESCRIPTOR).slots > 19  # type: ignore[attr-defined]


def test_many_messages_are_as_few() -> None:
    array = pa.StructArray.from_arrays([pa.array(np.arange(150_000, dtype=np.int32))], ["x"])
    made, _ = ProtobufSerializer(Other, None).encode_column(array, VALUE)
    back, reasons = ProtobufDeserializer(Other, framed=False).decode_column(made)
    assert (back.field(0).equals(array.field(0)), reasons) == (True, {})


def test_confluent_s_serializers_write_and_read_the_same() -> None:
    pytest.importorskip("confluent_kafka.schema_registry.protobuf")
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirDeserializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirSerializer

    Importing, Inner = message_class("Importing"), message_class("Visit.Inner")  # noqa: N806
    with schema_registry() as running, SchemaRegistryClient({"url": running.url}) as client:
        for kind, message in (
            (Visit, Visit(id=7)),
            (Importing, Importing(other=Other(x=5))),
            (Inner, Inner(x=3)),
        ):
            context = SerializationContext(kind.__name__, MessageField.VALUE)
            ours = ProtobufSerializer(kind, {"url": running.url})
            theirs = TheirSerializer(kind, client, {"use.deprecated.format": False})
            made = ours(message, context)
            assert made == theirs(message, context)
            assert made is not None
            assert TheirDeserializer(kind, {"use.deprecated.format": False}, client)(made, context) == message
            assert ProtobufDeserializer(kind)(made, context) == message
            column, reasons = ProtobufDeserializer(kind).decode_column(pa.array([made, None, b"\0\0\0\0\1"]))
            assert column.to_pylist() == [value_of(message), None, None]
            assert reasons == {2: "the message indexes after the schema's id are cut off"}
            written, _ = ours.encode_column(column.slice(0, 1), context)
            assert written.to_pylist() == [made]
