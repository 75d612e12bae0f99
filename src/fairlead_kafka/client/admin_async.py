"""`AsyncAdmin`: topics, configs, groups, transactions, ACLs, users and quotas, async."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType

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
from fairlead_kafka.admin.metrics import AdminMetrics
from fairlead_kafka.admin.quota_items import ALL_QUOTAS
from fairlead_kafka.base.acls import ALL_ENTRIES, AclBinding, AclFilter
from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Int32, Int64, Offset, Seconds
from fairlead_kafka.client.admin_calls import AdminCalls
from fairlead_kafka.client.admin_cluster_async import AsyncClusterAdmin
from fairlead_kafka.client.admin_share_async import AsyncShareGroupAdmin
from fairlead_kafka.client.hosting import Opener, end_with, offload, open_host
from fairlead_kafka.client.one_at_a_time import close_async
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp
from fairlead_kafka.core.prepared import PreparedTransaction


@checked()
class AsyncAdmin(AsyncClusterAdmin, AsyncShareGroupAdmin):
    """A Kafka admin client with the methods of `Admin`, as coroutines.

    `config` has Kafka's keys (`bootstrap.servers`, ...; see docs/reference/configuration.md);
    ConfigError names all that is wrong with it. `opener`: what runs the client's machine
    (`client.hosting.Opener`), as a host in virtual time.

    Time-outs are in seconds; None stands for `default.api.timeout.ms`. If no broker was ever
    reached, a call without a time-out raises NoBrokerReached after
    `bootstrap.connection.timeout.ms` at the latest. Calls about several items raise ItemsFailed (a
    BrokerError), which names every item that failed. TimedOut says what was missing. UsageError
    once closed. Tasks may share it. Kafka's counterpart:
    `org.apache.kafka.clients.admin.Admin`.
    """

    def __init__(self, config: Mapping[str, object], *, opener: Opener = open_host) -> None:
        self._calls = AdminCalls(config, offload, opener)
        end_with(self, self._calls.performing.abandon)

    async def connect(self, timeout_s: Seconds | None = None) -> None:
        """Wait until a broker is reached, to check `bootstrap.servers` at the start of a program.

        NoBrokerReached, naming each address and what is wrong with it, if none is reached within
        `timeout_s` seconds (None: bootstrap.connection.timeout.ms); the client goes on trying. Once
        a broker was reached, later calls return at once.
        """
        await self._run(self._calls.performing.connect(timeout_s))

    async def client_instance_id(self, timeout_s: Seconds | None = None) -> uuid.UUID:
        """The id under which this client's metrics are pushed, which a broker gave it (KIP-714).

        TimedOut if none did within `timeout_s` seconds (None: default.api.timeout.ms): brokers give
        ids where the cluster takes clients' metrics. UsageError with enable.metrics.push=false.
        """
        return await self._run(self._calls.performing.instance_id(timeout_s))

    async def create_topics(
        self, topics: Iterable[NewTopic], validate_only: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, uuid.UUID]:
        """Create topics, and wait until every partition has a leader. Returns {name: topic id}.

        `validate_only`: only check whether they could be created.
        """
        return await self._run(self._calls.topics.create_topics(topics, validate_only, timeout_s))

    async def delete_topics(self, names: Iterable[str], timeout_s: Seconds | None = None) -> dict[str, None]:
        """Delete topics with all their records. Returns once the metadata no longer has them."""
        return await self._run(self._calls.topics.delete_topics(names, timeout_s))

    async def create_partitions(
        self,
        changes: Mapping[str, NewPartitions],
        validate_only: bool = False,
        timeout_s: Seconds | None = None,
    ) -> dict[str, None]:
        """Add partitions: {topic: NewPartitions(total)}. Returns once every partition has a leader.

        `validate_only`: only check whether they could be added.
        """
        return await self._run(self._calls.topics.create_partitions(changes, validate_only, timeout_s))

    async def list_topics(
        self, include_internal: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, TopicListing]:
        """List all topics, by name. `include_internal`: Kafka's internal topics too."""
        return await self._run(self._calls.topics.list_topics(include_internal, timeout_s))

    async def describe_topics(
        self,
        names: Iterable[str],
        timeout_s: Seconds | None = None,
        include_authorized_operations: bool = False,
    ) -> dict[str, TopicDescription]:
        """Describe topics: leader, replicas and in-sync replicas of each partition, by topic name.

        `include_authorized_operations`: also what this client's user may do. ItemsFailed names
        topics that are missing.
        """
        return await self._run(
            self._calls.topics.describe_topics(names, timeout_s, include_authorized_operations)
        )

    async def describe_cluster(
        self,
        timeout_s: Seconds | None = None,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> ClusterDescription:
        """Describe the cluster: its id, live brokers and controller.

        `include_authorized_operations`: also what this client's user may do with the cluster, which
        takes Kafka 2.8. `include_fenced_brokers`: also brokers that are known and do not run, which
        takes Kafka 4.0.
        """
        return await self._run(
            self._calls.cluster.describe_cluster(
                timeout_s, include_authorized_operations, include_fenced_brokers
            )
        )

    async def describe_configs(
        self, resources: Iterable[ConfigResource], timeout_s: Seconds | None = None
    ) -> dict[ConfigResource, dict[str, ConfigEntry]]:
        """Configs of resources: {resource: {config name: entry}}.

        Resources are made by `ConfigResource.topic(name)` and `ConfigResource.broker(node_id)`.
        """
        return await self._run(self._calls.topics.describe_configs(resources, timeout_s))

    async def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        validate_only: bool = False,
        timeout_s: Seconds | None = None,
    ) -> dict[ConfigResource, None]:
        """Change some configs of each resource and leave its others alone (KIP-339).

        `changes`: {resource: [ConfigChange.set(name, value), ...]}. `validate_only`: only check
        whether they could be changed.
        """
        return await self._run(self._calls.topics.alter_configs(changes, validate_only, timeout_s))

    async def list_offsets(
        self, targets: Mapping[TopicPartition, Int64], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Look up offsets: by partition, the offset and its timestamp; None where there is none.

        A target is a time in ms since 1970 (the first offset with this timestamp or a later one),
        or EARLIEST (-2), LATEST (-1) or MAX_TIMESTAMP (-3).
        """
        return await self._run(self._calls.topics.list_offsets(targets, timeout_s))

    async def delete_records(
        self, before: Mapping[TopicPartition, Int64], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, int]:
        """Delete records before an offset (-1: all); {partition: its log start offset now}."""
        return await self._run(self._calls.topics.delete_records(before, timeout_s))

    async def describe_log_dirs(
        self,
        node_ids: Iterable[Int32] = (),
        partitions: Iterable[TopicPartition] | None = None,
        timeout_s: Seconds | None = None,
    ) -> dict[int, dict[str, LogDirDescription]]:
        """Describe log directories: {node id: {directory: description}}.

        A description has the bytes of each replica. `node_ids` empty: of all live brokers.
        `partitions` None: of all. Sources: KIP-113, KIP-827.
        """
        return await self._run(self._calls.topics.describe_log_dirs(node_ids, partitions, timeout_s))

    async def list_groups(
        self,
        states: Iterable[str] = (),
        types: Iterable[str] = (),
        timeout_s: Seconds | None = None,
        protocol_types: Iterable[str] = (),
    ) -> dict[str, GroupListing]:
        """List groups of all brokers, by name.

        `states` ("Stable", "Empty", ...), `types` ("classic", "consumer", ...) and `protocol_types`
        ("consumer", ...): only groups of one of them; empty: all.
        """
        return await self._run(self._calls.groups.list_groups(states, types, timeout_s, protocol_types))

    async def describe_groups(
        self,
        group_ids: Iterable[str],
        timeout_s: Seconds | None = None,
        include_authorized_operations: bool = False,
    ) -> dict[str, GroupDescription]:
        """Describe groups of either protocol, by name: state, coordinator, and members with their
        partitions.

        `include_authorized_operations`: also what this client's user may do. ItemsFailed names
        groups that are missing.
        """
        return await self._run(
            self._calls.groups.describe_groups(group_ids, timeout_s, include_authorized_operations)
        )

    async def delete_groups(
        self, group_ids: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, None]:
        """Delete groups that have no members, with their committed offsets."""
        return await self._run(self._calls.groups.delete_groups(group_ids, timeout_s))

    async def list_group_offsets(
        self, group_ids: Iterable[str], require_stable: bool = False, timeout_s: Seconds | None = None
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Committed offsets of groups: {group: {partition: offset}}.

        `require_stable`: wait for open transactions that commit offsets of the group (KIP-447).
        """
        return await self._run(self._calls.groups.list_group_offsets(group_ids, require_stable, timeout_s))

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, Offset | OffsetAndMetadata],
        timeout_s: Seconds | None = None,
    ) -> dict[TopicPartition, None]:
        """Set committed offsets of a group that has no members: where it will go on reading.

        UNKNOWN_MEMBER_ID if it has members. ItemsFailed names the partitions that failed.
        """
        return await self._run(self._calls.groups.alter_group_offsets(group_id, offsets, timeout_s))

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, None]:
        """Delete committed offsets of a group (KIP-496).

        While the group has members, only of topics that none of them reads. ItemsFailed names the
        partitions that failed.
        """
        return await self._run(self._calls.groups.delete_group_offsets(group_id, partitions, timeout_s))

    async def list_transactions(
        self,
        states: Iterable[str] = (),
        timeout_s: Seconds | None = None,
        *,
        producer_ids: Iterable[int] = (),
        open_for_ms: float | None = None,
        pattern: str | None = None,
    ) -> dict[str, TransactionListing]:
        """List transactional ids of all brokers, with producer id and state (KIP-664, Kafka 3.0).

        `states` ("Ongoing", "Empty", ...): only ids in one of them; empty: all. `producer_ids`:
        only those of these producers. `open_for_ms`: only transactions that have been open for
        longer (KIP-994, Kafka 3.8). `pattern`: only ids that this regular expression takes whole,
        in RE2's syntax (KIP-1152, Kafka 4.1). UnsupportedVersion where brokers are older than a
        filter that is used.
        """
        return await self._run(
            self._calls.transactions.list_transactions(states, producer_ids, open_for_ms, pattern, timeout_s)
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, TransactionDescription]:
        """Describe transactional ids: producer id, epoch, state and partitions of each.

        ItemsFailed names those that no coordinator knows (any more).
        """
        return await self._run(self._calls.transactions.describe_transactions(transactional_ids, timeout_s))

    async def end_transactions(
        self, transactions: Iterable[PreparedTransaction], commit: bool, timeout_s: Seconds | None = None
    ) -> dict[PreparedTransaction, None]:
        """Commit or abort transactions that `Producer.prepare_transaction` has left open.

        Another process may do that too. The same call may be repeated, as after a crash or a lost
        answer. ItemsFailed names those that could not be ended like that: INVALID_TXN_STATE for one
        that has ended the other way, as one that was open for longer than transaction.timeout.ms;
        PRODUCER_FENCED or INVALID_PRODUCER_EPOCH if a newer producer has its transactional id, and
        from brokers before Kafka 4 after the time-out too; INVALID_PRODUCER_ID_MAPPING if it is
        forgotten (transactional.id.expiration.ms). The others have ended then.
        """
        return await self._run(self._calls.transactions.end_transactions(transactions, commit, timeout_s))

    async def create_acls(
        self, bindings: Iterable[AclBinding], timeout_s: Seconds | None = None
    ) -> dict[AclBinding, None]:
        """Create ACL entries; one that is there already is no error (KIP-140).

        Brokers apply them within moments. BrokerError SECURITY_DISABLED from a cluster that has no
        authorizer. This and `delete_acls` need the right to Alter the cluster.
        """
        return await self._run(self._calls.access.create_acls(bindings, timeout_s))

    async def describe_acls(
        self, filter: AclFilter = ALL_ENTRIES, timeout_s: Seconds | None = None
    ) -> list[AclBinding]:
        """ACL entries that match the filter.

        With AclPatternType.MATCH those that apply to a resource name, by prefix and `*` too
        (KIP-290).
        """
        return await self._run(self._calls.access.describe_acls(filter, timeout_s))

    async def delete_acls(
        self, filters: Iterable[AclFilter], timeout_s: Seconds | None = None
    ) -> dict[AclFilter, list[AclBinding]]:
        """Delete ACL entries that match filters: {filter: entries deleted}.

        Entries that an earlier request deleted, whose answer was lost, are not in it.
        """
        return await self._run(self._calls.access.delete_acls(filters, timeout_s))

    async def describe_user_scram_credentials(
        self, users: Iterable[str] = (), timeout_s: Seconds | None = None
    ) -> dict[str, list[ScramCredentialInfo]]:
        """Describe SCRAM passwords: {user: mechanism and iterations of each password} (KIP-554).

        `users` empty: all users that have one. ItemsFailed names users without.
        """
        return await self._run(self._calls.access.describe_user_scram_credentials(users, timeout_s))

    async def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout_s: Seconds | None = None,
    ) -> dict[str, None]:
        """Set or delete users' SCRAM passwords; {user: None} (KIP-554).

        Passwords are hashed here, and not sent. Brokers apply the change within moments.
        """
        return await self._run(self._calls.access.alter_user_scram_credentials(alterations, timeout_s))

    async def describe_client_quotas(
        self,
        filter: ClientQuotaFilter = ALL_QUOTAS,
        timeout_s: Seconds | None = None,
    ) -> dict[ClientQuotaEntity, dict[str, float]]:
        """Client quotas: {entity: {quota: value}}, in the units of `alter_client_quotas` (KIP-546).

        Entities are users, client ids and IP addresses that have quotas of their own, and the
        defaults.
        """
        return await self._run(self._calls.access.describe_client_quotas(filter, timeout_s))

    async def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        validate_only: bool = False,
        timeout_s: Seconds | None = None,
    ) -> dict[ClientQuotaEntity, None]:
        """Set or delete (None) some quotas of each entity and leave its others alone.

        `producer_byte_rate` and `consumer_byte_rate` (bytes/s for each broker),
        `request_percentage` (of one thread's time; 200 is two), `controller_mutation_rate`
        (partitions/s), and for an ip `connection_creation_rate` (connections/s). `validate_only`:
        only check whether they could be changed.
        """
        return await self._run(self._calls.access.alter_client_quotas(changes, validate_only, timeout_s))

    @property
    def client_id(self) -> str:
        """The `client.id` of the config."""
        return self._calls.performing.client_id

    def metrics(self) -> AdminMetrics:
        """Metrics by Kafka's groups and names (docs/reference/metrics.md); on any thread, also once
        closed.

        {"admin-client-metrics": {name: number}, "admin-client-node-metrics": {"node-0": {name:
        number}}}. Totals are since the start; rates, averages and maxima over
        `metrics.sample.window.ms` times `metrics.num.samples`, NaN if there was nothing.
        """
        return self._calls.performing.metrics()

    async def close(self) -> None:
        """Close all connections.

        Calls in progress end with UsageError. Closing again does nothing, also while the first
        close is under way.
        """
        await close_async(self._calls.performing, self._run)

    async def __aenter__(self) -> AsyncAdmin:
        self._calls.performing.check()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()
