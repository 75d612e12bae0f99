"""What the producer knows of brokers: which of them the others wait for."""

from __future__ import annotations

from typing import Any, cast

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer.nodes import Nodes
from fairlead_kafka.producer.settings import producer_settings


def nodes_after(latencies_ms: dict[int, list[float]]) -> Nodes:
    nodes = Nodes(producer_settings(CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "h:1"})), cast(Any, None))
    for node_id, each in latencies_ms.items():
        for latency_ms in each:
            nodes.sent(node_id, 0)
            nodes.answered(node_id, 1, ms_to_ns(latency_ms), 1000, 0, failed=False)
    nodes.plan()
    return nodes


def test_a_broker_without_room_is_expected_to_have_some_when_its_answers_are_due() -> None:
    nodes = nodes_after({0: [20] * 10, 1: [1] * 10})
    places = nodes.state(0).window.partial_limit
    assert places == 2  # it is not tested yet
    assert nodes.wait_ns(0, ms_to_ns(100)) == 0
    nodes.sent(0, ms_to_ns(100))
    assert nodes.wait_ns(0, ms_to_ns(101)) == ms_to_ns(9)  # halfway through the time of an answer
    nodes.sent(0, ms_to_ns(103))
    assert nodes.wait_ns(0, ms_to_ns(105)) == ms_to_ns(15)  # the first is answered by then
    assert nodes.wait_ns(0, ms_to_ns(130)) == 0
