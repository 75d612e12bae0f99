"""Everything that changes the cluster's metadata, as plain values: what a broker asks of the
controller, wherever that is.

A decision crosses from a broker to the controller, at times over a wire (`broker.control`), so its
fields are plain: numbers, texts, UUIDs, enums, tuples and lists of such, and the dataclasses of
this package. `controller.DECIDERS` says which method of `Controller` decides it; what that returns
is the decision's result, and the `BrokerError` it raises its error.
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
"""Told once what came of a decision: (result, None) or (None, error). The broker's own image has
the decision by then."""


class Decision(Generic[R_co]):
    """A change of the cluster's metadata that the controller is asked for; `R_co`: its result."""

    __slots__: tuple[str, ...] = ()


class Spender(NamedTuple):
    """The client for whom partitions are created or deleted, if there are quotas for that
    (KIP-599)."""

    user: str
    client_id: str | None
    strict: bool
    """True: what is above the quota is refused. False: it is done, and the client throttled."""


@dataclass(frozen=True, slots=True)
class Charged(Decision[tuple[R | BrokerError, int]], Generic[R]):
    """A decision that is made in the name of a client, and charged to it. Result: that of the
    decision, or its BrokerError; and for how many ms the client must be still."""

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
    """Topics to be created. Result: for each its image, or the BrokerError that says why it cannot
    be."""

    topics: Sequence[NewTopic]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class CreateInternalTopic(Decision[TopicImage]):
    """The topic `name` of INTERNAL_TOPICS, created if it is not there. Result: its image."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteTopics(Decision[list[TopicImage | BrokerError]]):
    """Topics by name or id. Result: for each its last image, or the BrokerError that says why it
    cannot go."""

    topics: Sequence[str | UUID]


@dataclass(frozen=True, slots=True)
class CreatePartitions(Decision[None]):
    """The topic `name` grows to so many partitions; `assignments` are the replicas of the new ones.
    Result: None."""

    name: str
    partitions: int
    assignments: Sequence[Sequence[int]] | None = None
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterTopicConfigs(Decision[None]):
    """A topic's own configs, all alterations or none. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterBrokerConfigs(Decision[None]):
    """Dynamic configs of a broker, or with CLUSTER_WIDE of all, all alterations or none. Result:
    None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterClientMetrics(Decision[None]):
    """Configs of a subscription to clients' metrics (KIP-714), all alterations or none; a
    subscription without configs is gone. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AlterGroupConfigs(Decision[None]):
    """A group's own configs, all alterations or none. Result: None."""

    name: str
    alterations: Sequence[ConfigAlteration]
    validate_only: bool = False


class QuotaAlteration(NamedTuple):
    """Quotas of the entity of these (type, name or None for the default): (quota, value or None to
    remove it)."""

    entity: Sequence[tuple[str, str | None]]
    values: Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class AlterClientQuotas(Decision[list[BrokerError | None]]):
    """Quotas set and removed. Result: for each alteration None, or the BrokerError that says why
    nothing of it was done."""

    alterations: Sequence[QuotaAlteration]
    validate_only: bool = False


@dataclass(frozen=True, slots=True)
class AllocateProducerIds(Decision[tuple[int, int]]):
    """A block of producer ids for a broker. Result: (first id, number of ids)."""

    node_id: int


@dataclass(frozen=True, slots=True)
class BrokerStarted(Decision[int]):
    """A broker listens, and takes part from now on: others find it at `node`, clients of a listener
    at its end point. Result: its epoch."""

    node: Node
    endpoints: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerStopped(Decision[None]):
    """A broker is gone. Result: None."""

    node_id: int


@dataclass(frozen=True, slots=True)
class BrokerStopping(Decision[None]):
    """Controlled shutdown: a broker will stop, and what others can lead moves. Result: None."""

    node_id: int


@dataclass(frozen=True, slots=True)
class DiskReported(Decision[None]):
    """A broker's disk takes nothing any more, and what others can lead is theirs; or it works
    again. Result: None.

    The error STALE_BROKER_EPOCH: it is in another life by now, of which this was not said.
    """

    node_id: int
    broker_epoch: int
    works: bool


class ProposedIsr(NamedTuple):
    """The replicas in sync of one partition, as its leader wants them.

    `topic_id` in hexadecimal. The epochs are those of the image the leader acts on. `isr_epochs`:
    the epochs of the brokers in `isr` as the leader knows them from their fetches (KIP-903), or
    nothing.
    """

    topic_id: str
    partition: int
    leader_epoch: int
    partition_epoch: int
    isr: Sequence[int]
    isr_epochs: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class AlterPartitions(Decision[list[int]]):
    """Replicas in sync that leader `node_id`, in the life `broker_epoch`, proposes (Kafka's
    AlterPartition). Result: per change a code.

    0: taken, or true already. NOT_CONTROLLER: the leader knows more than the image.
    FENCED_LEADER_EPOCH: it leads no more. INVALID_UPDATE_VERSION: the partition changed meanwhile,
    look again. INELIGIBLE_REPLICA: a replica is fenced, stopping, on a failed disk, or in another
    life. INVALID_REQUEST, UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION as they say. The error
    STALE_BROKER_EPOCH: nothing was taken.
    """

    node_id: int
    broker_epoch: int
    changes: Sequence[ProposedIsr]


@dataclass(frozen=True, slots=True)
class ElectLeaders(Decision[list[tuple[str, int, BrokerError | None]]]):
    """Elections, by type (0 preferred, 1 unclean), of (topic, partition); None: of all. Result:
    (topic, partition, BrokerError or None)."""

    election_type: int
    partitions: Sequence[tuple[str, int]] | None


class Reassignment(NamedTuple):
    """A partition and the brokers it is to be on, the preferred leader first; None: the move under
    way is cancelled."""

    topic: str
    partition: int
    replicas: Sequence[int] | None


@dataclass(frozen=True, slots=True)
class AlterReassignments(Decision[list[BrokerError | None]]):
    """Moves begun, changed or cancelled. `may_change_factor`: a move may leave more or fewer
    replicas. Result: BrokerError or None each."""

    moves: Sequence[Reassignment]
    may_change_factor: bool = True


@dataclass(frozen=True, slots=True)
class CreateAcls(Decision[list[BrokerError | None]]):
    """ACLs that are to be there. Result: for each None, or the BrokerError that says why it cannot
    be."""

    bindings: Sequence[AclBinding]


@dataclass(frozen=True, slots=True)
class DeleteAcls(Decision[list[list[AclBinding] | BrokerError]]):
    """All ACLs that fit a filter go. Result: for each filter the list of those that did, or the
    BrokerError that says why it is none."""

    filters: Sequence[AclFilter]


class ScramAlteration(NamedTuple):
    """A user's credential for a mechanism, by the protocol's number; None: it is deleted."""

    user: str
    mechanism: int
    credential: ScramCredential | None


@dataclass(frozen=True, slots=True)
class AlterScramCredentials(Decision[list[BrokerError | None]]):
    """Changes of SCRAM credentials; of one user all or none. Result: for each None, or the
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
    """Feature levels to be changed, all or none. Result: None."""

    updates: Sequence[FeatureUpdate]
    validate_only: bool = False
