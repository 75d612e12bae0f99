"""How far groups are behind: what they have committed against where the logs end, with who reads what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead_kafka.admin import GroupMember
from fairlead_kafka.base.errors import ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.client.admin import Admin
from fairlead_kafka.core.partition_offsets import LATEST


@dataclass(slots=True, frozen=True)
class PartitionLag:
    """One partition that a group has committed an offset of, or that a member reads. `lag` is in offsets."""

    partition: TopicPartition
    committed: int | None
    """The offset to go on from; None: nothing committed."""
    end: int | None
    """Where the log ends; None: the partition is gone."""
    member: GroupMember | None
    """Who reads it now."""

    @property
    def lag(self) -> int | None:
        """Offsets between the two; None unless both are known."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)

    def as_row(self) -> dict[str, Any]:
        """{topic, partition, committed, end, lag, member_id, host, client_id}, None where there is nothing: for reports."""
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
    """{group: lags}, by partition, of groups given with their members. Raises as `Admin.list_group_offsets`."""
    if not members:
        return {}
    committed = admin.list_group_offsets(members)
    readers = {name: {of: member for member in mine for of in member.assignment} for name, mine in members.items()}
    ends = _ends(admin, {of for name in readers for of in (*committed[name], *readers[name])})
    found: dict[str, list[PartitionLag]] = {}
    for name, reading in readers.items():
        mine = committed[name]
        found[name] = [
            PartitionLag(of, mine[of].offset if of in mine else None, ends.get(of), reading.get(of)) for of in sorted({*mine, *reading})
        ]
    return found


def _ends(admin: Admin, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """The ends of logs; a partition that is gone has none."""
    targets = dict.fromkeys(sorted(partitions), LATEST)
    if not targets:
        return {}
    found: dict[Any, Any]
    try:
        found = dict(admin.list_offsets(targets))
    except ItemsFailed as error:
        found = error.results
    return {of: one.offset for of, one in found.items() if one is not None}
