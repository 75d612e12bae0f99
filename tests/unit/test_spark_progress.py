"""Figures from the progress that Spark reports: the connector's metrics, lag, and offsets that gave
no row."""

from __future__ import annotations

import json
import math
from types import SimpleNamespace
from typing import Any

import fairlead_kafka
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.spark.progress import TOTALS_MAX, ProgressListener, source_progress

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
    durations = {"triggerExecution": 150, "addBatch": 100}
    return {"id": "q", "name": None, "batchId": 3, "durationMs": durations, "sources": [source], **more}


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
    silent = report(None, {"t": {"0": 9}}, None, 4, durationMs=None)
    assert [one.duration_ms for one in source_progress(silent)] == [0]
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
    assert totals.time_ms == 300
    assert [one.metrics["maxOffsetsBehindLatest"] for one in told] == ["15", "5"]
    assert told[0].lag_bytes is None
    listener.close()


def batch(listener: ProgressListener, query_id: str, name: str | None = None) -> None:
    progress = report({"t": {"0": 0}}, {"t": {"0": 10}}, {"t": {"0": 25}}, 10, id=query_id, name=name)
    listener.onQueryProgress(SimpleNamespace(progress=SimpleNamespace(json=json.dumps(progress))))


def exported(listener: ProgressListener, query: str, name: str) -> float:
    return listener.metrics()["spark-stream-metrics"][query, "0"][name]


def test_the_lag_of_a_query_that_has_ended_is_not_exported_until_it_starts_again() -> None:
    listener = ProgressListener()
    batch(listener, "q1", "n")
    batch(listener, "q2")
    listener.onQueryTerminated(SimpleNamespace(id="q1"))
    assert math.isnan(exported(listener, "n", "lag"))
    assert math.isnan(exported(listener, "n", "lag-bytes"))
    assert exported(listener, "n", "rows-total") == 10
    assert exported(listener, "q2", "lag") == 15
    batch(listener, "q3", "n")
    listener.onQueryTerminated(SimpleNamespace(id="q1"))  # an earlier query of that name
    assert (exported(listener, "n", "lag"), exported(listener, "n", "rows-total")) == (15, 20)


def test_totals_are_bounded_and_those_of_queries_that_have_ended_go_first() -> None:
    listener = ProgressListener()
    for number in range(TOTALS_MAX):
        batch(listener, f"q{number}")
    listener.onQueryTerminated(SimpleNamespace(id="q7"))
    batch(listener, "q0")
    for name in ("new", "newer"):
        batch(listener, name)
    assert len(listener.totals) == TOTALS_MAX
    assert {"q7", "q1"}.isdisjoint(query for query, _ in listener.totals)
    assert {("q0", 0), ("new", 0), ("newer", 0)} <= listener.totals.keys()


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
