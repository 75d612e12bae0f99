"""What the producer knows of brokers: which of them the others wait for."""

from __future__ import annotations

from typing import Any, cast

import pytest

from fairlead.base.config_client import CLIENT_CONFIGS
from fairlead.base.units import ms_to_ns
from fairlead.producer.nodes import SMOOTHING, Nodes
from fairlead.producer.settings import producer_settings


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
