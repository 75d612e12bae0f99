"""Calls of admin clients about classic and consumer groups, as steps that a blocking or an awaiting
class drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_kafka import admin
from fairlead_kafka.admin import AdminScript, GroupDescription, GroupListing, groups
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_performing import Performing, distinct
from fairlead_kafka.client.hosting import Steps
from fairlead_kafka.client.offsets import as_offsets
from fairlead_kafka.core.group_offsets import OffsetAndMetadata
from fairlead_kafka.core.metadata import Metadata


class GroupCalls:
    """Calls about groups, their members and committed offsets, as steps; `Admin` has what each
    does."""

    def __init__(self, performing: Performing) -> None:
        self._timeout_ms = performing.timeout_ms
        self._perform = performing.perform

    def list_groups(
        self,
        states: Iterable[str],
        types: Iterable[str],
        timeout_s: float | None,
        protocol_types: Iterable[str],
    ) -> Steps[dict[str, GroupListing]]:
        """List groups; see `Admin.list_groups` for results, time-out and errors."""
        wanted = (distinct("list_groups", each) for each in (states, types, protocol_types))
        script = admin.list_groups(*wanted)
        return self._perform("listing groups", (), lambda _: script, timeout_s)

    def describe_groups(
        self, group_ids: Iterable[str], timeout_s: float | None, operations: bool
    ) -> Steps[dict[str, GroupDescription]]:
        """Describe groups; see `Admin.describe_groups` for results, time-out and errors."""
        wanted = distinct("describe_groups", group_ids)

        def make(metadata: Metadata) -> AdminScript[dict[str, GroupDescription]]:
            return admin.describe_groups(metadata, wanted, include_authorized_operations=operations)

        return self._perform("describing groups", wanted, make, timeout_s)

    def delete_groups(self, group_ids: Iterable[str], timeout_s: float | None) -> Steps[dict[str, None]]:
        """Delete groups; see `Admin.delete_groups` for results, time-out and errors."""
        wanted = distinct("delete_groups", group_ids)
        return self._perform(
            "deleting groups", wanted, lambda metadata: admin.delete_groups(metadata, wanted), timeout_s
        )

    def remove_members(
        self, group_id: str, instance_ids: Iterable[str] | None, reason: str, timeout_s: float | None
    ) -> Steps[dict[str, None]]:
        """Remove members of a group; see `Admin.remove_members` for results, time-out and
        errors."""
        wanted = None if instance_ids is None else distinct("remove_members", instance_ids)
        return self._perform(
            f"removing members of group {group_id}",
            wanted or (),
            lambda metadata: groups.remove_members(metadata, group_id, wanted, why=reason),
            timeout_s,
        )

    def list_group_offsets(
        self, group_ids: Iterable[str], require_stable: bool, timeout_s: float | None
    ) -> Steps[dict[str, dict[TopicPartition, OffsetAndMetadata]]]:
        """List committed offsets; see `Admin.list_group_offsets` for results, time-out and
        errors."""
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
        """Set committed offsets; see `Admin.alter_group_offsets` for results, time-out and
        errors."""
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
        """Delete committed offsets; see `Admin.delete_group_offsets` for results, time-out and
        errors."""
        wanted = [TopicPartition(*each) for each in partitions]
        return self._perform(
            f"deleting offsets of group {group_id}",
            (),
            lambda metadata: admin.delete_group_offsets(metadata, group_id, wanted),
            timeout_s,
        )
