"""Formats of keys and values: serializers and deserializers (Kafka itself only has bytes).

Theory of operation. A serializer makes bytes of objects, a deserializer objects of bytes. Each has
two interfaces, with the same results:

    serializer(value, context)              one value: `Producer.send`, `Consumer.poll`
    encode_column, decode_column            a whole Arrow column: `send_table`, `poll_table`, Spark

**A value that does not parse never fails a column.** It is null there, and reported by row with the
reason (`building.Reasons`); `rescuing` makes the column `rescued` from that. A value parses whole
or not at all: no field is made null because it does not fit. A value's result does not depend on
its neighbours.

    simple                     texts, numbers: UTF-8 and big-endian, as Kafka's own serializers
    json_serde                 JSON. `json_writing` makes texts of columns by Arrow's functions;
                               `json_reading` makes columns of texts by machine code
                               (`json_kernel`), `json_blocks` of those that it does not take
                               (`json_columns`): whole blocks by Arrow's parser, and rows that stop
                               a block one by one (`json_rows`); the latter two use `json_types`
    avro_serde                 Avro. `avro_schema` reads schemas; `avro_reading` and `avro_writing`
                               make columns by machine code, `avro_rows` single values by fastavro,
                               which also serves what machine code does not (`avro_columns`), and is
                               called only when `avro_bounds` has found the bytes harmless
    protobuf_serde             Protobuf: `protobuf_columns`; `protobuf_types` value by value
    kernels, slots             the machine code's operations, and the columns of numbers that they
                               read and write, from and to Arrow's arrays
    json_schema_serde          JSON that is checked against a schema of the registry
    framing                    how messages name their schema: Confluent's prefix, or its header
    registry                   a Schema Registry, by confluent-kafka's client of it

Nothing here imports clients: they are given functions, and confluent-kafka's serializers are such
functions too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead_kafka.base.lazy import lazily

if TYPE_CHECKING:
    from fairlead_kafka.formats.avro_serde import AvroDeserializer, AvroSerializer
    from fairlead_kafka.formats.context import (
        Deserializer,
        MessageField,
        SerializationContext,
        Serializer,
        record_name,
        topic_name,
        topic_record_name,
    )
    from fairlead_kafka.formats.json_schema_serde import JsonSchemaDeserializer, JsonSchemaSerializer
    from fairlead_kafka.formats.json_serde import JsonDeserializer, JsonSerializer
    from fairlead_kafka.formats.protobuf_serde import ProtobufDeserializer, ProtobufSerializer
    from fairlead_kafka.formats.registry import (
        RegistryFailed,
        SchemaReference,
        SchemaRegistry,
        StoredSchema,
        UnknownSchema,
    )
    from fairlead_kafka.formats.simple import (
        DoubleDeserializer,
        DoubleSerializer,
        IntegerDeserializer,
        IntegerSerializer,
        LongDeserializer,
        LongSerializer,
        StringDeserializer,
        StringSerializer,
    )

__all__ = [
    "AvroDeserializer",
    "AvroSerializer",
    "Deserializer",
    "DoubleDeserializer",
    "DoubleSerializer",
    "IntegerDeserializer",
    "IntegerSerializer",
    "JsonDeserializer",
    "JsonSchemaDeserializer",
    "JsonSchemaSerializer",
    "JsonSerializer",
    "LongDeserializer",
    "LongSerializer",
    "MessageField",
    "ProtobufDeserializer",
    "ProtobufSerializer",
    "RegistryFailed",
    "SchemaReference",
    "SchemaRegistry",
    "SerializationContext",
    "Serializer",
    "StoredSchema",
    "StringDeserializer",
    "StringSerializer",
    "UnknownSchema",
    "record_name",
    "topic_name",
    "topic_record_name",
]

_HOMES = {
    "fairlead_kafka.formats.avro_serde": ("AvroDeserializer", "AvroSerializer"),
    "fairlead_kafka.formats.context": (
        "Deserializer",
        "MessageField",
        "SerializationContext",
        "Serializer",
        "record_name",
        "topic_name",
        "topic_record_name",
    ),
    "fairlead_kafka.formats.json_schema_serde": ("JsonSchemaDeserializer", "JsonSchemaSerializer"),
    "fairlead_kafka.formats.json_serde": ("JsonDeserializer", "JsonSerializer"),
    "fairlead_kafka.formats.protobuf_serde": ("ProtobufDeserializer", "ProtobufSerializer"),
    "fairlead_kafka.formats.registry": (
        "RegistryFailed",
        "SchemaReference",
        "SchemaRegistry",
        "StoredSchema",
        "UnknownSchema",
    ),
    "fairlead_kafka.formats.simple": (
        "DoubleDeserializer",
        "DoubleSerializer",
        "IntegerDeserializer",
        "IntegerSerializer",
        "LongDeserializer",
        "LongSerializer",
        "StringDeserializer",
        "StringSerializer",
    ),
}
__getattr__, __dir__ = lazily(__name__, _HOMES)
