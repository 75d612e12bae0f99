"""Texts, numbers, JSON and Avro without clients: the bytes, the limits, columns as single
values."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from confluent_kafka import serialization as theirs

from fairlead_kafka import formats
from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.formats import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    MessageField,
    SerializationContext,
)
from tests.support.schema_registry import schema_registry

VALUE = SerializationContext("visits", MessageField.VALUE)


@pytest.mark.parametrize(
    ("name", "values", "bad"),
    [
        ("Integer", [0, -1, 2**31 - 1, -(2**31), None], [2**31, -(2**31) - 1]),
        ("Long", [0, -1, 2**63 - 1, -(2**63), None], []),
        ("Double", [0.0, -1.5, float("inf"), 5e-324, None], []),
        ("String", ["", "ä€😀", "a\0b", None], []),
    ],
)
def test_texts_and_numbers_are_kafka_s(name: str, values: list[Any], bad: list[Any]) -> None:
    write = getattr(formats, f"{name}Serializer")()
    read = getattr(formats, f"{name}Deserializer")()
    made = [write(value, VALUE) for value in values]
    if name != "Long":
        assert made == [getattr(theirs, f"{name}Serializer")()(value) for value in values]
    assert [read(data, VALUE) for data in made] == values
    column, reasons = write.encode_column(pa.array([None, *values]).slice(1), VALUE)
    assert (column.to_pylist(), reasons) == (made, {})
    assert read.decode_column(column, VALUE)[0].to_pylist() == values
    for value in bad:
        with pytest.raises(ValueError, match="does not fit"):
            write(value, VALUE)
        column, reasons = write.encode_column(pa.array([1, value]), VALUE)
        assert (column.to_pylist(), list(reasons)) == ([write(1, VALUE), None], [1])


def test_numbers_of_another_length_and_texts_that_are_none_are_told() -> None:
    read = formats.IntegerDeserializer()
    with pytest.raises(ValueError, match="integer: 3 bytes instead of 4"):
        read(b"abc", VALUE)
    column, reasons = read.decode_column(pa.array([b"\0\0\0\1", b"abc", None], pa.binary()), VALUE)
    assert (column.to_pylist(), reasons) == ([1, None, None], {1: "integer: 3 bytes instead of 4"})
    with pytest.raises(TypeError, match="is not a text"):
        formats.StringSerializer()(b"a", VALUE)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a string column is needed"):
        formats.StringSerializer().encode_column(pa.array([1]), VALUE)


ROWS: list[Any] = [
    {"a": 1, "b": 'q"\\\n\x01ä', "c": [1.5, None], "d": {"x": True}, "m": [("k", 1), ('"', None)]},
    {"a": None, "b": None, "c": None, "d": None, "m": None},
    None,
    {"a": -5, "b": "", "c": [], "d": {"x": None}, "m": []},
]
JSON_TYPE = pa.struct(
    [
        ("a", pa.int64()),
        ("b", pa.string()),
        ("c", pa.list_(pa.float64())),
        ("d", pa.struct([("x", pa.bool_())])),
        ("m", pa.map_(pa.string(), pa.int64())),
    ]
)


@pytest.mark.parametrize("start", [0, 1])
def test_columns_as_json_are_what_single_values_are(start: int) -> None:
    array = pa.array(ROWS, JSON_TYPE).slice(start)
    texts, reasons = JsonSerializer().encode_column(array, VALUE)
    assert reasons == {}
    assert texts.type == pa.binary()
    as_dicts = [
        value if value is None else {**value, "m": None if value["m"] is None else dict(value["m"])}
        for value in ROWS[start:]
    ]
    assert texts.to_pylist() == [JsonSerializer()(value, VALUE) for value in as_dicts]
    back, reasons = JsonDeserializer(JSON_TYPE).decode_column(texts, VALUE)
    assert reasons == {}
    assert back.to_pylist() == array.to_pylist()


@pytest.mark.parametrize(
    ("kind", "values", "texts"),
    [
        (pa.date32(), [datetime.date(2026, 1, 31)], ['"2026-01-31"']),
        (
            pa.timestamp("us", "Europe/Berlin"),
            [datetime.datetime(2026, 1, 31, 10, tzinfo=datetime.UTC)],
            ['"2026-01-31T10:00:00.000000Z"'],
        ),
        (pa.timestamp("ms"), [datetime.datetime(1, 1, 1)], ['"0001-01-01T00:00:00.000"']),
        (pa.decimal128(9, 2), [Decimal("-0.10")], ["-0.10"]),
        (pa.binary(), [b"\0\xff"], ['"AP8="']),
        (pa.uint64(), [2**64 - 1], ["18446744073709551615"]),
        (pa.dictionary(pa.int8(), pa.string()), ["x"], ['"x"']),
        (pa.null(), [None], [None]),
        (pa.list_(pa.null()), [[None, None]], ["[null,null]"]),
    ],
)
def test_each_type_has_its_json(kind: pa.DataType, values: list[Any], texts: list[str | None]) -> None:
    made, reasons = JsonSerializer().encode_column(pa.array(values, kind), VALUE)
    assert (made.to_pylist(), reasons) == ([text and text.encode() for text in texts], {})


def test_what_has_no_json_is_told_by_row_or_for_the_type() -> None:
    numbers = pa.array(
        [{"x": [1.0]}, {"x": [float("nan")]}, None], pa.struct([("x", pa.list_(pa.float64()))])
    )
    texts, reasons = JsonSerializer().encode_column(numbers, VALUE)
    assert (texts.to_pylist(), reasons) == (
        [b'{"x":[1]}', None, None],
        {1: "x[]: NaN and infinity are no JSON"},
    )
    late = pa.array([2**62], pa.timestamp("us"))
    assert JsonSerializer().encode_column(late, VALUE)[1] == {
        0: "value: an instant outside the years 1 to 9999"
    }
    with pytest.raises(TypeError, match=r"json: field x\[\]: duration\[s\] has no form in JSON"):
        JsonSerializer().encode_column(pa.array([], pa.struct([("x", pa.list_(pa.duration("s")))])), VALUE)
    with pytest.raises(ValueError, match="not JSON compliant"):
        JsonSerializer()(float("nan"), VALUE)


def test_many_rows_are_written_as_few_are() -> None:
    array = pa.array(np.arange(100_000))
    texts, _ = JsonSerializer().encode_column(array, VALUE)
    assert texts.to_pylist() == [str(n).encode() for n in range(100_000)]


def test_columns_of_json_need_a_type() -> None:
    with pytest.raises(ConfigError, match="columns need a type"):
        JsonDeserializer().decode_column(pa.array([b"1"]), VALUE)
    with pytest.raises(ConfigError, match="duration"):
        JsonDeserializer(pa.duration("s"))


NAMED = {
    "type": "record",
    "name": "Visit",
    "namespace": "shop",
    "fields": [{"name": "host", "type": "string"}],
}


@pytest.mark.parametrize(
    ("strategy", "subject"),
    [
        ("TopicNameStrategy", "visits-value"),
        ("io.confluent.kafka.serializers.subject.RecordNameStrategy", "shop.Visit"),
        ("TopicRecordNameStrategy", "visits-shop.Visit"),
        (lambda context, name: f"{name}/{context.field}", "shop.Visit/value"),
    ],
)
def test_subjects_are_named_by_the_strategy(strategy: Any, subject: str) -> None:
    with schema_registry() as running:
        conf = {"subject.name.strategy": strategy}
        AvroSerializer({"url": running.url}, NAMED, conf=conf)({"host": "a"}, VALUE)
        assert running.answer("GET", "/subjects", None, None)[1] == [subject]


def test_schemas_that_are_there_are_used_and_none_is_registered() -> None:
    with schema_registry() as running:
        settings = {"url": running.url, "max.retries": 0}
        strict = AvroSerializer(settings, NAMED, conf={"auto.register.schemas": False})
        with pytest.raises(InvalidRecord, match=r"not in the Schema Registry; set auto\.register\.schemas"):
            strict({"host": "a"}, VALUE)
        latest = AvroSerializer(settings, conf={"use.latest.version": True})
        with pytest.raises(InvalidRecord, match="the subject visits-value is not in the Schema Registry"):
            latest({"host": "a"}, VALUE)
        running.register("visits-value", NAMED)
        assert strict({"host": "a"}, VALUE) == latest({"host": "a"}, VALUE) == b"\0\0\0\0\1\2a"
        newer = {**NAMED, "fields": [*NAMED["fields"], {"name": "n", "type": "int", "default": 7}]}
        running.register("visits-value", newer)
        read = AvroDeserializer(settings, conf={"use.latest.version": True})
        assert read(b"\0\0\0\0\1\2a", VALUE) == {"host": "a", "n": 7}
        assert AvroDeserializer(settings)(b"\0\0\0\0\1\2a", VALUE) == {"host": "a"}


def test_an_id_that_is_not_known_is_not_asked_for_again_at_once() -> None:
    with schema_registry() as running:
        read = AvroDeserializer({"url": running.url, "max.retries": 0}, NAMED)
        for _ in range(3):
            with pytest.raises(ValueError, match="schema id 9 is not in the Schema Registry"):
                read(b"\0\0\0\0\x09\2a", VALUE)
        assert running.asked.count("/schemas/ids/9") == 1


@pytest.mark.parametrize(
    ("conf", "said"),
    [
        ({"nonsense": 1}, "nonsense: not one of"),
        ({"use.latest.version": "yes"}, "must be True or False"),
        ({"use.latest.version": True, "auto.register.schemas": True}, "one of them writes"),
        ({"schema.id.location": "footer"}, "must be one of prefix, header"),
        ({"subject.name.strategy": "NoStrategy"}, "must be a function or one of"),
    ],
)
def test_configurations_that_cannot_be_are_told(conf: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        AvroSerializer(None, NAMED, conf=conf)


def test_objects_are_made_to_and_from_dictionaries() -> None:
    write = AvroSerializer(None, NAMED, to_dict=lambda text, context: {"host": text})
    read = AvroDeserializer(None, NAMED, from_dict=lambda value, context: value["host"])
    assert read(write("a", VALUE), VALUE) == "a"
    for data, said in ((b"", "end before"), (b"\2ab", "1 bytes are left over")):
        with pytest.raises(ValueError, match=said):
            read(data, VALUE)


def test_avro_columns_tell_rows_that_do_not_fit() -> None:
    array = pa.array([{"host": "a"}, {"host": None}, None], pa.struct([("host", pa.string())]))
    made, reasons = AvroSerializer(None, NAMED).encode_column(array, VALUE)
    assert made.to_pylist() == [b"\2a", None, None]
    assert list(reasons) == [1]
    assert json.dumps(NAMED)


def test_columns_ask_once_for_an_id_that_is_not_known_and_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from fairlead_kafka.formats import framing

    with schema_registry() as running:
        read = AvroDeserializer({"url": running.url, "max.retries": 0}, NAMED)
        rows = pa.array([b"\0\0\0\0\1\2a", b"\0\0\0\0\1\2b", b"\2a", None], pa.binary())
        for _ in range(2):
            column, reasons = read.decode_column(rows, VALUE)
            assert column.to_pylist() == [None] * 4
            assert list(reasons) == [0, 1, 2]
        assert running.asked.count("/schemas/ids/1") == 1
        running.register("visits-value", NAMED)
        monkeypatch.setattr(framing.time, "monotonic", lambda: 1e12)
        column, reasons = read.decode_column(rows, VALUE)
        assert (column.to_pylist(), list(reasons)) == ([{"host": "a"}, {"host": "b"}, None, None], [2])
