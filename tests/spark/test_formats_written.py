"""Frames written in formats and read again, and dead letters of both directions, through Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka import Producer
from tests.support.protobuf_messages import VISIT, descriptor_set
from tests.support.schema_registry import schema_registry

Read = Callable[..., Any]
NewTopic = Callable[..., str]
ROWS = 3_000
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Row",
        "fields": [
            {"name": "n", "type": "long"},
            {"name": "text", "type": ["null", "string"]},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-micros"}},
            {"name": "tags", "type": {"type": "map", "values": "string"}},
        ],
    }
)


def rows_of(spark: Any) -> Any:
    return spark.range(ROWS).selectExpr(
        "cast(id AS string) AS key",
        "named_struct('n', id, 'text', if(id % 3 = 0, null, concat('ä', id)), 'at', timestamp_millis(id), "
        "'tags', map('k', cast(id AS string))) AS value",
    )


def save(frame: Any, servers: str, **options: str) -> None:
    frame.write.format("fairlead").mode("append").options(
        **{"kafka.bootstrap.servers": servers, **options}
    ).save()


def sorted_values(frame: Any) -> list[Any]:
    return sorted((row.value.asDict(recursive=True) for row in frame.collect()), key=lambda value: value["n"])


def test_avro_json_and_protobuf_are_written_and_read_again(
    spark: Any, read: Read, new_topic: NewTopic, servers: str, tmp_path: Path
) -> None:
    pytest.importorskip("confluent_kafka.schema_registry")
    frame = rows_of(spark)
    expected = sorted_values(frame)
    with schema_registry() as registry:
        for guarantee in ("at-least-once", "exactly-once"):
            topic = new_topic()
            options = {"valueFormat": "avro", "valueSchema": AVRO, "schemaRegistry.url": registry.url}
            save(frame, servers, topic=topic, deliveryGuarantee=guarantee, **options)
            asked = {"valueFormat": "avro", "schemaRegistry.url": registry.url}
            assert sorted_values(read(subscribe=topic, **asked)) == expected
    topic = new_topic()
    save(frame, servers, topic=topic, valueFormat="json", keyFormat="string")
    ddl = "n BIGINT, text STRING, at TIMESTAMP, tags MAP<STRING, STRING>"
    assert sorted_values(read(subscribe=topic, valueFormat="json", valueSchema=ddl)) == expected
    topic = new_topic()
    file = tmp_path / "visit.desc"
    file.write_bytes(descriptor_set(VISIT))
    protobuf = {"valueFormat": "protobuf", "valueDescriptor": str(file), "valueMessage": "shop.Visit.Inner"}
    inner = spark.range(ROWS).selectExpr(
        "named_struct('x', cast(id AS int), 'deeper', named_struct('x', 7), 'text', cast(id AS "
        "string)) AS value"
    )
    save(inner, servers, topic=topic, **protobuf)
    back = {
        row.value.x: (row.value.deeper.x, row.value.text)
        for row in read(subscribe=topic, **protobuf).collect()
    }
    assert back == {n: (7, str(n)) for n in range(ROWS)}


def test_what_does_not_parse_or_cannot_be_written_is_a_dead_letter(
    spark: Any, read: Read, new_topic: NewTopic, servers: str
) -> None:
    topic, dead = new_topic(), new_topic()
    with Producer({"bootstrap.servers": servers}) as producer:
        for n in range(10):
            producer.send(topic, b"nope" if n == 4 else json.dumps({"n": n}).encode(), key=b"k%d" % n)
    frame = read(subscribe=topic, valueFormat="json", valueSchema="n INT", deadLetterTopic=dead)
    assert "rescued" not in frame.columns
    assert sorted(row.value.n for row in frame.collect()) == [0, 1, 2, 3, 5, 6, 7, 8, 9]
    (letter,) = read(subscribe=dead, includeHeaders="true").collect()
    headers = {header.key: bytes(header.value).decode() for header in letter.headers}
    assert (bytes(letter.key), bytes(letter.value)) == (b"k4", b"nope")
    assert headers["__connect.errors.topic"] == topic
    assert headers["__connect.errors.partition"] in "0123456789"
    assert headers["__connect.errors.offset"].isdigit()
    assert headers["__connect.errors.exception.message"].startswith("value: ")

    fine, more = new_topic(), new_topic()
    schema = json.dumps({"type": "record", "name": "V", "fields": [{"name": "n", "type": "long"}]})
    numbers = spark.range(10).selectExpr("named_struct('n', if(id = 4, null, id)) AS value")
    save(numbers, servers, topic=fine, valueFormat="avro", valueSchema=schema, deadLetterTopic=more)
    assert read(subscribe=fine).count() == 9
    (letter,) = read(subscribe=more, includeHeaders="true").collect()
    assert bytes(letter.value) == b'{"n":null}'
    with pytest.raises(Exception, match=r"1 rows of a batch for topic .* cannot be written"):
        save(numbers, servers, topic=fine, valueFormat="avro", valueSchema=schema)
