"""Methods of Java's Admin (4.3.1) with Fairlead's counterparts, and those left out, with the
reason."""

from __future__ import annotations

from typing import NamedTuple


class Counterpart(NamedTuple):
    """Our method for one of Java's `Admin`, or why there is none; `since`: the first release of
    Kafka that has Java's."""

    ours: str
    since: str = "0.1.0"
    note: str = ""


_NEXT = "unreleased"
_STREAMS = "streams groups (KIP-1071) are Kafka Streams' own"
_QUORUM = "it changes KRaft's quorum, which belongs to who runs the cluster"
_TOKENS = "delegation tokens (KIP-48): clients log in with what they have themselves"
_METRICS = "a client pushes its own metrics, and none of the program's (KIP-714)"

COUNTERPARTS: dict[str, Counterpart] = {
    "abortTransaction": Counterpart("abort_transaction", _NEXT),
    "addRaftVoter": Counterpart("", note=_QUORUM),
    "alterClientQuotas": Counterpart("alter_client_quotas"),
    "alterConsumerGroupOffsets": Counterpart("alter_group_offsets"),
    "alterPartitionReassignments": Counterpart("alter_partition_reassignments", _NEXT),
    "alterReplicaLogDirs": Counterpart("alter_replica_log_dirs", _NEXT),
    "alterShareGroupOffsets": Counterpart("alter_share_group_offsets", _NEXT),
    "alterStreamsGroupOffsets": Counterpart("", note=_STREAMS),
    "alterUserScramCredentials": Counterpart("alter_user_scram_credentials"),
    "clientInstanceId": Counterpart("client_instance_id", _NEXT),
    "close": Counterpart("close"),
    "create": Counterpart("Admin", note="the constructor"),
    "createAcls": Counterpart("create_acls"),
    "createDelegationToken": Counterpart("", note=_TOKENS),
    "createPartitions": Counterpart("create_partitions"),
    "createTopics": Counterpart("create_topics"),
    "deleteAcls": Counterpart("delete_acls"),
    "deleteConsumerGroupOffsets": Counterpart("delete_group_offsets"),
    "deleteConsumerGroups": Counterpart("delete_groups"),
    "deleteRecords": Counterpart("delete_records"),
    "deleteShareGroupOffsets": Counterpart("delete_share_group_offsets", _NEXT),
    "deleteShareGroups": Counterpart("delete_groups"),
    "deleteStreamsGroupOffsets": Counterpart("", note=_STREAMS),
    "deleteStreamsGroups": Counterpart("delete_groups"),
    "deleteTopics": Counterpart("delete_topics"),
    "describeAcls": Counterpart("describe_acls"),
    "describeClassicGroups": Counterpart("describe_groups"),
    "describeClientQuotas": Counterpart("describe_client_quotas"),
    "describeCluster": Counterpart("describe_cluster"),
    "describeConfigs": Counterpart("describe_configs"),
    "describeConsumerGroups": Counterpart("describe_groups"),
    "describeDelegationToken": Counterpart("", note=_TOKENS),
    "describeFeatures": Counterpart("describe_features", _NEXT),
    "describeLogDirs": Counterpart("describe_log_dirs"),
    "describeMetadataQuorum": Counterpart("describe_metadata_quorum", _NEXT),
    "describeProducers": Counterpart("describe_producers", _NEXT),
    "describeReplicaLogDirs": Counterpart("describe_log_dirs", note="with `partitions`"),
    "describeShareGroups": Counterpart("describe_share_groups", _NEXT),
    "describeStreamsGroups": Counterpart("", note=_STREAMS),
    "describeTopics": Counterpart("describe_topics"),
    "describeTransactions": Counterpart("describe_transactions"),
    "describeUserScramCredentials": Counterpart("describe_user_scram_credentials"),
    "electLeaders": Counterpart("elect_leaders", _NEXT),
    "expireDelegationToken": Counterpart("", note=_TOKENS),
    "fenceProducers": Counterpart("fence_producers", _NEXT),
    "forceTerminateTransaction": Counterpart("force_terminate_transaction", _NEXT),
    "incrementalAlterConfigs": Counterpart("alter_configs"),
    "listClientMetricsResources": Counterpart(
        "list_config_resources", _NEXT, "with `ResourceType.CLIENT_METRICS`"
    ),
    "listConfigResources": Counterpart("list_config_resources", _NEXT),
    "listConsumerGroupOffsets": Counterpart("list_group_offsets"),
    "listConsumerGroups": Counterpart("list_groups", note="with `protocol_types`"),
    "listGroups": Counterpart("list_groups"),
    "listOffsets": Counterpart("list_offsets"),
    "listPartitionReassignments": Counterpart("list_partition_reassignments", _NEXT),
    "listShareGroupOffsets": Counterpart("list_share_group_offsets", _NEXT),
    "listStreamsGroupOffsets": Counterpart("", note=_STREAMS),
    "listTopics": Counterpart("list_topics"),
    "listTransactions": Counterpart("list_transactions"),
    "metrics": Counterpart("metrics"),
    "registerMetricForSubscription": Counterpart("", note=_METRICS),
    "removeMembersFromConsumerGroup": Counterpart("remove_members", _NEXT),
    "removeRaftVoter": Counterpart("", note=_QUORUM),
    "renewDelegationToken": Counterpart("", note=_TOKENS),
    "unregisterBroker": Counterpart("", note=_QUORUM),
    "unregisterMetricFromSubscription": Counterpart("", note=_METRICS),
    "updateFeatures": Counterpart("update_features", _NEXT),
}
"""Java's method → Fairlead's method."""
