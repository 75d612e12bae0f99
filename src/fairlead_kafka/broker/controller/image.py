"""The image: the cluster's metadata as the controller has it, and changes of it. Plain data: only
`fold.apply` writes to an image."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.acls import AclBinding
from fairlead_kafka.base.ids import NO_LEADER, Node
from fairlead_kafka.broker.quota_table import QuotaEntity

CLUSTER_WIDE = ""
"""The broker name under which cluster-wide dynamic configs are kept, as in Kafka's protocol."""
OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTIONS_TOPIC = "__transaction_state"
SHARE_STATE_TOPIC = "__share_group_state"
METADATA_TOPIC = "__cluster_metadata"
"""Name of KRaft's metadata log: no topic of a cluster may have it."""
NO_BROKER_EPOCH = -1
"""Epoch of a broker that never started."""
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
"""Topics that clients may read and may not create, delete or grow (Kafka's `Topic.isInternal`)."""


class ScramCredential(NamedTuple):
    """A user's SCRAM credential (RFC 5802): enough to verify that a client knows the password, and
    not to log in with it."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


@dataclass(slots=True)
class BrokerInfo:
    """One broker: where it listens, and whether it runs now. A replayed broker is not alive until
    it starts again.

    `node` is where the other brokers find it; `endpoints` says for each listener where its clients
    do: (host, port).

    `epoch` numbers its starts: no two starts of any brokers have the same. `stopping`: it is in a
    controlled shutdown, and still serves. `disk_failed`: writes to its disk fail at present, and it
    serves reads.
    """

    node: Node
    alive: bool
    epoch: int = NO_BROKER_EPOCH
    stopping: bool = False
    disk_failed: bool = False
    endpoints: Mapping[str, tuple[str, int]] = field(default_factory=dict)

    def endpoint(self, listener: str) -> Node:
        """The broker as clients of `listener` reach it. All brokers of a cluster have the same
        listeners."""
        where = self.endpoints.get(listener)
        return self.node if where is None else Node(self.node.node_id, *where, self.node.rack)

    @property
    def eligible(self) -> bool:
        """Whether the broker may begin to lead, come into sync, and be given partitions to hold."""
        return self.alive and not self.stopping and not self.disk_failed

    @property
    def fenced(self) -> bool:
        """True if the broker is fenced, as Kafka calls one that is not alive: known, but it neither
        leads nor is in sync."""
        return not self.alive


@dataclass(slots=True)
class PartitionImage:
    """One partition. `replicas` in order of preference; `leader` is NO_LEADER (-1) while no replica
    in sync is alive.

    `leader_epoch` grows with each new leader, `partition_epoch` with every change of leader,
    replicas or replicas in sync. During a reassignment `replicas` has the old and the new ones,
    `adding` those that must come into sync, `removing` those that are removed then (KIP-455).
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int = 0
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()

    @property
    def target_replicas(self) -> tuple[int, ...]:
        """The replicas that the partition has once its reassignment is complete; without one, its
        replicas."""
        return (
            tuple(replica for replica in self.replicas if replica not in self.removing)
            if self.removing
            else self.replicas
        )


@dataclass(slots=True)
class TopicImage:
    """One topic; `partitions` by number; `configs` has the topic's own configs, as text."""

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
        """Replicas of the first partition, once it has stopped moving; all have as many unless
        moved one by one."""
        return len(self.partitions[0].target_replicas) if self.partitions else 0


@dataclass(slots=True)
class ClusterImage:
    """The cluster's metadata, as the metadata log has it. `broker_configs`: node id as text, or
    CLUSTER_WIDE, → key → text."""

    cluster_id: str = ""
    brokers: dict[int, BrokerInfo] = field(default_factory=dict)
    topics: dict[str, TopicImage] = field(default_factory=dict)
    topics_by_id: dict[UUID, TopicImage] = field(default_factory=dict)
    broker_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    group_configs: dict[str, dict[str, str]] = field(default_factory=dict)
    """Group id → key → text, of consumer groups with configs of their own."""
    next_producer_id: int = 0
    acls: dict[AclBinding, None] = field(default_factory=dict)
    scram_credentials: dict[tuple[str, str], ScramCredential] = field(default_factory=dict)
    """SCRAM credentials by (mechanism, user)."""
    client_quotas: dict[QuotaEntity, dict[str, float]] = field(default_factory=dict)
    features: dict[str, int] = field(default_factory=dict)
    """Feature levels that were changed, by feature; `features.level` has those of all."""
    features_epoch: int = 0
    """Number of changes of feature levels so far; clients tell newer from older levels by it."""
    client_metrics: dict[str, dict[str, str]] = field(default_factory=dict)
    """Configs of subscriptions to clients' metrics (KIP-714), by the subscription's name."""
    log_end: int = 0
    """Records of the metadata log since the cluster began."""

    def alive(self) -> list[BrokerInfo]:
        """The brokers that run, by node id."""
        return [self.brokers[node_id] for node_id in sorted(self.brokers) if self.brokers[node_id].alive]

    def is_alive(self, node_id: int) -> bool:
        """True if the broker is known and runs."""
        broker = self.brokers.get(node_id)
        return broker is not None and broker.alive

    def eligible(self) -> frozenset[int]:
        """Ids of the brokers that may lead or come into sync: alive, not about to stop, and with a
        disk that works."""
        return frozenset(node_id for node_id, broker in self.brokers.items() if broker.eligible)

    def next_broker_epoch(self) -> int:
        """A broker epoch that no start of any broker had."""
        return 1 + max((broker.epoch for broker in self.brokers.values()), default=NO_BROKER_EPOCH)

    def controller_id(self) -> int:
        """The broker that speaks for the controller: the lowest id that runs; NO_LEADER if none
        does."""
        alive = self.alive()
        return alive[0].node.node_id if alive else NO_LEADER

    def partition(self, topic: str, partition: int) -> PartitionImage | None:
        """The partition, or None if there is no such topic or partition."""
        image = self.topics.get(topic)
        return (
            image.partitions[partition]
            if image is not None and 0 <= partition < len(image.partitions)
            else None
        )

    def topic_of_hex(self, topic_id: str) -> TopicImage | None:
        """The topic with this id in hexadecimal; None if there is none."""
        try:
            return self.topics_by_id.get(UUID(hex=topic_id))
        except ValueError:
            return None

    def partitions(self) -> Iterator[tuple[TopicImage, int, PartitionImage]]:
        """Every partition of every topic, in order of creation: (topic, number, partition)."""
        for topic in self.topics.values():
            for number, partition in enumerate(topic.partitions):
                yield topic, number, partition


@dataclass(frozen=True, slots=True)
class TopicCreated:
    """Change: a topic was created, with all its partitions and leaders."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class TopicDeleted:
    """Change: a topic was deleted; `topic` is its last image. A topic of the same name may be
    created later, with another id."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class PartitionsAdded:
    """Change: a topic has more partitions; those from `first` on are new."""

    topic: TopicImage
    first: int


@dataclass(frozen=True, slots=True)
class LeadersChanged:
    """Change: leader or leader epoch of these partitions changed, and perhaps their replicas and
    those in sync. The image has the new ones."""

    partitions: tuple[tuple[TopicImage, int], ...]

    def by_topic(self) -> Iterator[tuple[TopicImage, list[int]]]:
        """Yield each topic with the numbers of its partitions, in the order of `partitions`."""
        for _, pairs in groupby(self.partitions, key=lambda pair: id(pair[0])):
            topics, numbers = zip(*pairs, strict=True)
            yield topics[0], list(numbers)


@dataclass(frozen=True, slots=True)
class PartitionsChanged:
    """Change: replicas, or those in sync, of these partitions changed, with the same leader in the
    same epoch. The image has the new ones."""

    partitions: tuple[tuple[TopicImage, int], ...]


@dataclass(frozen=True, slots=True)
class TopicConfigsChanged:
    """Change: a topic's own configs changed: `Controller.topic_settings(topic.name)` has the new
    ones."""

    topic: TopicImage


@dataclass(frozen=True, slots=True)
class BrokerConfigsChanged:
    """Change: the dynamic configs of the broker `name` (a node id as text), or of all
    (CLUSTER_WIDE), changed; topics inherit them."""

    name: str


@dataclass(frozen=True, slots=True)
class GroupConfigsChanged:
    """Change: the configs of a group changed: `Controller.group_settings(group_id)` has the new
    ones."""

    group_id: str


@dataclass(frozen=True, slots=True)
class BrokersChanged:
    """Change: a broker started or stopped."""

    node_id: int
    alive: bool


@dataclass(frozen=True, slots=True)
class AclsChanged:
    """Change: ACLs were added or removed; the image has the new ones."""

    added: tuple[AclBinding, ...]
    removed: tuple[AclBinding, ...]


@dataclass(frozen=True, slots=True)
class ScramCredentialChanged:
    """Change: a user has another password for `mechanism`, or none any more."""

    mechanism: str
    user: str


@dataclass(frozen=True, slots=True)
class ClientQuotasChanged:
    """Change: the quotas of `entity` changed."""

    entity: QuotaEntity


@dataclass(frozen=True, slots=True)
class ClientMetricsChanged:
    """Change: the configs of the subscription `name` to clients' metrics changed."""

    name: str


Change = (
    TopicCreated
    | TopicDeleted
    | PartitionsAdded
    | LeadersChanged
    | PartitionsChanged
    | TopicConfigsChanged
    | BrokerConfigsChanged
    | GroupConfigsChanged
    | BrokersChanged
    | AclsChanged
    | ScramCredentialChanged
    | ClientQuotasChanged
    | ClientMetricsChanged
)
