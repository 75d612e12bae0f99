"""Speed of serializers and deserializers, single values and whole columns, beside confluent-kafka's
and fastavro, in turn in one process.

Records have ten fields: three whole numbers, three short texts, one that is null for a third, a
double, a boolean and an instant; JSON has 210 bytes of them, Avro 80. Cold is the first pass of a
new serializer, with its requests to a registry (confluent-kafka's, in memory) and its planning;
warm is the fastest of several later passes. Records per second of one thread's CPU time.
"""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from fairlead_kafka.base.json_types import JsonObject, number_at
from fairlead_kafka.formats import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    MessageField,
    ProtobufDeserializer,
    ProtobufSerializer,
    SerializationContext,
    StringDeserializer,
    StringSerializer,
)
from fairlead_kafka.lab.experiment import Row, Status
from fairlead_kafka.lab.maven import Unavailable
from fairlead_kafka.lab.plotting import bars

CONTEXT = SerializationContext("visits", MessageField.VALUE)
SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "user", "type": "string"},
        {"name": "status", "type": "int"},
        {"name": "size", "type": "long"},
        {"name": "ratio", "type": "double"},
        {"name": "ok", "type": "boolean"},
        {"name": "host", "type": "string"},
        {"name": "path", "type": "string"},
        {"name": "agent", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
    ],
}
_REPETITIONS = {"quick": 3, "full": 9}
_COLUMN_ROWS = {"quick": 100_000, "full": 500_000}
_RECORDS = {"quick": 5_000, "full": 50_000}


class _Case(NamedTuple):
    """One row: `make` gives the work of a fresh serializer, for `count` records."""

    format: str
    direction: str
    way: str
    library: str
    records: int
    make: Callable[[], Callable[[], object]]


def run(status: Status, profile: str = "quick") -> list[JsonObject]:
    """Rows `{"format", "direction": "encode" | "decode", "way": "record" | "column", "library",
    "phase": "cold" | "warm", "records_per_s"}`.

    `profile` is "quick" (half a minute) or "full". Unavailable without the extras that the formats
    need.
    """
    rows: list[JsonObject] = []
    for case in list(_cases(_COLUMN_ROWS[profile], _RECORDS[profile])):
        status(f"{case.format}, {case.direction}, {case.way}, {case.library}")
        started = time.process_time()
        work = case.make()
        work()
        cold_s = time.process_time() - started
        warm_s = min(_seconds(work) for _ in range(_REPETITIONS[profile]))
        for phase, seconds in (("cold", cold_s), ("warm", warm_s)):
            rows.append(
                {
                    "format": case.format,
                    "direction": case.direction,
                    "way": case.way,
                    "library": case.library,
                    "phase": phase,
                    "records_per_s": round(case.records / seconds),
                }
            )
    return rows


def plot(rows: Sequence[Row], path: Path) -> None:
    """Warm records per second by format and direction, a bar for each library and way."""
    warm = [row for row in rows if row["phase"] == "warm"]
    groups = list(dict.fromkeys((row["format"], row["direction"]) for row in warm))
    makers = list(dict.fromkeys((row["library"], row["way"]) for row in warm))
    rates = {
        (row["format"], row["direction"], row["library"], row["way"]): number_at(row, "records_per_s")
        for row in warm
    }
    bars(
        path,
        "Formats: records per second and core",
        [f"{name} {direction}" for name, direction in groups],
        {
            f"{library}, by {way}": [rates.get((*group, library, way)) for group in groups]
            for library, way in makers
        },
        "records/s",
        log=True,
    )


def _seconds(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def records(count: int) -> pa.StructArray:
    """`count` records to serialize, the same at each call."""
    rng = np.random.default_rng(0)
    numbers = np.arange(count)
    fields = {
        "id": pa.array(numbers),
        "user": pa.array([f"user-{number % 5000}" for number in range(count)]),
        "status": pa.array(rng.integers(100, 600, count).astype(np.int32)),
        "size": pa.array(rng.integers(0, 1 << 40, count)),
        "ratio": pa.array(rng.random(count)),
        "ok": pa.array(rng.random(count) < 0.5),
        "host": pa.array([f"host{number % 97}.example.com" for number in range(count)]),
        "path": pa.array([f"/a/b/{number % 1000}/index.html" for number in range(count)]),
        "agent": pa.array(
            [None if number % 3 == 0 else "Mozilla/5.0" for number in range(count)], pa.string()
        ),
        "at": pa.array(rng.integers(1_600_000_000_000_000, 1_700_000_000_000_000, count)).cast(
            pa.timestamp("us", "UTC")
        ),
    }
    return pa.StructArray.from_arrays(list(fields.values()), list(fields))


def _cases(rows: int, singles: int) -> Iterator[_Case]:
    array = records(rows)
    some: list[dict[str, Any]] = array.slice(0, singles).to_pylist()
    yield from _strings(array, [each["path"] for each in some])
    yield from _json(array, some)
    yield from _avro(array, some)
    yield from _protobuf(array, some)


def _each(function: Callable[[Any, Any], Any], values: Sequence[Any]) -> Callable[[], object]:
    return lambda: [function(value, CONTEXT) for value in values]


def _both(
    name: str, library: str, values: Sequence[Any], write: Callable[[], Any], read: Callable[[], Any]
) -> Iterator[_Case]:
    """Cases of one library in both directions, record by record."""
    made = [write()(value, CONTEXT) for value in values[:1]]
    assert made[0] is not None, "records are not null"
    encoded = _each(write(), values)()
    assert isinstance(encoded, list), "a list of bytes"
    yield _Case(name, "encode", "record", library, len(values), lambda: _each(write(), values))
    yield _Case(name, "decode", "record", library, len(values), lambda: _each(read(), encoded))


def _columns(
    name: str, array: pa.Array, write: Callable[[], Any], read: Callable[[], Any]
) -> Iterator[_Case]:
    """Cases of our library in both directions, by column."""
    made, reasons = write().encode_column(array, CONTEXT)
    assert not reasons, "all records can be written"

    def encode() -> Callable[[], object]:
        serializer = write()
        return lambda: serializer.encode_column(array, CONTEXT)

    def decode() -> Callable[[], object]:
        deserializer = read()
        return lambda: deserializer.decode_column(made, CONTEXT)

    yield _Case(name, "encode", "column", "fairlead", len(array), encode)
    yield _Case(name, "decode", "column", "fairlead", len(array), decode)


def _strings(array: pa.StructArray, some: list[str]) -> Iterator[_Case]:
    from confluent_kafka import serialization as theirs

    yield from _columns("string", array.field("path"), StringSerializer, StringDeserializer)
    yield from _both("string", "fairlead", some, StringSerializer, StringDeserializer)
    yield from _both("string", "confluent-kafka", some, theirs.StringSerializer, theirs.StringDeserializer)


def _json(array: pa.StructArray, some: list[dict[str, Any]]) -> Iterator[_Case]:
    plain = [{**each, "at": each["at"].isoformat()} for each in some]
    yield from _columns("json", array, JsonSerializer, lambda: JsonDeserializer(array.type))
    yield from _both("json", "fairlead", plain, JsonSerializer, JsonDeserializer)


def _registry() -> Any:
    """confluent-kafka's registry in memory, with nothing in it. Unavailable if its packages are
    missing."""
    try:
        from confluent_kafka.schema_registry import SchemaRegistryClient
    except ImportError as error:
        raise Unavailable(
            f"confluent-kafka's serializers are not all here ({error}): extra registry"
        ) from None
    return SchemaRegistryClient.new_client({"url": "mock://lab"})


def _avro(array: pa.StructArray, some: list[dict[str, Any]]) -> Iterator[_Case]:
    import fastavro

    registry = _registry()
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer

    text = json.dumps(SCHEMA)
    yield from _columns(
        "avro", array, lambda: AvroSerializer(registry, SCHEMA), lambda: AvroDeserializer(registry, SCHEMA)
    )
    yield from _both(
        "avro",
        "fairlead",
        some,
        lambda: AvroSerializer(registry, SCHEMA),
        lambda: AvroDeserializer(registry, SCHEMA),
    )
    yield from _both(
        "avro",
        "confluent-kafka",
        some,
        lambda: TheirSerializer(registry, text),
        lambda: TheirDeserializer(registry, text),
    )
    parsed = fastavro.parse_schema(SCHEMA)

    def write(value: Any, context: object) -> bytes:
        stream = io.BytesIO()
        fastavro.schemaless_writer(stream, parsed, value)
        return stream.getvalue()

    def read(data: bytes, context: object) -> object:
        return fastavro.schemaless_reader(io.BytesIO(data), parsed, None)

    yield from _both("avro", "fastavro", some, lambda: write, lambda: read)


def _protobuf(array: pa.StructArray, some: list[dict[str, Any]]) -> Iterator[_Case]:
    registry = _registry()
    from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer as TheirDeserializer
    from confluent_kafka.schema_registry.protobuf import ProtobufSerializer as TheirSerializer

    kind = _message_class()
    numbers = pa.StructArray.from_arrays(
        [*array.flatten()[:-1], array.field("at").view(pa.int64())], [field.name for field in array.type]
    )
    messages = [kind(**each) for each in numbers.slice(0, len(some)).to_pylist()]
    yield from _columns(
        "protobuf", numbers, lambda: ProtobufSerializer(kind, registry), lambda: ProtobufDeserializer(kind)
    )
    yield from _both(
        "protobuf",
        "fairlead",
        messages,
        lambda: ProtobufSerializer(kind, registry),
        lambda: ProtobufDeserializer(kind),
    )
    deprecated = {"use.deprecated.format": False}
    yield from _both(
        "protobuf",
        "confluent-kafka",
        messages,
        lambda: TheirSerializer(kind, registry, deprecated),
        lambda: TheirDeserializer(kind, deprecated, registry),
    )


def _message_class() -> Any:
    """A Protobuf message class with the fields of `SCHEMA`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kinds = {"long": "INT64", "int": "INT32", "double": "DOUBLE", "boolean": "BOOL", "string": "STRING"}
    file = descriptor_pb2.FileDescriptorProto(name="lab/visit.proto", package="lab", syntax="proto3")
    message = file.message_type.add(name="Visit")
    for number, field in enumerate(SCHEMA["fields"], start=1):
        kind = field["type"]
        optional = isinstance(kind, list)
        kind = kind[1] if optional else kind["type"] if isinstance(kind, dict) else kind
        made = message.field.add(name=field["name"], number=number)
        made.type = made.Type.Value(f"TYPE_{kinds[kind]}")
        made.label = made.Label.Value("LABEL_OPTIONAL")
        if optional:
            made.proto3_optional, made.oneof_index = True, len(message.oneof_decl)
            message.oneof_decl.add(name=f"_{field['name']}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("lab.Visit"))
