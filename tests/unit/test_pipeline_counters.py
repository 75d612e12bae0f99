"""Counters of flows, from the progress of queries as Spark tells it."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from pyspark.sql.streaming.listener import StreamingQueryProgress
from rich.console import Console

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.cli.pipeline import _watch
from fairlead_kafka.cli.pipeline_report import print_flows, summed
from fairlead_kafka.spark.pipelines import Expectations
from fairlead_kafka.spark.pipelines.catalog import CATALOG_KEY, WAREHOUSE_KEY, derby_log, kept_catalog
from fairlead_kafka.spark.pipelines.counters import FlowCounters, Progress, add_lag_and_loss, offsets_of
from fairlead_kafka.spark.pipelines.running import RunResult, _as_json

P0, P1 = TopicPartition("access", 0), TopicPartition("access", 1)


def batch(name: str, rows: int, **more: Any) -> dict[str, Any]:
    """A progress; `read`, `written` and `kept` are observations."""
    observed = {}
    for metric, given in (("fairlead.read", "read"), ("fairlead.written", "written")):
        if given in more:
            observed[metric] = {"rows": more[given][0], "bytes": more[given][1]}
    if "kept" in more:
        observed["fairlead.expectations"] = {"quarantined": more["kept"], "has a time": more["kept"]}
    return {
        "name": name,
        "numInputRows": rows,
        "batchDuration": 1500,
        "observedMetrics": observed,
        "sources": [{"startOffset": more.get("start"), "endOffset": more.get("end")}],
        "stateOperators": [
            {
                "operatorName": more.get("keeps", "dedupe"),
                "numRowsTotal": more.get("total", 0),
                "numRowsDroppedByWatermark": more.get("late", 0),
            }
        ],
        "eventTime": {"watermark": more["watermark"]} if "watermark" in more else {},
    }


def test_batches_of_a_flow_add_up() -> None:
    progress = Progress({"parsed": "parsed", "to_quarantine": "quarantine"})
    progress.add(
        batch("spark_catalog.default.parsed", 10, read=(10, 700), kept=2, end='{"access": {"0": 6, "1": 4}}')
    )
    progress.add(
        batch(
            "spark_catalog.default.parsed",
            5,
            read=(5, 300),
            kept=1,
            late=1,
            start='{"access": {"0": 6, "1": 4}}',
            end='{"access": {"0": 11, "1": 4}}',
        )
    )
    progress.add(batch("to_quarantine", 15, read=(15, 1000), written=(3, 60)))
    progress.add(batch("somebody-else", 99))
    parsed, quarantine = progress.rows()
    assert (
        parsed["batches"],
        parsed["rows_in"],
        parsed["bytes_in"],
        parsed["quarantined"],
        parsed["late"],
    ) == (2, 15, 1000, 3, 1)
    assert parsed["failed_expectations"] == {"has a time": 3}
    assert (parsed["rows_out"], parsed["seconds"]) == (None, 3.0)
    assert (quarantine["rows_in"], quarantine["rows_out"], quarantine["bytes_out"]) == (15, 3, 60)


def test_rows_of_open_windows_are_those_of_the_last_batch_with_its_watermark() -> None:
    progress = Progress({"by_host": "sink", "once": "sink"})
    progress.add(batch("by_host", 10, keeps="stateStoreSave", total=7, watermark="1970-01-01T00:00:00.000Z"))
    assert (progress.flows["by_host"].waiting, progress.flows["by_host"].watermark) == (7, None)
    progress.add(batch("by_host", 0, keeps="stateStoreSave", total=3, watermark="2026-11-01T10:56:40.000Z"))
    progress.add(batch("once", 10, keeps="dedupe", total=7, watermark="2026-11-01T10:56:40.000Z"))
    assert (progress.flows["by_host"].waiting, progress.flows["by_host"].watermark) == (
        3,
        "2026-11-01T10:56:40.000Z",
    )
    assert (progress.flows["once"].waiting, progress.flows["once"].watermark) == (0, None)


def test_what_waited_waits_still_after_a_run_without_a_batch() -> None:
    before = FlowCounters("by_host", "sink", batches=2, waiting=3, watermark="2026-11-01T10:56:40.000Z")
    idle, busy = FlowCounters("by_host", "sink"), FlowCounters("by_host", "sink", batches=1, waiting=1)
    idle.add_earlier(before)
    busy.add_earlier(before)
    assert (idle.waiting, idle.watermark) == (3, "2026-11-01T10:56:40.000Z")
    assert (busy.waiting, busy.watermark) == (1, None)


@pytest.mark.parametrize(
    ("waiting", "watermark", "text"),
    [
        (1, None, "by_host: 1 row waits in open windows, until records have brought a watermark"),
        (
            20,
            "10:56",
            "by_host: 20 rows wait in open windows, until later records have brought the watermark, now "
            "10:56, past their ends",
        ),
    ],
)
def test_a_report_says_what_waits_and_until_when(waiting: int, watermark: str | None, text: str) -> None:
    console = Console(width=500, file=StringIO())
    print_flows(
        console, RunResult([FlowCounters("by_host", "sink", waiting=waiting, watermark=watermark)], 1.0)
    )
    assert text in console.file.getvalue().splitlines()  # type: ignore[attr-defined]


def test_an_empty_batch_has_no_bytes_and_that_is_no_error() -> None:
    progress = Progress({"out": "sink"})
    progress.add({**batch("out", 0), "observedMetrics": {"fairlead.written": {"rows": 0, "bytes": None}}})
    assert (progress.flows["out"].rows_out, progress.flows["out"].bytes_out) == (0, 0)


def test_lag_is_to_the_ends_of_its_topics_and_loss_is_what_was_dropped_before_it() -> None:
    progress = Progress({"parsed": "parsed", "other": "sink"})
    progress.add(batch("parsed", 5, start='{"access": {"0": 3}}', end='{"access": {"0": 8}}'))
    flows = list(progress.flows.values())
    add_lag_and_loss(flows, {P0: 5, P1: 0}, {P0: 10, P1: 4, TopicPartition("orders", 0): 9})
    assert (flows[0].lost, flows[0].lag) == (2, 2 + 4)
    assert (flows[1].lost, flows[1].lag) == (0, None)


def test_offsets_are_those_of_the_json_where_pyspark_has_them_as_python_writes_them() -> None:
    end = {"access": {"0": 8}}
    source = {"description": "", "startOffset": None, "endOffset": end, "latestOffset": end}
    source |= dict.fromkeys(("numInputRows", "inputRowsPerSecond", "processedRowsPerSecond"), 8)
    told = {**batch("parsed", 8), "sources": [source], "stateOperators": [], "batchId": 0, "timestamp": ""}
    told |= dict.fromkeys(("id", "runId"), "00000000-0000-0000-0000-000000000000")
    told["sink"] = {"description": "", "numOutputRows": 8}
    progress = StreamingQueryProgress.fromJson(told)
    progress.sources[0]["endOffset"] = str(end)  # as 4.0 and 4.1 have it
    counted = Progress({"parsed": "parsed"})
    counted.add(_as_json(progress))
    assert counted.flows["parsed"].end == {P0: 8}


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "7",
        '{"logOffset": 3}',
        '{"access": [1]}',
        '{"access": {"a": 1}}',
        '{"access": {"0": "1"}}',
        "{",
    ],
)
def test_offsets_of_other_sources_are_passed_over(text: str | None) -> None:
    assert offsets_of(text) == {}


def test_a_run_is_settled_when_every_query_that_began_has_ended() -> None:
    progress = Progress({"parsed": "parsed"})
    assert progress.await_ended(timeout_s=0)
    progress.started("1", "parsed")
    progress.started("2", "somebody-else")
    assert not progress.await_ended(timeout_s=0)
    progress.ended("1")
    assert progress.await_ended(timeout_s=0)


def test_runs_add_up_and_lag_is_the_last() -> None:
    first = RunResult(
        [
            FlowCounters(
                "a", "b", rows_in=5, bytes_in=50, quarantined=1, failed_expectations={"x": 1}, lag=7, lost=2
            )
        ],
        3.0,
    )
    last = RunResult(
        [FlowCounters("a", "b", state="completed", rows_in=2, lag=0, failed_expectations={"x": 2})], 1.0
    )
    both = summed(summed(None, first), last)
    (flow,) = both.flows
    assert (flow.rows_in, flow.bytes_in, flow.quarantined, flow.failed_expectations, flow.lag, flow.lost) == (
        7,
        50,
        1,
        {"x": 3},
        0,
        2,
    )
    assert (both.seconds, both.lost, both.as_json()["state"]) == (4.0, 2, "completed")


def test_a_catalog_is_kept_beside_the_checkpoints_unless_the_project_says_where(tmp_path: Any) -> None:
    kept = kept_catalog(tmp_path, True, {})
    assert kept[CATALOG_KEY] == "hive"
    assert str(tmp_path) in kept["spark.hadoop.javax.jdo.option.ConnectionURL"]
    warehouse = {WAREHOUSE_KEY: f"file://{tmp_path}/tables"}
    assert kept_catalog(tmp_path, False, {}) == warehouse
    assert kept_catalog(None, True, {}) == {}
    assert kept_catalog(tmp_path, True, {CATALOG_KEY: "in-memory"}) == warehouse
    assert str(tmp_path) in derby_log(tmp_path)
    assert derby_log(None) == ""


class _Runner:
    """Gives results one after another, then Ctrl-C."""

    def __init__(self, results: list[RunResult]) -> None:
        self._results = iter(results)

    def run(self, refresh: object, status: object) -> RunResult:
        for result in self._results:
            return result
        raise KeyboardInterrupt


def test_watching_adds_up_until_ctrl_c_or_a_failure() -> None:
    def result(rows: int, failure: str | None = None) -> RunResult:
        return RunResult([FlowCounters("a", "b", rows_in=rows)], 1.0, failure)

    shown: list[str] = []
    so_far = _watch(_Runner([result(3), result(4)]), shown.append, 0, None)  # type: ignore[arg-type]
    assert so_far is not None
    assert (so_far.flows[0].rows_in, so_far.failure) == (7, None)
    assert shown == ["run 1: a 3 in", "run 2: a 7 in"]
    so_far = _watch(_Runner([result(1), result(1, "it broke"), result(9)]), shown.append, 0, None)  # type: ignore[arg-type]
    assert so_far is not None
    assert (so_far.flows[0].rows_in, so_far.failure) == (2, "it broke")
    assert _watch(_Runner([]), shown.append, 0, None) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("conditions", [{}, {"": "a > 1"}, {"has a": " "}])
def test_expectations_have_names_and_conditions(conditions: dict[str, str]) -> None:
    with pytest.raises(ConfigError, match="has a host"):
        Expectations(conditions)
