"""Where new partitions go: around the ring of live brokers, each topic going on where the one before it ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.base.ids import NO_LEADER
from fairlead.broker.controller.image import ClusterImage, PartitionImage, TopicImage

PARTITIONS_PER_TOPIC_MAX = 100_000
"""Most partitions of one topic: a slip of the keyboard should not take the process's memory."""

Replicas = tuple[int, ...]
Assignments = Mapping[int, Sequence[int]]
"""Partition number → replicas, the preferred leader first."""


def round_robin(broker_ids: Sequence[int], partition_count: int, replication_factor: int, start: int) -> list[Replicas]:
    """Replicas of `partition_count` new partitions, the preferred leader first.

    The n-th partition's leader is the broker at `start` + n on the ring, so leaders are spread to within one. Its followers come
    after it at a distance that grows by one with each turn of the ring, so that a broker's partitions do not all share one
    follower (the idea of Kafka's `AdminUtils.assignReplicasToBrokers`). ValueError if there are too few brokers.
    """
    ring = len(broker_ids)
    if not 1 <= replication_factor <= ring:
        raise ValueError(f"{replication_factor} replicas need as many brokers; there are {ring}")
    assignments = []
    for number in range(start, start + partition_count):
        leader = number % ring
        distance = number // ring
        followers = (1 + (distance + replica) % (ring - 1) for replica in range(replication_factor - 1))
        assignments.append((broker_ids[leader], *(broker_ids[(leader + step) % ring] for step in followers)))
    return assignments


class Placement:
    """Chooses and checks replicas. All methods raise BrokerError with Kafka's code for what cannot be."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image
        self.placed = 0
        """Partitions placed so far, where the next topic starts on the ring; the controller counts."""

    def of_new_topic(
        self, partitions: int, replication_factor: int, assignments: Assignments | None, defaults: Mapping[str, Any]
    ) -> list[Replicas]:
        """Replicas of each partition of a new topic: as assigned, or else around the ring; -1 is taken from `defaults`."""
        if not assignments:
            count = defaults["num.partitions"] if partitions == -1 else partitions
            return self.ring(count, defaults["default.replication.factor"] if replication_factor == -1 else replication_factor)
        if partitions != -1 or replication_factor != -1:
            raise BrokerError(ErrorCode.INVALID_REQUEST, "an assignment was given, so partitions and replication factor must be -1")
        check_partition_count(len(assignments))
        if sorted(assignments) != list(range(len(assignments))):
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, "the partitions of an assignment must be numbered 0, 1, 2, ...")
        return [self._checked(number, assignments[number]) for number in range(len(assignments))]

    def of_more_partitions(self, topic: TopicImage, count: int, assignments: Sequence[Sequence[int]] | None) -> list[Replicas]:
        """Replicas of the partitions a topic lacks to have `count`; `assignments`, if given, are those, in order."""
        present = len(topic.partitions)
        if count <= present:
            raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"{topic.name} has {present} partitions; it can only grow, not go to {count}")
        check_partition_count(count)
        if assignments is None:
            return self.ring(count - present, topic.replication_factor)
        if len(assignments) != count - present:
            raise BrokerError(
                ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"{count - present} partitions are new, but {len(assignments)} assignments given"
            )
        return [self._checked(present + number, replicas) for number, replicas in enumerate(assignments)]

    def ring(self, count: int, replication_factor: int) -> list[Replicas]:
        """Replicas of `count` partitions around the ring of live brokers."""
        check_partition_count(count)
        _check_replication_factor(replication_factor)
        alive = [broker.node.node_id for broker in self._image.alive()]
        if not alive:
            raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, "no broker is alive to hold a partition")
        return round_robin(alive, count, replication_factor, self.placed)

    def new_partition(self, replicas: Replicas) -> PartitionImage:
        """A partition's first image: all live replicas are in sync, the first of them leads."""
        alive = tuple(node_id for node_id in replicas if self._image.is_alive(node_id))
        return PartitionImage(replicas, alive or replicas, alive[0] if alive else NO_LEADER, 0)

    def _checked(self, number: int, replicas: Sequence[int]) -> Replicas:
        wrong = ""
        unknown = [node_id for node_id in replicas if node_id not in self._image.brokers]
        if not replicas:
            wrong = "no replicas given"
        elif len(set(replicas)) != len(replicas):
            wrong = f"a broker is named twice: {list(replicas)}"
        elif unknown:
            wrong = f"there is no broker {unknown[0]}"
        if wrong:
            raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, f"partition {number}: {wrong}")
        _check_replication_factor(len(replicas))
        return tuple(replicas)


def check_partition_count(count: int) -> None:
    """BrokerError(INVALID_PARTITIONS) unless a topic can have `count` partitions."""
    if not 1 <= count <= PARTITIONS_PER_TOPIC_MAX:
        raise BrokerError(ErrorCode.INVALID_PARTITIONS, f"a topic has 1 to {PARTITIONS_PER_TOPIC_MAX} partitions, not {count}")


def _check_replication_factor(replication_factor: int) -> None:
    if replication_factor < 1:
        raise BrokerError(ErrorCode.INVALID_REPLICATION_FACTOR, f"a partition has at least 1 replica, not {replication_factor}")
    if replication_factor > 1:
        raise BrokerError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication_factor}: partitions have one replica in this release; ask for 1, or for -1",
        )
