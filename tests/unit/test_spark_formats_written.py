"""Formats of a write, and dead letters, as a task makes them, without Spark and without brokers."""

from __future__ import annotations

import json
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from fairlead_kafka.base.errors import ConfigError, InvalidRecord
from fairlead_kafka.spark.formats import decoder, parse_write_formats, read_layout
from fairlead_kafka.spark.options import parse_write_options
from fairlead_kafka.spark.schema import check_write_schema
from fairlead_kafka.spark.writing import encoded_rows
from tests.support.protobuf_messages import VISIT, descriptor_set
from tests.support.schema_registry import FakeRegistry, schema_registry

AVRO = json.dumps({"type": "record", "name": "V", "fields": [{"name": "x", "type": "int"}]})
STRUCT = pa.struct([("x", pa.int32())])


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with schema_registry() as running:
        yield running


def written(
    options: dict[str, str], values: list[Any], kind: pa.DataType = STRUCT, **more: Any
) -> list[dict[str, Any]]:
    """The rows that a task sends for these values, from formats that were pickled."""
    formats, wrong = parse_write_formats(options)
    assert not wrong
    formats = pickle.loads(pickle.dumps(formats))
    batch = pa.RecordBatch.from_pydict({"value": pa.array(values, kind), **more})
    topic, batches = encoded_rows(formats, None if "topic" in more else "t", iter([batch]))
    assert topic is None
    return [row for each in batches for row in each.to_pylist()]


def protobuf(tmp_path: Path) -> dict[str, str]:
    file = tmp_path / "visit.desc"
    file.write_bytes(descriptor_set(VISIT))
    return {"valueFormat": "protobuf", "valueDescriptor": str(file), "valueMessage": "shop.Other"}


def test_each_format_makes_bytes_of_a_column(tmp_path: Path, registry: FakeRegistry) -> None:
    asked = {"schemaRegistry.url": registry.url, "schemaRegistry.max.retries": "0"}
    for options, expected in (
        ({"valueFormat": "json"}, b'{"x":3}'),
        ({"valueFormat": "avro", "valueSchema": AVRO}, b"\6"),
        ({"valueFormat": "avro", "valueSchema": AVRO, **asked}, b"\0\0\0\0\1\6"),
        ({"valueFormat": "avro", **asked}, b"\0\0\0\0\1\6"),
        ({"valueFormat": "avro", "valueSubject": "t-value", **asked}, b"\0\0\0\0\1\6"),
        (protobuf(tmp_path), b"\x08\3"),
        ({**protobuf(tmp_path), "valueSubject": "p", **asked}, b"\0\0\0\0\2\0\x08\3"),
    ):
        assert written(options, [{"x": 3}, None]) == [
            {"value": expected, "topic": "t"},
            {"value": None, "topic": "t"},
        ]
    assert registry.answer("GET", "/subjects", None, None)[1] == ["t-value", "p"]


def test_each_topic_has_its_subject(registry: FakeRegistry) -> None:
    options = {"valueFormat": "avro", "valueSchema": AVRO, "schemaRegistry.url": registry.url}
    rows = written(options, [{"x": 1}, {"x": 2}, {"x": 3}], topic=pa.array(["a", "b", "a"]))
    assert [row["topic"] for row in rows] == ["a", "a", "b"]
    assert registry.answer("GET", "/subjects", None, None)[1] == ["a-value", "b-value"]


def test_a_schema_that_is_not_there_is_not_registered_if_told(registry: FakeRegistry) -> None:
    options = {
        "valueFormat": "avro",
        "valueSchema": AVRO,
        "schemaRegistry.url": registry.url,
        "schemaRegistry.auto.register.schemas": "false",
    }
    with pytest.raises(InvalidRecord, match="not in the Schema Registry"):
        written(options, [{"x": 1}])


def test_rows_that_cannot_be_written_are_letters_or_fail_the_write() -> None:
    options = {"valueFormat": "avro", "valueSchema": AVRO}
    values = [{"x": 1}, {"x": None}, {"x": 3}]
    with pytest.raises(
        InvalidRecord, match=r"valueFormat: 1 rows .* topic t .* row 1: .* set deadLetterTopic"
    ):
        written(options, values)
    rows = written({**options, "deadLetterTopic": "dead"}, values, key=pa.array(["a", "b", "c"]))
    assert [(row["topic"], row["value"]) for row in rows] == [
        ("dead", b'{"x":null}'),
        ("t", b"\2"),
        ("t", b"\6"),
    ]
    headers = {header["key"]: header["value"] for header in rows[0]["headers"]}
    assert rows[0]["key"] == b"b"
    assert headers["__connect.errors.topic"] == b"t"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.exception.message"].startswith(b"value: ")


def test_protobuf_is_read_in_spark_s_types_and_letters_are_told(tmp_path: Path) -> None:
    options = {**protobuf(tmp_path), "valueMessage": "shop.Visit", "columns": "value,rescued"}
    layout = pickle.loads(pickle.dumps(read_layout(options).resolved()))
    fields = {field.name: field.dataType.simpleString() for field in layout.value.spark_type()}
    assert (fields["u32"], fields["u64"], fields["inner"]) == (
        "bigint",
        "decimal(20,0)",
        "struct<x:int,deeper:struct<x:int>,text:string>",
    )
    values = pa.array([b"\x08\x05", b"\xff", None], pa.binary())
    rows = decoder(layout)(pa.table({"value": values})).to_pylist()
    assert (rows[0]["value"]["id"], rows[0]["rescued"]) == (5, None)
    assert (rows[1]["value"], rows[1]["rescued"]["value"]) == (None, b"\xff")
    told: list[Any] = []
    letters = read_layout({**options, "columns": "offset", "deadLetterTopic": "dead"})
    table = pa.table(
        {
            "key": pa.array([None] * 3, pa.binary()),
            "value": values,
            "topic": ["t"] * 3,
            "partition": pa.array([0] * 3, pa.int32()),
            "offset": [7, 8, 9],
        }
    )
    assert sorted(letters.record_columns) == sorted(table.column_names)
    read = decoder(letters, lambda batch, reasons: told.append(reasons))(table)
    assert (read.to_pylist(), list(told[0]["value"])) == ([{"offset": 7}, {"offset": 9}], [1])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"valueFormat": "nope"}, "valueFormat: must be one of raw, string, json, avro, protobuf"),
        ({"valueFormat": "avro"}, "valueSchema: required with valueFormat=avro"),
        ({"valueFormat": "avro", "valueSchema": "{"}, "valueFormat: AvroSerializer: not an Avro schema"),
        ({"valueFormat": "json", "valueSchema": "a INT"}, "valueSchema: has no meaning in a write"),
        ({"valueFormat": "protobuf"}, "valueDescriptor: required"),
        ({"valueFormat": "json", "valueMessage": "x"}, "valueMessage: has no meaning with valueFormat=json"),
        (
            {"valueFormat": "protobuf", "valueDescriptor": "/none/here", "valueMessage": "a.B"},
            "valueDescriptor: /none/here cannot be read",
        ),
        ({"deadLetterTopic": "d"}, "deadLetterTopic: has no meaning"),
        ({"valueFormat": "json", "schemaRegistry.url": "http://x"}, r"schemaRegistry\.url: has no meaning"),
        (
            {
                "valueFormat": "avro",
                "schemaRegistry.url": "http://x",
                "schemaRegistry.use.latest.version": "maybe",
            },
            r"schemaRegistry\.use\.latest\.version: must be true or false",
        ),
    ],
)
def test_options_that_cannot_be_are_told(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_write_options({"kafka.bootstrap.servers": "localhost:9092", **options})


def test_columns_must_be_what_their_formats_write() -> None:
    struct = StructType([StructField("a", IntegerType())])
    schema = StructType([StructField("key", StringType()), StructField("value", struct)])
    formats, _ = parse_write_formats({"valueFormat": "json", "keyFormat": "string"})
    check_write_schema(schema, "t", None, formats)
    formats, _ = parse_write_formats({"valueFormat": "string"})
    with pytest.raises(ConfigError, match="column value: must be string with valueFormat=string"):
        check_write_schema(schema, "t", None, formats)
