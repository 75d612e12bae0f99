"""Formats and pruned columns in Spark: the types that a job sees, rows that do not parse beside
those that do, and the way back."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import fastavro
import pyarrow as pa
import pytest

from tests.support.schema_registry import schema_registry

Read = Callable[..., Any]
NewTopic = Callable[..., str]
ROWS = 40
BAD = b'{"n": "not a number"}\xff'
AVRO = {
    "type": "record",
    "name": "Visit",
    "fields": [
        {"name": "n", "type": "int"},
        {"name": "host", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "tags", "type": {"type": "map", "values": "string"}},
    ],
}


def topic_of(new_topic: NewTopic, values: list[bytes | None]) -> str:
    """A topic with these values, some bad ones, and a tombstone."""
    every = [*values, BAD, None, BAD]
    keys = [b"k%d" % number for number in range(len(values))] + [b"\xff", b"tombstone", b"bad"]
    return new_topic(
        partitions=2, table=pa.table({"key": pa.array(keys), "value": pa.array(every, pa.binary())})
    )


def avro(number: int, framing: bytes = b"") -> bytes:
    stream = io.BytesIO(framing)
    stream.seek(len(framing))
    row = {
        "n": number,
        "host": None if number % 3 == 0 else f"h{number}",
        "at": 1_000 * number,
        "tags": {"a": str(number)},
    }
    fastavro.schemaless_writer(stream, fastavro.parse_schema(json.loads(json.dumps(AVRO))), row)
    return stream.getvalue()


def check_rows(frame: Any) -> None:
    """The sound rows by their fields, the bad ones by their bytes, and the tombstone."""
    fields = ("value.n", "value.host", "unix_millis(value.at) AS ms", "value.tags['a'] AS tag")
    rows = frame.selectExpr(
        *fields, "value IS NULL AS empty", "rescued.value AS bytes", "rescued.reason"
    ).collect()
    sound = {(row.n, row.host, row.ms, row.tag) for row in rows if not row.empty and row.bytes is None}
    assert sound == {
        (number, None if number % 3 == 0 else f"h{number}", 1_000 * number, str(number))
        for number in range(ROWS)
    }
    bad = [(row.empty, bytes(row.bytes), row.reason[:6]) for row in rows if row.bytes is not None]
    assert bad == [(True, BAD, "value:")] * 2
    assert [(row.empty, row.reason) for row in rows if row.empty and row.bytes is None] == [(True, None)]


def test_json_is_read_into_the_schemas_columns(read: Read, new_topic: NewTopic) -> None:
    rows = [
        {
            "n": n,
            "at": f"1970-01-01T00:00:{n:02}Z",
            "tags": {"a": str(n)},
            **({"host": f"h{n}"} if n % 3 else {}),
        }
        for n in range(ROWS)
    ]
    topic = topic_of(new_topic, [json.dumps(row).encode() for row in rows])
    check_rows(
        read(
            subscribe=topic,
            valueFormat="json",
            valueSchema="n INT NOT NULL, host STRING, at TIMESTAMP, tags MAP<STRING, STRING>",
        )
    )
    pruned = read(
        subscribe=topic,
        valueFormat="json",
        valueSchema="n INT NOT NULL, o STRUCT<x: INT NOT NULL>",
        columns="value",
    )
    assert pruned.columns == ["value"]
    rows = pruned.selectExpr("value.n", "value.o.x").collect()
    assert sorted(row.n for row in rows if row.n is not None) == list(range(ROWS))
    assert [row.x for row in rows] == [None] * (ROWS + 3)


def test_avro_is_read_with_a_schema_or_a_registry(read: Read, new_topic: NewTopic) -> None:
    pytest.importorskip("confluent_kafka.schema_registry")
    check_rows(
        read(
            subscribe=topic_of(new_topic, [avro(n) for n in range(ROWS)]),
            valueFormat="avro",
            valueSchema=json.dumps(AVRO),
        )
    )
    with schema_registry() as registry:
        number = registry.register("visits-value", AVRO)
        topic = topic_of(new_topic, [avro(n, b"\0" + number.to_bytes(4, "big")) for n in range(ROWS)])
        options = {"schemaRegistry.url": registry.url, "valueSubject": "visits-value"}
        check_rows(read(subscribe=topic, valueFormat="avro", **options))


def test_text_is_read_and_what_is_none_is_rescued(read: Read, new_topic: NewTopic) -> None:
    topic = topic_of(new_topic, [f"é{n}".encode() for n in range(ROWS)])
    rows = read(subscribe=topic, valueFormat="string", keyFormat="string").collect()
    assert {row.value for row in rows if row.rescued is None} == {None, *(f"é{n}" for n in range(ROWS))}
    both = next(row for row in rows if row.rescued is not None and row.rescued.key is not None)
    assert (both.key, both.value, bytes(both.rescued.key), bytes(both.rescued.value)) == (
        None,
        None,
        b"\xff",
        BAD,
    )
    assert both.rescued.reason.startswith("key: not UTF-8: ")
    assert "; value: not UTF-8: " in both.rescued.reason


def test_what_was_decoded_can_be_written_back(read: Read, new_topic: NewTopic, servers: str) -> None:
    first = topic_of(new_topic, [json.dumps({"n": n}).encode() for n in range(ROWS)])
    second = new_topic()
    options = {
        "valueFormat": "json",
        "valueSchema": "n INT",
        "keyFormat": "string",
        "columns": "key,value,rescued",
    }
    frame = read(subscribe=first, **options).selectExpr(
        "key", "coalesce(to_json(value), rescued.value) AS value"
    )
    frame.write.format("fairlead").mode("append").option("kafka.bootstrap.servers", servers).option(
        "topic", second
    ).save()
    again = read(subscribe=second, **options)
    assert {row.n for row in again.where("value IS NOT NULL").select("value.n").collect()} == set(range(ROWS))
    assert [
        bytes(row.bytes)
        for row in again.where("rescued.value IS NOT NULL").selectExpr("rescued.value AS bytes").collect()
    ] == [BAD] * 2


def test_only_the_columns_asked_for_are_read(read: Read, new_topic: NewTopic) -> None:
    topic = topic_of(new_topic, [b"1", b"2"])
    rows = read(subscribe=topic, columns="Offset,partition").collect()
    assert sorted((row.partition, row.offset) for row in rows)[0] == (0, 0)
    assert len(rows) == 5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"valueFormat": "json"}, "valueSchema: required with valueFormat=json"),
        ({"columns": "valeu"}, "columns: there is no valeu"),
        ({"valueFormat": "avro", "schemaRegistry.url": "nowhere"}, "Schema Registry: Invalid url nowhere"),
    ],
)
def test_a_wrong_format_is_told_before_any_task_runs(read: Read, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        read(subscribe="t", **options).schema  # noqa: B018
