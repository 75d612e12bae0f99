"""Answers of calls that ask for positions or offsets."""

from __future__ import annotations

from collections.abc import Collection

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.ids import NO_OFFSET, TopicPartition
from fairlead_kafka.consumer.operations import GetPosition
from fairlead_kafka.consumer.partition import PartitionState
from fairlead_kafka.core.network import Network
from fairlead_kafka.core.partition_offsets import leader_problem
from fairlead_kafka.core.script import late


def position_error(
    asker: GetPosition, state: PartitionState | None, network: Network, now_ns: int
) -> Exception | None:
    """The error for a GetPosition that cannot be answered; None if the partition has a position or
    waits for it.

    `state` is the state of the partition asked for; None if it is not assigned.
    """
    if state is None:
        return UsageError(f"{asker.partition} is not assigned any more")
    if state.error is not None:
        return state.error
    if state.position == NO_OFFSET and now_ns >= asker.deadline_ns:
        problem = leader_problem(network.metadata, asker.partition)
        return late(f"position of {asker.partition}", problem, network)
    return None


def first_names(partitions: Collection[TopicPartition]) -> str:
    """The first three of `partitions`, for a message: "a-0, a-1, a-2, ..."."""
    return ", ".join(map(str, list(partitions)[:3])) + (", ..." if len(partitions) > 3 else "")
