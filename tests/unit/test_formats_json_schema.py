"""JSON Schema: what it allows is written and read, what it does not is told, and nothing is
fetched."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats import (
    JsonDeserializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    MessageField,
    SchemaReference,
    SerializationContext,
)
from tests.support.schema_registry import FakeRegistry, schema_registry

VALUE = SerializationContext("visits", MessageField.VALUE)
VISIT: dict[str, Any] = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "title": "Visit",
    "type": "object",
    "properties": {"host": {"type": "string"}, "n": {"type": "integer", "minimum": 0}},
    "required": ["host"],
}
TYPE = pa.struct([("host", pa.string()), ("n", pa.int64())])


@pytest.fixture
def running() -> Iterator[FakeRegistry]:
    with schema_registry() as registry:
        yield registry


def test_what_the_schema_allows_goes_there_and_back(running: FakeRegistry) -> None:
    write = JsonSchemaSerializer({"url": running.url}, VISIT)
    read = JsonSchemaDeserializer({"url": running.url}, type=TYPE)
    data = write({"host": "a", "n": 1}, VALUE)
    assert data == b'\0\0\0\0\1{"host":"a","n":1}'
    assert read(data, VALUE) == {"host": "a", "n": 1}
    assert (write(None, VALUE), read(None, VALUE)) == (None, None)
    with pytest.raises(ValueError, match="n: -1 is less than the minimum of 0"):
        write({"host": "a", "n": -1}, VALUE)
    with pytest.raises(ValueError, match="is a required property"):
        read(b'\0\0\0\0\1{"n":1}', VALUE)
    column, reasons = write.encode_column(
        pa.array([{"host": "a", "n": 1}, {"host": "b", "n": -1}, None], TYPE), VALUE
    )
    assert (column.to_pylist(), list(reasons)) == ([data, None, None], [1])
    rows = pa.array([data, b'\0\0\0\0\1{"host":"a","n":-5}', b"{}", b"\0\0\0\0\1nope", None], pa.binary())
    column, reasons = read.decode_column(rows, VALUE)
    assert (column.to_pylist(), sorted(reasons)) == (
        [{"host": "a", "n": 1}, None, None, None, None],
        [1, 2, 3],
    )


def test_confluent_s_serializer_writes_the_same(running: FakeRegistry) -> None:
    pytest.importorskip("jsonschema")
    from confluent_kafka.schema_registry import SchemaRegistryClient
    from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer

    client = SchemaRegistryClient({"url": running.url})
    value = {"host": "a", "n": 1}
    theirs = JSONSerializer(json.dumps(VISIT), client)(value, VALUE)
    assert JsonSchemaDeserializer({"url": running.url})(theirs, VALUE) == value
    ours = JsonSchemaSerializer({"url": running.url}, VISIT)(value, VALUE)
    assert JSONDeserializer(json.dumps(VISIT))(ours, VALUE) == value


def test_schemas_refer_to_others_of_the_registry_and_to_nothing_else(running: FakeRegistry) -> None:
    running.register("host", {"type": "string", "maxLength": 2}, kind="JSON")
    refers = {"type": "object", "properties": {"host": {"$ref": "host.json"}}}
    references = [SchemaReference("host.json", "host", 1)]
    write = JsonSchemaSerializer({"url": running.url}, refers, references=references)
    assert write({"host": "ab"}, VALUE) == b'\0\0\0\0\2{"host":"ab"}'
    with pytest.raises(ValueError, match=r"host: .*longer than 2"):
        write({"host": "abc"}, VALUE)
    elsewhere = {"properties": {"host": {"$ref": running.url + "/schemas/ids/1"}}}
    write = JsonSchemaSerializer(
        {"url": running.url}, elsewhere, conf={"subject.name.strategy": lambda *_: "e"}
    )
    before = len(running.asked)
    with pytest.raises(ConfigError, match="is none of the schema's references"):
        write({"host": "ab"}, VALUE)
    assert not any(path.startswith("/schemas") for path in running.asked[before:])


def test_validation_can_be_left_out(running: FakeRegistry) -> None:
    off = {"validate": False}
    write = JsonSchemaSerializer({"url": running.url}, VISIT, conf=off)
    data = write({"n": -1}, VALUE)
    assert JsonSchemaDeserializer({"url": running.url}, conf=off)(data, VALUE) == {"n": -1}
    with pytest.raises(ConfigError, match="validate: must be True or False"):
        JsonSchemaSerializer({"url": running.url}, VISIT, conf={"validate": "no"})
    with pytest.raises(ConfigError, match="not a JSON Schema"):
        JsonSchemaDeserializer({"url": running.url}, {"type": 7})
    with pytest.raises(ConfigError, match=r"an object, true or false is needed, not \[1\]"):
        JsonSchemaDeserializer({"url": running.url}, "[1]")


def test_json_that_is_nested_without_end_is_told_and_fails_no_column(running: FakeRegistry) -> None:
    deep = b'{"host":"a","x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(ValueError, match="nested too deep"):
        JsonDeserializer()(deep)
    read = JsonSchemaDeserializer({"url": running.url}, type=TYPE)
    data = JsonSchemaSerializer({"url": running.url}, VISIT)({"host": "a", "n": 1}, VALUE)
    assert data is not None
    with pytest.raises(ValueError, match="nested too deep"):
        read(data[:5] + deep, VALUE)
    column, reasons = read.decode_column(pa.array([data, data[:5] + deep, data], pa.binary()), VALUE)
    assert (column.is_valid().to_pylist(), list(reasons)) == ([True, False, True], [1])
    with pytest.raises(ConfigError, match="nested too deep"):
        JsonSchemaSerializer({"url": running.url}, "[" * 100_000)
