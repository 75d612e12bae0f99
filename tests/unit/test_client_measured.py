"""Sources of an exporter: names that never collide, none twice, and one that fails costs no
other."""

from __future__ import annotations

import logging
from inspect import iscoroutinefunction
from typing import cast

import pytest
from prometheus_client import CollectorRegistry, generate_latest

import fairlead_kafka
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.units import NS_PER_S
from fairlead_kafka.client.measured import WARNS_AGAIN_S, Measured, Sources
from fairlead_kafka.core.metric_table import GROUPS, Metrics
from fairlead_kafka.spark.progress import ProgressListener
from tests.support.share_rig import Sharing

ROWS = GROUPS["spark-stream-metrics"].rows


class Source:
    """A source that returns what it was given, or raises it."""

    def __init__(self, client_id: str = "", gives: object = None) -> None:
        self.client_id = client_id
        self.gives = (
            {"spark-stream-metrics": {("q", "0"): {row.name: 1.0 for row in ROWS}}}
            if gives is None
            else gives
        )

    def metrics(self) -> Metrics:
        if isinstance(self.gives, Exception):
            raise self.gives
        return cast("Metrics", self.gives)


def names(sources: Sources) -> list[str]:
    return [each.name for each in sources.read()]


def test_each_source_has_a_name_of_its_own() -> None:
    made = [Source("shop-3"), Source("shop"), Source("shop"), Source("shop"), Source()]
    assert names(Sources(made)) == ["shop-3", "shop", "shop-4", "shop-5", "source-5"]
    nameless = [Source("source-2"), Source()]
    assert names(Sources(nameless)) == ["source-2", "source-3"]


def test_a_source_that_is_added_twice_is_one() -> None:
    source, other = Source("a"), Source()
    sources = Sources([source, source, other, other])
    assert names(sources) == ["a", "source-2"]
    sources.remove(source)
    assert names(sources) == ["source-2"]


def test_a_source_that_only_the_exporter_knew_is_refused_or_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    collector, registry = fairlead_kafka.PrometheusCollector(Source("inline")), CollectorRegistry()
    with pytest.raises(UsageError, match=r"inline is gone, and its metrics were never read: .* variable"):
        registry.register(collector)
    sources = Sources([Source("a"), Source("b")])
    sources.read()
    assert [record.getMessage().split(",")[0] for record in caplog.records] == ["a is gone"], "once"
    short = Source("short")
    sources.add(short)
    sources.read()
    del short
    registry.register(collector := fairlead_kafka.PrometheusCollector(kept := Source("kept")))
    assert (names(sources), len(caplog.records), kept.client_id) == ([], 1, "kept")
    assert any("kept" in str(family.samples) for family in collector.collect())


def test_sources_that_are_gone_are_swept_by_adding_and_by_reading() -> None:
    sources, kept = Sources(), Source("kept")
    for _ in range(20):
        sources.add(Source())  # each has another name, and is gone at once
    assert len(sources) <= 1
    sources.add(kept)
    assert len(sources) == 1
    last = Source()
    sources.add(last)
    del last
    assert (names(sources), len(sources)) == (["kept"], 1)


@pytest.mark.parametrize(
    "gives",
    [
        RuntimeError("broken"),
        3,
        {"no-such-group": {}},
        {"spark-stream-metrics": 3},
        {"spark-stream-metrics": {("q", "0"): {}}},
        {"spark-stream-metrics": {"q": {row.name: 1.0 for row in ROWS}}},
        {"spark-stream-metrics": {("q", "0"): {row.name: "many" for row in ROWS}}},
    ],
)
def test_a_source_that_fails_is_left_out_of_the_scrape(
    gives: object, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = Source("bad", gives), Source("good")
    registry = CollectorRegistry()
    registry.register(fairlead_kafka.PrometheusCollector(bad, good))
    lines = generate_latest(registry).decode().splitlines()
    assert 'kafka_spark_stream_rows_total{client_id="good",query="q",source="0"} 1.0' in lines
    assert not any('"bad"' in line for line in lines)
    (warning,) = caplog.records
    assert (warning.name, warning.levelno) == ("fairlead_kafka.metrics", logging.WARNING)
    assert warning.getMessage().startswith("metrics of bad are not exported: ")


def test_a_source_that_keeps_failing_is_logged_now_and_then(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    failing = [Source(name, ValueError("no")) for name in "ab"]
    sources = Sources(failing, lambda: now[0])
    for _ in range(100):
        sources.read()
    assert len(caplog.records) == 2, "one for each source"
    now[0] = WARNS_AGAIN_S * NS_PER_S
    sources.read()
    assert len(caplog.records) == 4


class Awaited:
    """Metrics that are awaited cannot be read in a scrape."""

    async def metrics(self) -> Metrics:
        return {}


class Slotted:
    """An object that cannot be referred to weakly."""

    __slots__ = ()

    def metrics(self) -> Metrics:
        return {}


@pytest.mark.parametrize("what", [3, {}, None, Source, Awaited()])
def test_what_has_no_metrics_is_refused(what: object) -> None:
    with pytest.raises(UsageError, match=r"has no metrics to export\. Give a Producer, Consumer, Share"):
        fairlead_kafka.PrometheusCollector(cast("Measured", what))


def test_what_cannot_be_referred_to_is_refused() -> None:
    with pytest.raises(UsageError, match="__weakref__"):
        Sources([Slotted()])


def test_a_listener_of_spark_is_a_source() -> None:
    listener = ProgressListener()
    assert names(Sources([listener])) == ["spark-1"]


def test_share_consumers_are_exported_beside_others() -> None:
    rig = Sharing()
    good = Source("good")
    with rig.member(client_id="till") as member:
        rig.polled(member, 10)
        registry = CollectorRegistry()
        registry.register(fairlead_kafka.PrometheusCollector(member, good))
        lines = generate_latest(registry).decode().splitlines()
    records = "kafka_share_consumer_fetch_manager_records_consumed_total"
    assert f'{records}{{client_id="till"}} 10.0' in lines
    assert 'kafka_spark_stream_rows_total{client_id="good",query="q",source="0"} 1.0' in lines
    assert not iscoroutinefunction(fairlead_kafka.AsyncShareConsumer.metrics), "a scrape cannot await"
