"""The part of `AsyncAdmin` that is about the cluster and its brokers: elections, moves, producers,
features, the quorum."""

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
)
from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int16, Int32, Seconds
from fairlead_kafka.client.admin_driving import Awaiting


@checked()
class AsyncClusterAdmin(Awaiting):
    """Calls of `AsyncAdmin` about the cluster; see there for time-outs and errors."""

    async def elect_leaders(
        self,
        election_type: ElectionType,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_s: Seconds | None = None,
    ) -> dict[TopicPartition, None]:
        """Elect leaders of partitions (None: of all that need it). Returns those that were elected.

        PREFERRED gives leadership back to the first replica, if it is in sync; UNCLEAN lets one
        lead that is not, where no other is alive, and loses what that one lacks. ItemsFailed names
        partitions for which there was nothing to do (ELECTION_NOT_NEEDED) or nobody to elect.
        """
        return await self._run(self._calls.cluster.elect_leaders(election_type, partitions, timeout_s))

    async def alter_partition_reassignments(
        self, reassignments: Mapping[TopicPartition, Sequence[Int32] | None], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, None]:
        """Begin to move partitions: {partition: node ids of its replicas, the preferred leader
        first}.

        None takes back what is under way. Returns once the moves have begun;
        `list_partition_reassignments` lists those that are not over.
        """
        return await self._run(self._calls.cluster.alter_partition_reassignments(reassignments, timeout_s))

    async def list_partition_reassignments(
        self, partitions: Iterable[TopicPartition] | None = None, timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, PartitionReassignment]:
        """Partitions that are on the move, of all or of these: their replicas, and those that are
        being added and removed."""
        return await self._run(self._calls.cluster.list_partition_reassignments(partitions, timeout_s))

    async def alter_replica_log_dirs(
        self, assignments: Mapping[PartitionReplica, str], timeout_s: Seconds | None = None
    ) -> dict[PartitionReplica, None]:
        """Move replicas to log directories of their brokers: {replica: path}.

        Returns once the moves have begun. LOG_DIR_NOT_FOUND: the broker has no such directory.
        """
        return await self._run(self._calls.cluster.alter_replica_log_dirs(assignments, timeout_s))

    async def describe_producers(
        self, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, list[ProducerState]]:
        """Producers that write to partitions with ids, as the partitions' leaders know them
        (KIP-664)."""
        return await self._run(self._calls.transactions.describe_producers(partitions, timeout_s))

    async def abort_transaction(
        self, transaction: AbortTransaction, timeout_s: Seconds | None = None
    ) -> None:
        """Abort a transaction on one partition, past its coordinator: for one that hangs (KIP-664).

        Takes producer id, epoch and coordinator epoch from `describe_producers`. A transaction that
        its coordinator knows is ended by `force_terminate_transaction`."""
        await self._run(self._calls.transactions.abort_transaction(transaction, timeout_s))

    async def fence_producers(
        self, transactional_ids: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, FencedProducer]:
        """Fence the producers of transactional ids: what they have open is aborted, and they can
        write no more. Returns the producer id and epoch that each has now."""
        return await self._run(self._calls.transactions.fence_producers(transactional_ids, timeout_s))

    async def force_terminate_transaction(
        self, transactional_id: str, timeout_s: Seconds | None = None
    ) -> None:
        """Abort what a transactional id has open, and fence its producer (KIP-939).

        BrokerError if its coordinator refuses."""
        await self._run(self._calls.transactions.force_terminate_transaction(transactional_id, timeout_s))

    async def remove_members(
        self,
        group_id: str,
        instance_ids: Iterable[str] | None = None,
        reason: str = "removed by an admin",
        timeout_s: Seconds | None = None,
    ) -> dict[str, None]:
        """Remove members of a classic group: static ones by `group.instance.id`, or all (None).

        `reason` goes to the coordinator's log. Returns {instance id: None}, or member ids where all
        were removed. Those that live join again. Java's removeMembersFromConsumerGroup."""
        return await self._run(self._calls.groups.remove_members(group_id, instance_ids, reason, timeout_s))

    async def list_config_resources(
        self, types: Iterable[ResourceType] = (), timeout_s: Seconds | None = None
    ) -> list[ConfigResource]:
        """Everything that has configs, of these types or of all (KIP-1142): topics, brokers,
        groups, subscriptions to clients' metrics. Before Kafka 4.1 only the last."""
        return await self._run(self._calls.topics.list_config_resources(types, timeout_s))

    async def describe_features(self, timeout_s: Seconds | None = None) -> FeatureMetadata:
        """Features that a broker supports, and the levels that the cluster is at (KIP-584)."""
        return await self._run(self._calls.cluster.describe_features(timeout_s))

    async def describe_api_versions(
        self, node_ids: Iterable[Int32] = (), timeout_s: Seconds | None = None
    ) -> dict[int, dict[int, tuple[int, int]]]:
        """Versions of APIs that brokers serve: {node id: {API key: (lowest, highest)}}.

        `node_ids` empty: of all live brokers. Keys without a name in this release are there too.
        """
        return await self._run(self._calls.cluster.describe_api_versions(node_ids, timeout_s))

    async def update_features(
        self,
        levels: Mapping[str, Int16],
        upgrade_type: UpgradeType = UpgradeType.UPGRADE,
        validate_only: bool = False,
        timeout_s: Seconds | None = None,
    ) -> None:
        """Set features of the cluster to these levels, all or none; 0 turns one off.

        BrokerError says which cannot be. `validate_only`: only check whether it could be done."""
        await self._run(self._calls.cluster.update_features(levels, upgrade_type, validate_only, timeout_s))

    async def describe_metadata_quorum(self, timeout_s: Seconds | None = None) -> QuorumInfo:
        """Describe the quorum of controllers: leader, voters, observers, and how far each is
        (KIP-836)."""
        return await self._run(self._calls.cluster.describe_metadata_quorum(timeout_s))
