"""What the producer knows of brokers: which of them the others wait for, and which take nothing."""

from __future__ import annotations

from typing import Any, cast

from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.producer.nodes import Nodes
from fairlead_kafka.producer.settings import producer_settings


def nodes_after(latencies_ms: dict[int, list[float]]) -> Nodes:
    nodes = Nodes(
        producer_settings(CLIENT_CONFIGS.parse("producer", {"bootstrap.servers": "h:1"})), cast(Any, None)
    )
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


class Room:
    """A network whose brokers are connected to or not, as a test says."""

    def __init__(self) -> None:
        self.full: set[int] = set()

    def ready(self, node_id: int) -> bool:
        return node_id not in self.full


def looked(room: Room, looks: list[tuple[int, bool, int]], timeout_ms: int = 100) -> Nodes:
    """Brokers after looks, each of a broker, whether it could take a request, and when in ms."""
    configs = {"bootstrap.servers": "h:1", "partitioner.availability.timeout.ms": timeout_ms}
    nodes = Nodes(producer_settings(CLIENT_CONFIGS.parse("producer", configs)), cast(Any, room))
    for node_id, can_take, now_ms in looks:
        (room.full.discard if can_take else room.full.add)(node_id)
        assert nodes.look(node_id, ms_to_ns(now_ms)) is can_take
    return nodes


def test_a_broker_is_unready_once_it_took_nothing_for_longer_than_the_timeout() -> None:
    looks = [(1, False, 1000), (1, False, 1100), (2, True, 1100)]
    assert looked(Room(), looks).unready == set()
    assert looked(Room(), [*looks, (1, False, 1101)]).unready == {1}


def test_a_broker_that_takes_data_is_ready_at_once_and_starts_afresh() -> None:
    looks = [(1, False, 0), (1, False, 500), (1, True, 501)]
    assert looked(Room(), looks).unready == set()
    assert looked(Room(), [*looks, (1, False, 560), (1, False, 650)]).unready == set()


def test_a_broker_that_was_sent_a_request_took_it() -> None:
    """A window that is used up takes full batches all the same, between two looks."""
    nodes = looked(Room(), [(1, False, 0), (1, False, 90)])
    nodes.sent(1, ms_to_ns(95))
    nodes.look(1, ms_to_ns(110))
    assert nodes.unready == set()


def test_time_before_anything_was_ready_does_not_count() -> None:
    assert looked(Room(), [(1, True, 0), (1, False, 10_000)]).unready == set()


def test_a_timeout_of_zero_switches_the_account_off() -> None:
    assert looked(Room(), [(1, False, 0), (1, False, 10_000)], timeout_ms=0).unready == set()
