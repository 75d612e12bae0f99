"""Partitions that this broker leads: a request's topic and number are looked up, and give a
partition of the log or an error code."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol
from uuid import UUID

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller import (
    BrokerConfigsChanged,
    Change,
    ClusterView,
    LeadersChanged,
    TopicConfigsChanged,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.log import Logs, Partition, TopicLimits
from fairlead_kafka.broker.purgatory import Purgatory
from fairlead_kafka.broker.replication import Replication

_logger = GuardedLogger("fairlead_kafka.broker")


class PartitionsHost(Protocol):
    """The parts of a broker that its partitions use."""

    node_id: int
    controller: ClusterView
    logs: Logs
    purgatory: Purgatory
    replication: Replication


class HostedPartitions:
    """The partitions of one broker, as the controller's image has them."""

    def __init__(self, broker: PartitionsHost) -> None:
        self._broker = broker
        self._limits: dict[UUID, TopicLimits] = {}
        self._offline: set[Partition] = set()

    def take_offline(self, partition: Partition) -> None:
        """Take a partition offline until the broker is started again: work for it raised, and its
        state is in doubt."""
        if partition not in self._offline:
            self._offline.add(partition)
            _logger.error("%s: offline on broker %d until it starts again", partition, self._broker.node_id)
            self._broker.replication.taken_offline(partition)
            self._broker.purgatory.wake(partition)

    def topic_of(self, topic_id: UUID) -> tuple[str, TopicLimits] | None:
        """Name and limits of a topic; None if it was deleted. The limits object is kept up to
        date."""
        topic = self._broker.controller.image.topics_by_id.get(topic_id)
        if topic is None:
            return None
        limits = self._limits.get(topic_id)
        if limits is None:
            limits = TopicLimits.of(self._broker.controller.topic_settings(topic.name, self._broker.node_id))
            self._limits[topic_id] = limits
        return topic.name, limits

    def find(self, topic: TopicImage | None, number: int, claimed_epoch: int = -1) -> Partition | int:
        """The partition if it is led here, else the error code that Kafka's `Partition.getLocalLog`
        gives.

        `claimed_epoch` is the leader epoch in the client's request; -1: it has none.
        """
        if topic is None or not 0 <= number < len(topic.partitions):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        image = topic.partitions[number]
        if claimed_epoch >= 0 and claimed_epoch != image.leader_epoch:
            return (
                ErrorCode.FENCED_LEADER_EPOCH
                if claimed_epoch < image.leader_epoch
                else ErrorCode.UNKNOWN_LEADER_EPOCH
            )
        if image.leader != self._broker.node_id:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = self._broker.logs.partition(topic.topic_id, number)
        if partition in self._offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        self._broker.replication.lead(topic, number, partition)
        return partition

    def find_followed(self, topic: TopicImage, number: int) -> Partition | int:
        """The partition if it is followed here, else NOT_LEADER_OR_FOLLOWER. To be called after
        `find`, which checks number and epoch."""
        if self._broker.node_id not in topic.partitions[number].replicas:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        partition = self._broker.logs.partition(topic.topic_id, number)
        return ErrorCode.KAFKA_STORAGE_ERROR if partition in self._offline else partition

    def leader_epoch(self, partition: Partition) -> int:
        """The partition's present leader epoch; -1 if its topic is gone."""
        topic = self._broker.controller.image.topics_by_id.get(partition.topic_id)
        return topic.partitions[partition.partition].leader_epoch if topic is not None else -1

    def leader_hint(self, topic: TopicImage | None, number: int) -> tuple[int, int]:
        """(Leader's node id, leader epoch) of a partition, for an answer that this broker does not
        lead it (KIP-951); (-1, -1) if there is no such partition."""
        if topic is None or not 0 <= number < len(topic.partitions):
            return -1, -1
        image = topic.partitions[number]
        return image.leader, image.leader_epoch

    def endpoints(self, leaders: Iterable[int], listener: str) -> list[Node]:
        """Addresses of the brokers `leaders`, each once, for clients of `listener` (KIP-951)."""
        brokers = self._broker.controller.image.brokers
        return [brokers[leader].endpoint(listener) for leader in dict.fromkeys(leaders) if leader in brokers]

    def changed(self, change: Change) -> None:
        """React to a change of the cluster: limits of topics, and deleted topics."""
        broker = self._broker
        if isinstance(change, TopicDeleted):
            self._limits.pop(change.topic.topic_id, None)
            for partition in broker.logs.forget_topic(change.topic.topic_id):
                self._offline.discard(partition)
                broker.purgatory.wake(partition)
                broker.replication.gone(partition)
        elif isinstance(change, LeadersChanged):
            for topic, numbers in change.by_topic():
                hosted = broker.logs.known_of(topic.topic_id)
                for number in numbers if hosted else ():
                    if number in hosted:
                        broker.purgatory.wake(hosted[number])
        elif isinstance(change, TopicConfigsChanged):
            self._refresh(change.topic)
        elif isinstance(change, BrokerConfigsChanged):
            for topic_id in list(self._limits):
                self._refresh(broker.controller.image.topics_by_id[topic_id])

    def _refresh(self, topic: TopicImage) -> None:
        limits = self._limits.get(topic.topic_id)
        if limits is not None:
            limits.update(self._broker.controller.topic_settings(topic.name, self._broker.node_id))
