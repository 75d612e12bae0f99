"""Cycles of everything that comes and goes at brokers: what they and the controller keep afterwards
is no more than before."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.controller import DeleteTopics
from fairlead_kafka.runtime import VirtualHost
from fairlead_kafka.wire import ApiKey, Message
from tests.support.broker_driver import batch, produce_fields
from tests.support.kept import grown, kept
from tests.support.virtual_cluster import Transactor, VirtualCluster

CONFIG = {
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "offsets.retention.minutes": 1,
    "offsets.retention.check.interval.ms": 1_000,
    "producer.id.expiration.ms": 5_000,
    "producer.id.expiration.check.interval.ms": 1_000,
    "transactional.id.expiration.ms": 60_000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 1_000,
    "log.retention.ms": 5_000,
    "log.retention.check.interval.ms": 1_000,
    "log.cleaner.backoff.ms": 1_000,
    "log.cleaner.delete.retention.ms": 1_000,
    "log.cleaner.min.cleanable.ratio": 0.01,
    "log.flush.offset.checkpoint.interval.ms": 1_000,
    "group.initial.rebalance.delay.ms": 0,
    "group.min.session.timeout.ms": 100,
    "auto.create.topics.enable": False,
}
FEW, MANY = 40, 160
FORGOTTEN_MS = 200_000.0
"""Longer than all that a broker remembers for a time."""
BASE = TopicPartition("base", 0)
Cycle = Callable[[VirtualCluster, int], None]


def topics(cluster: VirtualCluster, number: int) -> None:
    name = f"topic-{number}"
    cluster.topic(name, 2)
    for partition in range(2):
        records = batch([b"x"], producer_id=10_000 + number, producer_epoch=0, base_sequence=0)
        answer = cluster.ask(
            cluster.leader(TopicPartition(name, partition)),
            ApiKey.PRODUCE,
            9,
            **produce_fields({(name, partition): records}),
        )
        assert answer.responses[0].partition_responses[0].error_code == 0
    assert cluster.values(TopicPartition(name, 0)) == [b"x"]
    cluster.controller.decide(DeleteTopics([name]), lambda _result, _error: None)
    cluster.quiesce(10)
    assert name not in cluster.controller.image.topics


def transactions(cluster: VirtualCluster, number: int) -> None:
    producer = Transactor(cluster, "stays").ready()
    producer.write(BASE, b"v")
    producer.finish(committed=number % 8 != 0)


def transactional_ids(cluster: VirtualCluster, number: int) -> None:
    producer = Transactor(cluster, f"id-{number}").ready()
    producer.write(BASE, b"v")
    producer.finish(committed=True)


def producers(cluster: VirtualCluster, number: int) -> None:
    answer = cluster.ask(
        0,
        ApiKey.INIT_PRODUCER_ID,
        4,
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=-1,
        producer_epoch=-1,
    )
    records = batch([b"x"], producer_id=answer.producer_id, producer_epoch=0, base_sequence=0)
    cluster.ask(cluster.leader(BASE), ApiKey.PRODUCE, 9, **produce_fields({tuple(BASE): records}))


def members(cluster: VirtualCluster, number: int, group: str = "stays") -> None:
    found = cluster.ask(0, ApiKey.FIND_COORDINATOR, 3, key=group, key_type=0)
    fields = {
        "group_id": group,
        "session_timeout_ms": 6_000,
        "rebalance_timeout_ms": 6_000,
        "group_instance_id": None,
        "protocol_type": "consumer",
        "reason": None,
        "protocols": [Message(name="range", metadata=b"m")],
    }
    first = cluster.ask(found.node_id, ApiKey.JOIN_GROUP, 8, member_id="", **fields)
    joined = cluster.ask(found.node_id, ApiKey.JOIN_GROUP, 8, member_id=first.member_id, **fields)
    assert joined.error_code == 0, joined
    assigned = [Message(member_id=joined.member_id, assignment=b"a")]
    synced = cluster.ask(
        found.node_id,
        ApiKey.SYNC_GROUP,
        5,
        group_id=group,
        generation_id=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=None,
        protocol_type="consumer",
        protocol_name="range",
        assignments=assigned,
    )
    assert synced.error_code == 0
    committed = cluster.ask(
        found.node_id,
        ApiKey.OFFSET_COMMIT,
        8,
        group_id=group,
        generation_id_or_member_epoch=joined.generation_id,
        member_id=joined.member_id,
        group_instance_id=None,
        topics=[
            Message(
                name="base",
                partitions=[
                    Message(
                        partition_index=0,
                        committed_offset=0,
                        committed_leader_epoch=-1,
                        committed_metadata=None,
                    )
                ],
            )
        ],
    )
    assert committed.topics[0].partitions[0].error_code == 0
    cluster.ask(
        found.node_id,
        ApiKey.LEAVE_GROUP,
        4,
        group_id=group,
        members=[Message(member_id=joined.member_id, group_instance_id=None)],
    )


def groups(cluster: VirtualCluster, number: int) -> None:
    members(cluster, number, f"group-{number}")


def connections(cluster: VirtualCluster, number: int) -> None:
    cluster.send(0, ApiKey.API_VERSIONS, 0, lane=number)
    cluster.quiesce(1)
    cluster.hang_up()


CYCLES = [topics, transactions, transactional_ids, producers, members, groups, connections]


@pytest.mark.parametrize("cycle", CYCLES, ids=lambda cycle: cycle.__name__)
def test_what_came_and_went_is_forgotten(cycle: Cycle) -> None:
    cluster = VirtualCluster(2, CONFIG, checks=False)
    cluster.topic("base", 1)
    counts, number = [], 0
    for many in (FEW, MANY):
        while number < many:
            cycle(cluster, number)
            number += 1
        cluster.quiesce(FORGOTTEN_MS)
        for _ in range(3):  # the newest batch is never compacted: what is behind it lets it go
            members(cluster, 0, "last")
            Transactor(cluster, "last").ready()
            cluster.quiesce(3_000)
        cluster.hang_up()
        aside = (VirtualHost, Settings)  # the host has what its disk holds; settings are many dicts in one
        counts.append({node: kept(broker, aside) for node, broker in cluster.brokers.items()})
    for node, before in counts[0].items():
        assert grown(before, counts[1][node], (MANY - FEW) // 2) == {}, f"broker {node}"
