"""Decisions: requests of a broker to the controller for changes of the cluster's metadata, as plain
values.

A decision may be sent to the controller over a connection (`broker.control`), so its fields are
plain: numbers, texts, UUIDs, enums, tuples and lists of these, and the dataclasses of this package.
`controller.DECIDERS` has the method of `Controller` that decides each; its return value is the
decision's result, and a `BrokerError` that it raises its error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, NamedTuple, TypeVar
from uuid import UUID

from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller.configs import ConfigAlteration
from fairlead_kafka.broker.controller.image import ScramCredential, TopicImage
from fairlead_kafka.broker.controller.placement import Assignments

R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
DecisionDone = Callable[[R | None, BrokerError | None], None]
"""Called once with the outcome of a decision: (result, None) or (None, error). The broker's own
image has the decision by then."""


class Decision(Generic[R_co]):
    """A change of the cluster's metadata that the controller is asked for; `R_co`: its result."""

    __slots__: tuple[str, ...] = ()


class Spender(NamedTuple):
    """The client whose quota pays for creating and deleting partitions (KIP-599)."""

    user: str
    client_id: str | None
    strict: bool
    """True: what is above the quota is refused. False: it is done, and the client throttled."""


@dataclass(frozen=True, slots=True)
class Charged(Decision[tuple[R | BrokerError, int]], Generic[R]):
    """A decision that is made in the name of a client, and charged to it. Result: that of the
    decision, or its BrokerError; and for how many milliseconds the client is throttled."""

    decision: Decision[R]
    spender: Spender


class NewTopic(NamedTuple):
    """A topic to be created; -1 means num.partitions and default.replication.factor."""

    name: str
    partitions: int = -1
    replication_factor: int = -1
    assignments: Assignments | None = None
    configs: Mapping[str, str | None] | None = None


@dataclass(frozen=True, slots=True)
class CreateTopics(Decision[list[TopicImage | BrokerError]]):
    """Decision: create topics. Result: for each its image, or the BrokerError for which it is not
    created."""

    topics: Sequence[NewTopic]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class CreateInternalTopic(Decision[TopicImage]):
    """Decision: create the topic `name` of INTERNAL_TOPICS, unless it exists. Result: its image."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteTopics(Decision[list[TopicImage | BrokerError]]):
    """Decision: delete topics, by name or id. Result: for each its last image, or the BrokerError
    for which it is not deleted."""

    topics: Sequence[str | UUID]


@dataclass(frozen=True, slots=True)
class CreatePartitions(Decision[None]):
    """Decision: grow the topic `name` to `partitions` partitions in all; `assignments` are the
    replicas of the new ones. Result: None."""

    name: str
    partitions: int
    assignments: Sequence[Sequence[int]] | None = None
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterTopicConfigs(Decision[None]):
    """Decision: change a topic's own configs, all alterations or none. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterBrokerConfigs(Decision[None]):
    """Decision: change the dynamic configs of a broker, or with CLUSTER_WIDE of all, all
    alterations or none. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterClientMetrics(Decision[None]):
    """Decision: change the configs of a subscription to clients' metrics (KIP-714), all alterations
    or none. A subscription without configs does not exist. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterGroupConfigs(Decision[None]):
    """Decision: change a group's own configs, all alterations or none. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


class QuotaAlteration(NamedTuple):
    """Changes of one entity's quotas. `entity`: (type, name or None for the default) pairs;
    `values`: (quota, value or None to remove it) pairs."""

    entity: Sequence[tuple[str, str | None]]
    values: Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(Decision[list[BrokerError | None]]):
    """Decision: set and remove quotas. Result: for each alteration None, or the BrokerError for
    which none of its changes was made."""

    alterations: Sequence[QuotaAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(Decision[tuple[int, int]]):
    """Decision: give a broker a block of producer ids. Result: (first id, number of ids)."""

    node_id: int


@dataclass(frozen=True, slots=True)
class BrokerStarted(Decision[int]):
    """Decision: a broker listens, and takes part from now on. Other brokers reach it at `node`,
    clients of each listener at its end point. Result: its broker epoch."""

    node: Node
    endpoints: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerStopped(Decision[None]):
    """Decision: a broker has ended. Result: None."""

    node_id: int


@dataclass(frozen=True, slots=True)
class BrokerStopping(Decision[None]):
    """Decision: a broker begins a controlled shutdown, and leadership moves to others where
    possible. Result: None."""

    node_id: int


@dataclass(frozen=True, slots=True)
class DiskReported(Decision[None]):
    """Decision: writes to a broker's disk fail, and leadership moves to others where possible; or
    they succeed again (`works`). Result: None. The error STALE_BROKER_EPOCH: the broker was started
    again since."""

    node_id: int
    broker_epoch: int
    works: bool


class ProposedIsr(NamedTuple):
    """The replicas in sync of one partition, as its leader proposes them. `topic_id` is in
    hexadecimal. The epochs are those of the leader's image. `isr_epochs`: the epochs of the brokers
    in `isr` as the leader knows them from their fetches (KIP-903), or nothing."""

    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[int]
    isr_epochs: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class AlterPartitions(Decision[list[int]]):
    """Decision: change replicas in sync as the leader `node_id`, at `broker_epoch`, proposes
    (Kafka's AlterPartition). Result: an error code for each change. 0: accepted, or true already.
    NOT_CONTROLLER: the leader knows more than the image. FENCED_LEADER_EPOCH: it leads no more.
    INVALID_UPDATE_VERSION: the partition changed meanwhile, look again. INELIGIBLE_REPLICA: a
    replica is fenced, stopping, on a failed disk, or was started again. INVALID_REQUEST,
    UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION as they say. The error STALE_BROKER_EPOCH: nothing
    was changed."""

    node_id: int
    broker_epoch: int
    changes: Sequence[ProposedIsr]


@dataclass(frozen=True, slots=True)
class ElectLeaders(Decision[list[tuple[str, int, BrokerError | None]]]):
    """Decision: elect leaders, by type (0 preferred, 1 unclean), of (topic, partition) pairs; None:
    of all. Result: (topic, partition, BrokerError or None)."""

    election_type: int
    partitions: Sequence[tuple[str, int]] | None


class Reassignment(NamedTuple):
    """A partition and the brokers that are to have its replicas, the preferred leader first; None:
    cancel the move under way."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class AlterReassignments(Decision[list[BrokerError | None]]):
    """Decision: begin, change or cancel reassignments. `may_change_factor`: a reassignment may
    change the number of replicas. Result: for each None or a BrokerError."""

    moves: Sequence[Reassignment]
    may_change_factor: bool = True


@dataclass(frozen=True, slots=True)
class CreateAcls(Decision[list[BrokerError | None]]):
    """Decision: create ACLs. Result: for each None, or the BrokerError for which it is not
    created."""

    bindings: Sequence[AclBinding]


@dataclass(frozen=True, slots=True)
class DeleteAcls(Decision[list[list[AclBinding] | BrokerError]]):
    """Decision: delete all ACLs that match filters. Result: for each filter the list of those
    deleted, or the BrokerError of an invalid filter."""

    filters: Sequence[AclFilter]


class ScramAlteration(NamedTuple):
    """A user's credential for a mechanism, by the protocol's number; `credential` None: it is
    deleted."""

    user: str
    mechanism: int
    credential: ScramCredential | None


@dataclass(frozen=True, slots=True)
class AlterScramCredentials(Decision[list[BrokerError | None]]):
    """Decision: change SCRAM credentials; of one user all or none. Result: for each None, or the
    BrokerError of its user."""

    alterations: Sequence[ScramAlteration]


class UpgradeType(IntEnum):
    """Direction in which a feature level may change, by the protocol's numbers."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class FeatureUpdate(NamedTuple):
    """A feature's new level; 0 turns it off."""

    feature: str
    level: int
    upgrade_type: UpgradeType


@dataclass(frozen=True, slots=True)
class UpdateFeatures(Decision[None]):
    """Decision: change feature levels, all or none. Result: None."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False
