"""Offsets of partitions: ListOffsets as a script, asked of every leader, and again if leaders move.

Shared by the consumer (positions, look-ups) and the admin client. Source: KIP-79, KIP-734 and
Kafka's `OffsetFetcherUtils`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, UnsupportedVersion
from fairlead_kafka.base.ids import NO_LEADER, NO_LEADER_EPOCH, NO_TIMESTAMP, TopicPartition
from fairlead_kafka.base.rights import broker_error
from fairlead_kafka.core.metadata import Metadata
from fairlead_kafka.core.script import Ask, Pause, Steps, ask_all
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import ListOffsetsRequest, ListOffsetsResponse

EARLIEST = -2
"""Instead of a timestamp: the first offset of the log."""
LATEST = -1
"""Instead of a timestamp: the offset after the last one that may be read."""
MAX_TIMESTAMP = -3
"""Instead of a timestamp: the record with the largest timestamp (KIP-734)."""
EARLIEST_LOCAL = -4
"""Instead of a timestamp: the first offset that the leader has on its own disk (KIP-405)."""
LATEST_TIERED = -5
"""Instead of a timestamp: the last offset in tiered storage, none without it (KIP-1005)."""
EARLIEST_PENDING_UPLOAD = -6
"""Instead of a timestamp: the first offset that is to go to tiered storage (KIP-1023)."""


READ_UNCOMMITTED, READ_COMMITTED = 0, 1
"""Isolation levels as requests name them (KIP-98)."""
ISOLATION_LEVELS = {"read_uncommitted": READ_UNCOMMITTED, "read_committed": READ_COMMITTED}
"""Value of `isolation.level` → the isolation level in a request."""


class OffsetAndTimestamp(NamedTuple):
    """An offset, with the timestamp of its record in milliseconds since 1970 and the leader epoch
    of the record (-1: the broker did not report it)."""

    offset: int
    timestamp_ms: int = NO_TIMESTAMP
    leader_epoch: int = NO_LEADER_EPOCH


def leader_problem(metadata: Metadata, partition: TopicPartition) -> BrokerError | None:
    """The error that says why the leader of `partition` is not known; None if it is known."""
    if metadata.leader(partition.topic, partition.partition) != NO_LEADER:
        return None
    topic = metadata.topic(partition.topic)
    if topic is None:
        return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"no metadata of topic {partition.topic} yet")
    if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return BrokerError(
            topic.error_code, f"topic {partition.topic} is not in the cluster; create it, or check its name"
        )
    if topic.error_code:
        return broker_error(topic.error_code, f"topic {partition.topic}", "Describe")
    if not 0 <= partition.partition < len(topic.partitions):
        return BrokerError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"{partition} does not exist: topic {partition.topic} has {len(topic.partitions)} partitions, "
            "numbered from 0",
        )
    return BrokerError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")


def by_leader(
    metadata: Metadata, partitions: Iterable[TopicPartition]
) -> tuple[dict[int, list[TopicPartition]], dict[TopicPartition, BrokerError]]:
    """`partitions` grouped by leader, in the order given, and those without a leader, with the
    reason."""
    groups: dict[int, list[TopicPartition]] = {}
    problems: dict[TopicPartition, BrokerError] = {}
    for partition in partitions:
        problem = leader_problem(metadata, partition)
        if problem is None:
            groups.setdefault(metadata.leader(*partition), []).append(partition)
        else:
            problems[partition] = problem
    return groups, problems


def list_offsets(
    metadata: Metadata,
    targets: Mapping[TopicPartition, int],
    on_found: Callable[[TopicPartition, OffsetAndTimestamp | BrokerError | None], None] | None = None,
    *,
    isolation_level: int = READ_UNCOMMITTED,
    wanted: Callable[[TopicPartition], bool] = lambda _partition: True,
) -> Steps[dict[TopicPartition, OffsetAndTimestamp | BrokerError | None]]:
    """A script: for each partition the offset that goes with its target, a timestamp in ms or one
    of the constants above.

    The offset for a timestamp is the first one whose record is as late or later; None if there is
    none. Errors that will not pass stand in the place of an offset. `on_found` is called for each
    partition as soon as its result is final, however long others take; a partition that is not
    `wanted` any more is looked for no longer, and not in the result. With READ_COMMITTED, LATEST is
    the last stable offset: before the first record of a transaction that is still open.
    """
    found: dict[TopicPartition, OffsetAndTimestamp | BrokerError | None] = {}
    while left := [partition for partition in targets if partition not in found and wanted(partition)]:
        groups, problems = by_leader(metadata, left)
        refused: dict[TopicPartition, OffsetAndTimestamp | BrokerError | None] = {}
        refused.update(
            (partition, problem) for partition, problem in problems.items() if not problem.retriable
        )
        decided = dict(refused)
        trouble: Exception | None = None
        for leader, asked, answer in (yield from _ask_leaders(metadata, groups, targets, isolation_level)):
            if isinstance(answer, UnsupportedVersion):
                raise answer
            if isinstance(answer, Exception):
                trouble = answer
                continue
            answered = _read_answer(answer, leader)
            for partition in asked:
                result = answered.get(
                    partition,
                    BrokerError(
                        ErrorCode.UNKNOWN_SERVER_ERROR, f"node {leader} left {partition} out of its answer"
                    ),
                )
                if result is None and targets[partition] in (EARLIEST, LATEST):  # every log has ends
                    result = BrokerError(
                        ErrorCode.UNKNOWN_SERVER_ERROR,
                        f"node {leader} gave no offset for an end of {partition}",
                    )
                if isinstance(result, BrokerError) and result.retriable:
                    trouble = result
                else:
                    decided[partition] = result
        found.update(decided)
        if on_found is not None:
            for partition, result in decided.items():
                on_found(partition, result)
        unplaced = [problem for partition, problem in problems.items() if partition not in refused]
        if trouble is not None:
            yield Pause(trouble, refresh=True)
        elif unplaced:
            yield Pause(unplaced[0], until_metadata=True)
    return {partition: found[partition] for partition in targets if partition in found}


def _ask_leaders(
    metadata: Metadata,
    groups: Mapping[int, list[TopicPartition]],
    targets: Mapping[TopicPartition, int],
    isolation_level: int,
) -> Steps[list[tuple[int, list[TopicPartition], ListOffsetsResponse | Exception]]]:
    if not groups:
        return []
    messages = {
        leader: _message(metadata, group, targets, isolation_level) for leader, group in groups.items()
    }
    asks = [Ask(ApiKey.LIST_OFFSETS, message, leader) for leader, message in messages.items()]
    answers = yield from ask_all(asks)
    return [(leader, group, answer) for (leader, group), answer in zip(groups.items(), answers, strict=True)]


def _message(
    metadata: Metadata,
    partitions: Iterable[TopicPartition],
    targets: Mapping[TopicPartition, int],
    isolation_level: int,
) -> ListOffsetsRequest:
    topics: dict[str, list[ListOffsetsRequest.ListOffsetsPartition]] = {}
    for partition in partitions:
        topics.setdefault(partition.topic, []).append(
            ListOffsetsRequest.ListOffsetsPartition(
                partition_index=partition.partition,
                current_leader_epoch=metadata.leader_epoch(partition.topic, partition.partition),
                timestamp=targets[partition],
            )
        )
    listed = [
        ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=items) for name, items in topics.items()
    ]
    return ListOffsetsRequest(replica_id=-1, isolation_level=isolation_level, topics=listed)


def _read_answer(
    answer: ListOffsetsResponse, leader: int
) -> dict[TopicPartition, OffsetAndTimestamp | BrokerError | None]:
    results: dict[TopicPartition, OffsetAndTimestamp | BrokerError | None] = {}
    for topic in answer.topics:
        for item in topic.partitions:
            partition = TopicPartition(topic.name, item.partition_index)
            if item.error_code:
                results[partition] = broker_error(
                    item.error_code, f"{partition}, asked of node {leader}", "Describe"
                )
            elif item.offset < 0:
                results[partition] = None
            else:
                results[partition] = OffsetAndTimestamp(item.offset, item.timestamp, item.leader_epoch)
    return results
