"""The stock Python clients, unmodified, as members of an embedded cluster's groups: resuming,
sharing, and waiting for a broker."""

from __future__ import annotations

import asyncio
import itertools
import logging
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fairlead_kafka.testing import Cluster
from tests.support.stock_clients import (
    FIRST_TEN,
    NEXT_TEN,
    PARTITIONS,
    PATIENCE_S,
    READERS,
    confluent_read,
    create,
    fill,
    until,
)

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")
kafka_admin = pytest.importorskip("kafka.admin")
aiokafka = pytest.importorskip("aiokafka")
aiokafka_admin = pytest.importorskip("aiokafka.admin")

_numbers = itertools.count()

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3) as running:
        yield running


@pytest.fixture(scope="module")
def admin(cluster: Cluster) -> Any:
    return confluent_admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers})


@pytest.fixture
def name() -> str:
    """A name for a topic or group that nobody has used."""
    return f"stock-member-{next(_numbers)}"


@pytest.fixture
def topic(cluster: Cluster, admin: Any, name: str) -> str:
    """A topic of four partitions with ten records in each."""
    create(admin, name)
    fill(cluster.bootstrap_servers, name)
    return name


def at_once(*polls: Callable[[], object]) -> None:
    """Poll members at the same time, each on a thread of its own.

    A poll of kafka-python that ends in the middle of a join forgets the answer and joins anew, on a
    busy machine for ever. So it gets time, and the others, which the join waits for, are not kept
    waiting by it.
    """
    with ThreadPoolExecutor(len(polls)) as pool:
        list(pool.map(lambda poll: poll(), polls))


# --- Resuming


@pytest.mark.parametrize("client", READERS)
def test_a_group_resumes_where_it_committed(cluster: Cluster, topic: str, client: str) -> None:
    group = f"group-of-{topic}"
    assert READERS[client](cluster.bootstrap_servers, group, topic, 40) == FIRST_TEN
    fill(cluster.bootstrap_servers, topic)
    assert READERS[client](cluster.bootstrap_servers, group, topic, 40) == NEXT_TEN


@pytest.mark.parametrize(("first", "second"), list(itertools.permutations(READERS, 2)))
def test_one_client_resumes_where_another_committed(
    cluster: Cluster, topic: str, first: str, second: str
) -> None:
    group = f"group-of-{topic}"
    assert READERS[first](cluster.bootstrap_servers, group, topic, 40) == FIRST_TEN
    fill(cluster.bootstrap_servers, topic)
    assert READERS[second](cluster.bootstrap_servers, group, topic, 40) == NEXT_TEN


# --- Sharing


@pytest.mark.parametrize("strategy", ["range", "roundrobin", "cooperative-sticky"])
def test_confluent_members_share_partitions_and_take_over_from_each_other(
    cluster: Cluster, topic: str, strategy: str
) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": f"group-of-{topic}",
        "partition.assignment.strategy": strategy,
        "heartbeat.interval.ms": 100,
        "auto.offset.reset": "earliest",
    }
    members = [confluent_kafka.Consumer(config) for _ in range(2)]

    def shares() -> list[int]:
        return [len(member.assignment()) for member in members]

    def poll() -> None:
        for member in members:
            member.poll(0.05)

    members[0].subscribe([topic])
    until(lambda: shares() == [PARTITIONS, 0], poll)
    members[1].subscribe([topic])
    until(lambda: shares() == [PARTITIONS // 2, PARTITIONS // 2], poll)
    gone = members.pop(0)
    gone.close()
    until(lambda: shares() == [PARTITIONS], poll)
    members[0].close()


def test_kafka_python_members_share_partitions(cluster: Cluster, topic: str) -> None:
    members = [
        kafka.KafkaConsumer(
            topic,
            bootstrap_servers=cluster.bootstrap_servers,
            group_id=f"group-of-{topic}",
            heartbeat_interval_ms=100,
            session_timeout_ms=6000,
        )
        for _ in range(2)
    ]
    try:
        until(
            lambda: [len(member.assignment()) for member in members] == [PARTITIONS // 2] * 2,
            lambda: at_once(*(partial(member.poll, timeout_ms=2000) for member in members)),
        )
    finally:
        for member in members:
            member.close()


def test_aiokafka_members_share_partitions(cluster: Cluster, topic: str) -> None:
    async def share() -> None:
        members = [
            aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=f"group-of-{topic}",
                heartbeat_interval_ms=100,
            )
            for _ in range(2)
        ]
        await asyncio.gather(*(member.start() for member in members))
        try:
            deadline = time.monotonic() + PATIENCE_S
            while [len(member.assignment()) for member in members] != [PARTITIONS // 2] * 2:
                assert time.monotonic() < deadline
                await asyncio.gather(*(member.getmany(timeout_ms=50) for member in members))
        finally:
            await asyncio.gather(*(member.stop() for member in members))

    asyncio.run(share())


def test_clients_of_different_make_share_one_group(cluster: Cluster, topic: str) -> None:
    group = f"group-of-{topic}"
    librdkafka = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "partition.assignment.strategy": "range",
            "heartbeat.interval.ms": 100,
        }
    )
    python = kafka.KafkaConsumer(
        bootstrap_servers=cluster.bootstrap_servers, group_id=group, heartbeat_interval_ms=100
    )
    librdkafka.subscribe([topic])
    python.subscribe([topic])
    try:
        until(
            lambda: [len(librdkafka.assignment()), len(python.assignment())] == [PARTITIONS // 2] * 2,
            lambda: at_once(lambda: librdkafka.poll(2), lambda: python.poll(timeout_ms=2000)),
        )
    finally:
        librdkafka.close()
        python.close()


# --- Brokers that go and come back


def test_a_group_resumes_after_the_cluster_was_closed(tmp_path: Path) -> None:
    with Cluster(brokers=3, data_dir=tmp_path) as first:
        create(confluent_admin.AdminClient({"bootstrap.servers": first.bootstrap_servers}), "orders")
        fill(first.bootstrap_servers, "orders")
        assert confluent_read(first.bootstrap_servers, "group", "orders", 40) == FIRST_TEN
    with Cluster(brokers=3, data_dir=tmp_path) as again:
        fill(again.bootstrap_servers, "orders")
        assert confluent_read(again.bootstrap_servers, "group", "orders", 40) == NEXT_TEN
