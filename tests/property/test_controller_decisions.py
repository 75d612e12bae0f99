"""Any decisions in any order: what is replayed is what was lived, every partition makes sense at
every moment, limits hold growth."""

from __future__ import annotations

import random
from collections import Counter
from contextlib import suppress
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.controller import (
    AlterOperation,
    ClusterImage,
    ConfigAlteration,
    Controller,
    NewTopic,
    PartitionImage,
    ProposedIsr,
    Reassignment,
)
from fairlead_kafka.broker.controller.fold import apply
from fairlead_kafka.broker.controller.limits import count_replicas
from fairlead_kafka.broker.controller.log import decode_log
from tests.support.controllers import make_controller, node

BROKERS = 5
TOPICS = ("a", "b", "c")


class Life:
    """A controller, and somebody who asks it for one thing after another, at random."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.log: list[bytes] = []
        self.controller = make_controller(brokers=3, log=self.log)
        self.alive = {0, 1, 2}
        self.deeds = (
            self.create,
            self.create_assigned,
            self.create_internal,
            self.grow,
            self.delete,
            self.start,
            self.stop,
            self.shut_down,
            self.propose,
            self.propose,
            self.propose,
            self.move,
            self.move,
            self.cancel,
            self.elect,
            self.limit,
            self.switch_unclean,
        )

    def act(self) -> None:
        with suppress(BrokerError):  # refused; that nothing changed by it is what the checks are for
            self.rng.choice(self.deeds)()

    def some_replicas(self, most: int = 4) -> list[int]:
        return self.rng.sample(range(BROKERS), self.rng.randint(1, most))

    def create(self) -> None:
        self.controller.create_topics(
            [
                NewTopic(name, self.rng.randint(1, 6), self.rng.randint(1, 4))
                for name in self.rng.sample(TOPICS, 2)
            ],
            validate_only=self.rng.random() < 0.1,
        )

    def create_assigned(self) -> None:
        factor = self.rng.randint(1, 3)
        assignments = {
            number: self.rng.sample(range(BROKERS), factor) for number in range(self.rng.randint(1, 4))
        }
        self.controller.create_topic(self.rng.choice(TOPICS), assignments=assignments)

    def create_internal(self) -> None:
        self.controller.create_offsets_topic()

    def grow(self) -> None:
        name = self.rng.choice(TOPICS)
        self.controller.create_partitions(
            name, len(self.controller.topic(name).partitions) + self.rng.randint(1, 4)
        )

    def delete(self) -> None:
        self.controller.delete_topic(self.rng.choice(TOPICS))

    def start(self) -> None:
        node_id = self.rng.randrange(BROKERS)
        self.controller.broker_started(node(node_id))
        self.alive.add(node_id)

    def stop(self) -> None:
        node_id = self.rng.randrange(BROKERS)
        self.controller.broker_stopped(node_id)
        self.alive.discard(node_id)

    def shut_down(self) -> None:
        self.controller.broker_stopping(self.rng.randrange(BROKERS))

    def partitions(self) -> list[tuple[str, int, PartitionImage]]:
        return [(topic.name, number, one) for topic, number, one in self.controller.image.partitions()]

    def propose(self) -> None:
        """Leaders want whoever they see in sync, at times for what was."""
        image = self.controller.image
        leaders = [broker for broker in image.brokers.values() if broker.alive]
        leader = self.rng.choice(leaders) if leaders else None
        if leader is None:
            return
        proposals = []
        for topic, number, one in image.partitions():
            if one.leader == leader.node.node_id and self.rng.random() < 0.7:
                wanted = {replica for replica in one.replicas if self.rng.random() < 0.7} | {one.leader}
                stale = self.rng.choice((0, 0, 0, 0, 1))
                isr = tuple(sorted(wanted))
                proposals.append(
                    ProposedIsr(
                        topic.topic_id.hex, number, one.leader_epoch, one.partition_epoch - stale, isr
                    )
                )
        self.controller.alter_partitions(leader.node.node_id, leader.epoch, proposals)

    def move(self) -> None:
        there = self.partitions()
        if there:
            chosen = self.rng.sample(there, min(len(there), 3))
            self.controller.alter_reassignments(
                [Reassignment(topic, number, self.some_replicas()) for topic, number, _ in chosen]
            )

    def cancel(self) -> None:
        self.controller.alter_reassignments(
            [Reassignment(topic, number, None) for topic, number, one in self.partitions() if one.adding]
        )

    def elect(self) -> None:
        self.controller.elect_leaders(self.rng.randrange(2), None)

    def limit(self) -> None:
        key, most = self.rng.choice((("max.partitions", 60), ("max.broker.partitions", 16)))
        name = self.rng.choice(("", "0", "1"))
        self.controller.alter_broker_configs(
            name, [ConfigAlteration(key, AlterOperation.SET, str(self.rng.randint(0, most)))]
        )

    def switch_unclean(self) -> None:
        value = self.rng.choice(("true", "false"))
        self.controller.alter_broker_configs(
            "", [ConfigAlteration("unclean.leader.election.enable", AlterOperation.SET, value)]
        )


def check_partition(image: ClusterImage, name: str, one: PartitionImage) -> None:
    assert one.replicas, name
    assert len(set(one.replicas)) == len(one.replicas), name
    assert set(one.isr) <= set(one.replicas), name
    assert one.isr, name
    assert set(one.adding) | set(one.removing) <= set(one.replicas), name
    assert not set(one.adding) & set(one.removing), name
    if one.leader != NO_LEADER:
        assert one.leader in one.isr, name
        assert image.is_alive(one.leader), name
    if len(one.isr) > 1:
        assert all(image.is_alive(replica) for replica in one.isr), name
    if one.leader == NO_LEADER:
        eligible = image.eligible()
        assert not any(replica in eligible for replica in one.isr), name


def present(controller: Controller) -> dict[Any, PartitionImage]:
    return {(topic.topic_id, number): replace(one) for topic, number, one in controller.image.partitions()}


def check_epochs(before: PartitionImage, after: PartitionImage) -> None:
    """Every change shows in the partition epoch, every new leader in the leader epoch, and neither
    goes back."""
    assert (after.leader_epoch > before.leader_epoch) or (after.leader, after.leader_epoch) == (
        before.leader,
        before.leader_epoch,
    )
    assert after.partition_epoch > before.partition_epoch or after == before
    if not set(before.replicas) <= set(after.replicas):
        assert after.leader_epoch > before.leader_epoch


def held(controller: Controller) -> Counter[int]:
    topics = [topic for topic in controller.image.topics.values() if not topic.internal]
    return count_replicas(one.replicas for topic in topics for one in topic.partitions)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_every_decision_leaves_a_cluster_that_makes_sense_and_a_log_that_says_so(seed: int) -> None:
    life = Life(seed)
    controller = life.controller
    for _ in range(40):
        before, counted = present(controller), held(controller)
        life.act()
        for topic, number, one in controller.image.partitions():
            check_partition(controller.image, f"{topic.name}-{number} {one}", one)
        for key, after in present(controller).items():
            check_epochs(before.get(key, after), after)
        now = held(controller)
        assert controller.limits.held() == now
        assert sum(now.values()) <= max(controller.limits.in_all(), sum(counted.values()))
        assert all(
            now[node_id] <= max(controller.limits.of_broker(node_id), counted[node_id]) for node_id in now
        )
    replayed = ClusterImage()
    decisions, _ = decode_log(b"".join(life.log))
    for record in [record for decision in decisions for record in decision]:
        apply(replayed, record)
    assert replayed == controller.image
    snapshot = ClusterImage()
    decisions, _ = decode_log(controller.snapshot())
    for record in [record for decision in decisions for record in decision]:
        apply(snapshot, record)
    assert snapshot == controller.image


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30, deadline=None)
def test_a_cluster_that_restarts_is_led_again_by_whoever_led_it(seed: int) -> None:
    life = Life(seed)
    for _ in range(30):
        life.act()
    before = life.controller
    again = make_controller(brokers=0, replay=b"".join(life.log))
    for _, _, one in again.image.partitions():
        assert one.leader == NO_LEADER
    alive = sorted(before.image.eligible())
    life.rng.shuffle(alive)
    for node_id in alive:
        again.broker_started(node(node_id))
    for name, topic in before.image.topics.items():
        for number, one in enumerate(topic.partitions):
            now = again.image.topics[name].partitions[number]
            assert now.isr == one.isr
            if one.leader in alive:
                assert now.leader == one.leader, (name, number)
                assert now.leader_epoch > one.leader_epoch
