"""Topics: create, delete, add partitions, list, describe; and the cluster. Sources: KIP-4, KIP-195,
KIP-516."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence

from fairlead_kafka.admin.acl_items import operations_of
from fairlead_kafka.admin.items import (
    ClusterDescription,
    NewPartitions,
    NewTopic,
    TopicDescription,
    TopicListing,
    config_text,
)
from fairlead_kafka.admin.scripts import (
    AdminScript,
    Outcome,
    about_one,
    explained,
    outcome_of,
    per_item,
    retriable,
)
from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError, ItemsFailed
from fairlead_kafka.base.ids import NO_LEADER, NO_TOPIC_ID, Node
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask, Pause
from fairlead_kafka.core.topic_listing import ask_metadata, partitions_of
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    MetadataResponse,
)

_BROKERS = 1
"""Endpoint type for DescribeCluster: that of brokers (KIP-919)."""


def create_topics(
    topics: Sequence[NewTopic], *, validate_only: bool, timeout_ms: int
) -> AdminScript[dict[str, uuid.UUID]]:
    """Create topics; {name: topic id}. ItemsFailed names the topics that failed.

    The script ends once every topic is in the metadata with a leader for each partition.
    """

    def ask(items: dict[str, NewTopic]) -> list[Ask[CreateTopicsResponse]]:
        rows = [_creatable(topic) for topic in items.values()]
        message = CreateTopicsRequest(topics=rows, timeout_ms=timeout_ms, validate_only=validate_only)
        return [Ask(ApiKey.CREATE_TOPICS, message, CONTROLLER)]

    def read(answer: CreateTopicsResponse) -> list[tuple[str, Outcome[uuid.UUID]]]:
        return [
            (item.name, outcome_of(item.error_code, item.error_message, item.topic_id))
            for item in answer.topics
        ]

    created: dict[str, uuid.UUID] = {}
    failure: ItemsFailed | None = None
    try:
        created = yield from per_item("create_topics", {topic.name: topic for topic in topics}, ask, read)
    except ItemsFailed as error:
        failure, created = error, error.results
    if created and not validate_only:
        yield from _until(list(created), _all_led(dict.fromkeys(created, 0)))
    if failure is not None:
        raise failure
    return created


def delete_topics(names: Sequence[str], *, timeout_ms: int) -> AdminScript[dict[str, None]]:
    """Delete topics. ItemsFailed names the topics that failed.

    The script ends once the metadata has none of them (or one created again, under another id).
    """

    def ask(items: dict[str, str]) -> list[Ask[DeleteTopicsResponse]]:
        rows = [DeleteTopicsRequest.DeleteTopicState(name=name, topic_id=NO_TOPIC_ID) for name in items]
        message = DeleteTopicsRequest(topics=rows, topic_names=list(items), timeout_ms=timeout_ms)
        return [Ask(ApiKey.DELETE_TOPICS, message, CONTROLLER)]

    def read(answer: DeleteTopicsResponse) -> list[tuple[str, Outcome[uuid.UUID]]]:
        return [
            (item.name, outcome_of(item.error_code, item.error_message, item.topic_id))
            for item in answer.responses
            if item.name is not None
        ]

    def gone(topic: MetadataResponse.MetadataResponseTopic) -> BrokerError | None:
        old_id = None if topic.name is None else deleted.get(topic.name)
        if topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION or (
            old_id and old_id != NO_TOPIC_ID and topic.topic_id != old_id
        ):
            return None
        return BrokerError(
            ErrorCode.LEADER_NOT_AVAILABLE,
            f"topic {topic.name} is deleted, and a broker still has it in its metadata",
        )

    deleted: dict[str, uuid.UUID] = {}
    failure: ItemsFailed | None = None
    try:
        deleted = yield from per_item("delete_topics", {name: name for name in names}, ask, read)
    except ItemsFailed as error:
        failure, deleted = error, error.results
    if deleted:
        yield from _until(list(deleted), gone)
    if failure is not None:
        raise failure
    return dict.fromkeys(deleted)


def create_partitions(
    changes: Mapping[str, NewPartitions], *, validate_only: bool, timeout_ms: int
) -> AdminScript[dict[str, None]]:
    """Add partitions. The script ends once the metadata has the new ones with leaders. ItemsFailed
    names the topics that failed."""

    def ask(items: dict[str, NewPartitions]) -> list[Ask[CreatePartitionsResponse]]:
        row = CreatePartitionsRequest.CreatePartitionsAssignment
        topics = [
            CreatePartitionsRequest.CreatePartitionsTopic(
                name=name,
                count=change.total,
                assignments=None
                if change.assignments is None
                else [
                    row(broker_ids=_brokers(name, number, brokers))
                    for number, brokers in enumerate(change.assignments)
                ],
            )
            for name, change in items.items()
        ]
        message = CreatePartitionsRequest(topics=topics, timeout_ms=timeout_ms, validate_only=validate_only)
        return [Ask(ApiKey.CREATE_PARTITIONS, message, CONTROLLER)]

    def read(answer: CreatePartitionsResponse) -> list[tuple[str, Outcome[None]]]:
        return [(item.name, outcome_of(item.error_code, item.error_message, None)) for item in answer.results]

    done = yield from per_item("create_partitions", changes, ask, read)
    if not validate_only and done:
        yield from _until(list(done), _all_led({name: change.total for name, change in changes.items()}))
    return done


def list_topics(*, include_internal: bool) -> AdminScript[dict[str, TopicListing]]:
    """List all topics: {name: listing}, by name."""
    answer = yield from ask_metadata(None)
    return {
        topic.name: TopicListing(topic.name, topic.topic_id, topic.is_internal)
        for topic in sorted(answer.topics, key=lambda topic: str(topic.name))
        if topic.name is not None and (include_internal or not topic.is_internal)
    }


def describe_topics(
    names: Sequence[str], *, include_authorized_operations: bool
) -> AdminScript[dict[str, TopicDescription]]:
    """Describe topics: {name: description}; ItemsFailed names those that are missing."""
    found: dict[str, TopicDescription] = {}
    errors: dict[str, BrokerError] = {}
    while names:
        answer = yield from ask_metadata(
            names, include_topic_authorized_operations=include_authorized_operations
        )
        left_out = {
            name: BrokerError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the answer left out {name!r}")
            for name in names
        }
        errors = {name: error for name, error in left_out.items() if name not in found}
        for topic in answer.topics:
            if topic.name is None or topic.name not in left_out:  # nobody asked about it
                continue
            errors.pop(topic.name, None)
            if topic.error_code:
                errors[topic.name] = BrokerError(topic.error_code)
            else:
                may = operations_of(topic.topic_authorized_operations)
                found[topic.name] = TopicDescription(
                    topic.name, topic.topic_id, topic.is_internal, partitions_of(topic), may
                )
        waiting = [
            error for name, error in errors.items() if retriable(error.code) or error is left_out[name]
        ]
        if not waiting:
            break
        yield Pause(waiting[0])
    if errors:
        raise ItemsFailed("describe_topics", {name: errors[name] for name in names if name in errors}, found)
    return {name: found[name] for name in names}


def describe_cluster(
    *, include_authorized_operations: bool, include_fenced_brokers: bool
) -> AdminScript[ClusterDescription]:
    """Describe the cluster: nodes, controller, cluster id; on request also the operations allowed
    and the fenced brokers. For these two newer brokers have a request of their own (KIP-700, Kafka
    2.8; KIP-1073, 4.0)."""
    answer: DescribeClusterResponse | MetadataResponse
    may: frozenset[AclOperation] | None = None
    fenced: frozenset[int] = frozenset()
    if include_authorized_operations or include_fenced_brokers:
        message = DescribeClusterRequest(
            include_cluster_authorized_operations=include_authorized_operations,
            endpoint_type=_BROKERS,
            include_fenced_brokers=include_fenced_brokers,
        )

        def read(answer: DescribeClusterResponse) -> Outcome[DescribeClusterResponse]:
            return outcome_of(
                answer.error_code, explained(answer.error_code, answer.error_message, "Describe"), answer
            )

        ask = Ask(ApiKey.DESCRIBE_CLUSTER, message)
        described = yield from about_one("describe_cluster", ask, read)
        nodes = [
            Node(broker.broker_id, broker.host, broker.port, broker.rack) for broker in described.brokers
        ]
        may = operations_of(described.cluster_authorized_operations)
        fenced = frozenset(broker.broker_id for broker in described.brokers if broker.is_fenced)
        answer = described
    else:
        answer = listed = yield from ask_metadata([])
        nodes = [Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in listed.brokers]
    nodes.sort(key=lambda node: node.node_id)  # one may be there twice, its rack once
    controller = next((node for node in nodes if node.node_id == answer.controller_id), None)
    return ClusterDescription(answer.cluster_id, controller, nodes, may, fenced)


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
    given = topic.assignments or ()
    rows = given.items() if isinstance(given, Mapping) else enumerate(given)
    made = CreateTopicsRequest.CreatableReplicaAssignment
    assignments = [
        made(partition_index=partition, broker_ids=_brokers(topic.name, partition, brokers))
        for partition, brokers in rows
    ]
    config = CreateTopicsRequest.CreatableTopicConfig
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=-1 if assignments else topic.partitions,
        replication_factor=-1 if assignments else topic.replication_factor,
        assignments=assignments,
        configs=[config(name=key, value=config_text(value)) for key, value in topic.configs.items()],
    )


def _brokers(topic: str, number: int, brokers: object) -> list[int]:
    if isinstance(brokers, Iterable) and not isinstance(brokers, str):
        return list(brokers)
    text = f"assignments[{number}] of topic {topic} is {brokers!r}: give the partition's brokers, as [0, 1]"
    raise BrokerError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, text)


def _until(
    names: Sequence[str], problem_of: Callable[[MetadataResponse.MetadataResponseTopic], BrokerError | None]
) -> AdminScript[None]:
    """A script: wait until `problem_of` gives None for the metadata of each topic in `names`."""
    while True:
        answer = yield from ask_metadata(names)
        problems = [problem for problem in map(problem_of, answer.topics) if problem is not None]
        if not problems:
            return
        yield Pause(problems[0], refresh=True)


def _all_led(
    counts: Mapping[str, int],
) -> Callable[[MetadataResponse.MetadataResponseTopic], BrokerError | None]:
    """A `problem_of` for `_until` that wants every partition to have a leader.

    A topic's problem: it does not exist yet, has fewer partitions than `counts` says, or one
    without a leader.
    """

    def problem_of(topic: MetadataResponse.MetadataResponseTopic) -> BrokerError | None:
        what = f"topic {topic.name} is created, and"
        if topic.error_code:
            return BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE, f"{what} a broker does not have it in its metadata yet"
            )
        led = sum(1 for partition in topic.partitions if partition.leader_id != NO_LEADER)
        wanted = max(len(topic.partitions), 0 if topic.name is None else counts.get(topic.name, 0))
        if led < max(1, wanted):
            return BrokerError(
                ErrorCode.LEADER_NOT_AVAILABLE,
                f"{what} {wanted - led} of its {wanted} partitions have no leader yet",
            )
        return None

    return problem_of
