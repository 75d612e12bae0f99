"""The broker as a machine: connections, the order of answers, faults, its life, and the small
APIs."""

from __future__ import annotations

import logging
import struct
import uuid
from typing import Any

import pytest

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import Node
from fairlead_kafka.base.limits import PENDING_REQUESTS_MAX
from fairlead_kafka.broker import KillBroker, SetFaults
from fairlead_kafka.broker.dispatch import REGISTRY
from fairlead_kafka.broker.faults import Faults
from fairlead_kafka.broker.lifecycle import TRANSITIONS, BrokerState
from fairlead_kafka.broker.timers import Timers
from fairlead_kafka.core import effects as fx
from fairlead_kafka.core import events as ev
from fairlead_kafka.wire import ApiKey, Message, decode_response, encode_request
from tests.support.broker_driver import Answer, Client, Driver, batch, fetch_fields, produce, produce_fields


@pytest.fixture
def driver() -> Driver:
    driver = Driver()
    driver.controller.create_topic("events", 3)
    return driver


@pytest.fixture
def client(driver: Driver) -> Client:
    return driver.connect()


# --- ApiVersions and what is not served


def test_api_versions_is_the_registry_less_what_no_subscription_asks_for(client: Client) -> None:
    telemetry = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    fields = {"client_software_name": "driver", "client_software_version": "1.0"}
    for version in range(5):
        answer = client.ask(ApiKey.API_VERSIONS, version, **fields)
        offered = {row.api_key: (row.min_version, row.max_version) for row in answer.api_keys}
        assert offered == {
            int(key): (api.advertised_low, api.high) for key, api in REGISTRY.items() if key not in telemetry
        }


def test_produce_is_advertised_from_version_0(client: Client) -> None:
    assert REGISTRY[ApiKey.PRODUCE].low == 3
    answer = client.ask(ApiKey.API_VERSIONS, 0)
    assert next(row.min_version for row in answer.api_keys if row.api_key == ApiKey.PRODUCE) == 0


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(client: Client) -> None:
    request = struct.pack(">hhih", 18, 99, 5, -1) + b"\x00whatever"
    client.send_bytes(struct.pack(">i", len(request)) + request)
    answer = decode_response(ApiKey.API_VERSIONS, 0, memoryview(bytes(client.raw))[4:])
    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(row.api_key, row.min_version, row.max_version) for row in answer.api_keys] == [(18, 0, 4)]
    assert not client.closed


def test_a_software_name_against_the_pattern_is_refused(client: Client) -> None:
    answer = client.ask(ApiKey.API_VERSIONS, 3, client_software_name="-bad-", client_software_version="1")
    assert answer.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(("api_key", "version"), [(0, 2), (1, 3), (999, 0), (3, 99), (7, 0)])
def test_what_is_not_served_ends_the_connection(
    client: Client, caplog: pytest.LogCaptureFixture, api_key: int, version: int
) -> None:
    request = struct.pack(">hhih", api_key, version, 5, -1)
    with caplog.at_level(logging.WARNING):
        client.send_bytes(struct.pack(">i", len(request)) + request)
    assert client.closed
    assert f"API key {api_key} version {version} is not served" in caplog.text


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">i", -5),
        struct.pack(">i", 200 << 20),
        struct.pack(">ih", 2, 3),
        b"GET / HTTP/1.1\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_end_the_connection(client: Client, data: bytes) -> None:
    client.send_bytes(data)
    assert client.closed


def test_a_request_that_does_not_decode_ends_the_connection_and_spares_others(
    driver: Driver, client: Client
) -> None:
    other = driver.connect()
    request = struct.pack(">hhih", 3, 8, 5, -1) + b"\xff" * 3
    client.send_bytes(struct.pack(">i", len(request)) + request)
    assert client.closed
    assert other.ask(ApiKey.METADATA, 8, topics=None).controller_id == 0


def test_bytes_behind_a_request_are_let_pass_as_kafka_does(client: Client) -> None:
    """librdkafka asks for all topics like this: a null array of four bytes in place of one."""
    request = struct.pack(">hhih", 3, 13, 5, 0) + b"\x00" + b"\x00\x00\x00\x00" + b"\x01\x00\x00"
    client.send_bytes(struct.pack(">i", len(request)) + request)
    answer = decode_response(ApiKey.METADATA, 13, memoryview(bytes(client.raw))[4:])
    assert [topic.name for topic in answer.topics] == ["events"]


def test_a_handler_that_fails_ends_its_connection_only(
    driver: Driver, client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(driver.broker.producer_ids, "take", lambda: 1 / 0)
    client.send(ApiKey.INIT_PRODUCER_ID, 4, transactional_id=None, transaction_timeout_ms=0)
    assert client.closed
    assert "ZeroDivisionError" in caplog.text
    assert produce(driver.connect(), batch([b"a"])).error_code == 0


def test_a_flood_of_requests_is_read_no_faster_than_it_is_answered(driver: Driver, client: Client) -> None:
    client.send(ApiKey.FETCH, 12, **fetch_fields({("events", 0): 0}, max_wait_ms=500))
    one = b"".join(encode_request(ApiKey.API_VERSIONS, 0, 9, None, Message()))
    client.send_bytes(one * PENDING_REQUESTS_MAX)
    assert not client.held
    client.send_bytes(one)
    assert client.held
    driver.advance(600)
    assert not client.held
    assert not client.closed


# --- Order and faults


def test_requests_in_any_split_are_answered_in_order(driver: Driver, client: Client) -> None:
    frames = b"".join(
        b"".join(encode_request(ApiKey.API_VERSIONS, 0, number, None, Message())) for number in range(5)
    )
    for position in range(len(frames)):
        client.send_bytes(frames[position : position + 1])
    ids, position = [], 0
    while position < len(client.raw):
        size, correlation_id = struct.unpack_from(">ii", client.raw, position)
        ids.append(correlation_id)
        position += 4 + size
    assert ids == [0, 1, 2, 3, 4]


def test_service_time_is_serial_for_each_connection(driver: Driver, client: Client) -> None:
    driver.broker.faults = Faults(produce_service_time_ms=20)
    other = driver.connect()
    for _ in range(3):
        client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"a"])}))
    other.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 1): batch([b"b"])}))
    counts = []
    for _ in range(6):
        driver.advance(10)
        counts.append((len(client.arrived), len(other.arrived)))
    assert counts == [(0, 0), (1, 1), (1, 1), (2, 1), (2, 1), (3, 1)]


def test_service_time_spares_other_requests(driver: Driver, client: Client) -> None:
    driver.broker.faults = Faults(produce_service_time_ms=20)
    assert client.ask(ApiKey.METADATA, 8, topics=[]).controller_id == 0


def test_latency_delays_every_answer_but_none_behind_another(driver: Driver, client: Client) -> None:
    driver.broker.faults = Faults(latency_ms=20)
    for _ in range(3):
        client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"a"])}))
    driver.advance(19)
    assert not client.arrived
    driver.advance(1)
    assert len(client.arrived) == 3


def test_a_healed_broker_is_fast_again_and_keeps_the_order(driver: Driver, client: Client) -> None:
    driver.broker.faults = Faults(latency_ms=20)
    client.send(ApiKey.PRODUCE, 9, **produce_fields({("events", 0): batch([b"a"])}))
    driver.broker.faults = Faults()
    client.send(ApiKey.API_VERSIONS, 0)
    assert not client.arrived, "an answer may not overtake the one before it"
    driver.advance(20)
    assert [type(answer).__name__ for answer in client.arrived] == ["ProduceResponse", "ApiVersionsResponse"]
    assert produce(client, batch([b"b"])).error_code == 0


# --- Life


def test_a_stopped_brokers_partitions_have_no_leader_until_it_is_back(driver: Driver) -> None:
    def leader() -> int:
        return driver.controller.image.partition("events", 0).leader

    assert leader() == 0
    client = driver.connect()
    driver.stop()
    assert leader() == -1
    assert client.closed
    driver.start()
    assert leader() == 0


def test_every_state_can_end() -> None:
    reachable = {BrokerState.NEW}
    for _ in TRANSITIONS:
        reachable |= {after for state in reachable for after in TRANSITIONS[state]}
    assert reachable == set(BrokerState)


def test_timers_run_in_order_and_can_be_cancelled() -> None:
    timers, ran = Timers(), []
    timers.call_at(20, lambda: ran.append("late"))
    cancelled = timers.call_at(5, lambda: ran.append("never"))
    timers.call_at(10, lambda: ran.append("first"))
    timers.call_at(10, lambda: ran.append("second"))
    cancelled.cancel()
    assert timers.deadline_ns() == 10
    timers.run_due(10)
    assert ran == ["first", "second"]
    assert timers.deadline_ns() == 20


# --- Metadata


def test_metadata_of_all_some_and_no_topics(client: Client) -> None:
    assert [topic.name for topic in client.ask(ApiKey.METADATA, 8, topics=None).topics] == ["events"]
    assert client.ask(ApiKey.METADATA, 8, topics=[]).topics == []
    assert [topic.name for topic in client.ask(ApiKey.METADATA, 0, topics=[]).topics] == ["events"]


@pytest.mark.parametrize("version", range(14))
def test_every_version_of_metadata_describes_the_topic(driver: Driver, client: Client, version: int) -> None:
    answer = client.ask(ApiKey.METADATA, version, topics=[Message(name="events", topic_id=uuid.UUID(int=0))])
    (topic,) = answer.topics
    assert (topic.error_code, topic.name, len(topic.partitions)) == (0, "events", 3)
    assert [partition.leader_id for partition in topic.partitions] == [0, 0, 0]
    assert [(node.node_id, node.port) for node in answer.brokers] == [(0, 9092)]
    if version >= 2:
        assert answer.cluster_id == driver.controller.image.cluster_id
    if version >= 10:
        assert topic.topic_id == driver.controller.image.topics["events"].topic_id


def test_a_missing_topic_is_created_if_both_sides_allow_it(driver: Driver, client: Client) -> None:
    asked = [Message(name="fresh")]
    answer = client.ask(ApiKey.METADATA, 8, topics=asked, allow_auto_topic_creation=False)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    answer = client.ask(ApiKey.METADATA, 8, topics=asked, allow_auto_topic_creation=True)
    assert (answer.topics[0].error_code, len(answer.topics[0].partitions)) == (0, 1)
    forbidding = Driver({"auto.create.topics.enable": False}).connect()
    answer = forbidding.ask(ApiKey.METADATA, 8, topics=asked, allow_auto_topic_creation=True)
    assert answer.topics[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_auto_creation_uses_num_partitions_and_refuses_illegal_names() -> None:
    client = Driver({"num.partitions": 7}).connect()
    answer = client.ask(ApiKey.METADATA, 3, topics=[Message(name="fresh"), Message(name="not/legal")])
    assert [len(topic.partitions) for topic in answer.topics] == [7, 0]
    assert answer.topics[1].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_topics_by_id(driver: Driver, client: Client) -> None:
    known = driver.controller.image.topics["events"].topic_id
    answer = client.ask(
        ApiKey.METADATA,
        12,
        topics=[Message(name=None, topic_id=known), Message(name=None, topic_id=uuid.UUID(int=5))],
    )
    assert [(topic.error_code, topic.name) for topic in answer.topics] == [
        (0, "events"),
        (ErrorCode.UNKNOWN_TOPIC_ID, None),
    ]


@pytest.mark.parametrize("asked", [{"name": None}, {"name": "events", "topic_id": uuid.UUID(int=5)}])
def test_versions_that_carry_ids_and_cannot_ask_by_them_refuse_ids_and_null_names(
    client: Client, asked: dict[str, Any]
) -> None:
    for version in (10, 11):
        (topic,) = client.ask(
            ApiKey.METADATA, version, topics=[Message(**{"topic_id": uuid.UUID(int=0), **asked})]
        ).topics
        assert (topic.error_code, topic.name) == (ErrorCode.INVALID_REQUEST, asked["name"] or "")


def test_a_partition_whose_broker_is_down_has_no_leader(driver: Driver, client: Client) -> None:
    driver.controller.broker_started(Node(1, "other", 9093))
    driver.controller.create_topic("theirs", assignments={0: [1]})
    driver.controller.broker_stopped(1)
    answer = client.ask(ApiKey.METADATA, 12, topics=[Message(name="theirs", topic_id=uuid.UUID(int=0))])
    (partition,) = answer.topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)
    assert partition.offline_replicas == [1]
    assert [node.node_id for node in answer.brokers] == [0]


# --- Producer ids


def test_each_call_gives_another_producer_id_also_after_a_restart(driver: Driver, client: Client) -> None:
    def ask(client: Client) -> int:
        answer = client.ask(
            ApiKey.INIT_PRODUCER_ID,
            4,
            transactional_id=None,
            transaction_timeout_ms=0,
            producer_id=-1,
            producer_epoch=-1,
        )
        assert (answer.error_code, answer.producer_epoch) == (0, 0)
        return int(answer.producer_id)

    given = [ask(client) for _ in range(3)]
    driver.kill()
    driver.start()
    given.append(ask(driver.connect()))
    assert len(set(given)) == 4


def test_a_transactional_id_cannot_be_empty_and_is_served_by_its_coordinator(client: Client) -> None:
    for transactional_id, code in (("", ErrorCode.INVALID_REQUEST), ("t", ErrorCode.NOT_COORDINATOR)):
        answer = client.ask(
            ApiKey.INIT_PRODUCER_ID, 2, transactional_id=transactional_id, transaction_timeout_ms=1
        )
        assert answer.error_code == code


def test_a_crash_tells_who_waits_for_a_stop(driver: Driver) -> None:
    driver.disk.hold_syncs = True
    assert produce(driver.connect(), batch([b"a"])).error_code == 0
    waiting = driver.stop()
    assert not waiting.done
    told = driver.broker.crashed(RuntimeError("broken"))
    assert [effect.completion for effect in told if isinstance(effect, fx.Resolve)] == [waiting]
    assert driver.broker.state is BrokerState.STOPPED


def test_a_crash_tells_those_whose_operation_brought_it_about_or_was_still_to_come(
    driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver.broker.controller, "cut", lambda _cut: 1 / 0)
    first, second = Answer(), Answer()
    driver.broker.receive(ev.Submitted(SetFaults(Faults(), first)))
    driver.broker.receive(ev.Submitted(KillBroker(second)))
    with pytest.raises(ZeroDivisionError):
        driver.run()
    told = driver.broker.crashed(ZeroDivisionError())
    assert [effect.completion for effect in told if isinstance(effect, fx.Resolve)] == [first, second]
