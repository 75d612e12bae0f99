"""What a consumer group's progress is told with: an offset with its note, who speaks for the group, and how a request names offsets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from fairlead_kafka.base.ids import NO_LEADER_EPOCH, TopicPartition
from fairlead_kafka.wire import Message

NO_GENERATION = -1
"""Nobody is a member: offsets are committed without being checked against the group's members."""


class OffsetAndMetadata(NamedTuple):
    """The offset of the next record to read, with a note of the application's and the leader epoch of the last one read (-1: unknown)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


class Position(NamedTuple):
    """The offset of the next record to read, and the leader epoch of the last one read (-1: unknown)."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH

    def to_commit(self) -> OffsetAndMetadata:
        """What is committed for it."""
        return OffsetAndMetadata(self.offset, leader_epoch=self.leader_epoch)


class GroupMetadata(NamedTuple):
    """Who commits for a consumer group. With a member's id and generation, a group that has moved on refuses the commit (KIP-447)."""

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


def offset_rows(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> list[Message]:
    """The `topics` of an OffsetCommit or TxnOffsetCommit request."""
    topics: dict[str, list[Message]] = {}
    for (topic, number), one in offsets.items():
        row = Message(
            partition_index=number,
            committed_offset=one.offset,
            committed_leader_epoch=one.leader_epoch,
            committed_metadata=one.metadata,
        )
        topics.setdefault(topic, []).append(row)
    return [Message(name=topic, partitions=rows) for topic, rows in topics.items()]
