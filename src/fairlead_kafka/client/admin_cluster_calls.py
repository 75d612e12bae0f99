"""Calls of admin clients about the cluster, as steps that a blocking or an awaiting class
drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka import admin
from fairlead_kafka.admin import (
    ClusterDescription,
    ElectionType,
    FeatureMetadata,
    PartitionReassignment,
    PartitionReplica,
    QuorumInfo,
    UpgradeType,
    cluster,
    moves,
)
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_performing import Performing
from fairlead_kafka.client.hosting import Steps


class ClusterCalls:
    """Calls about the cluster and its brokers, as steps: elections, moves, versions, features, the
    quorum. `Admin` has what each does."""

    def __init__(self, performing: Performing) -> None:
        self._timeout_ms = performing.timeout_ms
        self._perform = performing.perform

    def describe_cluster(
        self, timeout_s: float | None, operations: bool, fenced: bool
    ) -> Steps[ClusterDescription]:
        """Describe the cluster; see `Admin.describe_cluster` for results, time-out and errors."""
        script = admin.describe_cluster(
            include_authorized_operations=operations, include_fenced_brokers=fenced
        )
        return self._perform("describing the cluster", (), lambda _: script, timeout_s)

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None,
        timeout_s: float | None,
    ) -> Steps[dict[TopicPartition, None]]:
        """Elect leaders; see `Admin.elect_leaders` for results, time-out and errors."""
        wanted = None if partitions is None else [TopicPartition(*each) for each in partitions]
        script = moves.elect_leaders(election_type, wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("electing leaders of", wanted or (), lambda _: script, timeout_s)

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, None]]:
        """Begin to move partitions; see `Admin.alter_partition_reassignments` for results, time-out
        and errors."""
        wanted = {TopicPartition(*of): replicas for of, replicas in reassignments.items()}
        script = moves.alter_partition_reassignments(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("moving", wanted, lambda _: script, timeout_s)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None, timeout_s: float | None
    ) -> Steps[dict[TopicPartition, PartitionReassignment]]:
        """List partitions on the move; see `Admin.list_partition_reassignments` for results,
        time-out and errors."""
        wanted = None if partitions is None else [TopicPartition(*each) for each in partitions]
        script = moves.list_partition_reassignments(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("listing moves of", wanted or (), lambda _: script, timeout_s)

    def alter_replica_log_dirs(
        self, assignments: Mapping[PartitionReplica, str], timeout_s: float | None
    ) -> Steps[dict[PartitionReplica, None]]:
        """Move replicas between log directories; see `Admin.alter_replica_log_dirs` for results,
        time-out and errors."""
        wanted = {PartitionReplica(*of): path for of, path in assignments.items()}
        script = moves.alter_replica_log_dirs(wanted)
        return self._perform("moving between log directories", wanted, lambda _: script, timeout_s)

    def describe_features(self, timeout_s: float | None) -> Steps[FeatureMetadata]:
        """Describe features; see `Admin.describe_features` for results, time-out and errors."""
        return self._perform("describing features", (), lambda _: cluster.describe_features(), timeout_s)

    def describe_api_versions(
        self, node_ids: Iterable[int], timeout_s: float | None
    ) -> Steps[dict[int, dict[int, tuple[int, int]]]]:
        """Describe versions of APIs; see `Admin.describe_api_versions` for results, time-out and
        errors."""
        nodes = list(node_ids)
        return self._perform(
            "asking for versions of", nodes, lambda _: cluster.describe_api_versions(nodes), timeout_s
        )

    def update_features(
        self,
        levels: Mapping[str, int],
        upgrade_type: UpgradeType,
        validate_only: bool,
        timeout_s: float | None,
    ) -> Steps[None]:
        """Change levels of features; see `Admin.update_features` for results, time-out and
        errors."""
        script = cluster.update_features(
            levels, upgrade_type, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("updating features", levels, lambda _: script, timeout_s)

    def describe_metadata_quorum(self, timeout_s: float | None) -> Steps[QuorumInfo]:
        """Describe the quorum; see `Admin.describe_metadata_quorum` for results, time-out and
        errors."""
        return self._perform(
            "describing the quorum", (), lambda _: cluster.describe_metadata_quorum(), timeout_s
        )
