"""Our consumers in a group on our brokers, in virtual time, by seed: members come, go and die while
brokers are killed and come back.

What must hold: an offset that was acknowledged is never taken back, whoever coordinates the group
next; two members never have a partition each commit it in turn; and once the trouble is over every
record was read and every partition has one reader.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from fairlead_kafka.base.errors import BrokerError, FairleadError, TimedOut
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.consumer import Consumer
from fairlead_kafka.wire import ApiKey
from tests.support.broker_driver import batch, produce_fields
from tests.support.checked_clients import CheckedConsumer
from tests.support.virtual_cluster import FIRST_PORT, VirtualCluster
from tests.support.virtual_hosting import Opening, VirtualHosted

PARTITIONS, BROKERS, MEMBERS_MAX, STEPS = 4, 3, 3, 60
ALL = [TopicPartition("t", number) for number in range(PARTITIONS)]
STRATEGIES = ["range", "roundrobin", "sticky", "cooperative-sticky"]


class World:
    """A cluster, a group, and what is known of both from outside."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.cluster = VirtualCluster(BROKERS, config={"group.min.session.timeout.ms": 100}, latency_ms=1)
        self.opener = Opening(self.cluster.host)
        replicas = {
            number: [(number + step) % BROKERS for step in range(BROKERS)] for number in range(PARTITIONS)
        }
        self.cluster.controller.create_topic("t", assignments=replicas)
        self.strategy = STRATEGIES[seed % len(STRATEGIES)]
        self.members: list[Consumer] = []
        self.hosts: list[VirtualHosted] = []
        """Of each member."""
        self.dead: set[int] = set()
        self.written = dict.fromkeys(ALL, 0)
        self.read: dict[TopicPartition, set[int]] = {of: set() for of in ALL}
        self.acknowledged = dict.fromkeys(ALL, 0)

    def join(self) -> None:
        config = {
            "bootstrap.servers": ",".join(f"127.0.0.1:{FIRST_PORT + node_id}" for node_id in range(BROKERS)),
            "group.id": "g",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 3_000,
            "heartbeat.interval.ms": 500,
            "partition.assignment.strategy": self.strategy,
        }
        consumer = CheckedConsumer(config, opener=self.opener)
        self.hosts.append(self.opener.hosted[-1])
        consumer.subscribe(["t"])
        self.members.append(consumer)

    def leave(self) -> None:
        parting = self.rng.randrange(len(self.members))
        self.members.pop(parting).close()
        self.hosts.pop(parting)

    def die(self) -> None:
        """A member's process is gone, and its heartbeats with it."""
        dead = self.rng.randrange(len(self.members))
        self.members.pop(dead)
        self.hosts.pop(dead).close()

    def kill(self) -> None:
        """One broker at most is down at a time: with two of three in sync nothing acknowledged can
        be lost."""
        if not self.dead and all(
            len(one.isr) == BROKERS for one in self.cluster.controller.image.topics["t"].partitions
        ):
            node_id = self.rng.randrange(BROKERS)
            self.cluster.kill(node_id)
            self.dead.add(node_id)

    def revive(self) -> None:
        for node_id in list(self.dead):
            self.cluster.start(node_id)
            self.dead.remove(node_id)

    def write(self) -> None:
        of = self.rng.choice(ALL)
        leader = self.cluster.leader(of)
        if leader in self.cluster.brokers:
            answer = self.cluster.ask(leader, ApiKey.PRODUCE, 9, **produce_fields({tuple(of): batch([b"x"])}))
            self.written[of] += not answer.responses[0].partition_responses[0].error_code

    def poll(self) -> None:
        """One member reads a little and commits it, and is believed only if it says that it did."""
        member = self.rng.choice(self.members)
        for record in member.poll(self.rng.choice([0.01, 0.3]), max_records=3):
            self.read[TopicPartition(record.topic, record.partition)].add(record.offset)
        positions = self.positions(member)
        try:
            if positions:
                member.commit(positions, timeout_s=4)
        except (BrokerError, TimedOut):
            return
        for of, offset in positions.items():
            assert offset >= self.acknowledged[of], (
                f"{of} goes back to {offset}, and {self.acknowledged[of]} was acknowledged"
            )
            self.acknowledged[of] = offset

    def positions(self, member: Consumer) -> dict[TopicPartition, int]:
        found = {}
        for of in member.assignment():
            try:
                found[of] = member.position(of, timeout_s=4)
            except FairleadError:
                continue
        return found

    def heal(self) -> None:
        """The trouble is over: everybody polls until everything is read and shared."""
        self.revive()
        if not self.members:
            self.join()
        for _ in range(400):
            for member in self.members:
                for record in member.poll(0.1):
                    self.read[TopicPartition(record.topic, record.partition)].add(record.offset)
            readers = sorted(of for member in self.members for of in member.assignment())
            if readers == ALL and all(len(self.read[of]) >= self.written[of] for of in ALL):
                return
        raise AssertionError((self.read, self.written, [member.assignment() for member in self.members]))


@pytest.mark.parametrize("seed", range(8))
def test_acknowledged_offsets_stand_and_everything_is_read(seed: int) -> None:
    world = World(seed)
    world.join()
    for _ in range(STEPS):
        choices: list[Any] = [world.write, world.write, world.kill, world.revive]
        if world.members:
            choices += [world.poll, world.poll, world.poll, world.poll, world.leave, world.die]
        if len(world.members) < MEMBERS_MAX:
            choices += [world.join]
        world.rng.choice(choices)()
    world.heal()
    committed = world.members[0].committed(ALL)
    for of in ALL:
        one = committed[of]
        assert (0 if one is None else one.offset) >= world.acknowledged[of]
    for member in world.members:
        member.close()
