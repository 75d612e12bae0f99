"""Leaders and places of replicas: elections, reassignments, log directories. Sources: KIP-113,
KIP-455, KIP-460."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from fairlead_kafka.admin.cluster_items import ElectionType, PartitionReassignment, PartitionReplica
from fairlead_kafka.admin.scripts import (
    AdminScript,
    Outcome,
    Refused,
    about_one,
    explained,
    outcome_of,
    per_item,
)
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.base.ids import TopicPartition
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


def numbers_by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    """Numbers of partitions by topic; topics and numbers are in the order of `partitions`."""
    found: dict[str, list[int]] = {}
    for topic, number in partitions:
        found.setdefault(topic, []).append(number)
    return found


def elect_leaders(
    election_type: ElectionType, partitions: Sequence[TopicPartition] | None, *, timeout_ms: int
) -> AdminScript[dict[TopicPartition, None]]:
    """Elect leaders of partitions; `partitions` None: of all that need it. Gives {partition: None}
    of those elected.

    ItemsFailed names the partitions that failed; BrokerError if the whole request is refused.
    """
    rows = (
        None
        if partitions is None
        else [
            ElectLeadersRequest.TopicPartitions(topic=topic, partitions=numbers)
            for topic, numbers in numbers_by_topic(partitions).items()
        ]
    )
    message = ElectLeadersRequest(
        election_type=int(election_type), topic_partitions=rows, timeout_ms=timeout_ms
    )

    def read(answer: ElectLeadersResponse) -> Outcome[ElectLeadersResponse]:
        return outcome_of(answer.error_code, explained(answer.error_code, None, "Alter"), answer)

    answer = yield from about_one("elect_leaders", Ask(ApiKey.ELECT_LEADERS, message, CONTROLLER), read)
    elected: dict[TopicPartition, None] = {}
    errors: dict[TopicPartition, BrokerError] = {}
    for topic in answer.replica_election_results:
        for one in topic.partition_result:
            partition = TopicPartition(topic.topic, one.partition_id)
            if one.error_code:
                errors[partition] = BrokerError(one.error_code, one.error_message or str(partition))
            else:
                elected[partition] = None
    if errors:
        raise ItemsFailed("elect_leaders", errors, elected)
    return elected


def alter_partition_reassignments(
    moves: Mapping[TopicPartition, Sequence[int] | None], *, timeout_ms: int
) -> AdminScript[dict[TopicPartition, None]]:
    """Begin to move partitions to other replicas: {partition: node ids}; None takes back a move
    that is under way. ItemsFailed names the partitions that failed."""

    def ask(
        items: dict[TopicPartition, Sequence[int] | None],
    ) -> list[Ask[AlterPartitionReassignmentsResponse]]:
        topics: dict[str, list[AlterPartitionReassignmentsRequest.ReassignablePartition]] = {}
        for (topic, number), replicas in items.items():
            row = AlterPartitionReassignmentsRequest.ReassignablePartition(
                partition_index=number, replicas=None if replicas is None else list(replicas)
            )
            topics.setdefault(topic, []).append(row)
        made = AlterPartitionReassignmentsRequest.ReassignableTopic
        message = AlterPartitionReassignmentsRequest(
            timeout_ms=timeout_ms, topics=[made(name=name, partitions=rows) for name, rows in topics.items()]
        )
        return [Ask(ApiKey.ALTER_PARTITION_REASSIGNMENTS, message, CONTROLLER)]

    def read(answer: AlterPartitionReassignmentsResponse) -> list[tuple[TopicPartition, Outcome[None]]]:
        if answer.error_code:
            text = explained(answer.error_code, answer.error_message, "Alter")
            return [(of, Refused(answer.error_code, text)) for of in moves]
        return [
            (
                TopicPartition(topic.name, one.partition_index),
                outcome_of(one.error_code, one.error_message, None),
            )
            for topic in answer.responses
            for one in topic.partitions
        ]

    return per_item("alter_partition_reassignments", moves, ask, read)


def list_partition_reassignments(
    partitions: Sequence[TopicPartition] | None, *, timeout_ms: int
) -> AdminScript[dict[TopicPartition, PartitionReassignment]]:
    """Partitions whose replicas are being reassigned: {partition: its replicas}; `partitions` None:
    of all. BrokerError if the controller refuses."""
    made = ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics
    rows = (
        None
        if partitions is None
        else [
            made(name=topic, partition_indexes=numbers)
            for topic, numbers in numbers_by_topic(partitions).items()
        ]
    )
    message = ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=rows)

    def read(
        answer: ListPartitionReassignmentsResponse,
    ) -> Outcome[dict[TopicPartition, PartitionReassignment]]:
        found = {
            TopicPartition(topic.name, one.partition_index): PartitionReassignment(
                tuple(one.replicas), tuple(one.adding_replicas), tuple(one.removing_replicas)
            )
            for topic in answer.topics
            for one in topic.partitions
        }
        return outcome_of(
            answer.error_code, explained(answer.error_code, answer.error_message, "Describe"), found
        )

    return about_one(
        "list_partition_reassignments", Ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, message, CONTROLLER), read
    )


def alter_replica_log_dirs(
    assignments: Mapping[PartitionReplica, str],
) -> AdminScript[dict[PartitionReplica, None]]:
    """Move replicas to other log directories of their brokers. ItemsFailed names the replicas that
    failed."""

    def message(mine: Mapping[PartitionReplica, str]) -> AlterReplicaLogDirsRequest:
        dirs: dict[str, list[TopicPartition]] = {}
        for replica, path in mine.items():
            dirs.setdefault(path, []).append(TopicPartition(replica.topic, replica.partition))
        made = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
        return AlterReplicaLogDirsRequest(
            dirs=[
                AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path=path,
                    topics=[
                        made(name=topic, partitions=numbers)
                        for topic, numbers in numbers_by_topic(partitions).items()
                    ],
                )
                for path, partitions in dirs.items()
            ]
        )

    def one_broker(
        node_id: int, mine: dict[PartitionReplica, str]
    ) -> AdminScript[dict[PartitionReplica, None]]:
        def ask(items: dict[PartitionReplica, str]) -> list[Ask[AlterReplicaLogDirsResponse]]:
            return [Ask(ApiKey.ALTER_REPLICA_LOG_DIRS, message(items), node_id)]

        def read(answer: AlterReplicaLogDirsResponse) -> list[tuple[PartitionReplica, Outcome[None]]]:
            return [
                (
                    PartitionReplica(topic.topic_name, one.partition_index, node_id),
                    outcome_of(one.error_code, None, None),
                )
                for topic in answer.results
                for one in topic.partitions
            ]

        return per_item("alter_replica_log_dirs", mine, ask, read)

    by_broker: dict[int, dict[PartitionReplica, str]] = {}
    for replica, path in assignments.items():
        by_broker.setdefault(replica.node_id, {})[replica] = path
    done: dict[PartitionReplica, None] = {}
    errors: dict[PartitionReplica, BrokerError] = {}
    for node_id, mine in by_broker.items():
        try:
            done |= yield from one_broker(node_id, mine)
        except ItemsFailed as failed:
            errors |= failed.errors
            done |= failed.results
    if errors:
        raise ItemsFailed("alter_replica_log_dirs", errors, done)
    return done
