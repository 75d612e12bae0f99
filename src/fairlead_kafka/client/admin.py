"""`Admin`: topics, configs, groups, transactions, rights, users and quotas, blocking."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any

from fairlead_kafka.admin import (
    ClientQuotaEntity,
    ClientQuotaFilter,
    ClusterDescription,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    GroupDescription,
    GroupListing,
    LogDirDescription,
    NewPartitions,
    NewTopic,
    ScramCredentialInfo,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.admin.quota_items import ALL_QUOTAS
from fairlead_kafka.base.acls import ALL_ENTRIES, AclBinding, AclFilter
from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int32, Int64, Offset, Seconds
from fairlead_kafka.client.admin_calls import AdminCalls
from fairlead_kafka.client.hosting import end_with, run_blocking
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp
from fairlead_kafka.core.prepared import PreparedTransaction


@checked()
class Admin:
    """A Kafka admin client.

    `config` has Kafka's keys (`bootstrap.servers`, ...; see docs/configuration.md); ConfigError names all that is wrong with it.

    Time-outs are in seconds; None stands for `default.api.timeout.ms`, but for NoBrokerReached after `bootstrap.connection.timeout.ms`
    where no broker was ever reached. Calls about several items raise ItemsFailed (a BrokerError) that names every item that failed, and
    TimedOut, which says what was missing. Any number of threads may call.
    Kafka's counterpart: `org.apache.kafka.clients.admin.Admin`.
    """

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._calls = AdminCalls(config)
        end_with(self, self._calls.abandon)

    def connect(self, timeout_s: Seconds | None = None) -> None:
        """Wait until a broker was reached: for a program that wants to know at its start that `bootstrap.servers` are right.

        NoBrokerReached, naming the addresses and what is wrong with each, if none was for `timeout_s` (None:
        bootstrap.connection.timeout.ms); the client goes on trying. A broker that was reached once counts for good.
        """
        run_blocking(self._calls.connect(timeout_s))

    def create_topics(
        self, topics: Iterable[NewTopic], validate_only: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, uuid.UUID]:
        """Create topics; {name: topic id}, once every partition has a leader. `validate_only`: only say whether it could be done."""
        return run_blocking(self._calls.create_topics(topics, validate_only, timeout_s))

    def delete_topics(self, names: Iterable[str], timeout_s: Seconds | None = None) -> dict[str, None]:
        """Delete topics with all their records; returns once the metadata has them no more."""
        return run_blocking(self._calls.delete_topics(names, timeout_s))

    def create_partitions(
        self, changes: Mapping[str, NewPartitions], validate_only: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, None]:
        """Grow topics: {name: NewPartitions(total)}; returns once every partition has a leader."""
        return run_blocking(self._calls.create_partitions(changes, validate_only, timeout_s))

    def list_topics(self, include_internal: bool = False, timeout_s: Seconds | None = None) -> dict[str, TopicListing]:
        """{name: listing} of all topics, by name."""
        return run_blocking(self._calls.list_topics(include_internal, timeout_s))

    def describe_topics(
        self, names: Iterable[str], timeout_s: Seconds | None = None, include_authorized_operations: bool = False
    ) -> dict[str, TopicDescription]:
        """{name: description}, with leader, replicas and in-sync replicas of each partition; and what this client's user may do."""
        return run_blocking(self._calls.describe_topics(names, timeout_s, include_authorized_operations))

    def describe_cluster(self, timeout_s: Seconds | None = None, include_authorized_operations: bool = False) -> ClusterDescription:
        """The cluster's id, live brokers, and controller; and what this client's user may do with it (which takes Kafka 2.8)."""
        return run_blocking(self._calls.describe_cluster(timeout_s, include_authorized_operations))

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout_s: Seconds | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """{resource: {config name: entry}}; `ConfigResource.topic(name)`, `ConfigResource.broker(node_id)`."""
        return run_blocking(self._calls.describe_configs(resources, timeout_s))

    def alter_configs(
        self, changes: Mapping[ConfigResource, Sequence[ConfigChange]], validate_only: bool = False, timeout_s: Seconds | None = None
    ) -> dict[ConfigResource, None]:
        """Change configs one by one and leave the others alone (KIP-339): {resource: [ConfigChange.set(name, value), ...]}."""
        return run_blocking(self._calls.alter_configs(changes, validate_only, timeout_s))

    def list_offsets(
        self, targets: Mapping[TopicPartition, Int64], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The offset for a time in ms since 1970, or for EARLIEST (-2), LATEST (-1) or MAX_TIMESTAMP (-3); None where there is none."""
        return run_blocking(self._calls.list_offsets(targets, timeout_s))

    def delete_records(self, before: Mapping[TopicPartition, Int64], timeout_s: Seconds | None = None) -> dict[TopicPartition, int]:
        """Delete what lies before an offset (-1: everything); {partition: where its log starts now}."""
        return run_blocking(self._calls.delete_records(before, timeout_s))

    def describe_log_dirs(
        self, node_ids: Iterable[Int32] = (), partitions: Iterable[TopicPartition] | None = None, timeout_s: Seconds | None = None
    ) -> dict[int, dict[str, LogDirDescription]]:
        """{node id: {directory: description}}: what each replica takes on disk; none named: of all live brokers (KIP-113, KIP-827)."""
        return run_blocking(self._calls.describe_log_dirs(node_ids, partitions, timeout_s))

    def list_groups(
        self, states: Iterable[str] = (), types: Iterable[str] = (), timeout_s: Seconds | None = None
    ) -> dict[str, GroupListing]:
        """{name: listing} of all groups, or of those in one of `states` ("Stable", "Empty", ...) and of one of `types` ("classic", ...)."""
        return run_blocking(self._calls.list_groups(states, types, timeout_s))

    def describe_groups(
        self, group_ids: Iterable[str], timeout_s: Seconds | None = None, include_authorized_operations: bool = False
    ) -> dict[str, GroupDescription]:
        """{name: description}: state, coordinator, and members with what they read; ItemsFailed names groups that are not there."""
        return run_blocking(self._calls.describe_groups(group_ids, timeout_s, include_authorized_operations))

    def delete_groups(self, group_ids: Iterable[str], timeout_s: Seconds | None = None) -> dict[str, None]:
        """Delete groups that have no members, with their offsets."""
        return run_blocking(self._calls.delete_groups(group_ids, timeout_s))

    def list_group_offsets(
        self, group_ids: Iterable[str], require_stable: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """{name: {partition: committed offset}}; `require_stable`: waits for open transactions that commit some (KIP-447)."""
        return run_blocking(self._calls.list_group_offsets(group_ids, require_stable, timeout_s))

    def alter_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, Offset | OffsetAndMetadata], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, None]:
        """Set the committed offsets of a group without members (UNKNOWN_MEMBER_ID if it has some): where it will go on reading."""
        return run_blocking(self._calls.alter_group_offsets(group_id, offsets, timeout_s))

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, None]:
        """Take committed offsets back (KIP-496); while the group has members, only of topics that none of them reads."""
        return run_blocking(self._calls.delete_group_offsets(group_id, partitions, timeout_s))

    def list_transactions(self, states: Iterable[str] = (), timeout_s: Seconds | None = None) -> dict[str, TransactionListing]:
        """{transactional id: listing} of all brokers, or of those in one of `states` ("Ongoing", "Empty", ...); KIP-664, Kafka 3.0."""
        return run_blocking(self._calls.list_transactions(states, timeout_s))

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, TransactionDescription]:
        """{transactional id: description}: producer id, epoch, state and partitions; ItemsFailed names those not known (any more)."""
        return run_blocking(self._calls.describe_transactions(transactional_ids, timeout_s))

    def end_transactions(
        self, transactions: Iterable[PreparedTransaction], commit: bool, timeout_s: Seconds | None = None
    ) -> dict[PreparedTransaction, None]:
        """Commit or abort transactions that `Producer.prepare_transaction` has left open, in this process or another.

        Asking again for the same end is fine, so whoever died or lost an answer may repeat it. ItemsFailed names those that could not be
        ended like that: INVALID_TXN_STATE for one that has ended the other way, PRODUCER_FENCED or INVALID_PRODUCER_EPOCH if the
        coordinator aborted it because it was open for longer than transaction.timeout.ms, or somebody went on with its transactional
        id, INVALID_PRODUCER_ID_MAPPING if it is forgotten (transactional.id.expiration.ms). The others have ended then.
        """
        return run_blocking(self._calls.end_transactions(transactions, commit, timeout_s))

    def create_acls(self, bindings: Iterable[AclBinding], timeout_s: Seconds | None = None) -> dict[AclBinding, None]:
        """Add entries to access control lists; one that is there already is fine. Brokers heed them within moments (KIP-140).

        BrokerError SECURITY_DISABLED from a cluster that has no authorizer. This and `delete_acls` need the right to Alter the cluster.
        """
        return run_blocking(self._calls.create_acls(bindings, timeout_s))

    def describe_acls(self, filter: AclFilter = ALL_ENTRIES, timeout_s: Seconds | None = None) -> list[AclBinding]:
        """The entries that the filter means; with AclPatternType.MATCH those that apply to a name, by prefix and `*` too (KIP-290)."""
        return run_blocking(self._calls.describe_acls(filter, timeout_s))

    def delete_acls(self, filters: Iterable[AclFilter], timeout_s: Seconds | None = None) -> dict[AclFilter, list[AclBinding]]:
        """Delete what filters mean; {filter: the entries that are gone}, but for those that a request gone unanswered has deleted."""
        return run_blocking(self._calls.delete_acls(filters, timeout_s))

    def describe_user_scram_credentials(
        self, users: Iterable[str] = (), timeout_s: Seconds | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """{user: mechanisms, iterations} of those who have a SCRAM password; ItemsFailed names users without. None named: all (KIP-554)."""
        return run_blocking(self._calls.describe_user_scram_credentials(users, timeout_s))

    def alter_user_scram_credentials(
        self, alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion], timeout_s: Seconds | None = None
    ) -> dict[str, None]:
        """Set SCRAM passwords, or take them back; {user: None}. Passwords are hashed here, not sent; brokers heed it within moments."""
        return run_blocking(self._calls.alter_user_scram_credentials(alterations, timeout_s))

    def describe_client_quotas(
        self,
        filter: ClientQuotaFilter = ALL_QUOTAS,
        timeout_s: Seconds | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """{entity: {quota: value}} of those that have quotas of their own, or are a default: users, client ids, addresses (KIP-546)."""
        return run_blocking(self._calls.describe_client_quotas(filter, timeout_s))

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        validate_only: bool = False,
        timeout_s: Seconds | None = None,
    ) -> dict[ClientQuotaEntity, None]:
        """Set some quotas of each entity, take back those that are None, and leave its others alone.

        `producer_byte_rate` and `consumer_byte_rate` (bytes/s for each broker), `request_percentage` (of one thread's time; 200 is two),
        `controller_mutation_rate` (partitions/s), and for an ip `connection_creation_rate` (connections/s).
        """
        return run_blocking(self._calls.alter_client_quotas(changes, validate_only, timeout_s))

    def close(self) -> None:
        """Close all connections; calls under way end with UsageError. Closing again does nothing."""
        try:
            run_blocking(self._calls.close())
        finally:
            self._calls.end()

    def __enter__(self) -> Admin:
        self._calls.check()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        self.close()
