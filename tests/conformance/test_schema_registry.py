"""Serializers and the registry's client against Apicurio Registry, by its API that is
Confluent's."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka.formats import (
    AvroDeserializer,
    AvroSerializer,
    JsonSchemaDeserializer,
    JsonSchemaSerializer,
    MessageField,
    ProtobufDeserializer,
    ProtobufSerializer,
    RegistryFailed,
    SchemaReference,
    SchemaRegistry,
    SerializationContext,
    UnknownSchema,
)
from fairlead_kafka.lab.maven import Unavailable
from tests.support.apicurio import apicurio
from tests.support.protobuf_messages import message_class

VISIT: dict[str, Any] = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "host", "type": "string"}],
}
NEXT = {**VISIT, "fields": [*VISIT["fields"], {"name": "n", "type": "int"}]}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    try:
        with apicurio(tmp_path_factory.mktemp("apicurio")) as running:
            yield running
    except Unavailable as error:
        pytest.skip(str(error))


def test_schemas_are_registered_found_and_judged(url: str) -> None:
    text, newer = json.dumps(VISIT), json.dumps(NEXT)
    with SchemaRegistry({"url": url, "max.retries": 0}) as registry:
        made = registry.register("visits-value", "AVRO", text)
        assert registry.register("visits-value", "AVRO", text).schema_id == made.schema_id
        assert registry.latest("visits-value").schema_id == made.schema_id
        assert registry.lookup("visits-value", "AVRO", text).version == 1
        assert made.schema_id is not None
        assert json.loads(registry.by_id(made.schema_id).text) == VISIT
        for ask in (
            lambda: registry.lookup("visits-value", "AVRO", newer),
            lambda: registry.by_id(99_999),
            lambda: registry.latest("nothing-value"),
        ):
            with pytest.raises(UnknownSchema):
                ask()
        registry.set_compatibility("visits-value", "BACKWARD")
        assert registry.compatibility("visits-value") == "BACKWARD"
        assert not registry.is_compatible("visits-value", "AVRO", newer)
        with pytest.raises(RegistryFailed, match="refused to register a schema under the subject v"):
            registry.register("visits-value", "AVRO", newer)


def test_avro_with_references_goes_there_and_back(url: str) -> None:
    context = SerializationContext("outer", MessageField.VALUE)
    outer = {"type": "record", "name": "Outer", "fields": [{"name": "v", "type": "Visit"}]}
    with SchemaRegistry({"url": url, "max.retries": 0}) as registry:
        registry.register("shared", "AVRO", json.dumps(VISIT))
        write = AvroSerializer(registry, outer, references=[SchemaReference("Visit", "shared", 1)])
        values = [{"v": {"host": "a"}}, {"v": {"host": "b"}}]
        made = [write(value, context) for value in values]
        read = AvroDeserializer(registry)
        assert [read(data, context) for data in made] == values
        column, reasons = read.decode_column(pa.array(made, pa.binary()), context)
        assert (column.to_pylist(), reasons) == (values, {})
        assert write.encode_column(column, context)[0].to_pylist() == made


def test_protobuf_and_json_schema_go_there_and_back(url: str) -> None:
    Importing, Other = message_class("Importing"), message_class("Other")  # noqa: N806
    context = SerializationContext("importing", MessageField.VALUE)
    message = Importing(other=Other(x=5))
    made = ProtobufSerializer(Importing, {"url": url, "max.retries": 0})(message, context)
    assert ProtobufDeserializer(Importing)(made, context) == message
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    context = SerializationContext("json", MessageField.VALUE)
    data = JsonSchemaSerializer({"url": url, "max.retries": 0}, schema)({"n": 1}, context)
    read = JsonSchemaDeserializer({"url": url, "max.retries": 0})
    assert read(data, context) == {"n": 1}
    assert data is not None
    with pytest.raises(ValueError, match="is not of type"):
        read(data[:5] + b'{"n":"x"}', context)
