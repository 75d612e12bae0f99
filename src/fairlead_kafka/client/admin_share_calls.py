"""Calls of admin clients about share groups, as steps that a blocking or an awaiting class
drives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_kafka.admin import share_groups
from fairlead_kafka.admin.share_group_items import ShareGroupDescription, SharePartitionOffset
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin_performing import Performing, distinct
from fairlead_kafka.client.hosting import Steps


class ShareGroupCalls:
    """Calls about share groups and their offsets, as steps; `Admin` has what each does."""

    def __init__(self, performing: Performing) -> None:
        self._timeout_ms = performing.timeout_ms
        self._perform = performing.perform

    def describe_share_groups(
        self, group_ids: Iterable[str], timeout_s: float | None, operations: bool
    ) -> Steps[dict[str, ShareGroupDescription]]:
        """Describe share groups; see `Admin.describe_share_groups` for results, time-out and
        errors."""
        wanted = distinct("describe_share_groups", group_ids)
        return self._perform(
            "describing share groups",
            wanted,
            lambda metadata: share_groups.describe_share_groups(
                metadata, wanted, include_authorized_operations=operations
            ),
            timeout_s,
        )

    def list_share_group_offsets(
        self, group_ids: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, dict[TopicPartition, SharePartitionOffset]]]:
        """List offsets of share groups; see `Admin.list_share_group_offsets` for results, time-out
        and errors."""
        wanted = distinct("list_share_group_offsets", group_ids)
        return self._perform(
            "listing offsets of share groups",
            wanted,
            lambda metadata: share_groups.list_share_group_offsets(metadata, wanted),
            timeout_s,
        )

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], timeout_s: float | None
    ) -> Steps[dict[TopicPartition, None]]:
        """Set offsets of a share group; see `Admin.alter_share_group_offsets` for results, time-out
        and errors."""
        wanted = {TopicPartition(*of): offset for of, offset in offsets.items()}
        return self._perform(
            f"setting offsets of share group {group_id}",
            wanted,
            lambda metadata: share_groups.alter_share_group_offsets(metadata, group_id, wanted),
            timeout_s,
        )

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], timeout_s: float | None
    ) -> Steps[dict[str, None]]:
        """Delete offsets of a share group; see `Admin.delete_share_group_offsets` for results,
        time-out and errors."""
        wanted = distinct("delete_share_group_offsets", topics)
        return self._perform(
            f"deleting offsets of share group {group_id}",
            wanted,
            lambda metadata: share_groups.delete_share_group_offsets(metadata, group_id, wanted),
            timeout_s,
        )
