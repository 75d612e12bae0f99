"""A `check()` notices what differs: each thing that is kept twice is falsified once, and the check
of its machine fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fairlead_kafka.base.checks import CheckFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.broker.coordinator.group_records import GroupKey
from fairlead_kafka.client.consumer import Consumer
from tests.support.client_rig import Rig as ClientRig
from tests.support.group_rig import GROUP, GroupRig, RigMember, quiesce
from tests.support.producer_rig import Rig as ProducerRig
from tests.support.virtual_cluster import VirtualCluster
from tests.support.virtual_hosting import Opening

OF = TopicPartition("t", 0)


def queue_of(machine: Any) -> Any:
    return machine.accumulator.topics["t"].queue(0)


def more(owner: Any, name: str, by: int = 1) -> None:
    setattr(owner, name, getattr(owner, name) + by)


PRODUCER: dict[str, Callable[[Any], None]] = {
    "records open": lambda machine: more(machine.ledger, "records_open"),
    "batches queued": lambda machine: machine.accumulator.topics["t"].queued_batches.__setitem__(0, 7),
    "in flight": lambda machine: more(queue_of(machine), "in_flight", -9),
    "schedule": lambda machine: machine.schedule.active.clear(),
    "timer": lambda machine: machine.schedule._timers.clear(),
    "batch": lambda machine: more(queue_of(machine).records, "count"),
    "row": lambda machine: more(next(iter(machine.ledger.open_submissions())), "rows"),
    "node": lambda machine: more(machine.nodes.state(0), "in_flight"),
    "window": lambda machine: more(machine.nodes.state(0).window, "limit", 99),
    "sequence": lambda machine: queue_of(machine).sequences.outstanding.append(None),
    "late": lambda machine: more(machine.accumulator.topics["u"].late, "size_bytes"),
    "account": lambda machine: machine.accumulator.topics["u"].late.policy.counter.placed_bytes.__setitem__(
        0, 99
    ),
}


@pytest.mark.parametrize("name", PRODUCER)
def test_of_a_producer(name: str) -> None:
    rig = ProducerRig()
    for topic in ("t", "u"):
        rig.cluster.create(topic, 2)
    producer = rig.producer(linger_ms=1_000, partitioner_class="late")
    producer.send("t", b"first", partition=0)
    producer.send("u", b"first")
    producer.flush()
    producer.send("t", b"x", partition=0)
    producer.send("u", b"x")
    rig.host.advance(5)
    producer.core.check()
    machine = rig.machine(producer)
    PRODUCER[name](machine)
    with pytest.raises(CheckFailed):
        machine.check()


def test_of_the_memory_account() -> None:
    rig = ProducerRig()
    rig.cluster.create("t", 1)
    producer = rig.producer(linger_ms=1_000)
    producer.send("t", b"x")
    producer.core.check()
    more(producer.core._memory, "free_bytes")
    with pytest.raises(CheckFailed, match=r"buffer\.memory"):
        producer.core.check()


CONSUMER: dict[str, Callable[[Any], None]] = {
    "bytes": lambda machine: machine._fetcher.waiting._bytes.__setitem__(1, 7),
    "line": lambda machine: machine._fetcher._line.clear(),
    "node": lambda machine: machine._fetcher._by_node.clear(),
    "generation": lambda machine: more(machine._partitions[OF], "generation"),
    "rest": lambda machine: setattr(machine._partitions[OF], "retry_at_ns", 2**62),
    "position": lambda machine: setattr(machine._partitions[OF], "position", -1),
    "failure": lambda machine: setattr(machine._partitions[OF], "error", ValueError()),
    "session": lambda machine: setattr(machine._fetcher._sessions[1], "_epoch", 3),
}


@pytest.mark.parametrize("name", CONSUMER)
def test_of_a_consumer(name: str) -> None:
    rig = ClientRig()
    rig.cluster.topic("t")
    rig.cluster.write("t", 0, [b"x"])
    consumer = rig.consumer(auto_offset_reset="earliest")
    consumer.assign([OF])
    consumer.poll(1)
    rig.cluster.write("t", 0, [b"y"])
    rig.host.advance(100)
    machine = rig.opener.machine
    machine.check()
    assert machine._fetcher.waiting.size_bytes() > 0
    CONSUMER[name](machine)
    with pytest.raises(CheckFailed):
        machine.check()


GROUPS: dict[str, Callable[[Any, Any], None]] = {
    "static": lambda shard, group: group.static.clear(),
    "leader": lambda shard, group: setattr(group, "leader_id", "nobody"),
    "timer": lambda shard, group: next(iter(group.members.values())).timer.cancel(),
    "writes": lambda shard, group: more(group, "pending_writes"),
    "in flight": lambda shard, group: shard.in_flight.update([GroupKey(GROUP)]),
    "transaction": lambda shard, group: shard.in_transaction.update({7: {GROUP}}),
    "waiting": lambda shard, group: setattr(next(iter(group.members.values())), "join_reply", print),
}


@pytest.mark.parametrize("name", GROUPS)
def test_of_a_group(name: str) -> None:
    rig = GroupRig()
    quiesce(RigMember(rig, instance_id="one"))
    rig.coordinator.check()
    shard = rig.coordinator.shards.of(GROUP)
    GROUPS[name](shard, shard.groups[GROUP])
    with pytest.raises(CheckFailed):
        rig.coordinator.check()


def test_of_fetch_sessions_and_purgatory() -> None:
    cluster = VirtualCluster(1, latency_ms=1)
    cluster.topic("t", partitions=3)
    consumer = Consumer(
        {"bootstrap.servers": "127.0.0.1:9092", "auto.offset.reset": "earliest"}, opener=Opening(cluster.host)
    )
    consumer.assign([TopicPartition("t", number) for number in range(3)])
    consumer.poll(1)
    broker = cluster.brokers[0]
    broker.fetch_sessions.check()
    session = next(iter(broker.fetch_sessions._sessions.values()))
    want = next(iter(session.wants.values()))
    want.watched, watched = None, want.watched
    with pytest.raises(CheckFailed, match="partitions watched"):
        broker.fetch_sessions.check()
    want.watched = watched
    del broker.fetch_sessions._sessions[session.session_id]
    session.waiting = None
    with pytest.raises(CheckFailed, match="has ended waits for"):
        broker.fetch_sessions.check()
    broker.purgatory._waiters[watched] = {}
    with pytest.raises(CheckFailed, match="nobody waits for"):
        broker.purgatory.check()
