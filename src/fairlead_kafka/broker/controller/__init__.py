"""The controller: the cluster's metadata, and the one place where it changes.

Theory of operation. The cluster's metadata (brokers, topics, partitions, leaders, replicas in sync,
configs, producer ids) is an image: plain data that all parts may read. It is the fold of a metadata
log. Every change is a decision: a method of `Controller` checks it against the image, makes records
of it, writes them as one line to the log, and only then has `fold.apply` apply them, the same
function that replays the log when a cluster starts again and that keeps the copies of brokers in
other processes: so a replayed or copied image cannot differ from the original. Listeners (the
brokers) are informed of each change after the image has it.

    decision ─▶ Controller ─▶ check ─▶ records ─▶ append(line) ─▶ apply(image, record) ─▶ listeners
                               BrokerError             ├─ on start: decode_log ─▶ apply ─┘
                                                       └─ followers: the same line, to their copies

A line is whole or not there (its CRC says), so a topic never exists by halves. A torn last line was
never acknowledged and is cut; damage before the end is refused. A snapshot of the image replaces
the log on every start, and whenever the log has grown to several times the snapshot's size.

Brokers. Each start of a broker is registered under an epoch of its own. One that stops, or is lost,
is fenced: it leads nothing, and is in sync only where it is the last one (`brokers` has the table).

Leadership. A partition is led by the first of its replicas, in order of preference, that is in sync
and alive (`elections` has the table). Each new leader is a new leader epoch, so that clients and
followers can distinguish leaders in time; every change of a partition is a new partition epoch, so
that requests of a leader with an old view are refused. The leader decides which replicas are in
sync (`in_sync`). After a restart the last leader leads again: it has all records that any replica
has.

There is one controller, not a quorum: an object that the brokers of one thread call directly, and
that other processes call through `broker.control`.

- `image`, `fold`: the data, and the function that applies a record to it. `packed`: partitions as
  columns.
- `log`: records as bytes. `older`: records of release 0.1.
- `view`, `journal`, `controller`: reading, writing, and the methods that decide.
- `decisions`: what brokers may ask for.
- `topics`, `placement`, `names`, `limits`: topics are created, grow and are deleted; which brokers
  get a new partition; valid names of topics; limits on partitions (KIP-578).
- `brokers`, `elections`, `leadership`, `in_sync`, `reassignment`: brokers that are alive, leaders,
  replicas in sync, replicas on the move.
- `client_quotas`, `mutations`: quotas of clients (KIP-546), and of the partitions that they may
  create and delete (KIP-599).
- `configs`: where a value comes from and what may be set. `acls`: access control lists.

30,000 partitions with three replicas are created, or change their leaders, in some 0.1 s: records
hold partitions as columns, and the image holds seven fields of each, whose tuples are shared.
"""

from fairlead_kafka.broker.controller.acls import check_filter, matches
from fairlead_kafka.broker.controller.configs import (
    AlterOperation,
    ConfigAlteration,
    ConfigSource,
    ConfigSynonym,
    DescribedConfig,
    changeable_configs,
    replacing,
)
from fairlead_kafka.broker.controller.controller import PRODUCER_ID_BLOCK, Controller
from fairlead_kafka.broker.controller.decisions import (
    AllocateProducerIds,
    AlterBrokerConfigs,
    AlterClientMetrics,
    AlterClientQuotas,
    AlterGroupConfigs,
    AlterPartitions,
    AlterReassignments,
    AlterScramCredentials,
    AlterTopicConfigs,
    BrokerStarted,
    BrokerStopped,
    BrokerStopping,
    Charged,
    CreateAcls,
    CreateInternalTopic,
    CreatePartitions,
    CreateTopics,
    Decision,
    DecisionDone,
    DeleteAcls,
    DeleteTopics,
    DiskReported,
    ElectLeaders,
    FeatureUpdate,
    NewTopic,
    ProposedIsr,
    QuotaAlteration,
    Reassignment,
    ScramAlteration,
    Spender,
    UpdateFeatures,
    UpgradeType,
)
from fairlead_kafka.broker.controller.features import FEATURES, TRANSACTION_VERSION, finalized, level
from fairlead_kafka.broker.controller.image import (
    CLUSTER_WIDE,
    INTERNAL_TOPICS,
    METADATA_TOPIC,
    NO_BROKER_EPOCH,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    AclsChanged,
    BrokerConfigsChanged,
    BrokerInfo,
    BrokersChanged,
    Change,
    ClientMetricsChanged,
    ClientQuotasChanged,
    ClusterImage,
    GroupConfigsChanged,
    LeadersChanged,
    PartitionImage,
    PartitionsAdded,
    PartitionsChanged,
    ScramCredential,
    ScramCredentialChanged,
    TopicConfigsChanged,
    TopicCreated,
    TopicDeleted,
    TopicImage,
)
from fairlead_kafka.broker.controller.placement import PARTITIONS_PER_TOPIC_MAX, Assignments, round_robin
from fairlead_kafka.broker.controller.view import ClusterView
from fairlead_kafka.broker.quota_table import QuotaEntity

__all__ = [
    "AclsChanged",
    "AllocateProducerIds",
    "AlterBrokerConfigs",
    "AlterClientMetrics",
    "AlterGroupConfigs",
    "AlterClientQuotas",
    "AlterOperation",
    "AlterPartitions",
    "AlterReassignments",
    "AlterScramCredentials",
    "AlterTopicConfigs",
    "Assignments",
    "BrokerConfigsChanged",
    "GroupConfigsChanged",
    "BrokerInfo",
    "BrokerStarted",
    "BrokerStopped",
    "BrokerStopping",
    "BrokersChanged",
    "CLUSTER_WIDE",
    "Change",
    "ClientMetricsChanged",
    "ClientQuotasChanged",
    "ClusterImage",
    "ClusterView",
    "ConfigAlteration",
    "ConfigSource",
    "ConfigSynonym",
    "Controller",
    "CreateAcls",
    "CreateInternalTopic",
    "CreatePartitions",
    "CreateTopics",
    "Charged",
    "Decision",
    "DecisionDone",
    "DeleteAcls",
    "DeleteTopics",
    "DescribedConfig",
    "DiskReported",
    "ElectLeaders",
    "FEATURES",
    "FeatureUpdate",
    "INTERNAL_TOPICS",
    "LeadersChanged",
    "METADATA_TOPIC",
    "NO_BROKER_EPOCH",
    "NewTopic",
    "OFFSETS_TOPIC",
    "PARTITIONS_PER_TOPIC_MAX",
    "PRODUCER_ID_BLOCK",
    "PartitionImage",
    "PartitionsAdded",
    "PartitionsChanged",
    "ProposedIsr",
    "QuotaAlteration",
    "QuotaEntity",
    "Reassignment",
    "ScramAlteration",
    "ScramCredential",
    "ScramCredentialChanged",
    "Spender",
    "SHARE_STATE_TOPIC",
    "TRANSACTIONS_TOPIC",
    "TRANSACTION_VERSION",
    "TopicConfigsChanged",
    "TopicCreated",
    "TopicDeleted",
    "TopicImage",
    "UpdateFeatures",
    "UpgradeType",
    "changeable_configs",
    "check_filter",
    "finalized",
    "level",
    "matches",
    "replacing",
    "round_robin",
]
