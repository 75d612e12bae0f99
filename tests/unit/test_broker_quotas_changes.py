"""Quotas of changes to the cluster, and of connections."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead_kafka.broker import clients as clients_module
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import Client
from tests.support.quota_rig import ANYBODY, Rig


@pytest.fixture
def rig() -> Rig:
    return Rig()


# --- controller_mutation_rate


def create(client: Client, name: str, partitions: int, version: int, **fields: Any) -> Message:
    topics = [Message(name=name, num_partitions=partitions, replication_factor=1, assignments=[], configs=[])]
    return client.ask(
        ApiKey.CREATE_TOPICS, version, topics=topics, timeout_ms=1_000, validate_only=False, **fields
    )


def test_topics_beyond_the_quota_are_refused_until_it_is_paid_off(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)  # 11 saved up
    client = rig.connect()
    first = create(client, "a", 16, 7)
    assert (first.topics[0].error_code, first.throttle_time_ms) == (0, 0), (
        "one request may spend more than there is"
    )
    second = create(client, "b", 1, 7)
    assert (second.topics[0].error_code, second.throttle_time_ms) == (89, 5_000)
    assert client.held
    rig.advance(5_000)
    assert create(client, "b", 1, 7).topics[0].error_code == 0
    assert create(client, "c", 1, 7).throttle_time_ms == 1_000


def test_what_is_refused_for_other_reasons_costs_nothing(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    for _ in range(3):
        assert create(client, "events", 100, 7).topics[0].error_code == 36
    assert create(client, "a", 100, 7).topics[0].error_code == 0


def test_older_versions_create_all_of_it_and_are_throttled(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    answer = create(client, "a", 15, 5)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 4_000)
    assert client.held
    rig.advance(4_000)
    answer = create(client, "b", 5, 5)
    assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 5_000)


@pytest.mark.parametrize(("version", "codes", "wait_ms"), [(2, [0, 0], 9_000), (3, [0, 89], 4_000)])
def test_partitions_are_counted_that_a_topic_gets(
    rig: Rig, version: int, codes: list[int], wait_ms: int
) -> None:
    client = rig.connect()
    create(client, "other", 1, 7)
    rig.grant(ANYBODY, controller_mutation_rate=1)
    topics = [
        Message(name=name, count=count, assignments=None) for name, count in (("events", 18), ("other", 6))
    ]
    answer = client.ask(
        ApiKey.CREATE_PARTITIONS, version, topics=topics, timeout_ms=1_000, validate_only=False
    )
    assert [row.error_code for row in answer.results] == codes
    assert answer.throttle_time_ms == wait_ms


@pytest.mark.parametrize(("version", "codes", "wait_ms"), [(4, [0, 0], 4_000), (5, [0, 89], 3_000)])
def test_partitions_are_counted_that_go(rig: Rig, version: int, codes: list[int], wait_ms: int) -> None:
    client = rig.connect()
    create(client, "large", 14, 7)
    create(client, "small", 1, 7)
    rig.grant(ANYBODY, controller_mutation_rate=1)
    answer = client.ask(ApiKey.DELETE_TOPICS, version, topic_names=["large", "small"], timeout_ms=1_000)
    assert [row.error_code for row in answer.responses] == codes
    assert answer.throttle_time_ms == wait_ms


def test_a_topic_is_not_created_on_the_way_beyond_the_quota(rig: Rig) -> None:
    rig.grant(ANYBODY, controller_mutation_rate=1)
    client = rig.connect()
    assert create(client, "a", 16, 7).topics[0].error_code == 0
    asked = {"topics": [Message(name="made")], "allow_auto_topic_creation": True}
    assert client.ask(ApiKey.METADATA, 8, **asked).topics[0].error_code == 3
    rig.advance(5_000)
    assert client.ask(ApiKey.METADATA, 8, **asked).topics[0].error_code == 0


# --- connection_creation_rate


def test_connections_above_the_rate_of_their_address_are_closed_after_a_while(rig: Rig) -> None:
    rig.grant({"ip": "10.0.0.1"}, connection_creation_rate=1)
    for _ in range(10):
        assert not rig.connect(address="10.0.0.1").held
    refused = rig.connect(address="10.0.0.1")
    assert refused.held
    refused.send_bytes(b"whatever it says")
    assert not rig.connect(address="10.0.0.2").held
    rig.advance(999)
    assert not refused.closed
    rig.advance(1)
    assert refused.closed
    rig.advance(10_000)
    assert not rig.connect(address="10.0.0.1").held, "who was refused was not counted"


def test_an_address_without_a_rate_of_its_own_has_the_default(rig: Rig) -> None:
    rig.grant({"ip": None}, connection_creation_rate=1)
    rig.grant({"ip": "10.0.0.1"}, connection_creation_rate=100)
    for _ in range(10):
        rig.connect(address="10.0.0.2")
    assert rig.connect(address="10.0.0.2").held
    for _ in range(50):
        assert not rig.connect(address="10.0.0.1").held
    rig.grant({"ip": None}, connection_creation_rate=None)
    assert not rig.connect(address="10.0.0.2").held


def test_only_so_many_are_kept_waiting_and_none_that_left(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients_module, "DELAYED_CLOSES_MAX", 2)
    rig.grant({"ip": None}, connection_creation_rate=1)
    for _ in range(10):
        rig.connect(address="10.0.0.1")
    waiting = [rig.connect(address="10.0.0.1") for _ in range(3)]
    assert [client.closed for client in waiting] == [False, False, True]
    rig.session_lost(waiting[0])
    assert not rig.connect(address="10.0.0.1").closed
    rig.advance(1_000)
    assert waiting[1].closed
    assert not waiting[0].closed, "it had left by itself"
