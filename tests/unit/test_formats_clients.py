"""Serializers and deserializers of the clients: objects in, objects out, record by record and in
tables, and what becomes of what does not parse."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from functools import partial, wraps
from typing import Any

import pyarrow as pa
import pytest

import fairlead_kafka as fk
from fairlead_kafka.formats import (
    AvroDeserializer,
    AvroSerializer,
    JsonDeserializer,
    JsonSerializer,
    RegistryFailed,
    SerializationContext,
    StringSerializer,
)
from tests.support.schema_registry import FakeRegistry, schema_registry

VISIT = json.dumps(
    {
        "type": "record",
        "name": "Visit",
        "namespace": "shop",
        "fields": [{"name": "host", "type": "string"}, {"name": "n", "type": "int"}],
    }
)
VISITS = [{"host": f"h{n}", "n": n} for n in range(5)]
TYPE = pa.struct([pa.field("host", pa.string()), pa.field("n", pa.int32())])


@pytest.fixture(scope="module")
def cluster() -> Iterator[fk.Cluster]:
    with fk.Cluster() as running:
        yield running


@pytest.fixture
def registry() -> Iterator[FakeRegistry]:
    with schema_registry() as running:
        yield running


@pytest.fixture
def topic(cluster: fk.Cluster, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "-").replace("]", "")
    with fk.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        admin.create_topics([fk.NewTopic(name, partitions=1)])
    return str(name)


def producing(cluster: fk.Cluster, **config: Any) -> fk.Producer:
    given = {name.replace("_", "."): value for name, value in config.items()}
    return fk.Producer({"bootstrap.servers": cluster.bootstrap_servers, **given})


def consuming(cluster: fk.Cluster, topic: str, **config: Any) -> fk.Consumer:
    given = {name.replace("_", "."): value for name, value in config.items()}
    consumer = fk.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "auto.offset.reset": "earliest", **given}
    )
    consumer.assign([fk.TopicPartition(topic, 0)])
    return consumer


def polled(consumer: fk.Consumer, count: int) -> list[fk.Record]:
    """So many records, in as many polls as it takes."""
    records: list[fk.Record] = []
    while len(records) < count:
        records += consumer.poll(5)
    return records


def asked(registry: FakeRegistry) -> dict[str, Any]:
    return {"url": registry.url, "max.retries": 0, "timeout": 5}


def test_objects_go_in_and_come_out(cluster: fk.Cluster, topic: str, registry: FakeRegistry) -> None:
    serializer = AvroSerializer(asked(registry), VISIT)
    with producing(cluster, key_serializer="string", value_serializer=serializer) as producer:
        for visit in VISITS:
            producer.send(topic, visit, key=visit["host"])
        producer.send(topic, None, key="gone")
    deserializer = AvroDeserializer(asked(registry))
    with consuming(cluster, topic, key_deserializer="string", value_deserializer=deserializer) as consumer:
        records = polled(consumer, 6)
    assert [record.value for record in records] == [*VISITS, None]
    assert [record.key for record in records] == [*(visit["host"] for visit in VISITS), "gone"]
    assert registry.asked.count("/subjects/" + topic + "-value/versions") == 1


def test_tables_go_in_and_come_out(cluster: fk.Cluster, topic: str, registry: FakeRegistry) -> None:
    with producing(cluster, value_serializer=AvroSerializer(asked(registry), VISIT)) as producer:
        assert producer.send_table(topic, pa.Table.from_pylist(VISITS)).result().num_rows == 5
        keyed = pa.table({"key": ["k"], "value": pa.array([VISITS[0]], TYPE)})
        producer.send_table(topic, keyed).result()
    with consuming(cluster, topic, value_deserializer=AvroDeserializer(asked(registry))) as consumer:
        table = consumer.poll_table(5)
        assert table.schema.field("value").type == AvroDeserializer(None, VISIT)._fixed.arrow_type()  # type: ignore[union-attr]
        assert table.column("value").to_pylist() == [*VISITS, VISITS[0]]
        assert table.column("rescued").null_count == 6
        empty = consumer.poll_table(0)
        assert (empty.num_rows, empty.column_names) == (0, table.column_names)
        consumer.seek_to_beginning()
        assert consumer.poll_table(5, columns=["value"]).column_names == ["value"]
        consumer.seek_to_beginning()
        partition = fk.TopicPartition(topic, 0)
        (read,) = consumer.read_range(partition, 0, 6, columns=["offset", "rescued"])
        assert read.column_names == ["offset", "rescued"]


def test_rows_that_do_not_parse_are_kept_beside(cluster: fk.Cluster, topic: str) -> None:
    with producing(cluster) as producer:
        for value in (b'{"host": "a", "n": 1}', b"\xff", None, b'{"n": "x"}', b'{"host": "b", "n": 2}'):
            producer.send(topic, value, key=b"k")
    with consuming(cluster, topic, value_deserializer=JsonDeserializer(TYPE)) as consumer:
        table = consumer.poll_table(5, columns=["offset", "value", "rescued"])
    rows = table.to_pylist()
    assert [row["value"] for row in rows] == [{"host": "a", "n": 1}, None, None, None, {"host": "b", "n": 2}]
    assert [row["rescued"] is None for row in rows] == [True, False, True, False, True]
    assert rows[1]["rescued"]["value"] == b"\xff"
    assert rows[3]["rescued"]["reason"] == 'value: n: "x" is not a whole number of 32 bits'


def test_a_poll_ends_before_a_record_that_does_not_parse(cluster: fk.Cluster, topic: str) -> None:
    with producing(cluster) as producer:
        for value in (b"1", b"2", b"nonsense", b"4"):
            producer.send(topic, value)
    partition = fk.TopicPartition(topic, 0)
    with consuming(cluster, topic, value_deserializer="json") as consumer:
        assert [record.value for record in polled(consumer, 2)] == [1, 2]
        assert consumer.position(partition) == 2
        for _ in range(2):
            with pytest.raises(fk.DeserializationFailed, match=r"offset 2: value: .*seek past it") as failed:
                consumer.poll(5)
        assert (failed.value.partition, failed.value.offset) == (partition, 2)
        assert (failed.value.field, failed.value.data) == ("value", b"nonsense")
        consumer.seek(partition, failed.value.offset + 1)
        assert [record.value for record in consumer.poll(5)] == [4]


def test_an_iteration_gives_objects(cluster: fk.Cluster, topic: str) -> None:
    with producing(cluster, value_serializer=JsonSerializer()) as producer:
        producer.send(topic, [1, "two"])
    with consuming(cluster, topic, value_deserializer="json") as consumer:
        assert next(iter(consumer)).value == [1, "two"]


def test_no_record_is_lost_while_the_registry_is_away(
    cluster: fk.Cluster, topic: str, registry: FakeRegistry
) -> None:
    with producing(cluster, value_serializer=AvroSerializer(asked(registry), VISIT)) as producer:
        producer.send_table(topic, pa.Table.from_pylist(VISITS)).result()
    registry.user_info = "somebody:else"
    with consuming(cluster, topic, value_deserializer=AvroDeserializer(asked(registry), VISIT)) as consumer:
        for poll in (consumer.poll, consumer.poll_table, consumer.poll):
            with pytest.raises(RegistryFailed):
                poll(5)
        registry.user_info = None
        assert consumer.poll_table(5).num_rows == 5


def test_a_row_that_cannot_be_written_sends_no_row(cluster: fk.Cluster, topic: str) -> None:
    serializer = AvroSerializer(None, VISIT)
    with producing(cluster, value_serializer=serializer) as producer:
        table = pa.table({"host": ["a", None], "n": pa.array([1, 2], pa.int32())})
        with pytest.raises(
            fk.InvalidRecord, match="1 rows of the table cannot be written, none was sent; row 1:"
        ):
            producer.send_table(topic, table)
        with pytest.raises(fk.InvalidRecord, match=r"value\.serializer, topic "):
            producer.send(topic, {"host": "a"})
        with pytest.raises(fk.InvalidRecord, match="neither a column value nor fields"):
            producer.send_table(topic, pa.table({"key": ["a"]}))
    with consuming(cluster, topic) as consumer:
        assert consumer.end_offsets([fk.TopicPartition(topic, 0)]) == {fk.TopicPartition(topic, 0): 0}


def test_interceptors_see_objects(cluster: fk.Cluster, topic: str) -> None:
    seen: list[object] = []

    class Seeing(fk.ProducerInterceptor, fk.ConsumerInterceptor):
        def on_send(self, record: fk.ProducerRecord) -> fk.ProducerRecord:
            seen.append(record.value)
            return record._replace(value={"n": 2})

        def on_consume(self, records: list[fk.Record]) -> list[fk.Record]:
            seen.extend(record.value for record in records)
            return records

    with producing(cluster, value_serializer="json", interceptor_classes=[Seeing()]) as producer:
        producer.send(topic, {"n": 1})
    with consuming(cluster, topic, value_deserializer="json", interceptor_classes=[Seeing()]) as consumer:
        assert consumer.poll(5)[0].value == {"n": 2}
    assert seen == [{"n": 1}, {"n": 2}]


def test_awaiting_clients_have_them_too(cluster: fk.Cluster, topic: str) -> None:
    async def there_and_back() -> list[Any]:
        servers = {"bootstrap.servers": cluster.bootstrap_servers}
        async with fk.AsyncProducer({**servers, "value.serializer": "json"}) as producer:
            await producer.send(topic, {"n": 1}, headers=[("a", b"b")])
        settings = {"value.deserializer": "json", "auto.offset.reset": "earliest"}
        async with fk.AsyncConsumer({**servers, **settings}) as consumer:
            await consumer.assign([fk.TopicPartition(topic, 0)])
            async for record in consumer:
                return [record.value, record.headers]
        return []

    assert asyncio.run(there_and_back()) == [{"n": 1}, (("a", b"b"),)]


def test_confluent_s_serializers_are_taken_and_read_what_ours_write(
    cluster: fk.Cluster, topic: str, registry: FakeRegistry
) -> None:
    from confluent_kafka.schema_registry import SchemaRegistryClient, header_schema_id_serializer
    from confluent_kafka.schema_registry.avro import AvroDeserializer as TheirDeserializer
    from confluent_kafka.schema_registry.avro import AvroSerializer as TheirSerializer

    visit = {"host": "longer.example.com", "n": 1}  # theirs takes nothing shorter than a prefix
    client = SchemaRegistryClient(asked(registry))
    in_header = {"schema.id.location": "header"}
    serializers = [
        TheirSerializer(client, VISIT),
        TheirSerializer(client, VISIT, conf={"schema.id.serializer": header_schema_id_serializer}),
        AvroSerializer(asked(registry), VISIT),
        AvroSerializer(asked(registry), VISIT, conf=in_header),
    ]
    for serializer in serializers:
        with producing(cluster, value_serializer=serializer) as producer:
            producer.send(topic, visit)
    with consuming(cluster, topic) as consumer:
        bytes_read = polled(consumer, 4)
    assert bytes_read[0].value == bytes_read[2].value
    assert (bytes_read[1].value, bytes_read[1].headers) == (bytes_read[3].value, bytes_read[3].headers)
    for deserializer in (TheirDeserializer(client, VISIT), AvroDeserializer(client)):
        with consuming(cluster, topic, value_deserializer=deserializer) as consumer:
            assert [record.value for record in polled(consumer, 4)] == [visit] * 4
    client.close()


def three(indent: int, value: object, context: object) -> bytes:
    return json.dumps(value, indent=indent).encode()


@wraps(json.dumps)
def wrapped(value: object, context: object) -> bytes:
    return json.dumps(value).encode()


def test_what_is_no_serializer_is_refused() -> None:
    for given, said in (
        ("avro", "must be a function or one of bytes, string"),
        (StringSerializer, "give an object of StringSerializer"),
        (7, "must be a function"),
        (json.dumps, "is called with a value and a SerializationContext, and dumps does not take two"),
    ):
        with pytest.raises(fk.ConfigError, match=rf"value\.serializer: {said}"):
            fk.Producer({"bootstrap.servers": "localhost:1", "value.serializer": given})
    for fine in (wrapped, partial(three, 1), str.encode):
        with fk.Producer({"bootstrap.servers": "localhost:1", "value.serializer": fine}) as producer:
            producer.close(0)
    java = "org.apache.kafka.common.serialization.StringSerializer"
    with fk.Producer({"bootstrap.servers": "localhost:1", "key.serializer": java}) as producer:
        producer.close(0)


def test_a_function_takes_single_records_only(cluster: fk.Cluster, topic: str) -> None:
    def shout(value: str, context: SerializationContext) -> bytes:
        return f"{context.topic}/{context.field}: {value.upper()}".encode()

    with producing(cluster, value_serializer=shout) as producer:
        producer.send(topic, "hear")
        with pytest.raises(fk.InvalidRecord, match="takes single records only"):
            producer.send_table(topic, pa.table({"value": ["hear"]}))
    with consuming(cluster, topic, value_deserializer=lambda data, context: data.decode()) as consumer:
        assert consumer.poll(5)[0].value == f"{topic}/value: HEAR"
        consumer.seek_to_beginning()
        with pytest.raises(fk.UsageError, match="gives single records only"):
            consumer.poll_table(5)
