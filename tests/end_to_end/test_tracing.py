"""Spans of sends, polls and processing, as an OTLP collector of the test's receives them."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from fairlead_kafka import (
    Admin,
    AsyncConsumer,
    AsyncProducer,
    AsyncShareConsumer,
    ConfigChange,
    ConfigResource,
    Consumer,
    InvalidRecord,
    Producer,
    ShareConsumer,
    UsageError,
)
from fairlead_kafka.testing import Cluster

pytest.importorskip("opentelemetry.sdk.trace")
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from fairlead_kafka.client.tracing import LINKS_MAX, instrument, processing
from tests.support.otlp import Collector, attributes

GROUP = "readers"


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()
    yield made
    made.close()


def consumer_config(cluster: Cluster) -> dict[str, object]:
    return {
        "bootstrap.servers": cluster.bootstrap_servers,
        "client.id": "desk",
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
    }


def test_a_poll_is_linked_to_the_sends_and_processing_is_their_child(
    cluster: Cluster, collector: Collector
) -> None:
    cluster.create_topic("traced", partitions=1)
    with Producer({"bootstrap.servers": cluster.bootstrap_servers, "client.id": "shop"}) as producer:
        instrument(producer, collector.provider)
        called: list[Any] = []
        producer.send("traced", b"a", headers={"kind": b"order", "traceparent": b"old"})
        producer.send("traced", b"b", on_delivery=lambda metadata, error: called.append(metadata)).result()
        producer.flush()
        assert [metadata.offset for metadata in called] == [1]
    with Consumer(consumer_config(cluster)) as consumer:
        instrument(consumer, collector.provider)
        consumer.assign([("traced", 0)])
        records: list[Any] = []
        while len(records) < 2:
            records += consumer.poll(5)
        assert consumer.poll(0) == [], "and makes no span"
        assert [name for name, _ in records[0].headers] == ["kind", "traceparent"]
        with processing(records[0], consumer, collector.provider):
            pass
    spans = collector.spans()
    sends = [span for span in spans if span.name == "send traced"]
    polls = [span for span in spans if span.name == "poll traced"]
    (process,) = (span for span in spans if span.name == "process traced")
    assert [span.kind for span in sends] == [Span.SPAN_KIND_PRODUCER] * 2
    assert [attributes(span) for span in sends] == [
        {
            "messaging.system": "kafka",
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": "traced",
            "messaging.client.id": "shop",
            "messaging.destination.partition.id": "0",
            "messaging.kafka.offset": offset,
        }
        for offset in (0, 1)
    ]
    links = [(link.trace_id, link.span_id) for poll in polls for link in poll.links]
    assert links == [(span.trace_id, span.span_id) for span in sends]
    assert sum(attributes(span)["messaging.batch.message_count"] for span in polls) == 2
    assert attributes(polls[0]) | {"messaging.batch.message_count": 0} == {
        "messaging.system": "kafka",
        "messaging.operation.name": "poll",
        "messaging.operation.type": "receive",
        "messaging.destination.name": "traced",
        "messaging.client.id": "desk",
        "messaging.consumer.group.name": GROUP,
        "messaging.batch.message_count": 0,
    }
    assert polls[0].kind == process.kind == Span.SPAN_KIND_CONSUMER
    assert (process.trace_id, process.parent_span_id) == (sends[0].trace_id, sends[0].span_id)
    assert attributes(process)["messaging.kafka.offset"] == 0


def test_a_table_has_one_span_and_its_rows_no_headers(cluster: Cluster, collector: Collector) -> None:
    cluster.create_topic("columns", partitions=1)
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer, collector.provider)
        producer.send_table("columns", pa.table({"value": [b"%d" % n for n in range(1000)]})).result()
        producer.send("columns", b"with a context").result()
    for link_tables, linked in ((False, 0), (True, 1)):
        with Consumer({**consumer_config(cluster), "group.id": f"tables-{link_tables}"}) as consumer:
            instrument(consumer, collector.provider, link_tables=link_tables)
            consumer.assign([("columns", 0)])
            tables: list[pa.Table] = []
            while sum(table.num_rows for table in tables) < 1001:
                tables.append(consumer.poll_table(5))
        rows = pa.concat_tables(tables)["headers"].to_pylist()
        assert [len(row or ()) for row in rows] == [0] * 1000 + [1]
        polls = [span for span in collector.spans() if span.name == "poll columns"]
        assert sum(len(span.links) for span in polls) == linked
        assert attributes(polls[0])["messaging.batch.message_count"] >= 1
    sends = [span for span in collector.spans() if span.name == "send columns"]
    assert [attributes(span).get("messaging.batch.message_count") for span in sends] == [1000, None]


def test_async_clients_have_the_same_spans(cluster: Cluster, collector: Collector) -> None:
    cluster.create_topic("async", partitions=1)

    async def main() -> None:
        async with AsyncProducer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            instrument(producer, collector.provider)
            await (await producer.send("async", b"a"))
            await (await producer.send_table("async", pa.table({"value": [b"b", b"c"]})))
            await producer.flush()
        async with AsyncConsumer(consumer_config(cluster)) as consumer:
            instrument(consumer, collector.provider)
            await consumer.assign([("async", 0)])
            read = 0
            while read < 3:
                read += len(await consumer.poll(5))
            await consumer.seek_to_beginning()
            assert (await consumer.poll_table(5)).num_rows >= 1

    asyncio.run(main())
    spans = collector.spans()
    sends = sorted(
        (span for span in spans if span.name == "send async"), key=lambda span: span.start_time_unix_nano
    )
    links = [link.span_id for span in spans if span.name == "poll async" for link in span.links]
    assert len(sends) == 2
    assert links == [sends[0].span_id]


def linked(spans: list[Any], topic: str) -> list[bytes]:
    """Ids of the spans that polls of a topic are linked to."""
    return [link.span_id for span in spans if span.name == f"poll {topic}" for link in span.links]


def send_traced(cluster: Cluster, collector: Collector, topic: str, count: int) -> list[bytes]:
    """Send `count` records; the ids of their spans."""
    cluster.create_topic(topic, partitions=1)
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer, collector.provider)
        for number in range(count):
            producer.send(topic, b"%d" % number)
    return [span.span_id for span in collector.spans() if span.name == f"send {topic}"]


@pytest.mark.parametrize("deserializer", [None, "string"], ids=["blocks", "polls"])
def test_an_iteration_has_a_span_for_each_of_its_polls(
    cluster: Cluster, collector: Collector, deserializer: str | None
) -> None:
    topic = f"iterated-{deserializer}"
    sent = send_traced(cluster, collector, topic, 3)
    config = {**consumer_config(cluster), "max.poll.records": 2, "enable.auto.commit": False}
    if deserializer is not None:
        config["value.deserializer"] = deserializer

    async def read() -> None:
        async with AsyncConsumer(config) as consumer:
            instrument(consumer, collector.provider)
            await consumer.assign([(topic, 0)])
            async for record in consumer:
                if record.offset == 2:
                    return

    with Consumer(config) as consumer:
        instrument(consumer, collector.provider)
        consumer.assign([(topic, 0)])
        read_on = iter(consumer)
        assert [next(read_on).offset for _ in sent] == [0, 1, 2]
        polls = [span for span in collector.spans() if span.name == f"poll {topic}"]
        assert linked(polls, topic) == sent
        assert [attributes(span)["messaging.batch.message_count"] for span in polls] == [2, 1]
    asyncio.run(read())
    assert linked(collector.spans(), topic) == sent * 2


@pytest.fixture
def quick_cluster() -> Iterator[Cluster]:
    """One whose share groups give members their partitions at once."""
    quick = {"group.share.heartbeat.interval.ms": 100, "group.share.min.heartbeat.interval.ms": 100}
    with Cluster(brokers=1, config=quick) as made:
        yield made


def test_share_consumers_have_the_spans_of_consumers(quick_cluster: Cluster, collector: Collector) -> None:
    cluster = quick_cluster
    sent = send_traced(cluster, collector, "shared", 2)
    config = {"bootstrap.servers": cluster.bootstrap_servers, "client.id": "till", "group.id": "sharers"}
    with Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
        start = ConfigChange.set("share.auto.offset.reset", "earliest")
        admin.alter_configs({ConfigResource.group("sharers"): [start]})
    with ShareConsumer(config) as consumer:
        instrument(consumer, collector.provider)
        consumer.subscribe(["shared"])
        records: list[Any] = []
        while len(records) < 2:
            records += consumer.poll(5)
        with processing(records[0], consumer, collector.provider):
            pass
        consumer.commit()
    spans = collector.spans()
    assert linked(spans, "shared") == sent
    (process,) = (span for span in spans if span.name == "process shared")
    assert process.parent_span_id == sent[0]
    for span in (process, next(span for span in spans if span.name == "poll shared")):
        assert attributes(span)["messaging.consumer.group.name"] == "sharers"
        assert attributes(span)["messaging.client.id"] == "till"

    async def main() -> int:
        async with AsyncShareConsumer(config) as consumer:
            instrument(consumer, collector.provider, link_tables=True)
            await consumer.subscribe(["shared"])
            with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
                instrument(producer, collector.provider)
                producer.send("shared", b"more")
            table = await consumer.poll_table(30)
            assert len(linked(collector.spans(), "shared")) == 3
            return int(table.num_rows)

    assert asyncio.run(main()) == 1


def test_a_client_that_is_traced_ends_when_it_is_dropped(cluster: Cluster) -> None:
    consumer = Consumer(consumer_config(cluster))
    instrument(consumer)
    kept = weakref.ref(consumer)
    del consumer
    gc.collect()
    assert kept() is None


def test_what_fails_is_an_error_of_the_span(cluster: Cluster, collector: Collector) -> None:
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer, collector.provider)
        with pytest.raises(InvalidRecord):
            producer.send("failing", 7)
        with pytest.raises(InvalidRecord):
            producer.send("failing", b"a", headers=7)  # type: ignore[arg-type]
        with pytest.raises(InvalidRecord):
            producer.send_table("failing", pa.table({"value": [7]}))
        with pytest.raises(UsageError, match="instrumented already"):
            instrument(producer)
    assert [(span.name, attributes(span)["error.type"], span.status.code) for span in collector.spans()] == [
        ("send failing", "InvalidRecord", 2)
    ] * 3


def test_links_are_bounded(cluster: Cluster, collector: Collector) -> None:
    cluster.create_topic("many", partitions=1)
    count = LINKS_MAX + 50
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer, collector.provider)
        for _ in range(count):
            producer.send("many", b"a")
        producer.flush()
    with Consumer(consumer_config(cluster)) as consumer:
        instrument(consumer, collector.provider)
        consumer.assign([("many", 0)])
        read = 0
        while read < count:
            read += len(consumer.poll(5))
    polls = [span for span in collector.spans() if span.name == "poll many"]
    assert max(len(span.links) for span in polls) <= LINKS_MAX
    assert sum(len(span.links) for span in polls) >= LINKS_MAX


def test_without_a_provider_nothing_is_written_into_headers(cluster: Cluster) -> None:
    cluster.create_topic("off", partitions=1)
    with Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
        instrument(producer)
        producer.send("off", b"a").result()
    with Consumer(consumer_config(cluster)) as consumer:
        consumer.assign([("off", 0)])
        (record,) = consumer.poll(10)
    assert record.headers == ()


def test_clients_load_nothing_of_opentelemetry() -> None:
    program = (
        "import sys, fairlead_kafka as f; f.Producer, f.Consumer, f.AsyncProducer, f.AsyncConsumer; "
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"


def test_only_clients_can_be_instrumented() -> None:
    with pytest.raises(UsageError, match="takes a producer or a consumer"):
        instrument(object())  # type: ignore[arg-type]
