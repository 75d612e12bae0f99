"""How a client pushes metrics where the cluster asks for them (KIP-714): states, waits, bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import ConnectionFailed, TimedOut, UsageError
from fairlead_kafka.core.connection import NEVER_NS
from fairlead_kafka.core.telemetry import INTERVAL_DEFAULT_MS, TRANSITIONS, State, Telemetry, Trigger
from fairlead_kafka.core.telemetry_bytes import encoded, metrics_data
from fairlead_kafka.core.telemetry_report import Point, Report, Sample, report_of
from fairlead_kafka.producer.metric_names import GROUPS
from fairlead_kafka.records import Compression, decompress
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import GetTelemetrySubscriptionsResponse, PushTelemetryResponse

ID = UUID(int=7 << 64)
MS = 1_000_000
WALL_MS = 1_700_000_000_000


class Brokers:
    """Connections that keep what is sent, for the test to answer."""

    def __init__(self) -> None:
        self.nodes = [1]
        self.busy = False
        self.sent: list[tuple[int, ApiKey, Any, Callable[..., object]]] = []

    def offering(self, _api_key: ApiKey) -> list[int]:
        return list(self.nodes)

    def ready(self, _node_id: int) -> bool:
        return not self.busy

    def send(self, node_id: int, api_key: ApiKey, message: Any, on_done: Callable[..., object]) -> None:
        self.sent.append((node_id, api_key, message, on_done))


class Client:
    """A `Telemetry` in the time of a test, ms."""

    def __init__(self) -> None:
        self.brokers = Brokers()
        self.totals = {"org.apache.kafka.producer.x.total": 10.0}
        self.telemetry = Telemetry(self.brokers, random.Random(1), self._report)
        self.now_ms = 1_000

    def _report(self, _now_ns: int) -> Report:
        totals = [Sample(name, value, True) for name, value in self.totals.items()]
        return Report({"client_rack": "a"}, [*totals, Sample("org.apache.kafka.producer.y", 0.5, False)])

    def go(self, ms: float = 0) -> None:
        self.now_ms += int(ms)
        self.telemetry.advance(self.now_ms * MS, WALL_MS + self.now_ms)
        self.telemetry.check()

    def until_due(self) -> float:
        """Go to when something is due; gives the ms until then."""
        waited = (self.telemetry.next_ns() - self.now_ms * MS) / MS
        self.go(waited + 1)
        return waited

    def answer(self, error_code: int = 0, error: Exception | None = None, **more: Any) -> None:
        _, api_key, _, on_done = self.brokers.sent[-1]
        response: object = None
        if error is None and api_key is ApiKey.PUSH_TELEMETRY:
            response = PushTelemetryResponse(throttle_time_ms=0, error_code=error_code)
        elif error is None:
            fields = {
                "client_instance_id": ID, "subscription_id": 5, "accepted_compression_types": [],
                "push_interval_ms": 1_000, "telemetry_max_bytes": 1 << 20, "delta_temporality": True,
                "requested_metrics": ["*"],
            }  # fmt: skip
            response = GetTelemetrySubscriptionsResponse(error_code=error_code, **(fields | more))
        on_done(response, error)
        self.telemetry.check()

    @property
    def last(self) -> Any:
        return self.brokers.sent[-1][2]

    def subscribed(self, **more: Any) -> None:
        self.go()
        self.answer(**more)


def test_the_table_ends_in_terminated_alone_and_from_everywhere() -> None:
    assert set(TRANSITIONS.values()) == set(State)
    for state in State:
        assert TRANSITIONS[state, Trigger.ENDED] is State.TERMINATED
    assert [trigger for state, trigger in TRANSITIONS if state is State.TERMINATED] == [Trigger.ENDED]


def test_it_asks_first_then_pushes_after_a_drawn_part_of_the_interval_and_then_each_interval() -> None:
    waits = []
    for seed in range(50):
        client = Client()
        client.telemetry._rng = random.Random(seed)
        client.subscribed()
        waits.append(client.until_due())
        assert client.last.subscription_id == 5
        assert client.last.client_instance_id == ID
        client.answer()
        assert client.until_due() == pytest.approx(1_000)
        assert [each[1] for each in client.brokers.sent] == [
            ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY, ApiKey.PUSH_TELEMETRY,
        ]  # fmt: skip
    assert 500 <= min(waits) < 600
    assert 1_400 < max(waits) <= 1_500


def test_nothing_is_asked_for_without_a_broker_that_offers_it_and_no_time_is_set() -> None:
    client = Client()
    client.brokers.nodes = []
    client.go()
    assert not client.brokers.sent
    assert client.telemetry.waits_for_broker
    assert client.telemetry.next_ns() == NEVER_NS
    client.brokers.nodes = [3]
    client.go()
    assert client.brokers.sent[0][0] == 3


def test_the_broker_that_took_the_last_push_takes_the_next_while_it_can() -> None:
    client = Client()
    client.subscribed()
    client.brokers.nodes = [1, 2, 3]
    for _ in range(4):
        client.until_due()
        client.answer()
    assert {each[0] for each in client.brokers.sent} == {1}
    client.brokers.nodes = [2]
    client.until_due()
    assert client.brokers.sent[-1][0] == 2


def test_where_no_metric_is_wanted_it_asks_again_after_an_interval_with_its_id() -> None:
    client = Client()
    client.subscribed(requested_metrics=[], push_interval_ms=7_000)
    assert client.until_due() == pytest.approx(7_000)
    assert client.brokers.sent[-1][1] is ApiKey.GET_TELEMETRY_SUBSCRIPTIONS
    assert client.last.client_instance_id == ID


def test_an_interval_that_is_none_is_kafkas_default() -> None:
    client = Client()
    client.subscribed(requested_metrics=[], push_interval_ms=0)
    assert client.until_due() == pytest.approx(INTERVAL_DEFAULT_MS)


@pytest.mark.parametrize(
    ("code", "wait_ms"),
    [
        (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, 0),
        (ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, 0),
        (ErrorCode.TELEMETRY_TOO_LARGE, 1_000),
        (ErrorCode.THROTTLING_QUOTA_EXCEEDED, 1_000),
        (ErrorCode.INVALID_REQUEST, None),
        (ErrorCode.INVALID_RECORD, None),
        (ErrorCode.UNSUPPORTED_VERSION, None),
        (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, None),
    ],
)
def test_what_follows_a_refused_push(code: int, wait_ms: float | None) -> None:
    client = Client()
    client.subscribed()
    client.until_due()
    client.answer(code)
    if wait_ms is None:
        assert client.telemetry.over
        assert client.telemetry.next_ns() == NEVER_NS
    else:
        assert client.until_due() == pytest.approx(wait_ms)
        assert client.brokers.sent[-1][1] is ApiKey.GET_TELEMETRY_SUBSCRIPTIONS


def test_a_connection_that_was_lost_is_another_brokers_turn_an_interval_later() -> None:
    client = Client()
    client.subscribed()
    client.until_due()
    client.answer(error=ConnectionFailed("gone"))
    client.brokers.nodes = [2]
    assert client.until_due() == pytest.approx(1_000)
    assert client.brokers.sent[-1][:2] == (2, ApiKey.GET_TELEMETRY_SUBSCRIPTIONS)


def test_a_codec_that_was_refused_is_not_used_again() -> None:
    client = Client()
    accepted = [int(Compression.zstd), 99, int(Compression.gzip)]
    client.subscribed(accepted_compression_types=accepted)
    client.until_due()
    assert client.last.compression_type == Compression.zstd
    client.answer(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
    client.until_due()
    client.answer(accepted_compression_types=accepted)
    client.until_due()
    assert client.last.compression_type == Compression.gzip


def test_what_is_larger_than_the_broker_takes_is_not_sent() -> None:
    client = Client()
    client.subscribed(telemetry_max_bytes=10)
    client.until_due()
    assert len(client.brokers.sent) == 1
    client.until_due()
    assert client.brokers.sent[-1][1] is ApiKey.GET_TELEMETRY_SUBSCRIPTIONS


def decoded(message: Any) -> dict[str, Any]:
    metrics_pb2 = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    data = metrics_pb2.MetricsData.FromString(
        bytes(decompress(Compression(message.compression_type), message.metrics))
    )
    (resource,) = data.resource_metrics
    (scope,) = resource.scope_metrics
    return {metric.name: metric for metric in scope.metrics}


def total(message: Any) -> tuple[float, int]:
    """The value of the one sum, and since when it counts, ms."""
    metric = decoded(message)["org.apache.kafka.producer.x.total"]
    (point,) = metric.sum.data_points
    return point.as_double, point.start_time_unix_nano // MS


def test_deltas_count_from_the_last_push_that_was_taken() -> None:
    client = Client()
    client.subscribed()
    began_ms = WALL_MS + 1_000
    client.until_due()
    assert total(client.last) == (10, began_ms)
    client.answer()
    taken_ms = WALL_MS + client.now_ms
    client.totals["org.apache.kafka.producer.x.total"] = 14
    client.until_due()
    assert total(client.last) == (4, taken_ms)
    client.answer(ErrorCode.TELEMETRY_TOO_LARGE)
    client.until_due()
    client.answer()
    client.totals["org.apache.kafka.producer.x.total"] = 15
    client.until_due()
    assert total(client.last) == (5, taken_ms), "what was refused is told again"


def test_totals_of_metrics_that_are_gone_are_forgotten_and_those_begun_again_count_from_0() -> None:
    client = Client()
    client.subscribed()
    for number in range(10):
        client.totals = {f"org.apache.kafka.producer.x{number}.total": 1.0}
        client.until_due()
        client.answer()
    assert len(client.telemetry._totals_taken) == 1
    client.totals = {"org.apache.kafka.producer.x.total": 10.0}
    for value in (10, 3, 4):
        client.totals["org.apache.kafka.producer.x.total"] = value
        client.until_due()
        assert total(client.last)[0] == {10: 10, 3: 3, 4: 1}[value]
        client.answer()


def test_cumulative_sums_count_from_the_beginning() -> None:
    client = Client()
    client.subscribed(delta_temporality=False)
    for value in (10, 14):
        client.totals["org.apache.kafka.producer.x.total"] = value
        client.until_due()
        assert total(client.last) == (value, WALL_MS + 1_000)
        assert decoded(client.last)["org.apache.kafka.producer.x.total"].sum.aggregation_temporality == 2
        client.answer()


def test_only_metrics_that_begin_with_what_was_asked_for_are_pushed() -> None:
    client = Client()
    client.subscribed(requested_metrics=["org.apache.kafka.producer.y", "org.apache.kafka.consumer."])
    client.until_due()
    assert list(decoded(client.last)) == ["org.apache.kafka.producer.y"]


@pytest.mark.parametrize("pushing", [False, True])
def test_closing_pushes_once_more_at_once(pushing: bool) -> None:
    client = Client()
    client.subscribed()
    if pushing:
        client.until_due()
    assert client.telemetry.close(client.now_ms * MS)
    client.go()
    assert client.last.terminating
    if pushing:
        client.brokers.sent[-2][3](PushTelemetryResponse(throttle_time_ms=0, error_code=0), None)
        assert not client.telemetry.over, "it was the answer to the push before"
    client.answer(ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    assert client.telemetry.over
    assert not client.telemetry.close(client.now_ms * MS)


def test_closing_pushes_nothing_that_nobody_asked_for() -> None:
    for asked in (False, True):
        client = Client()
        if asked:
            client.go()
        assert not client.telemetry.close(client.now_ms * MS)
        assert client.telemetry.over


def test_the_id_is_totals_taken_once_a_broker_gave_it() -> None:
    client = Client()
    told: list[object] = []
    client.telemetry.await_id(5_000 * MS, lambda *answer: told.append(answer))
    client.telemetry.await_id(1_500 * MS, lambda *answer: told.append(answer))
    client.go()
    client.go(600)
    ((value, error),) = told
    assert value is None
    assert isinstance(error, TimedOut)
    client.answer()
    assert told[1] == (ID, None)
    client.telemetry.await_id(0, lambda *answer: told.append(answer))
    assert told[2] == (ID, None)


def test_the_id_is_refused_where_the_brokers_refuse_metrics_or_the_client_closes() -> None:
    for closes in (False, True):
        client = Client()
        told: list[Exception] = []
        client.telemetry.await_id(5_000 * MS, lambda _, error, told=told: told.append(error))
        client.go()
        if closes:
            client.telemetry.end()
        else:
            client.answer(ErrorCode.INVALID_REQUEST)
        assert [type(error) for error in told] == [UsageError]


def test_names_are_kip_714s_and_what_is_not_known_is_left_out() -> None:
    group = next(each for each in GROUPS if each.name == "producer-node-metrics")
    values = {row.name: float("nan") for row in group.rows}
    values |= {"request-total": 3.0, "request-rate": 0.5, "requests-in-flight": 1.0}
    report = report_of({group.name: {"node-1": values}}, GROUPS, {"group_id": "g"})
    assert report.labels == {"group_id": "g"}
    found = list(report.samples)
    attributes = (("node_id", "node-1"),)
    assert found == [
        Sample("org.apache.kafka.producer.node.request.total", 3.0, True, attributes),
        Sample("org.apache.kafka.producer.node.request.rate", 0.5, False, attributes),
    ]


def test_bytes_are_opentelemetrys() -> None:
    metrics_pb2 = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2")
    points = [
        Point("a.total", 3.0, (("topic", "ü" * 100),), 1_000),
        Point("a.total", -0.0, (), 1_000),
        Point("b", 1e300, (), None),
    ]
    data = metrics_pb2.MetricsData.FromString(metrics_data({"group_id": "g"}, points, 2_000, delta=True))
    (resource,) = data.resource_metrics
    assert [(each.key, each.value.string_value) for each in resource.resource.attributes] == [
        ("group_id", "g")
    ]
    first, second = resource.scope_metrics[0].metrics
    assert (first.name, first.sum.is_monotonic, first.sum.aggregation_temporality) == ("a.total", True, 1)
    assert [point.as_double for point in first.sum.data_points] == [3.0, -0.0]
    assert first.sum.data_points[0].attributes[0].value.string_value == "ü" * 100
    assert [point.start_time_unix_nano for point in first.sum.data_points] == [10**9, 10**9]
    (gauge,) = second.gauge.data_points
    assert (gauge.as_double, gauge.time_unix_nano, gauge.start_time_unix_nano) == (1e300, 2 * 10**9, 0)


def test_the_first_codec_that_is_known_is_taken_and_none_without() -> None:
    point = [Point("b", 1.0, (), None)]
    plain = metrics_data({}, point, 1, delta=False)
    assert encoded({}, point, 1, False, []) == (0, plain)
    assert encoded({}, point, 1, False, [77]) == (0, plain)
    for codec in Compression:
        number, data = encoded({}, point, 1, False, [77, int(codec)])
        assert number == codec
        assert bytes(decompress(codec, data)) == plain
