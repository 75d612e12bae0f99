"""Arguments and results of admin calls, as in `org.apache.kafka.clients.admin`."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.ids import Node, TopicPartition
from fairlead_kafka.base.within import Int32
from fairlead_kafka.core.metadata import PartitionMetadata

ConfigValue = str | float | bool
"""A config's value; it is sent as text."""


@dataclass(slots=True, frozen=True)
class NewTopic:
    """A topic to create.

    `partitions` or `replication_factor` -1: the broker's default. `assignments` instead of both:
    for each partition its brokers, the preferred leader first; a list by partition, or a mapping
    from each partition's number. `configs`: by Kafka's names.
    """

    name: str
    partitions: Int32 = -1
    replication_factor: Int32 = -1
    assignments: Sequence[Sequence[Int32]] | Mapping[Int32, Sequence[Int32]] | None = None
    configs: Mapping[str, ConfigValue] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class NewPartitions:
    """The number of partitions that a topic is to have, `total`; `assignments`: the brokers of each
    partition that is added."""

    total: Int32
    assignments: Sequence[Sequence[Int32]] | None = None


@dataclass(slots=True, frozen=True)
class TopicListing:
    """A topic by name and id (all zero if the broker knows no ids)."""

    name: str
    topic_id: uuid.UUID
    is_internal: bool


@dataclass(slots=True, frozen=True)
class TopicDescription:
    """A topic; `partitions` by number, each with leader, leader_epoch, replicas and isr (node ids).

    `authorized_operations`: what the user of this client may do with it; None if that was not asked
    for, or the broker does not report them.
    """

    name: str
    topic_id: uuid.UUID
    is_internal: bool
    partitions: list[PartitionMetadata]
    authorized_operations: frozenset[AclOperation] | None = None


@dataclass(slots=True, frozen=True)
class ClusterDescription:
    """The cluster: its id, its live brokers, and the one to send admin requests to (with KRaft any
    broker, which passes them on).

    `authorized_operations`: what the user of this client may do with it; None if that was not asked
    for.
    """

    cluster_id: str | None
    controller: Node | None
    nodes: list[Node]
    authorized_operations: frozenset[AclOperation] | None = None
    fenced: frozenset[int] = frozenset()
    """Ids of those among `nodes` that are known and do not run, if they were asked for."""


@dataclass(slots=True, frozen=True)
class ReplicaLog:
    """One replica in a log directory: the size of its log, and how far it is behind (in records; 0
    for a leader)."""

    size_bytes: int
    offset_lag: int
    is_future: bool
    """True: it is being moved from another directory of its broker, and will take its place."""


@dataclass(slots=True, frozen=True)
class LogDirDescription:
    """A log directory of a broker.

    `error`: why it is offline. Sizes in bytes are those of its disk, None where the broker does not
    know.
    """

    replicas: Mapping[TopicPartition, ReplicaLog]
    error: Exception | None
    total_bytes: int | None
    usable_bytes: int | None


class ResourceType(IntEnum):
    """Types of resources that have configs (`ConfigResource.Type`)."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigResource(NamedTuple):
    """A resource that has configs.

    The name of a broker is its node id in digits, or empty for the default of all brokers.
    """

    type: ResourceType
    name: str

    def __str__(self) -> str:
        return f"{self.type.name.lower().replace('_', ' ')} {self.name or '(default of all)'}"

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        """The configs of a topic."""
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def group(cls, group_id: str) -> ConfigResource:
        """The configs of a group."""
        return cls(ResourceType.GROUP, group_id)

    @classmethod
    def client_metrics(cls, name: str) -> ConfigResource:
        """The configs of a subscription to clients' metrics (KIP-714)."""
        return cls(ResourceType.CLIENT_METRICS, name)

    @classmethod
    def broker(cls, node_id: int | None) -> ConfigResource:
        """The configs of a broker; None: the default of all brokers."""
        return cls(ResourceType.BROKER, "" if node_id is None else str(node_id))


class ConfigSource(IntEnum):
    """Source of a config's value (`DescribeConfigsResponse.ConfigSource`)."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


@dataclass(slots=True, frozen=True)
class ConfigEntry:
    """One config. `value` is None if it is null, or sensitive. `source` is a `ConfigSource`, or a
    number newer than this client."""

    name: str
    value: str | None
    source: int
    is_read_only: bool
    is_sensitive: bool

    @property
    def is_default(self) -> bool:
        """True if nobody has set it."""
        return self.source == ConfigSource.DEFAULT


class ConfigOperation(IntEnum):
    """How a config is changed (`AlterConfigOp.OpType`, KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigChange(NamedTuple):
    """One change. APPEND and SUBTRACT are for configs that are lists; DELETE, which takes no value,
    goes back to the default."""

    operation: ConfigOperation
    name: str
    value: ConfigValue | None = None

    @classmethod
    def set(cls, name: str, value: ConfigValue) -> ConfigChange:
        """Set a config to a value."""
        return cls(ConfigOperation.SET, name, value)

    @classmethod
    def delete(cls, name: str) -> ConfigChange:
        """Set a config back to its default."""
        return cls(ConfigOperation.DELETE, name)

    @classmethod
    def append(cls, name: str, value: ConfigValue) -> ConfigChange:
        """Add items to a config that is a list."""
        return cls(ConfigOperation.APPEND, name, value)

    @classmethod
    def subtract(cls, name: str, value: ConfigValue) -> ConfigChange:
        """Remove items from a config that is a list."""
        return cls(ConfigOperation.SUBTRACT, name, value)


def config_text(value: ConfigValue | None) -> str | None:
    """A config's value as a text, as Kafka writes it; None for None."""
    return None if value is None else str(value).lower() if isinstance(value, bool) else str(value)
