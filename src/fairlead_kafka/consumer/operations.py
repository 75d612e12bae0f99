"""Operations that a client class submits to a consumer machine.

Each carries a completion, answered once by `effects.Resolve`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.consumer.partition import Chunk
from fairlead_kafka.core.completion import Completion
from fairlead_kafka.core.metadata import PartitionMetadata
from fairlead_kafka.core.partition_offsets import OffsetAndTimestamp


class Assign(NamedTuple):
    """Read exactly `partitions`; one that was assigned before keeps its position. Answer:
    {partition: generation}."""

    completion: Completion[dict[TopicPartition, int]]
    partitions: Sequence[TopicPartition]


class AssignRange(NamedTuple):
    """Read one partition alone, offsets `start` to `end` (excluded), never resetting the position.
    Answer: {partition: generation}."""

    completion: Completion[dict[TopicPartition, int]]
    partition: TopicPartition
    start: int
    end: int


class Seek(NamedTuple):
    """Move positions: an offset, or EARLIEST or LATEST (`core.partition_offsets`), looked up when
    needed.

    Data fetched of these partitions is dropped. Answer: {partition: generation}.
    """

    completion: Completion[dict[TopicPartition, int]]
    positions: Mapping[TopicPartition, int]


class SetPaused(NamedTuple):
    """Operation: stop fetching and delivering `partitions`, or, if `paused` is false, go on.
    Answer: None."""

    completion: Completion[None]
    partitions: Sequence[TopicPartition]
    paused: bool


class Take(NamedTuple):
    """Take fetched chunks, oldest first, as soon as there are any.

    At least one chunk, then up to `max_bytes`. Answer: list[Chunk], empty if `deadline_ns` passed
    without data. Submitted again, with the same completion, it is answered once.
    """

    completion: Completion[list[Chunk]]
    deadline_ns: int
    max_bytes: int


class GetPosition(NamedTuple):
    """Find the position of a partition: the offset of the next record to return.

    It is looked up if there is none: committed offset, else reset policy. Answer: int.
    """

    completion: Completion[int]
    deadline_ns: int
    partition: TopicPartition


class FindOffsets(NamedTuple):
    """Look up offsets for timestamps in ms since 1970, EARLIEST or LATEST.

    Answer: {partition: OffsetAndTimestamp | None}.
    """

    completion: Completion[dict[TopicPartition, OffsetAndTimestamp | None]]
    deadline_ns: int
    targets: Mapping[TopicPartition, int]


class DescribeTopics(NamedTuple):
    """List the partitions of the topics named, or of every topic if None.

    Answer: {topic: list[PartitionMetadata]}.
    """

    completion: Completion[dict[str, list[PartitionMetadata]]]
    deadline_ns: int
    topics: Sequence[str] | None


class Shut(NamedTuple):
    """Close connections and fail what is under way. Answer: None."""

    completion: Completion[None]


Operation = Assign | AssignRange | Seek | SetPaused | Take | GetPosition | FindOffsets | DescribeTopics | Shut
"""Operations of every consumer; `groups.operations` has those of consumers with a group."""
