"""Formats and columns as options: what a read gives, and everything that is wrong said when it is
planned, with the fix."""

from __future__ import annotations

import json
import pickle

import pytest
from pyspark.sql.pandas.types import from_arrow_type
from pyspark.sql.types import StructType

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats.avro_schema import AvroSchema
from fairlead_kafka.spark.formats import FORMAT_OPTIONS, parse_layout, read_layout
from fairlead_kafka.spark.formats.ddl import parse_type
from fairlead_kafka.spark.options import parse_read_options
from fairlead_kafka.spark.schema import check_read_schema, check_write_schema, source_schema

SERVERS = {"kafka.bootstrap.servers": "localhost:9092", "subscribe": "t"}
URL = {"schemaregistry.url": "http://localhost:1"}
RAW = "key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int"
RESCUED = "rescued:struct<key:binary,value:binary,reason:string>"


def avro(*fields: tuple[str, object]) -> str:
    return json.dumps(
        {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in fields]}
    )


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({}, RAW),
        ({"includeHeaders": "true"}, RAW + ",headers:array<struct<key:string,value:binary>>"),
        ({"valueFormat": "string"}, RAW.replace("value:binary", "value:string") + "," + RESCUED),
        ({"columns": "value"}, "value:binary"),
        (
            {"columns": " timestamptype , Value,headers"},
            "timestampType:int,value:binary,headers:array<struct<key:string,value:binary>>",
        ),
        ({"columns": "value", "valueFormat": "JSON", "valueSchema": "a INT"}, "value:struct<a:int>"),
        ({"columns": "rescued", "keyFormat": "string"}, RESCUED),
    ],
)
def test_options_say_which_columns_a_read_gives(options: dict[str, str], columns: str) -> None:
    assert (
        source_schema(parse_read_options({**SERVERS, **options}).layout).simpleString()
        == f"struct<{columns}>"
    )


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        ({"columns": "value"}, ["value"]),
        ({"columns": "offset", "valueFormat": "string"}, ["offset"]),
        (
            {"columns": "offset,rescued", "valueFormat": "string", "keyFormat": "string"},
            ["offset", "key", "value"],
        ),
        ({"columns": "value,rescued", "valueFormat": "string"}, ["value"]),
    ],
)
def test_only_what_is_needed_is_asked_of_the_consumer(options: dict[str, str], asked: list[str]) -> None:
    assert read_layout(options).record_columns == asked


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"valueFormat": "jsn"}, "valueFormat: must be one of raw, string, json, avro, protobuf, got 'jsn'"),
        ({"keyFormat": "json"}, "keySchema: required with keyFormat=json"),
        ({"valueFormat": "json", "valueSchema": "a intt"}, "valueSchema: expected a type (boolean, byte"),
        (
            {"valueFormat": "json", "valueSchema": "a map<int, string>"},
            "field a: keys of a map are strings in JSON, not int",
        ),
        (
            {"valueFormat": "json", "valueSchema": '{"type": "struct"}'},
            "valueSchema: not JSON of a Spark schema",
        ),
        ({"valueFormat": "json", "valueSchema": '["a"]'}, "valueSchema: cannot be read from"),
        ({"valueSchema": "a INT"}, "valueSchema: has no meaning with valueFormat=raw"),
        (
            {"valueFormat": "string", "valueSubject": "s"},
            "valueSubject: has no meaning with valueFormat=string",
        ),
        (
            {"valueFormat": "avro"},
            "valueSchema: required with valueFormat=avro, an Avro schema in JSON, unless schemaRegistry.url "
            "is set",
        ),
        ({"valueFormat": "avro", "valueSchema": "a INT"}, "valueSchema: not an Avro schema in JSON"),
        (
            {"valueFormat": "avro", "valueSchema": '{"type": "recor"}'},
            "valueSchema: not an Avro schema (UnknownType",
        ),
        (
            {"valueFormat": "avro", "valueSchema": avro(("u", ["int", "string"]))},
            "field u: a union of int, string has no type in columns",
        ),
        (
            {"valueFormat": "avro", "valueSchema": avro(("n", "null"))},
            "field n: is always null; give a reader's schema without it",
        ),
        ({"valueFormat": "avro", "valueSchema": avro(("r", ["null", "R"]))}, "field r: R holds itself"),
        (
            {"valueFormat": "avro", **URL, "subscribe": "a,b"},
            "valueSubject: required where more than one topic may be read",
        ),
        (
            {"valueFormat": "avro", **URL, "valueSchema": '"int"', "valueSubject": "s"},
            "valueSubject: is for avro with schemaRegistry.url",
        ),
        (
            {"valueFormat": "avro", "valueWriterSchema": '"int"', **URL},
            "valueWriterSchema: is for avro without schemaRegistry.url",
        ),
        (URL, "schemaRegistry.url: has no meaning without valueFormat=avro"),
        (
            {"schemaRegistry.timeout": "1", "valueFormat": "avro"},
            "schemaRegistry.url: required with other options",
        ),
        ({"columns": "value,foo"}, "columns: there is no foo, but key, value, topic"),
        ({"columns": "rescued"}, "rescued comes with valueFormat or keyFormat other than raw"),
        ({"columns": "value,VALUE"}, "columns: name each column once"),
        ({"columns": ","}, "columns: name each column once, and one at least"),
        ({"columns": "value", "includeHeaders": "true"}, "columns: includeHeaders=true asks for headers"),
    ],
)
def test_what_is_wrong_is_said_with_the_option_and_the_fix(options: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        parse_read_options({**SERVERS, **options})
    assert said in str(raised.value)


def test_all_that_is_wrong_is_said_at_once() -> None:
    _, wrong = parse_layout({"valueFormat": "json", "keyFormat": "nope", "columns": "foo"})
    assert len(wrong) == 3


def test_a_layout_travels_to_executors() -> None:
    layout = read_layout({"valueFormat": "avro", "valueSchema": avro(("a", "int")), "keyFormat": "string"})
    assert pickle.loads(pickle.dumps(layout)) == layout


def test_a_schema_of_the_jobs_own_is_refused_with_what_to_do_instead() -> None:
    with pytest.raises(ConfigError, match="say what values are with valueFormat and valueSchema"):
        check_read_schema(
            StructType.fromJson(json.loads('{"type": "struct", "fields": []}')), read_layout({})
        )


def test_a_decoded_value_that_is_written_is_told_how_to_pack_itself() -> None:
    schema = source_schema(read_layout({"valueFormat": "json", "valueSchema": "a INT", "columns": "value"}))
    with pytest.raises(
        ConfigError,
        match=r"column value: must be string or binary, not struct<a:int>; valueFormat=json makes it one",
    ):
        check_write_schema(schema, "t")


def test_every_option_of_the_formats_is_known_to_the_source() -> None:
    for name, *_ in FORMAT_OPTIONS:
        _, wrong = parse_layout({name: "no such thing"})
        assert wrong, f"{name}: accepted and ignored"
        with pytest.raises(ConfigError) as raised:
            parse_read_options({**SERVERS, name: "no such thing"})
        assert "unknown option" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (
            "a int, b: STRING NOT NULL COMMENT 'it''s', `c d` decimal(9,2)",
            "struct<a:int,b:string,c d:decimal(9,2)>",
        ),
        ("struct<a: array<map<string, struct<x: date>>>>", "struct<a:array<map<string,struct<x:date>>>>"),
        ("map<string,timestamp_ntz>", "map<string,timestamp_ntz>"),
        ("array<dec>", "array<decimal(10,0)>"),
        ("map BIGINT, array tinyint, struct real", "struct<map:bigint,array:tinyint,struct:float>"),
        ("`a``b` boolean", "struct<a`b:boolean>"),
    ],
)
def test_types_are_read_as_spark_writes_them(text: str, kind: str) -> None:
    assert parse_type(text).simpleString() == kind


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a", "expected a type"),
        ("a int,", "expected the name of a field at the end"),
        ("a int b int", "expected the end at 'b' (character 7)"),
        ("a struct<x int", "expected '>' at the end"),
        ("a decimal(40,2)", "precision is 1 to 38"),
        ("a decimal(x)", "expected a whole number at 'x'"),
        ("a int not", "NOT must be NOT NULL"),
        ("a int comment b", "COMMENT must be followed by text in quotes"),
        ("a int, a int", "field a is there twice"),
        ("a-b int", "cannot be read from '-b int' on"),
        ("", "expected the name of a field"),
    ],
)
def test_a_type_that_cannot_be_read_says_where(text: str, said: str) -> None:
    with pytest.raises(ValueError) as raised:
        parse_type(text)
    assert said in str(raised.value)


def test_ddl_and_sparks_json_say_the_same() -> None:
    kind = parse_type("a INT NOT NULL, b ARRAY<STRUCT<c: DECIMAL(5,1)>>")
    assert parse_type(kind.json()) == kind


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ('"long"', "bigint"),
        ('{"type": "string"}', "string"),
        ('["null", "string"]', "string"),
        ('{"type": "fixed", "name": "f", "size": 3}', "binary"),
        ('{"type": "enum", "name": "e", "symbols": ["A"]}', "string"),
        (
            '{"type": "fixed", "name": "f", "size": 8, "logicalType": "decimal", "precision": 9, "scale": 3}',
            "decimal(9,3)",
        ),
        ('{"type": "long", "logicalType": "time-micros"}', "bigint"),
        ('{"type": "long", "logicalType": "something-new"}', "bigint"),
        (
            avro(
                ("a", {"type": "map", "values": ["int", "null"]}), ("b", {"type": "array", "items": "float"})
            ),
            None,
        ),
    ],
)
def test_avro_types_have_their_counterparts_in_spark(schema: str, kind: str | None) -> None:
    assert from_arrow_type(AvroSchema(schema).arrow_type()).simpleString() == (
        kind or "struct<a:map<string,int>,b:array<float>>"
    )


def test_a_named_type_is_known_where_it_is_named_again() -> None:
    inner = {"type": "record", "name": "I", "fields": [{"name": "x", "type": "int"}]}
    assert (
        from_arrow_type(AvroSchema(avro(("a", inner), ("b", ["null", "I"]))).arrow_type()).simpleString()
        == "struct<a:struct<x:int>,b:struct<x:int>>"
    )
