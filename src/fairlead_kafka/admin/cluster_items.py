"""Arguments and results of admin calls on the cluster: moves of replicas, producers of partitions,
features, the quorum."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int16, Int32, Int64


class ElectionType(IntEnum):
    """Kinds of elections (`org.apache.kafka.common.ElectionType`, KIP-460)."""

    PREFERRED = 0
    """Give leadership back to the replica that is named first."""
    UNCLEAN = 1
    """Let a replica lead that was not in sync, where none that was is alive; records may be
    lost."""


@dataclass(slots=True, frozen=True)
class PartitionReassignment:
    """A partition whose replicas are being reassigned (KIP-455), by node ids: all its replicas, and
    of them those that are added and those that are removed."""

    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]


class PartitionReplica(NamedTuple):
    """A replica: a partition on a broker (`org.apache.kafka.common.TopicPartitionReplica`)."""

    topic: str
    partition: Int32
    node_id: Int32

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.node_id}"


@dataclass(slots=True, frozen=True)
class ProducerState:
    """A producer as a partition's leader knows it (KIP-664).

    `last_timestamp_ms` is since 1970. `coordinator_epoch` and `transaction_start_offset` are None
    if the producer never ended a transaction on this partition, and if it has none open.
    """

    producer_id: int
    epoch: int
    last_sequence: int
    last_timestamp_ms: int
    coordinator_epoch: int | None
    transaction_start_offset: int | None


class AbortTransaction(NamedTuple):
    """A transaction to abort on one partition, without its coordinator
    (`org.apache.kafka.clients.admin.AbortTransactionSpec`)."""

    partition: TopicPartition
    producer_id: Int64
    epoch: Int16
    coordinator_epoch: Int32

    def __str__(self) -> str:
        return f"{self.partition} (producer {self.producer_id})"


class FencedProducer(NamedTuple):
    """Producer id and epoch that a transactional id has now: older producers are fenced."""

    producer_id: int
    epoch: int


class UpgradeType(IntEnum):
    """Kinds of changes of a feature's level (`FeatureUpdate.UpgradeType`, KIP-584)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureLevels(NamedTuple):
    """Levels of a feature, both included."""

    lowest: int
    highest: int


@dataclass(slots=True, frozen=True)
class FeatureMetadata:
    """Features by name: what the broker that answered supports, and the levels of the whole
    cluster. `epoch` grows with every change; None if the cluster has no levels."""

    supported: dict[str, FeatureLevels]
    finalized: dict[str, int]
    epoch: int | None


@dataclass(slots=True, frozen=True)
class QuorumReplica:
    """A replica of the metadata log, on a controller or broker. Times in ms since 1970, None where
    the broker does not report them."""

    replica_id: int
    log_end_offset: int
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(slots=True, frozen=True)
class QuorumInfo:
    """The quorum of controllers (KIP-836): who leads, who votes, who only follows."""

    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: tuple[QuorumReplica, ...]
    observers: tuple[QuorumReplica, ...]
