"""The stock Python clients, unmodified, meet faults by request: they do what they do against a
broker of Apache Kafka that answers so."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from fairlead_kafka.testing import ApiKey, Cluster, ErrorCode, SeenRequest
from tests.support.stock_clients import until
from tests.support.waiting import PATIENCE_S
from tests.support.wire_client import read

confluent_kafka = pytest.importorskip("confluent_kafka")
aiokafka = pytest.importorskip("aiokafka")
aiokafka_errors = pytest.importorskip("aiokafka.errors")
kafka = pytest.importorskip("kafka")
kafka_errors = pytest.importorskip("kafka.errors")


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with Cluster(1, config={"group.initial.rebalance.delay.ms": 0}) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: Cluster) -> Iterator[Cluster]:
    yield shared
    shared.restore()


@pytest.fixture
def topic(cluster: Cluster, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"\W", "-", request.node.name)
    cluster.create_topic(name, 1)
    return name


def confluent_send(cluster: Cluster, topic: str, value: bytes, **config: Any) -> Any:
    """Send one record; its message, or its error."""
    told: list[Any] = []
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 0, "retry.backoff.ms": 10, **config}
    )
    producer.produce(topic, value, on_delivery=lambda error, message: told.append(error or message))
    producer.flush(PATIENCE_S)
    return told[0]


def confluent_read(cluster: Cluster, topic: str, group: str) -> list[bytes]:
    """The first record of a topic, as a group reads it."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": cluster.bootstrap_servers, "group.id": group, "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([topic])
    got: list[bytes] = []

    def poll() -> None:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            got.append(message.value())

    until(lambda: bool(got), poll)
    consumer.close()
    return got


def aiokafka_run(test: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(test(), PATIENCE_S))


def test_confluent_sends_again_after_errors_that_pass(cluster: Cluster, topic: str) -> None:
    with (
        cluster.on(ApiKey.PRODUCE, topic=topic).answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2) as first,
        cluster.on(ApiKey.PRODUCE, topic=topic).answer(ErrorCode.NOT_LEADER_OR_FOLLOWER, times=1) as second,
    ):
        assert confluent_send(cluster, topic, b"a").offset() == 0
        assert (first.hits, second.hits) == (2, 1)
    assert read(cluster, topic) == [b"a"]


def test_confluent_gives_up_at_an_error_that_stays(cluster: Cluster, topic: str) -> None:
    with cluster.on(ApiKey.PRODUCE, topic=topic).answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED) as fault:
        error = confluent_send(cluster, topic, b"a")
        assert error.code() == confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED
        assert fault.hits == 1
    assert read(cluster, topic) == []


def test_confluent_with_a_lost_answer_writes_once_if_it_is_idempotent(cluster: Cluster, topic: str) -> None:
    on = cluster.on(ApiKey.PRODUCE, topic=topic)
    with on.disconnect(times=1, served=True):
        assert confluent_send(cluster, topic, b"once", **{"enable.idempotence": True}).offset() == 0
    assert read(cluster, topic) == [b"once"]
    with on.disconnect(times=1, served=True):
        assert confluent_send(cluster, topic, b"twice", **{"enable.idempotence": False}).offset() == 2
    assert read(cluster, topic) == [b"once", b"twice", b"twice"]


def test_confluent_times_out_where_no_answer_comes(cluster: Cluster, topic: str) -> None:
    with cluster.on(ApiKey.PRODUCE, topic=topic).drop() as fault:
        config = {"message.timeout.ms": 10_000, "socket.timeout.ms": 300}
        error = confluent_send(cluster, topic, b"a", **config)
        assert error.code() == confluent_kafka.KafkaError._MSG_TIMED_OUT
        assert fault.hits >= 1


def test_confluent_s_group_comes_through_what_passes(cluster: Cluster, topic: str) -> None:
    confluent_send(cluster, topic, b"a")
    group = f"{topic}-group"
    faults = [
        cluster.on(ApiKey.FIND_COORDINATOR, group=group).answer("COORDINATOR_NOT_AVAILABLE", times=1),
        cluster.on(ApiKey.JOIN_GROUP, group=group).answer("COORDINATOR_LOAD_IN_PROGRESS", times=1),
        cluster.on(ApiKey.SYNC_GROUP, group=group).answer("REBALANCE_IN_PROGRESS", times=1),
        cluster.on(ApiKey.OFFSET_FETCH, group=group).answer("COORDINATOR_LOAD_IN_PROGRESS", times=1),
        cluster.on(ApiKey.FETCH, topic=topic, partition=0).answer("NOT_LEADER_OR_FOLLOWER", times=1),
        cluster.on(ApiKey.LIST_OFFSETS, topic=topic).answer("LEADER_NOT_AVAILABLE", times=1),
    ]
    assert confluent_read(cluster, topic, group) == [b"a"]
    assert [fault.hits for fault in faults] == [1] * len(faults)


def test_aiokafka_sends_again_and_gives_up(cluster: Cluster, topic: str) -> None:
    async def send() -> Any:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap_servers, retry_backoff_ms=10
        ) as producer:
            return await producer.send_and_wait(topic, b"a")

    on = cluster.on(ApiKey.PRODUCE, topic=topic)
    with on.answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2) as fault:
        assert aiokafka_run(send).offset == 0
        assert fault.hits == 2
    with (
        on.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        pytest.raises(aiokafka_errors.TopicAuthorizationFailedError),
    ):
        aiokafka_run(send)


def test_aiokafka_reads_through_a_partition_that_fails(cluster: Cluster, topic: str) -> None:
    confluent_send(cluster, topic, b"a")
    seen: list[SeenRequest] = []

    async def receive() -> Any:
        async with aiokafka.AIOKafkaConsumer(
            topic, bootstrap_servers=cluster.bootstrap_servers, auto_offset_reset="earliest", client_id="mine"
        ) as consumer:
            return await consumer.getone()

    with (
        cluster.on(client_id="mine").observe(seen),
        cluster.on(ApiKey.FETCH, topic=topic, client_id="mine").answer(
            "NOT_LEADER_OR_FOLLOWER", times=2
        ) as fault,
    ):
        assert aiokafka_run(receive).value == b"a"
        assert fault.hits == 2
    assert {ApiKey.METADATA, ApiKey.LIST_OFFSETS, ApiKey.FETCH} <= {each.api for each in seen}
    assert {each.client_id for each in seen} == {"mine"}


def test_kafka_python_sends_again_and_gives_up(cluster: Cluster, topic: str) -> None:
    on = cluster.on(ApiKey.PRODUCE, topic=topic)
    producer = kafka.KafkaProducer(
        bootstrap_servers=cluster.bootstrap_servers, retries=5, retry_backoff_ms=10
    )
    with on.answer(ErrorCode.NOT_ENOUGH_REPLICAS, times=2) as fault:
        assert producer.send(topic, b"a").get(PATIENCE_S).offset == 0
        assert fault.hits == 2
    with (
        on.answer(ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        pytest.raises(kafka_errors.TopicAuthorizationFailedError),
    ):
        producer.send(topic, b"b").get(PATIENCE_S)
    producer.close()


def test_a_member_of_confluent_s_that_is_gone_is_missed_when_the_clock_moves(
    cluster: Cluster, topic: str
) -> None:
    """Its own time-out of 45 s is not waited for."""
    group = f"{topic}-group"
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "session.timeout.ms": 45_000,
    }
    consumer = confluent_kafka.Consumer(config)
    consumer.subscribe([topic])
    until(lambda: bool(consumer.assignment()), lambda: consumer.poll(0.1))
    with (
        cluster.on(ApiKey.HEARTBEAT, group=group).drop(),
        cluster.on(ApiKey.FETCH, topic=topic).drop(),
    ):
        other = confluent_kafka.Consumer(config)
        other.subscribe([topic])
        cluster.clock.advance(minutes=10)
        until(lambda: bool(other.assignment()), lambda: other.poll(0.1))
        other.close()
    consumer.close()
