"""Every call of an admin client, written once; `Admin` and `AsyncAdmin` drive the steps."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from fairlead_kafka import admin
from fairlead_kafka.admin import (
    AdminMachine,
    AdminScript,
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
    Perform,
    SaltedPassword,
    ScramCredentialInfo,
    Shut,
    TopicDescription,
    TopicListing,
    TransactionDescription,
    TransactionListing,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from fairlead_kafka.admin.acl_items import check_binding, check_filter
from fairlead_kafka.admin.quota_items import check_quotas, checked_quota_filter
from fairlead_kafka.admin.user_items import SALT_BYTES, check_alteration, salted_password
from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.base.config_client import CLIENT_CONFIGS
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.units import s_to_ns
from fairlead_kafka.client.hosting import (
    LONGEST_S,
    Opener,
    Steps,
    Wait,
    abandon,
    closed,
    connect,
    connect_first,
    open_host,
)
from fairlead_kafka.client.offsets import as_offsets
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp
from fairlead_kafka.core.prepared import PreparedTransaction
from fairlead_kafka.runtime import Completion

_CLOSE_S = 5.0


class AdminCalls:
    """Steps of each call, for any number of threads or tasks. `offload` runs work on a thread."""

    def __init__(
        self,
        config: Mapping[str, object],
        offload: Callable[[Callable[[], Any]], Completion[Any]] | None = None,
        opener: Opener = open_host,
    ) -> None:
        self.settings = CLIENT_CONFIGS.parse("admin", config)
        self.closed = False
        self._offload = offload
        self._hosted = self.host = opener(
            lambda rng: AdminMachine(self.settings, rng), self.settings, "fairlead-admin"
        )

    def create_topics(
        self, topics: Iterable[NewTopic], validate_only: bool, timeout_s: float | None
    ) -> Steps[dict[str, uuid.UUID]]:
        """Create topics."""
        wanted = list(topics)
        names = distinct("create_topics", [topic.name for topic in wanted])
        script = admin.create_topics(
            wanted, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("creating topics", names, lambda _: script, timeout_s)

    def delete_topics(self, names: Iterable[str], timeout_s: float | None) -> Steps[dict[str, None]]:
        """Delete topics."""
        wanted = distinct("delete_topics", names)
        script = admin.delete_topics(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("deleting topics", wanted, lambda _: script, timeout_s)

    def create_partitions(
        self, changes: Mapping[str, NewPartitions], validate_only: bool, timeout_s: float | None
    ) -> Steps[dict[str, None]]:
        """Add partitions."""
        script = admin.create_partitions(
            changes, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("adding partitions to", changes, lambda _: script, timeout_s)

    def list_topics(self, include_internal: bool, timeout_s: float | None) -> Steps[dict[str, TopicListing]]:
        """List topics."""
        return self._perform(
            "listing topics", (), lambda _: admin.list_topics(include_internal=include_internal), timeout_s
        )

    def describe_topics(
        self, names: Iterable[str], timeout_s: float | None, operations: bool
    ) -> Steps[dict[str, TopicDescription]]:
        """Describe topics."""
        wanted = distinct("describe_topics", names)
        script = admin.describe_topics(wanted, include_authorized_operations=operations)
        return self._perform("describing topics", wanted, lambda _: script, timeout_s)

    def describe_cluster(
        self, timeout_s: float | None, operations: bool, fenced: bool
    ) -> Steps[ClusterDescription]:
        """Describe the cluster."""
        script = admin.describe_cluster(
            include_authorized_operations=operations, include_fenced_brokers=fenced
        )
        return self._perform("describing the cluster", (), lambda _: script, timeout_s)

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout_s: float | None
    ) -> Steps[dict[ConfigResource, dict[str, ConfigEntry]]]:
        """Describe configs."""
        wanted = [ConfigResource(*each) for each in resources]
        return self._perform(
            "describing configs of", wanted, lambda _: admin.describe_configs(wanted), timeout_s
        )

    def alter_configs(
        self,
        changes: Mapping[ConfigResource, Sequence[ConfigChange]],
        validate_only: bool,
        timeout_s: float | None,
    ) -> Steps[dict[ConfigResource, None]]:
        """Alter configs."""
        wanted = {ConfigResource(*of): [ConfigChange(*each) for each in some] for of, some in changes.items()}
        script = admin.alter_configs(wanted, validate_only=validate_only)
        return self._perform("altering configs of", wanted, lambda _: script, timeout_s)

    def list_offsets(
        self, targets: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """List offsets."""
        wanted = {TopicPartition(*of): target for of, target in targets.items()}
        return self._perform(
            "listing offsets of",
            wanted,
            lambda metadata: admin.list_offsets(metadata, wanted),
            timeout_s,
            topics_of(wanted),
        )

    def delete_records(
        self, before: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, int]]:
        """Delete records."""
        wanted = {TopicPartition(*of): offset for of, offset in before.items()}
        timeout_ms = self._timeout_ms(timeout_s)

        def make(metadata: Metadata) -> AdminScript[dict[TopicPartition, int]]:
            return admin.delete_records(metadata, wanted, timeout_ms=timeout_ms)

        return self._perform("deleting records of", wanted, make, timeout_s, topics_of(wanted))

    def describe_log_dirs(
        self, node_ids: Iterable[int], partitions: Iterable[TopicPartition] | None, timeout_s: float | None
    ) -> Steps[dict[int, dict[str, LogDirDescription]]]:
        """Describe log directories."""
        nodes, wanted = (
            list(node_ids),
            None if partitions is None else [TopicPartition(*each) for each in partitions],
        )
        return self._perform(
            "describing log directories of",
            nodes,
            lambda _: admin.describe_log_dirs(nodes, wanted),
            timeout_s,
        )

    def list_groups(
        self,
        states: Iterable[str],
        types: Iterable[str],
        timeout_s: float | None,
        protocol_types: Iterable[str],
    ) -> Steps[dict[str, GroupListing]]:
        """List groups."""
        wanted = (distinct("list_groups", each) for each in (states, types, protocol_types))
        script = admin.list_groups(*wanted)
        return self._perform("listing groups", (), lambda _: script, timeout_s)

    def describe_groups(
        self, group_ids: Iterable[str], timeout_s: float | None, operations: bool
    ) -> Steps[dict[str, GroupDescription]]:
        """Describe groups."""
        wanted = distinct("describe_groups", group_ids)

        def make(metadata: Metadata) -> AdminScript[dict[str, GroupDescription]]:
            return admin.describe_groups(metadata, wanted, include_authorized_operations=operations)

        return self._perform("describing groups", wanted, make, timeout_s)

    def delete_groups(self, group_ids: Iterable[str], timeout_s: float | None) -> Steps[dict[str, None]]:
        """Delete groups."""
        wanted = distinct("delete_groups", group_ids)
        return self._perform(
            "deleting groups", wanted, lambda metadata: admin.delete_groups(metadata, wanted), timeout_s
        )

    def list_group_offsets(
        self, group_ids: Iterable[str], require_stable: bool, timeout_s: float | None
    ) -> Steps[dict[str, dict[TopicPartition, OffsetAndMetadata]]]:
        """List committed offsets."""
        wanted = distinct("list_group_offsets", group_ids)
        return self._perform(
            "listing offsets of groups",
            wanted,
            lambda metadata: admin.list_group_offsets(metadata, wanted, require_stable=require_stable),
            timeout_s,
        )

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata],
        timeout_s: float | None,
    ) -> Steps[dict[TopicPartition, None]]:
        """Set committed offsets."""
        wanted = as_offsets("alter_group_offsets", offsets)
        return self._perform(
            f"setting offsets of group {group_id}",
            (),
            lambda metadata: admin.alter_group_offsets(metadata, group_id, wanted),
            timeout_s,
        )

    def delete_group_offsets(
        self, group_id: str, partitions: Iterable[TopicPartition], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, None]]:
        """Delete committed offsets."""
        wanted = [TopicPartition(*each) for each in partitions]
        return self._perform(
            f"deleting offsets of group {group_id}",
            (),
            lambda metadata: admin.delete_group_offsets(metadata, group_id, wanted),
            timeout_s,
        )

    def list_transactions(
        self,
        states: Iterable[str],
        producer_ids: Iterable[int],
        open_for_ms: float | None,
        pattern: str | None,
        timeout_s: float | None,
    ) -> Steps[dict[str, TransactionListing]]:
        """List transactional ids."""
        names = distinct("list_transactions", states)
        script = admin.list_transactions(names, list(producer_ids), open_for_ms, pattern)
        return self._perform("listing transactions", (), lambda _: script, timeout_s)

    def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, TransactionDescription]]:
        """Describe transactional ids."""
        wanted = distinct("describe_transactions", transactional_ids)
        return self._perform(
            "describing transactions",
            wanted,
            lambda metadata: admin.describe_transactions(metadata, wanted),
            timeout_s,
        )

    def end_transactions(
        self, transactions: Iterable[PreparedTransaction], commit: bool, timeout_s: float | None
    ) -> Steps[dict[PreparedTransaction, None]]:
        """End prepared transactions."""
        wanted = _one_of_each_id("end_transactions", transactions)
        what = f"{'committing' if commit else 'aborting'} transactions"
        return self._perform(
            what, wanted, lambda metadata: admin.end_transactions(metadata, wanted, commit=commit), timeout_s
        )

    def create_acls(
        self, bindings: Iterable[AclBinding], timeout_s: float | None
    ) -> Steps[dict[AclBinding, None]]:
        """Add entries of access control lists."""
        wanted = [AclBinding(*each) for each in bindings]
        for number, one in enumerate(wanted):
            check_binding(f"create_acls: bindings[{number}]", one)
        return self._perform("creating ACLs", wanted, lambda _: admin.create_acls(wanted), timeout_s)

    def describe_acls(self, filter: AclFilter, timeout_s: float | None) -> Steps[list[AclBinding]]:
        """List entries of access control lists."""
        wanted = AclFilter(*filter)
        check_filter("describe_acls: filter", wanted)
        return self._perform("describing ACLs:", [wanted], lambda _: admin.describe_acls(wanted), timeout_s)

    def delete_acls(
        self, filters: Iterable[AclFilter], timeout_s: float | None
    ) -> Steps[dict[AclFilter, list[AclBinding]]]:
        """Delete entries of access control lists."""
        wanted = [AclFilter(*each) for each in filters]
        for number, one in enumerate(wanted):
            check_filter(f"delete_acls: filters[{number}]", one)
        return self._perform("deleting ACLs:", wanted, lambda _: admin.delete_acls(wanted), timeout_s)

    def describe_user_scram_credentials(
        self, users: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, list[ScramCredentialInfo]]]:
        """Describe users' SCRAM credentials."""
        wanted = distinct("describe_user_scram_credentials", users)
        script = admin.describe_user_scram_credentials(wanted)
        return self._perform("describing credentials of users", wanted, lambda _: script, timeout_s)

    def alter_user_scram_credentials(
        self,
        alterations: Iterable[UserScramCredentialUpsertion | UserScramCredentialDeletion],
        timeout_s: float | None,
    ) -> Steps[dict[str, None]]:
        """Set and delete SCRAM passwords. An async client hashes them on a thread."""
        self.check()
        wanted = list(alterations)
        for number, one in enumerate(wanted):
            check_alteration(f"alter_user_scram_credentials: alterations[{number}]", one)
        distinct(
            "alter_user_scram_credentials", [f"{one.mechanism.mechanism} of {one.user}" for one in wanted]
        )
        ready: list[SaltedPassword | UserScramCredentialDeletion] = []
        for one in wanted:
            if isinstance(one, UserScramCredentialUpsertion):
                hashing = partial(salted_password, one, one.salt or os.urandom(SALT_BYTES))
                ready.append(hashing() if self._offload is None else (yield Wait(self._offload(hashing))))
            else:
                ready.append(one)
        script, users = (
            admin.alter_user_scram_credentials(ready),
            list(dict.fromkeys(one.user for one in wanted)),
        )
        done: dict[str, None] = yield from self._perform(
            "altering credentials of users", users, lambda _: script, timeout_s
        )
        return done

    def describe_client_quotas(
        self, filter: ClientQuotaFilter, timeout_s: float | None
    ) -> Steps[dict[ClientQuotaEntity, dict[str, float]]]:
        """Describe client quotas."""
        wanted = checked_quota_filter("describe_client_quotas: filter", filter)
        return self._perform(
            "describing client quotas", (), lambda _: admin.describe_client_quotas(wanted), timeout_s
        )

    def alter_client_quotas(
        self,
        changes: Mapping[ClientQuotaEntity, Mapping[str, float | None]],
        validate_only: bool,
        timeout_s: float | None,
    ) -> Steps[dict[ClientQuotaEntity, None]]:
        """Set and delete client quotas."""
        for entity, quotas in changes.items():
            check_quotas("alter_client_quotas", entity, quotas)
        script = admin.alter_client_quotas(changes, validate_only=validate_only)
        return self._perform("altering quotas of", changes, lambda _: script, timeout_s)

    def connect(self, timeout_s: float | None) -> Steps[None]:
        """Wait until a broker is reached."""
        self.check()
        return connect(self._hosted, self.settings, timeout_s)

    def check(self) -> None:
        """Raise UsageError if closed."""
        if self.closed:
            raise closed("admin client")

    def close(self) -> Steps[None]:
        """Shut the machine; does nothing if it is closed already."""
        if self.closed or self._hosted.forked:
            return
        self.closed = True
        completion: Completion[None] = Completion()
        self._hosted.submit(Shut(completion))
        with suppress(UsageError):  # its machine has crashed: there is nothing left to shut
            yield Wait(completion, _CLOSE_S, lambda: None)

    def end(self) -> None:
        """Stop the host, after `close`."""
        self._hosted.close(_CLOSE_S)

    def abandon(self) -> None:
        """End the thread of a client that was dropped without `close` (`hosting.end_with`)."""
        if self.closed or self._hosted.forked:
            return
        self.closed = True
        abandon(self._hosted, self.end, Shut)

    def _seconds(self, timeout_s: float | None) -> float:
        return min(
            self.settings["default.api.timeout.ms"] / 1000 if timeout_s is None else timeout_s, LONGEST_S
        )

    def _timeout_ms(self, timeout_s: float | None) -> int:
        """Ms that a broker may take: as the caller allows, at most request.timeout.ms.

        So an answer comes before the request is given up.
        """
        return int(min(self._seconds(timeout_s) * 1000, self.settings["request.timeout.ms"]))

    def _perform(
        self,
        what: str,
        items: Iterable[object],
        make: Callable[[Metadata], AdminScript[Any]],
        timeout_s: float | None,
        topics: Sequence[str] = (),
    ) -> Steps[Any]:
        self.check()
        deadline_ns = self._hosted.now_ns() + s_to_ns(self._seconds(timeout_s))
        yield from connect_first(self._hosted, self.settings, timeout_s, "default.api.timeout.ms")
        names = [str(item) for item in items]
        named = f"{what} {', '.join(names[:3])}{', ...' if len(names) > 3 else ''}".strip()
        completion: Completion[Any] = Completion()
        self._hosted.submit(Perform(completion, deadline_ns, named, make, topics))
        return (yield Wait(completion))


def distinct(call: str, names: Iterable[str]) -> list[str]:
    """The names that a call is given as a list; UsageError for a text, or a name that comes twice."""
    if isinstance(names, str):
        raise UsageError(f"{call}: expected several names, got the text {names!r}; put it into a list")
    wanted = list(names)
    twice = (
        sorted({name for name in wanted if wanted.count(name) > 1}) if len(set(wanted)) < len(wanted) else []
    )
    if twice:
        raise UsageError(f"{call}: named twice: {', '.join(twice)}")
    return wanted


def _one_of_each_id(call: str, transactions: Iterable[PreparedTransaction]) -> list[PreparedTransaction]:
    wanted = [PreparedTransaction(*each) for each in transactions]
    distinct(call, [each.transactional_id for each in wanted])
    return wanted


def topics_of(partitions: Iterable[TopicPartition]) -> list[str]:
    """Topics of the partitions, each once."""
    return list(dict.fromkeys(topic for topic, _ in partitions))
