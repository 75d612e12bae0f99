"""The stock Python clients, unmodified, as members of groups that share anew while their
coordinators are killed and stopped."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from fairlead_kafka.broker.home import home_partition
from fairlead_kafka.testing import Cluster
from tests.support.stock_clients import PARTITIONS, PATIENCE_S, create, fill

confluent_kafka = pytest.importorskip("confluent_kafka")
confluent_admin = pytest.importorskip("confluent_kafka.admin")
kafka = pytest.importorskip("kafka")
aiokafka = pytest.importorskip("aiokafka")

logging.getLogger("kafka").setLevel(logging.CRITICAL)
logging.getLogger("aiokafka").setLevel(logging.CRITICAL)

GROUP, TOPIC = "group", "orders"
Found = set[tuple[int, int]]

STUCK_S = 7.0
"""A member of kafka-python that has read nothing for so long has lost an answer, and has to come
anew."""


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    """Three brokers; a topic of four partitions with three replicas each, and ten records in each
    partition."""
    with Cluster(brokers=3, config={"group.min.session.timeout.ms": 100}) as running:
        create(_admin(running), TOPIC, replication_factor=3)
        fill(running.bootstrap_servers, TOPIC)
        yield running


def _admin(cluster: Cluster) -> Any:
    return confluent_admin.AdminClient({"bootstrap.servers": cluster.bootstrap_servers, "log_level": 1})


def coordinator(cluster: Cluster) -> int:
    topic = _admin(cluster).list_topics("__consumer_offsets", timeout=PATIENCE_S).topics["__consumer_offsets"]
    return int(topic.partitions[home_partition(GROUP, len(topic.partitions))].leader)


def records(rounds: int) -> Found:
    """What there is to be read after so many fills."""
    return {(partition, offset) for partition in range(PARTITIONS) for offset in range(10 * rounds)}


def the_story(
    cluster: Cluster,
    join: Callable[[], None],
    leave: Callable[[], None],
    until: Callable[[Callable[[], bool]], None],
    found: Found,
) -> None:
    """Members come and go while their coordinator does: in the end every record was read."""
    join()
    until(lambda: found == records(1))
    for rounds, (change, end) in enumerate([(join, "kill"), (leave, "stop")], start=2):
        leader = coordinator(cluster)
        change()
        getattr(cluster.broker(leader), end)()
        fill(cluster.bootstrap_servers, TOPIC)
        until(lambda rounds=rounds: found == records(rounds))  # type: ignore[misc]
        cluster.broker(leader).start()


def test_confluent_members_share_anew_while_coordinators_go(cluster: Cluster) -> None:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": GROUP,
        "auto.offset.reset": "earliest",
        "heartbeat.interval.ms": 100,
        "session.timeout.ms": 2_000,
        "log_level": 1,
    }
    members: list[Any] = []
    found: Found = set()

    def join() -> None:
        members.append(confluent_kafka.Consumer(config))
        members[-1].subscribe([TOPIC])

    def until(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, sorted(found)
            for member in members:
                found.update(
                    (one.partition(), one.offset())
                    for one in member.consume(50, timeout=0.05)
                    if one.error() is None
                )

    try:
        the_story(cluster, join, lambda: members.pop(0).close(), until, found)
    finally:
        for member in members:
            member.close()


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # it leaves sockets open whose connection was refused
def test_kafka_python_members_share_anew_while_coordinators_go(cluster: Cluster) -> None:
    members: list[Any] = []
    found: Found = set()

    def join() -> None:
        members.append(
            kafka.KafkaConsumer(
                TOPIC,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=GROUP,
                auto_offset_reset="earliest",
                heartbeat_interval_ms=100,
                session_timeout_ms=2_000,
            )
        )

    def until(holds: Callable[[], bool]) -> None:
        stuck_s, count = STUCK_S, len(found)
        deadline, stuck_at = time.monotonic() + 2 * PATIENCE_S, time.monotonic() + stuck_s
        while not holds():
            assert time.monotonic() < deadline, sorted(found)
            for member in members:
                # It asks for a broker that its newest metadata no longer has, or looks for the
                # coordinator at one that is down and tells of that: races of its own, over with the
                # next poll.
                with suppress(kafka.errors.UnknownBrokerIdError, kafka.errors.KafkaConnectionError):
                    found.update(
                        (one.partition, one.offset)
                        for batch in member.poll(timeout_ms=50).values()
                        for one in batch
                    )
            if len(found) > count:
                count, stuck_at = len(found), time.monotonic() + stuck_s
            elif time.monotonic() > stuck_at:
                # Another race of its own: if SyncGroup is answered between two polls the answer is
                # lost, and it reads nothing for ever.
                stuck_s *= 2  # on a slow machine it may only have been about to read
                stuck_at = time.monotonic() + stuck_s
                for _ in range(len(members)):
                    members.pop(0).close()
                    join()

    try:
        the_story(cluster, join, lambda: members.pop(0).close(), until, found)
    finally:  # its thread would go on, and draw random numbers in the midst of other tests
        for member in members:
            member.close()
        gc.collect()  # else another test finds its sockets


def test_aiokafka_members_share_anew_while_coordinators_go(cluster: Cluster) -> None:
    members: list[Any] = []
    found: Found = set()
    loop = asyncio.new_event_loop()

    def join() -> None:
        async def begin() -> Any:
            member = aiokafka.AIOKafkaConsumer(
                TOPIC,
                bootstrap_servers=cluster.bootstrap_servers,
                group_id=GROUP,
                auto_offset_reset="earliest",
                heartbeat_interval_ms=100,
                session_timeout_ms=2_000,
            )
            await member.start()
            return member

        members.append(loop.run_until_complete(begin()))

    async def read() -> None:
        for member in members:
            for batch in (await member.getmany(timeout_ms=50)).values():
                found.update((one.partition, one.offset) for one in batch)

    def until(holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < deadline, sorted(found)
            loop.run_until_complete(read())

    try:
        the_story(cluster, join, lambda: loop.run_until_complete(members.pop(0).stop()), until, found)
        for member in members:
            loop.run_until_complete(member.stop())
    finally:
        loop.close()
