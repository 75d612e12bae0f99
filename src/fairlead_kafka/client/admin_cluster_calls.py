"""Calls of admin clients about the cluster, as steps that a blocking or an awaiting face drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka.admin import (
    AbortTransaction,
    ConfigResource,
    ElectionType,
    FeatureMetadata,
    FencedProducer,
    PartitionReassignment,
    PartitionReplica,
    ProducerState,
    QuorumInfo,
    ResourceType,
    UpgradeType,
    cluster,
    groups,
    moves,
    producers,
)
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_calls import AdminCalls, distinct, topics_of
from fairlead_kafka.client.hosting import Steps


class ClusterCalls(AdminCalls):
    """All calls of an admin client: those of `AdminCalls`, and those about the cluster."""

    def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None,
        timeout_s: float | None,
    ) -> Steps[dict[TopicPartition, None]]:
        """Elect leaders."""
        wanted = None if partitions is None else [TopicPartition(*each) for each in partitions]
        script = moves.elect_leaders(election_type, wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("electing leaders of", wanted or (), lambda _: script, timeout_s)

    def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[int] | None], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, None]]:
        """Begin to move partitions."""
        wanted = {TopicPartition(*of): replicas for of, replicas in reassignments.items()}
        script = moves.alter_partition_reassignments(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("moving", wanted, lambda _: script, timeout_s)

    def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None, timeout_s: float | None
    ) -> Steps[dict[TopicPartition, PartitionReassignment]]:
        """List partitions on the move."""
        wanted = None if partitions is None else [TopicPartition(*each) for each in partitions]
        script = moves.list_partition_reassignments(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("listing moves of", wanted or (), lambda _: script, timeout_s)

    def alter_replica_log_dirs(
        self, assignments: Mapping[PartitionReplica, str], timeout_s: float | None
    ) -> Steps[dict[PartitionReplica, None]]:
        """Move replicas between log directories."""
        wanted = {PartitionReplica(*of): path for of, path in assignments.items()}
        script = moves.alter_replica_log_dirs(wanted)
        return self._perform("moving between log directories", wanted, lambda _: script, timeout_s)

    def describe_producers(
        self, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, list[ProducerState]]]:
        """Describe producers."""
        wanted = [TopicPartition(*each) for each in partitions]
        return self._perform(
            "describing producers of",
            wanted,
            lambda metadata: producers.describe_producers(metadata, wanted),
            timeout_s,
            topics_of(wanted),
        )

    def abort_transaction(self, transaction: AbortTransaction, timeout_s: float | None) -> Steps[None]:
        """Abort a transaction on a partition."""
        one = AbortTransaction(*transaction)
        return self._perform(
            "aborting the transaction on",
            [one],
            lambda metadata: producers.abort_transaction(metadata, one),
            timeout_s,
            [one.partition[0]],
        )

    def fence_producers(
        self, transactional_ids: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, FencedProducer]]:
        """Fence producers."""
        wanted = distinct("fence_producers", transactional_ids)
        timeout_ms = self._timeout_ms(timeout_s)
        return self._perform(
            "fencing producers of",
            wanted,
            lambda metadata: producers.fence_producers(metadata, wanted, timeout_ms=timeout_ms),
            timeout_s,
        )

    def force_terminate_transaction(self, transactional_id: str, timeout_s: float | None) -> Steps[None]:
        """End an open transaction."""
        timeout_ms = self._timeout_ms(timeout_s)
        try:
            yield from self._perform(
                "ending the transaction of",
                [transactional_id],
                lambda metadata: producers.fence_producers(
                    metadata, [transactional_id], timeout_ms=timeout_ms
                ),
                timeout_s,
            )
        except ItemsFailed as failed:
            raise failed.errors[transactional_id] from None

    def remove_members(
        self, group_id: str, instance_ids: Iterable[str] | None, reason: str, timeout_s: float | None
    ) -> Steps[dict[str, None]]:
        """Remove members of a group."""
        wanted = None if instance_ids is None else distinct("remove_members", instance_ids)
        return self._perform(
            f"removing members of group {group_id}",
            wanted or (),
            lambda metadata: groups.remove_members(metadata, group_id, wanted, why=reason),
            timeout_s,
        )

    def list_config_resources(
        self, types: Iterable[ResourceType], timeout_s: float | None
    ) -> Steps[list[ConfigResource]]:
        """List what has configs."""
        script = cluster.list_config_resources(list(types))
        return self._perform("listing what has configs", (), lambda _: script, timeout_s)

    def describe_features(self, timeout_s: float | None) -> Steps[FeatureMetadata]:
        """Describe features."""
        return self._perform("describing features", (), lambda _: cluster.describe_features(), timeout_s)

    def describe_api_versions(
        self, node_ids: Iterable[int], timeout_s: float | None
    ) -> Steps[dict[int, dict[int, tuple[int, int]]]]:
        """Describe versions of APIs."""
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
        """Change levels of features."""
        script = cluster.update_features(
            levels, upgrade_type, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("updating features", levels, lambda _: script, timeout_s)

    def describe_metadata_quorum(self, timeout_s: float | None) -> Steps[QuorumInfo]:
        """Describe the quorum."""
        return self._perform(
            "describing the quorum", (), lambda _: cluster.describe_metadata_quorum(), timeout_s
        )
