"""Lag of groups: committed offsets against the ends of logs, with the members that read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairlead_kafka.admin import GroupMember
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.base.json_types import JsonObject
from fairlead_kafka.client.admin import Admin
from fairlead_kafka.core.partition_offsets import LATEST, OffsetAndTimestamp


@dataclass(slots=True, frozen=True)
class PartitionLag:
    """Lag of one partition that a group has committed an offset of, or that a member reads."""

    partition: TopicPartition
    committed: int | None
    """Committed offset, from which the group goes on; None: nothing committed."""
    end: int | None
    """Offset after the last record; None: the look-up failed (the partition is gone)."""
    member: GroupMember | None
    """Member that reads it now; None: nobody does."""

    @property
    def lag(self) -> int | None:
        """`end` less `committed`, in offsets, at least 0; None unless both are known."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)

    def as_row(self) -> JsonObject:
        """{topic, partition, committed, end, lag, member_id, host, client_id}, None where there is
        nothing: for reports."""
        member = self.member
        return {
            "topic": self.partition.topic,
            "partition": self.partition.partition,
            "committed": self.committed,
            "end": self.end,
            "lag": self.lag,
            "member_id": None if member is None else member.member_id,
            "host": None if member is None else member.host,
            "client_id": None if member is None else member.client_id,
        }


def group_lags(admin: Admin, members: Mapping[str, Sequence[GroupMember]]) -> dict[str, list[PartitionLag]]:
    """{group: lags}, by partition, of groups given with their members. Raises as
    `Admin.list_group_offsets`."""
    if not members:
        return {}
    committed = admin.list_group_offsets(members)
    readers = {
        name: {of: member for member in mine for of in member.assignment} for name, mine in members.items()
    }
    ends = _ends(admin, {of for name in readers for of in (*committed[name], *readers[name])})
    found: dict[str, list[PartitionLag]] = {}
    for name, reading in readers.items():
        mine = committed[name]
        found[name] = [
            PartitionLag(of, mine[of].offset if of in mine else None, ends.get(of), reading.get(of))
            for of in sorted({*mine, *reading})
        ]
    return found


def _ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """End offsets of the logs of partitions; a partition whose look-up failed is left out."""
    targets = dict.fromkeys(sorted(partitions), LATEST)
    if not targets:
        return {}
    found: Mapping[TopicPartition, OffsetAndTimestamp | None]
    try:
        found = admin.list_offsets(targets)
    except ItemsFailed as error:
        found = error.results
    return {of: one.offset for of, one in found.items() if one is not None}
