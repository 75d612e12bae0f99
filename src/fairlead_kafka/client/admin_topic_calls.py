"""Calls of admin clients about topics, their offsets, records, configs and log directories, as
steps that a blocking or an awaiting class drives."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka import admin
from fairlead_kafka.admin import (
    AdminScript,
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    LogDirDescription,
    NewPartitions,
    NewTopic,
    ResourceType,
    TopicDescription,
    TopicListing,
    cluster,
)
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_performing import Performing, distinct, topics_of
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp


class TopicCalls:
    """Calls about topics, partitions and their offsets, configs and log directories, as steps;
    `Admin` has what each does."""

    def __init__(self, performing: Performing) -> None:
        self._timeout_ms = performing.timeout_ms
        self._perform = performing.perform

    def create_topics(
        self, topics: Iterable[NewTopic], validate_only: bool, timeout_s: float | None
    ) -> Steps[dict[str, uuid.UUID]]:
        """Create topics; see `Admin.create_topics` for results, time-out and errors."""
        wanted = list(topics)
        names = distinct("create_topics", [topic.name for topic in wanted])
        script = admin.create_topics(
            wanted, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("creating topics", names, lambda _: script, timeout_s)

    def delete_topics(self, names: Iterable[str], timeout_s: float | None) -> Steps[dict[str, None]]:
        """Delete topics; see `Admin.delete_topics` for results, time-out and errors."""
        wanted = distinct("delete_topics", names)
        script = admin.delete_topics(wanted, timeout_ms=self._timeout_ms(timeout_s))
        return self._perform("deleting topics", wanted, lambda _: script, timeout_s)

    def create_partitions(
        self, changes: Mapping[str, NewPartitions], validate_only: bool, timeout_s: float | None
    ) -> Steps[dict[str, None]]:
        """Add partitions; see `Admin.create_partitions` for results, time-out and errors."""
        script = admin.create_partitions(
            changes, validate_only=validate_only, timeout_ms=self._timeout_ms(timeout_s)
        )
        return self._perform("adding partitions to", changes, lambda _: script, timeout_s)

    def list_topics(self, include_internal: bool, timeout_s: float | None) -> Steps[dict[str, TopicListing]]:
        """List topics; see `Admin.list_topics` for results, time-out and errors."""
        return self._perform(
            "listing topics", (), lambda _: admin.list_topics(include_internal=include_internal), timeout_s
        )

    def describe_topics(
        self, names: Iterable[str], timeout_s: float | None, operations: bool
    ) -> Steps[dict[str, TopicDescription]]:
        """Describe topics; see `Admin.describe_topics` for results, time-out and errors."""
        wanted = distinct("describe_topics", names)
        script = admin.describe_topics(wanted, include_authorized_operations=operations)
        return self._perform("describing topics", wanted, lambda _: script, timeout_s)

    def describe_configs(
        self, resources: Iterable[ConfigResource], timeout_s: float | None
    ) -> Steps[dict[ConfigResource, dict[str, ConfigEntry]]]:
        """Describe configs; see `Admin.describe_configs` for results, time-out and errors."""
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
        """Alter configs; see `Admin.alter_configs` for results, time-out and errors."""
        wanted = {ConfigResource(*of): [ConfigChange(*each) for each in some] for of, some in changes.items()}
        script = admin.alter_configs(wanted, validate_only=validate_only)
        return self._perform("altering configs of", wanted, lambda _: script, timeout_s)

    def list_config_resources(
        self, types: Iterable[ResourceType], timeout_s: float | None
    ) -> Steps[list[ConfigResource]]:
        """List what has configs; see `Admin.list_config_resources` for results, time-out and
        errors."""
        script = cluster.list_config_resources(list(types))
        return self._perform("listing what has configs", (), lambda _: script, timeout_s)

    def list_offsets(
        self, targets: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, OffsetAndTimestamp | None]]:
        """List offsets; see `Admin.list_offsets` for results, time-out and errors."""
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
        """Delete records; see `Admin.delete_records` for results, time-out and errors."""
        wanted = {TopicPartition(*of): offset for of, offset in before.items()}
        timeout_ms = self._timeout_ms(timeout_s)

        def make(metadata: Metadata) -> AdminScript[dict[TopicPartition, int]]:
            return admin.delete_records(metadata, wanted, timeout_ms=timeout_ms)

        return self._perform("deleting records of", wanted, make, timeout_s, topics_of(wanted))

    def describe_log_dirs(
        self, node_ids: Iterable[int], partitions: Iterable[TopicPartition] | None, timeout_s: float | None
    ) -> Steps[dict[int, dict[str, LogDirDescription]]]:
        """Describe log directories; see `Admin.describe_log_dirs` for results, time-out and
        errors."""
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
