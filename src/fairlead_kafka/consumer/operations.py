"""What a face can ask of a consumer machine. Each operation carries a completion, answered once by `effects.Resolve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition


class Assign(NamedTuple):
    """Read exactly `partitions`; one that was assigned before keeps its position. Answer: {partition: generation}."""

    completion: Any
    partitions: Sequence[TopicPartition]


class AssignRange(NamedTuple):
    """Read one partition alone, offsets `start` to `end` (excluded), never resetting the position. Answer: {partition: generation}."""

    completion: Any
    partition: TopicPartition
    start: int
    end: int


class Seek(NamedTuple):
    """Move positions: an offset, or EARLIEST or LATEST (`core.partition_offsets`), looked up when needed.

    What was fetched for these partitions is dropped. Answer: {partition: generation}.
    """

    completion: Any
    positions: Mapping[TopicPartition, int]


class SetPaused(NamedTuple):
    """Stop (or go on) fetching and delivering `partitions`. Answer: None."""

    completion: Any
    partitions: Sequence[TopicPartition]
    paused: bool


class Take(NamedTuple):
    """Hand over what was fetched, oldest first, as soon as there is any: at least one chunk, then up to `max_bytes`.

    Answer: list[Chunk], empty if `deadline_ns` passed without data.
    """

    completion: Any
    deadline_ns: int
    max_bytes: int


class TellPosition(NamedTuple):
    """Answer: the offset after the last one handed over, found by the reset policy if there was none."""

    completion: Any
    deadline_ns: int
    partition: TopicPartition


class FindOffsets(NamedTuple):
    """Answer: {partition: OffsetAndTimestamp | None} for timestamps in ms, EARLIEST or LATEST."""

    completion: Any
    deadline_ns: int
    targets: Mapping[TopicPartition, int]


class DescribeTopics(NamedTuple):
    """Answer: {topic: list[PartitionMetadata]} for the topics named, or for every topic if None."""

    completion: Any
    deadline_ns: int
    topics: Sequence[str] | None


class TellMetrics(NamedTuple):
    """Answer: dict[str, float | dict]; see `ConsumerMachine.metrics`."""

    completion: Any


class Shut(NamedTuple):
    """Close connections and fail what is under way. Answer: None."""

    completion: Any


Operation = Assign | AssignRange | Seek | SetPaused | Take | TellPosition | FindOffsets | DescribeTopics | TellMetrics | Shut
"""Those of every consumer; `groups.operations` has those of consumers with a group."""

NO_END = 2**63 - 1
"""An end that no offset reaches."""

assert NO_OFFSET < 0 < NO_END
