"""Figures from the progress that Spark reports: the connector's metrics, lag, and offsets that gave
no row."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import fairlead_kafka
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.progress import ProgressListener, source_progress

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def report(start: Any, end: Any, latest: Any, rows: int, **more: Any) -> dict[str, Any]:
    """A progress as Spark writes it: offsets as they are in its JSON."""
    source = {
        "description": "PythonMicroBatchStream",
        "startOffset": start,
        "endOffset": end,
        "latestOffset": latest,
        "numInputRows": rows,
    }
    return {"id": "q", "name": None, "batchId": 3, "sources": [source], **more}


def test_the_connectors_metrics_are_worked_out() -> None:
    (figures,) = source_progress(
        report({"t": {"0": 5, "1": 0}}, {"t": {"0": 9, "1": 2}}, {"t": {"0": 20, "1": 3}}, 5)
    )
    assert figures.metrics == {
        "minOffsetsBehindLatest": "1",
        "maxOffsetsBehindLatest": "11",
        "avgOffsetsBehindLatest": "6.0",
    }
    assert figures.lag == {T0: 11, T1: 1}
    assert (figures.offsets, figures.offsets_without_rows) == (6, 1)


def test_a_first_micro_batch_a_new_partition_and_one_that_is_gone() -> None:
    (first,) = source_progress(report(None, {"t": {"0": 9}}, {"t": {"0": 9}}, 4))
    assert (first.offsets, first.offsets_without_rows, first.lag) == (0, 0, {T0: 0})
    (changed,) = source_progress(report({"t": {"0": 9}}, {"t": {"1": 4}}, {"t": {"1": 4}}, 4))
    assert (changed.offsets, changed.partitions_gone) == (4, (T0,))


def test_other_sources_are_passed_over() -> None:
    assert source_progress(report(1, 2, None, 5)) == []
    assert source_progress(report({"t": {"0": 9}}, {"logOffset": 3}, None, 5)) == []
    progress = SimpleNamespace(json=json.dumps(report('{"t":{"0":1}}', '{"t":{"0":2}}', None, 1)))
    assert [one.metrics for one in source_progress(progress)] == [{}]


def test_a_listener_sums_up_and_tells() -> None:
    told: list[Any] = []
    listener = ProgressListener(tell=told.append)
    for start, rows in ((0, 10), (10, 8)):
        progress = SimpleNamespace(
            json=json.dumps(
                report({"t": {"0": start}}, {"t": {"0": start + 10}}, {"t": {"0": 25}}, rows, name="n")
            )
        )
        listener.onQueryProgress(SimpleNamespace(progress=progress))
    totals = listener.totals["n", 0]
    assert (totals.micro_batches, totals.rows, totals.offsets, totals.offsets_without_rows, totals.lag) == (
        2,
        18,
        20,
        2,
        5,
    )
    assert [one.metrics["maxOffsetsBehindLatest"] for one in told] == ["15", "5"]
    assert told[0].lag_bytes is None
    listener.close()


def test_the_lag_is_told_in_bytes_where_a_client_is_given() -> None:
    with fairlead_kafka.Cluster(brokers=1) as cluster:
        with fairlead_kafka.Admin({"bootstrap.servers": cluster.bootstrap_servers}) as admin:
            admin.create_topics([fairlead_kafka.NewTopic("t", partitions=1)])
        with fairlead_kafka.Producer({"bootstrap.servers": cluster.bootstrap_servers}) as producer:
            for _ in range(20):
                producer.send("t", bytes(1000))
        listener = ProgressListener(client={"bootstrap.servers": cluster.bootstrap_servers})
        progress = SimpleNamespace(
            json=json.dumps(report({"t": {"0": 0}}, {"t": {"0": 10}}, {"t": {"0": 20}}, 10))
        )
        listener.onQueryProgress(SimpleNamespace(progress=progress))
        lag_bytes = listener.totals["q", 0].lag_bytes
        listener.close()
    assert lag_bytes is not None
    assert 10_000 < lag_bytes < 12_000
