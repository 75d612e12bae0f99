"""The cluster as the controller knows it, and what changed in it. Plain data: only `fold.apply` writes to an image."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from uuid import UUID

from fairlead.base.ids import NO_LEADER, Node

CLUSTER_WIDE = ""
"""The broker name under which cluster-wide dynamic configs are kept, as in Kafka's protocol."""
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC})
"""Topics that clients may read and may not create, delete or grow (Kafka's `Topic.isInternal`)."""


@dataclass(slots=True)
class BrokerInfo:
    """One broker: where it listens, and whether it runs now. A replayed broker is not alive until it starts again."""

    node: Node
    alive: bool


@dataclass(slots=True)
class PartitionImage:
    """One partition. `replicas` in order of preference; `leader` is NO_LEADER (-1) while no replica in sync is alive."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int


@dataclass(slots=True)
class TopicImage:
    """One topic; `partitions` by number; `configs` holds what was set on the topic itself, as text."""

    name: str
    topic_id: UUID
    partitions: list[PartitionImage]
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def internal(self) -> bool:
        """True for Kafka's internal topics."""
        return self.name in INTERNAL_TOPICS

    @property
    def replication_factor(self) -> int:
        """Replicas of the first partition; all have as many unless an assignment was given."""
        return len(self.partitions[0].replicas) if self.partitions else 0


@dataclass(slots=True)
class ClusterImage:
    """Everything the metadata log says. `broker_configs`: node id as text, or CLUSTER_WIDE, → key → text."""

    cluster_id: str = ""
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[UUID, TopicImage] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    next_producer_id: int = 0

    def alive(self) -> list[BrokerInfo]:
        """The brokers that run, by node id."""
        return [self.brokers[node_id] for node_id in sorted(self.brokers) if self.brokers[node_id].alive]

    def is_alive(self, node_id: int) -> bool:
        """True if the broker is known and runs."""
        broker = self.brokers.get(node_id)
        return broker is not None and broker.alive

    def controller_id(self) -> int:
        """The broker that speaks for the controller: the lowest id that runs; NO_LEADER if none does."""
        alive = self.alive()
        return alive[0].node.node_id if alive else NO_LEADER

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition, or None if there is no such topic or partition."""
        image = self.topics.get(topic)
        return image.partitions[partition] if image is not None and 0 <= partition < len(image.partitions) else None

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """Every partition of every topic, in order of creation: (topic, number, partition)."""
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                yield topic, number, partition


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """A topic is there, with all its partitions and leaders."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """A topic is gone; `topic` is its last image. A topic of the same name may come again with another id."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """A topic grew: partitions from `first` on are new."""

    topic: TopicImage
    first: int


@dataclass(frozen=True, slots=True)
class LeadersChanged:
    """Leader, epoch or replicas in sync of these partitions changed; the image has them."""

    partitions: tuple[tuple[TopicImage, int], ...]


@dataclass(frozen=True, slots=True)
class TopicConfigsChanged:
    """A topic's own configs changed: `Controller.topic_settings(topic.name)` has the new ones."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class BrokerConfigsChanged:
    """Dynamic configs of the broker `name` (a node id as text), or of all (CLUSTER_WIDE), changed; topics inherit them."""

    name: str


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """A broker started or stopped."""

    node_id: int
    alive: bool


Change = TopicCreated | TopicDeleted | PartitionsAdded | LeadersChanged | TopicConfigsChanged | BrokerConfigsChanged | BrokersChanged
