"""The admin client: topics, partitions, configs, offsets and the cluster.

Theory of operation. A call is a script (`core.script`): a generator that asks and waits from top to
bottom, run by `AdminMachine` inside its step. Modules named `..._items` hold the arguments and
results of scripts, with the checks made before anything is sent; `acls`, `cluster`, `configs`,
`groups` and so on hold the scripts.

Every call about several items has one frame (`scripts.per_item`): all items go into one request,
items that failed with a retriable error are asked about again after a back-off with fresh metadata,
and when all are completed the call gives {item: result} or raises one `ItemsFailed` that names
every item with its error, and holds the results of the others. The table of error codes says which
errors are retriable (`base.codes`), except that a topic that does not exist is an error at once.

Requests that must go to the controller go to the node that the metadata names; NOT_CONTROLLER asks
for metadata and tries again. Under KRaft that node is any broker, which passes the request on.

`create_topics` and `create_partitions` return only when the metadata has every partition with a
leader, `delete_topics` when the metadata has the topics no more: creating and then producing, or
deleting and then creating again, just works. All of it is bounded by the call's time-out; TimedOut
says which topics and partitions were still missing.

A request whose answer was lost may have been carried out. This is not hidden: a topic that "exists
already" on the second try is an error, and its message says that an earlier request went
unanswered.
"""

from fairlead_kafka.admin.acls import create_acls, delete_acls, describe_acls
from fairlead_kafka.admin.cluster_items import (
    AbortTransaction,
    ElectionType,
    FeatureLevels,
    FeatureMetadata,
    FencedProducer,
    PartitionReassignment,
    PartitionReplica,
    ProducerState,
    QuorumInfo,
    QuorumReplica,
    UpgradeType,
)
from fairlead_kafka.admin.configs import alter_configs, describe_configs
from fairlead_kafka.admin.group_describing import describe_groups
from fairlead_kafka.admin.group_items import GroupDescription, GroupListing, GroupMember
from fairlead_kafka.admin.groups import (
    alter_group_offsets,
    delete_group_offsets,
    delete_groups,
    list_group_offsets,
    list_groups,
)
from fairlead_kafka.admin.items import (
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigResource,
    ConfigSource,
    LogDirDescription,
    NewPartitions,
    NewTopic,
    ReplicaLog,
    ResourceType,
    TopicDescription,
    TopicListing,
)
from fairlead_kafka.admin.log_dirs import describe_log_dirs
from fairlead_kafka.admin.machine import AdminMachine, Perform, Shut
from fairlead_kafka.admin.offsets import delete_records, list_offsets
from fairlead_kafka.admin.quota_items import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClientQuotaFilterComponent,
    ClientQuotaMatch,
)
from fairlead_kafka.admin.quotas import alter_client_quotas, describe_client_quotas
from fairlead_kafka.admin.scripts import AdminScript
from fairlead_kafka.admin.share_group_items import (
    ShareGroupDescription,
    ShareGroupMember,
    SharePartitionOffset,
)
from fairlead_kafka.admin.topics import (
    create_partitions,
    create_topics,
    delete_topics,
    describe_cluster,
    describe_topics,
    list_topics,
)
from fairlead_kafka.admin.transaction_items import TransactionDescription, TransactionListing
from fairlead_kafka.admin.transactions import describe_transactions, end_transactions, list_transactions
from fairlead_kafka.admin.user_items import (
    SaltedPassword,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.admin.users import alter_user_scram_credentials, describe_user_scram_credentials

__all__ = [
    "AbortTransaction",
    "AdminMachine",
    "AdminScript",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClientQuotaFilterComponent",
    "ClientQuotaMatch",
    "ClusterDescription",
    "ConfigChange",
    "ConfigEntry",
    "ConfigOperation",
    "ConfigResource",
    "ConfigSource",
    "ElectionType",
    "FeatureLevels",
    "FeatureMetadata",
    "FencedProducer",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "LogDirDescription",
    "NewPartitions",
    "NewTopic",
    "PartitionReassignment",
    "PartitionReplica",
    "Perform",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "ReplicaLog",
    "ResourceType",
    "SaltedPassword",
    "ScramCredentialInfo",
    "ScramMechanism",
    "Shut",
    "TopicDescription",
    "TopicListing",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
    "alter_client_quotas",
    "alter_configs",
    "alter_group_offsets",
    "alter_user_scram_credentials",
    "create_acls",
    "create_partitions",
    "create_topics",
    "delete_acls",
    "delete_group_offsets",
    "delete_groups",
    "delete_records",
    "delete_topics",
    "describe_acls",
    "describe_client_quotas",
    "describe_cluster",
    "describe_configs",
    "describe_groups",
    "describe_log_dirs",
    "describe_topics",
    "describe_transactions",
    "describe_user_scram_credentials",
    "end_transactions",
    "list_group_offsets",
    "list_groups",
    "list_offsets",
    "list_topics",
    "list_transactions",
    "ShareGroupDescription",
    "ShareGroupMember",
    "SharePartitionOffset",
]
