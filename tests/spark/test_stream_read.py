"""Streaming queries of the source in Spark itself: what only Spark can show."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import fairlead_kafka
from fairlead_kafka.spark.progress import ProgressListener, source_progress
from fairlead_kafka.spark.session import WORKER_VARIABLES
from fairlead_kafka.spark.versions import Feature, has
from tests.support.spark_workers import until_workers_start

NewTopic = Callable[..., str]
needs_limits = pytest.mark.skipif(not has(Feature.LIMITS), reason="this Spark has no limits")
needs_filters = pytest.mark.skipif(not has(Feature.FILTERS), reason="this Spark passes no filters")
LIMIT: dict[str, object] = {"maxBytesPerTrigger": "1m"} if has(Feature.LIMITS) else {}


def test_what_each_stream_sets_for_its_workers_is_there_before_two_of_them_set_it_at_once(spark: Any) -> None:
    source = spark._jsparkSession.sessionState().dataSourceManager().lookupDataSource("fairlead")
    of_another_session = (
        spark.newSession()._jsparkSession.sessionState().dataSourceManager().lookupDataSource("fairlead")
    )
    for found in (source, of_another_session):
        assert set(WORKER_VARIABLES) <= set(found.dataSourceCls().envVars())


@pytest.fixture
def send(servers: str) -> Callable[..., None]:
    """`send(topic, 3, 5)`: so many records to partition 0, 1, …"""

    def to(topic: str, *counts: int) -> None:
        with fairlead_kafka.Producer({"bootstrap.servers": servers}) as producer:
            for partition, count in enumerate(counts):
                for number in range(count):
                    producer.send(topic, b"%d-%d" % (partition, number), partition=partition)

    return to


@pytest.fixture
def run(spark: Any, servers: str, tmp_path: Path) -> Callable[..., Any]:
    """`run(maxOffsetsPerTrigger=…)`: a query with these options that reads what is there and ends;
    its rows are in the list given."""

    def to_the_end(found: list[str], **options: object) -> Any:
        reader = spark.readStream.format("fairlead").option("kafka.bootstrap.servers", servers)
        for name, value in options.items():
            reader = reader.option(name, value)

        def keep(frame: Any, batch_id: int) -> None:
            found.extend(row.value for row in frame.selectExpr("CAST(value AS STRING) AS value").collect())

        query = (
            reader.load()
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .foreachBatch(keep)
        )

        def complete() -> Any:
            running = query.trigger(availableNow=True).start()
            running.awaitTermination()
            return running

        return until_workers_start(complete)

    return to_the_end


def offset_log(checkpoint: Path) -> list[str]:
    """What the checkpoint says of the source, by micro-batch."""
    logs = sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [path.read_text().splitlines()[-1] for path in logs]


@needs_limits
def test_a_query_reads_on_where_its_checkpoint_says(
    run: Any, send: Any, new_topic: NewTopic, tmp_path: Path, servers: str
) -> None:
    """Limits are kept, the checkpoint has the connector's offsets, one of its own is taken over,
    and the group shows what is processed."""
    topic = new_topic(partitions=2)
    send(topic, 3, 1)
    options = {
        "subscribe": topic,
        "maxOffsetsPerTrigger": 2,
        "kafka.group.id": f"{topic}-group",
        "commitOffsets": "true",
    }
    found: list[str] = []
    first = run(found, startingOffsets="earliest", **options)
    assert sorted(found) == ["0-0", "0-1", "0-2", "1-0"]
    log = offset_log(tmp_path / "checkpoint")
    assert [json.loads(one) for one in log] == [{topic: {"0": 1, "1": 1}}, {topic: {"0": 3, "1": 1}}]
    assert [source_progress(one)[0].metrics["maxOffsetsBehindLatest"] for one in first.recentProgress] == [
        "2",
        "0",
    ]
    with fairlead_kafka.Admin({"bootstrap.servers": servers}) as admin:
        committed = admin.list_group_offsets([f"{topic}-group"])[f"{topic}-group"]
    assert {partition.partition: told.offset for partition, told in committed.items()} == {0: 3, 1: 1}
    last = tmp_path / "checkpoint" / "offsets" / "1"  # as Spark's connector writes it
    last.write_text(last.read_text().replace(log[-1], log[-1].replace(" ", "")))
    (last.parent / ".1.crc").unlink()
    send(topic, 0, 2)
    found.clear()
    run(found, **options)
    assert sorted(found) == ["1-0", "1-1"]


def test_a_query_from_latest_begins_where_it_was_started(
    run: Any, send: Any, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(partitions=1)
    send(topic, 3)
    found: list[str] = []
    run(found, subscribe=topic, **LIMIT)
    assert found == []
    assert [json.loads(one) for one in offset_log(tmp_path / "checkpoint")] == [{topic: {"0": 3}}]
    send(topic, 2)
    run(found, subscribe=topic, **LIMIT)
    assert found == ["0-0", "0-1"]


EVENTS_MS = 100_000
"""Milliseconds that Spark's listeners are waited for; its own default is 10 s."""
DOCUMENTED = set(
    re.findall(
        r"`(kafka_\w+)`",
        (Path(__file__).parents[2] / "docs" / "reference" / "metrics.md").read_text(encoding="utf-8"),
    )
)


@needs_limits
def test_a_listener_follows_the_queries_of_a_session(
    spark: Any, run: Any, cluster: Any, new_topic: NewTopic
) -> None:
    """And is on one page with the clients and the cluster; each name of it is in the documents."""
    topic = new_topic(partitions=1)
    told: list[Any] = []
    registry = CollectorRegistry()
    listener = ProgressListener(tell=told.append)
    bus = spark.sparkContext._jsc.sc().listenerBus()
    bus.waitUntilEmpty(EVENTS_MS)  # of events of earlier tests' queries
    spark.streams.addListener(listener)
    servers = {"bootstrap.servers": cluster.bootstrap_servers}
    try:
        with (
            fairlead_kafka.Producer({**servers, "client.id": "shop"}) as producer,
            fairlead_kafka.Consumer({**servers, "client.id": "desk"}) as consumer,
        ):
            registry.register(fairlead_kafka.PrometheusCollector(producer, consumer, listener, cluster))
            for _ in range(4):
                producer.send(topic, b"v", partition=0)
            producer.flush()
            consumer.assign([(topic, 0)])
            run([], subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger=3)
            bus.waitUntilEmpty(EVENTS_MS)
            page = generate_latest(registry).decode()
    finally:
        spark.streams.removeListener(listener)
    assert [(one.rows, sum(one.lag.values())) for one in told] == [(3, 1), (1, 0)]
    (values,) = listener.metrics()["spark-stream-metrics"].values()
    assert (values["micro-batches-total"], values["rows-total"]) == (2, 4)
    assert values["micro-batch-time-ms-total"] > 0
    assert math.isnan(values["lag"]), "the query has ended"
    for line in (
        r'kafka_spark_stream_rows_total\{.*source="0"\} 4\.0',
        r'kafka_producer_record_delivered_total\{client_id="shop"\} 4\.0',
        r'kafka_consumer_connection_count\{client_id="desk"\} .*',
        r"kafka_cluster_active_broker_count\{.*\} 2\.0",
    ):
        assert re.search(f"^{line}$", page, re.MULTILINE), line
    exported = set(re.findall(r"^(kafka_\w+)\{", page, re.MULTILINE))
    assert exported <= DOCUMENTED


@needs_filters
def test_filters_narrow_what_is_read(read: Any, send: Any, new_topic: NewTopic) -> None:
    topic = new_topic(partitions=3)
    send(topic, 10, 10, 10)
    frame = read(subscribe=topic).where("partition = 1 AND offset >= 4 AND timestamp > timestamp_millis(0)")
    assert frame.rdd.getNumPartitions() == 1
    assert sorted(row.offset for row in frame.collect()) == [4, 5, 6, 7, 8, 9]


def test_filters_are_left_to_spark_where_it_gives_none(
    spark: Any, read: Any, send: Any, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=3)
    send(topic, 5, 5, 5)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "false")
    try:
        assert read(subscribe=topic).where("partition = 1 AND offset >= 4").count() == 1
    finally:
        spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
