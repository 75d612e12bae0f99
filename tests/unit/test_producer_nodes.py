"""What the producer knows of brokers: which of them the others wait for."""

from __future__ import annotations

from collections import deque
from typing import Any, cast

import pytest

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer.nodes import SMOOTHING, Nodes
from fairlead_kafka.producer.settings import producer_settings


def nodes_after(latencies_ms: dict[int, list[float]]) -> Nodes:
    nodes = Nodes(producer_settings(CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "h:1"})), cast(Any, None))
    for node_id, each in latencies_ms.items():
        for latency_ms in each:
            nodes.sent(node_id, 0)
            nodes.answered(node_id, 1, ms_to_ns(latency_ms), 1000, 0, failed=False)
    nodes.plan()
    return nodes


@pytest.mark.parametrize(
    ("slow_ms", "quick_ms", "lags"),
    [
        ([25] * 10, [1] * 10, True),
        ([25] * 10, [20] * 10, False),
        ([4] * 10, [1] * 10, False),  # not 4 ms longer
        ([6] * 10, [1] * 10, True),
        ([25] * 10, [*[2] * 10, 9], True),  # one answer of the quickest says nothing
        ([*[1] * 10, 15], [1] * 10, False),  # nor does one of another
        ([], [1] * 10, False),
    ],
)
def test_a_broker_lags_by_its_average_answer(slow_ms: list[float], quick_ms: list[float], lags: bool) -> None:
    nodes = nodes_after({0: slow_ms, 1: quick_ms})
    assert nodes.lags(nodes.state(0)) is lags
    assert not nodes.lags(nodes.state(1))


def test_a_broker_that_became_slow_lags_some_answers_later() -> None:
    nodes = nodes_after({0: [1] * 20 + [25] * SMOOTHING, 1: [1]})
    assert nodes.lags(nodes.state(0))


def test_requests_under_way_are_spread_over_the_time_of_an_answer_once_half_of_the_places_are_taken() -> None:
    nodes = nodes_after({0: [20] * 10, 1: [1] * 10})
    state = nodes.state(0)
    places = state.window.partial_limit
    assert places == 2  # it is not tested yet
    assert nodes.paced_ns(state) == nodes.free_ns(state) == 0
    nodes.sent(0, ms_to_ns(100))
    assert nodes.paced_ns(state) == nodes.free_ns(state) == ms_to_ns(100 + 20 / places)
    nodes.sent(0, ms_to_ns(103))
    assert nodes.paced_ns(state) == ms_to_ns(103 + 20 / places)
    assert nodes.free_ns(state) == ms_to_ns(120)  # the first is answered by then


def test_a_broker_that_has_most_places_free_is_sent_to_at_once() -> None:
    state = nodes_after({0: [20] * 10}).state(0)
    state.window._tested = True
    nodes = nodes_after({})
    assert state.window.partial_limit == 4
    state.in_flight, state.sent_ns = 1, deque([ms_to_ns(100)])
    assert nodes.paced_ns(state) == 0
    state.in_flight, state.sent_ns = 2, deque([ms_to_ns(100), ms_to_ns(101)])
    assert nodes.paced_ns(state) == ms_to_ns(101 + 20 / 4)
