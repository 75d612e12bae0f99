"""Avro: schemas that change, Confluent's wire format, and a Schema Registry that knows, does not
know, or does not answer."""

from __future__ import annotations

import datetime
import io
import json
import pickle
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats.registry import RegistryFailed, schema_by_id
from fairlead_kafka.spark.formats import decoder, read_layout
from fairlead_kafka.spark.formats.layout import Layout
from tests.support.schema_registry import FakeRegistry, schema_registry

Schema = Mapping[str, Any] | str
OLD = {
    "type": "record",
    "name": "Visit",
    "fields": [{"name": "host", "type": "string"}, {"name": "bytes", "type": "int"}],
}
NEW = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "host", "type": "string"},
        {"name": "bytes", "type": "long"},
        {"name": "agent", "type": "string", "default": "?"},
    ],
}
HOST = {"type": "record", "name": "Visit", "fields": [{"name": "host", "type": "string"}]}


def written(schema: Schema, value: Any, schema_id: int | None = None) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(schema))), value)
    return (b"" if schema_id is None else b"\0" + schema_id.to_bytes(4, "big")) + stream.getvalue()


def read(layout: Layout, *values: bytes | None) -> list[dict[str, Any]]:
    """Rows with value and rescued, read as an executor does: from a layout that has been
    pickled."""
    layout = pickle.loads(pickle.dumps(layout.resolved()))
    table = pa.table({"key": pa.array(values, pa.binary()), "value": pa.array(values, pa.binary())})
    return decoder(layout)(table.select(layout.record_columns)).to_pylist()  # type: ignore[no-any-return]


def plain(reader: Schema, writer: Schema | None = None) -> Layout:
    options = {"valueFormat": "avro", "columns": "value,rescued", "valueSchema": json.dumps(reader)}
    return read_layout(options if writer is None else {**options, "valueWriterSchema": json.dumps(writer)})


def values_of(layout: Layout, *values: bytes | None) -> list[Any]:
    rows = read(layout, *values)
    assert [row["rescued"] for row in rows] == [None] * len(rows)
    return [row["value"] for row in rows]


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    schema_by_id.cache_clear()
    with schema_registry() as running:
        yield running


def framed(registry: FakeRegistry, **options: str) -> Layout:
    retries = {"schemaRegistry.max.retries": "0", "schemaRegistry.timeout": "5"}
    given = {
        "valueFormat": "avro",
        "columns": "value,rescued",
        "subscribe": "visits",
        "schemaRegistry.url": registry.url,
        **retries,
    }
    return read_layout({**given, **options})


def test_old_records_are_read_with_the_new_schema() -> None:
    assert values_of(plain(NEW, OLD), written(OLD, {"host": "a", "bytes": 5})) == [
        {"host": "a", "bytes": 5, "agent": "?"}
    ]
    assert values_of(plain(HOST, NEW), written(NEW, {"host": "a", "bytes": 5, "agent": "x"}), None) == [
        {"host": "a"},
        None,
    ]


@pytest.mark.parametrize(
    ("writer", "reader", "value", "expected"),
    [
        (
            "long",
            {"type": "long", "logicalType": "timestamp-millis"},
            5,
            datetime.datetime(1970, 1, 1, 0, 0, 0, 5000, datetime.UTC),
        ),
        (
            {"type": "long", "logicalType": "timestamp-millis"},
            {"type": "long", "logicalType": "timestamp-micros"},
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
            datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
        ),
        ("int", {"type": "int", "logicalType": "date"}, 1, datetime.date(1970, 1, 2)),
        (
            "bytes",
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            b"\xff\x85",
            Decimal("-1.23"),
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 5, "scale": 2},
            {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 4},
            Decimal("1.23"),
            Decimal("1.2300"),
        ),
        (
            {"type": "string", "logicalType": "uuid"},
            "string",
            "12345678-1234-5678-1234-567812345678",
            "12345678-1234-5678-1234-567812345678",
        ),
        (
            {"type": "int", "logicalType": "time-millis"},
            {"type": "int", "logicalType": "time-millis"},
            datetime.time(0, 0, 1, 2000),
            1002,
        ),
        ("int", "double", 5, 5.0),
        ("string", ["null", "string"], "x", "x"),
    ],
)
def test_a_logical_type_that_came_or_went_changes_no_value(
    writer: Schema, reader: Schema, value: Any, expected: Any
) -> None:
    assert values_of(plain(reader, writer), written(writer, value)) == [expected]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the bytes end before the record does"),
        (written(OLD, {"host": "a", "bytes": 5})[:-1], "the bytes end before the record does"),
        (written(OLD, {"host": "a", "bytes": 5}) + b"\0", "1 bytes are left over after the record"),
        (b"\x02\xff\x00", "'utf-8' codec can't decode"),
        (
            written(OLD, {"host": "a", "bytes": 5}, schema_id=7),
            "it begins as Confluent's wire format does: set schemaRegistry.url",
        ),
    ],
)
def test_what_is_not_the_record_is_rescued_with_the_reason(data: bytes, reason: str) -> None:
    ((first, second),) = (read(plain(OLD), data, written(OLD, {"host": "b", "bytes": 1})),)
    assert first["value"] is None
    assert first["rescued"]["value"] == data
    assert reason in first["rescued"]["reason"]
    assert (second["value"]["host"], second["rescued"]) == ("b", None)


def test_a_registry_says_how_each_value_was_written(registry: FakeRegistry) -> None:
    old = registry.register("visits-value", OLD)
    new = registry.register("visits-value", NEW)
    data = [
        written(OLD, {"host": "a", "bytes": 1}, old),
        written(NEW, {"host": "b", "bytes": 2, "agent": "x"}, new),
    ] * 3
    rows = values_of(framed(registry), *data)
    assert rows == [{"host": "a", "bytes": 1, "agent": "?"}, {"host": "b", "bytes": 2, "agent": "x"}] * 3
    asked = [path for path in registry.asked if "/ids/" in path]
    assert len(asked) == len(set(asked)) <= 2


def test_the_readers_schema_may_be_given_or_come_of_another_subject(registry: FakeRegistry) -> None:
    number = registry.register("other", NEW)
    data = written(NEW, {"host": "b", "bytes": 2, "agent": "x"}, number)
    assert values_of(framed(registry, valueSchema=json.dumps(HOST)), data) == [{"host": "b"}]
    assert values_of(framed(registry, valueSubject="other"), data)[0]["agent"] == "x"


def test_schemas_may_refer_to_others(registry: FakeRegistry) -> None:
    registry.register(
        "place", {"type": "record", "name": "Place", "fields": [{"name": "city", "type": "string"}]}
    )
    whole = {"type": "record", "name": "V", "fields": [{"name": "at", "type": "Place"}]}
    number = registry.register("visits-value", whole, [{"name": "Place", "subject": "place", "version": 1}])
    layout = framed(registry)
    assert values_of(layout, b"\0" + number.to_bytes(4, "big") + b"\x08Oslo") == [{"at": {"city": "Oslo"}}]


def test_what_the_registry_does_not_know_is_rescued(registry: FakeRegistry) -> None:
    number = registry.register("visits-value", OLD)
    proto = registry.register("other", "message", kind="PROTOBUF")
    incompatible = registry.register(
        "third", {"type": "record", "name": "Visit", "fields": [{"name": "x", "type": "int"}]}
    )
    rows = read(
        framed(registry),
        written(OLD, {"host": "a", "bytes": 1}, 999),
        written(OLD, {"host": "a", "bytes": 1}, proto),
        b"\0" + incompatible.to_bytes(4, "big") + b"\x02",
        b"plain",
        written(OLD, {"host": "a", "bytes": 1}, number),
    )
    reasons = [row["rescued"] and row["rescued"]["reason"] for row in rows]
    assert reasons[0] == "value: schema id 999 is not in the Schema Registry"
    assert reasons[1] == f"value: schema id {proto} is PROTOBUF in the Schema Registry, not AVRO"
    assert "No default value for" in reasons[2]
    assert reasons[3] is not None
    assert "not in Confluent's wire format" in reasons[3]
    assert rows[4]["value"] == {"host": "a", "bytes": 1}


def test_a_registry_may_want_a_password(registry: FakeRegistry) -> None:
    registry.register("visits-value", OLD)
    registry.user_info = "me:secret"
    with pytest.raises(RegistryFailed, match=r"check basic\.auth\.user\.info"):
        framed(registry).resolved()
    assert (
        framed(registry, **{"schemaRegistry.basic.auth.user.info": "me:secret"}).resolved().value.reader
        is not None
    )


def test_planning_says_what_the_registry_lacks(registry: FakeRegistry) -> None:
    with pytest.raises(
        ConfigError,
        match=r"valueSubject: the subject visits-value is not in the Schema Registry; set valueSubject",
    ):
        framed(registry).resolved()
    registry.register("visits-value", ["int", "string"])
    with pytest.raises(
        ConfigError,
        match=r"the schema of visits-value: the schema: a union of int, string has no type in columns",
    ):
        framed(registry).resolved()
    with pytest.raises(ConfigError, match=r"settings of the Schema Registry: .*nonsense"):
        framed(registry, **{"schemaRegistry.nonsense": "1"}).resolved()


def test_a_registry_that_is_away_fails_the_task_and_rescues_nothing(registry: FakeRegistry) -> None:
    layout = framed(registry, valueSchema=json.dumps(OLD))
    registry.user_info = "me:secret"
    with pytest.raises(RegistryFailed):
        read(layout, written(OLD, {"host": "a", "bytes": 1}, 1))


def test_nobody_at_the_url_is_told_with_the_url() -> None:
    with schema_registry() as gone:
        layout = framed(gone)
    with pytest.raises(
        RegistryFailed,
        match=r"the Schema Registry at http://127\.0\.0\.1:\d+ gave no answer about the subject visits-value",
    ):
        layout.resolved()
