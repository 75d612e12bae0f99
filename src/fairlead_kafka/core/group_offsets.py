"""Offsets of a consumer group: committed offsets, positions, the committing member, and rows of
requests."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from uuid import UUID

from fairlead_kafka.base.ids import NO_LEADER_EPOCH, NO_TOPIC_ID, TopicPartition
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import OffsetCommitRequest, TxnOffsetCommitRequest

NO_GENERATION = -1
"""The generation of a client that is no member: its commits are not checked against the members."""


LAST_VERSIONS_WITH_NAMES = {ApiKey.OFFSET_COMMIT: 9, ApiKey.OFFSET_FETCH: 9}
"""From the version after these on, topics are named by ids alone (KIP-848)."""


class OffsetAndMetadata(NamedTuple):
    """A committed offset: that of the next record to read, with the application's metadata text.

    `leader_epoch` is that of the last record read (-1: unknown).
    """

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


class Position(NamedTuple):
    """The offset of the next record to read, and the leader epoch of the last one read (-1:
    unknown)."""

    offset: int
    leader_epoch: int = NO_LEADER_EPOCH

    def to_commit(self) -> OffsetAndMetadata:
        """The offset to commit for this position."""
        return OffsetAndMetadata(self.offset, leader_epoch=self.leader_epoch)


class GroupMetadata(NamedTuple):
    """Identity of a client that commits for a consumer group.

    With a member's id and generation, a group that has moved on refuses the commit (KIP-447).
    """

    group_id: str
    generation_id: int = NO_GENERATION
    member_id: str = ""
    group_instance_id: str | None = None


def offset_rows(
    offsets: Mapping[TopicPartition, OffsetAndMetadata], topic_ids: Mapping[str, UUID] | None = None
) -> list[OffsetCommitRequest.OffsetCommitRequestTopic]:
    """The `topics` of an OffsetCommit request. `topic_ids`: by name, where they are known."""
    ids = topic_ids or {}
    topics: dict[str, list[OffsetCommitRequest.OffsetCommitRequestPartition]] = {}
    for (topic, number), one in offsets.items():
        row = OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=one.offset,
            committed_leader_epoch=one.leader_epoch,
            committed_metadata=one.metadata,
        )
        topics.setdefault(topic, []).append(row)
    made = OffsetCommitRequest.OffsetCommitRequestTopic
    return [
        made(name=topic, topic_id=ids.get(topic, NO_TOPIC_ID), partitions=rows)
        for topic, rows in topics.items()
    ]


def transaction_offset_rows(
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
) -> list[TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic]:
    """The `topics` of a TxnOffsetCommit request."""
    topics: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
    for (topic, number), one in offsets.items():
        row = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
            partition_index=number,
            committed_offset=one.offset,
            committed_leader_epoch=one.leader_epoch,
            committed_metadata=one.metadata,
        )
        topics.setdefault(topic, []).append(row)
    made = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    return [made(name=topic, partitions=rows) for topic, rows in topics.items()]
