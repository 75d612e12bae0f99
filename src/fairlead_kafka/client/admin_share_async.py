"""The part of `AsyncAdmin` that is about share groups (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fairlead_kafka.admin.share_group_items import ShareGroupDescription, SharePartitionOffset
from fairlead_kafka.base.checked import checked
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.within import Offset, Seconds
from fairlead_kafka.client.admin_driving import Awaiting


@checked()
class AsyncShareGroupAdmin(Awaiting):
    """Calls of `AsyncAdmin` about share groups; see there for time-outs and errors."""

    async def describe_share_groups(
        self,
        group_ids: Iterable[str],
        timeout_s: Seconds | None = None,
        include_authorized_operations: bool = False,
    ) -> dict[str, ShareGroupDescription]:
        """Describe share groups, by name: state, coordinator, and members with their partitions.

        `include_authorized_operations`: also what this client's user may do. ItemsFailed names
        groups that are missing, or are no share groups. `delete_groups` deletes them.
        """
        return await self._run(
            self._calls.share_groups.describe_share_groups(
                group_ids, timeout_s, include_authorized_operations
            )
        )

    async def list_share_group_offsets(
        self, group_ids: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffset]]:
        """How far share groups are: {group: {partition: start offset and lag}}, of the partitions
        that they have read."""
        return await self._run(self._calls.share_groups.list_share_group_offsets(group_ids, timeout_s))

    async def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, Offset], timeout_s: Seconds | None = None
    ) -> dict[TopicPartition, None]:
        """Set where a share group without members goes on; what it knew of records is forgotten.

        NON_EMPTY_GROUP if it has members. ItemsFailed names the partitions that failed.
        """
        return await self._run(
            self._calls.share_groups.alter_share_group_offsets(group_id, offsets, timeout_s)
        )

    async def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], timeout_s: Seconds | None = None
    ) -> dict[str, None]:
        """Delete the offsets that a share group without members has in topics, as if it had never
        read them.

        NON_EMPTY_GROUP if it has members. ItemsFailed names the topics that failed.
        """
        return await self._run(
            self._calls.share_groups.delete_share_group_offsets(group_id, topics, timeout_s)
        )
