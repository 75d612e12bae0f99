"""Topics and records, requested with rights and without."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead_kafka.lab.transcript.cluster_steps import topic
from fairlead_kafka.lab.transcript.holders import PUBLIC, SECRET, Holder
from fairlead_kafka.lab.transcript.secured_cases import (
    TRIO,
    Case,
    Make,
    Rows,
    about,
    bare,
    mine,
    named,
    partitions,
)
from fairlead_kafka.lab.transcript.steps import UNKNOWN_ID, FieldValue, Seen, Step, ask, batch, silent
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeTopicPartitionsRequest,
    MetadataRequest,
    ProduceRequest,
)

_CreatePartitionsTopic = CreatePartitionsRequest.CreatePartitionsTopic
_Topic = MetadataRequest.MetadataRequestTopic
_PartitionProduceData = ProduceRequest.PartitionProduceData
_ReassignableTopic = AlterPartitionReassignmentsRequest.ReassignableTopic
_TopicProduceData = ProduceRequest.TopicProduceData
_ONE = batch(b"one")
_MS = 5_000


def _batches(names: list[str], seen: Seen) -> list[_TopicProduceData]:
    return [
        _TopicProduceData(
            name=name,
            topic_id=seen.id(name),
            partition_data=[_PartitionProduceData(index=0, records=_ONE(seen))],
        )
        for name in names
    ]


def _produce(name: str, things: Iterable[str], versions: Iterable[int] = (9, 13), acks: int = 1) -> Make:
    return about(
        name,
        ApiKey.PRODUCE,
        versions,
        "topic_data",
        _batches,
        things,
        acks=acks,
        timeout_ms=_MS,
    )


def _unanswered(holder: Holder) -> Step:
    rows = [
        _TopicProduceData(name=holder.own(), partition_data=[_PartitionProduceData(index=0, records=b"")])
    ]
    return silent("produced without an answer", ApiKey.PRODUCE, (9,), acks=0, timeout_ms=_MS, topic_data=rows)


def _still_there(_holder: Holder) -> Step:
    return ask("what comes next on that connection", ApiKey.API_VERSIONS, (0,))


_READ: dict[str, FieldValue] = {
    "replica_id": -1,
    "max_wait_ms": 0,
    "min_bytes": 0,
    "max_bytes": 1 << 20,
    "session_epoch": -1,
    "rack_id": "",
}
_FROM = {
    "partition": 0,
    "current_leader_epoch": -1,
    "fetch_offset": 0,
    "last_fetched_epoch": -1,
    "partition_max_bytes": 1 << 20,
}


def _fetch(name: str, things: Iterable[str], versions: Iterable[int]) -> Make:
    return about(
        name,
        ApiKey.FETCH,
        versions,
        "topics",
        partitions("partitions", "topic", ids=True, **_FROM),
        things,
        **_READ,
    )


def _metadata(
    name: str,
    versions: Iterable[int],
    rows: Rows,
    things: Iterable[str] = TRIO,
    auto: bool = False,
    **more: bool,
) -> Make:
    fields: dict[str, FieldValue | Callable[[Holder], FieldValue]] = {
        "allow_auto_topic_creation": auto,
        "include_topic_authorized_operations": True,
        **more,
    }
    return about(name, ApiKey.METADATA, versions, "topics", rows, things, **fields)


def _by_id(names: list[str], seen: Seen) -> list[Message]:
    return [Message(name=None, topic_id=seen.id(name)) for name in names] + [
        Message(name=None, topic_id=UNKNOWN_ID)
    ]


def _and_public(names: list[str], _seen: Seen) -> list[_Topic]:
    return [_Topic(name=name) for name in (*names, PUBLIC)]


RECORDS: list[Case] = [
    Case(_produce("produced", TRIO, (3, 9, 12)), "topic", "topic-write"),
    Case(_produce("produced to its own", ("own",), acks=-1), "topic", "topic-write"),
    Case(_unanswered, "topic", "topic-write"),
    Case(_still_there, "topic", "topic-write"),
    Case(_fetch("fetched", TRIO, (4, 12)), "topic", "topic-read"),
    Case(_fetch("fetched by id", ("own", SECRET), (13, 17)), "topic", "topic-read"),
    Case(
        about(
            "looked up",
            ApiKey.LIST_OFFSETS,
            (1, 8),
            "topics",
            partitions("partitions", partition_index=0, current_leader_epoch=-1, timestamp=-2),
            TRIO,
            replica_id=-1,
        ),
        "topic",
        "topic-describe",
    ),
    Case(
        about(
            "the epoch's end",
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            (4,),
            "topics",
            partitions("partitions", "topic", partition=0, current_leader_epoch=-1, leader_epoch=0),
            TRIO,
            replica_id=-1,
        ),
        "topic",
        "topic-describe",
    ),
    Case(
        about(
            "cut",
            ApiKey.DELETE_RECORDS,
            (2,),
            "topics",
            partitions("partitions", partition_index=0, offset=0),
            TRIO,
            timeout_ms=_MS,
        ),
        "topic",
        "topic-delete",
    ),
    Case(
        about("who writes", ApiKey.DESCRIBE_PRODUCERS, (0,), "topics", partitions("partition_indexes"), TRIO),
        "topic",
        "topic-read",
    ),
]

_NEW = {"timeout_ms": 10_000}


def _topics(names: list[str], _seen: Seen) -> list[CreateTopicsRequest.CreatableTopic]:
    return [topic(name, 1, 1, cleanup_policy="delete") for name in names]


def _grown(names: list[str], _seen: Seen) -> list[_CreatePartitionsTopic]:
    return [_CreatePartitionsTopic(name=name, count=3, assignments=None) for name in names]


def _reassigned(names: list[str], _seen: Seen) -> list[_ReassignableTopic]:
    return [
        _ReassignableTopic(
            name=name,
            partitions=[
                AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=[0])
            ],
        )
        for name in names
    ]


_paged = about(
    "described by pages",
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
    (0,),
    "topics",
    lambda names, _seen: [DescribeTopicPartitionsRequest.TopicRequest(name=one) for one in names],
    ("own", SECRET),
    response_partition_limit=100,
    cursor=None,
)

TOPICS: list[Case] = [
    Case(_metadata("described", (8, 12), _and_public), "topic cluster", "topic-describe"),
    Case(_paged, "topic cluster", "topic-describe"),
    Case(_metadata("described by id", (12,), _by_id, ("own", SECRET)), "topic", "topic-describe"),
    Case(
        mine(_metadata("all that there is", (9, 13), lambda _names, _seen: None)),
        "topic",
        "topic-describe",
    ),
    Case(
        _metadata(
            "the cluster's operations",
            (9,),
            lambda _names, _seen: [],
            include_cluster_authorized_operations=True,
        ),
        "cluster",
        "cluster-describe",
    ),
    Case(
        _metadata("made by asking", (12,), named(), ("auto",), auto=True), "topic cluster", "makes-on-demand"
    ),
    Case(
        about(
            "made, validated only",
            ApiKey.CREATE_TOPICS,
            (4, 7),
            "topics",
            _topics,
            ("own", "new", SECRET),
            validate_only=True,
            **_NEW,
        ),
        "topic cluster",
        "topic-create makes-and-tells cluster-create",
    ),
    Case(
        about("made", ApiKey.CREATE_TOPICS, (7,), "topics", _topics, ("new",), **_NEW),
        "topic cluster",
        "topic-create makes-and-tells cluster-create",
    ),
    Case(
        about("grown", ApiKey.CREATE_PARTITIONS, (3,), "topics", _grown, TRIO, validate_only=True, **_NEW),
        "topic cluster",
        "topic-alter",
    ),
    Case(
        about(
            "elected",
            ApiKey.ELECT_LEADERS,
            (0, 2),
            "topic_partitions",
            partitions("partitions", "topic"),
            TRIO,
            election_type=0,
            **_NEW,
        ),
        "topic cluster",
        "cluster-alter",
    ),
    Case(
        about("moved", ApiKey.ALTER_PARTITION_REASSIGNMENTS, (0,), "topics", _reassigned, TRIO, **_NEW),
        "topic cluster",
        "cluster-alter",
    ),
    Case(
        about(
            "what moves",
            ApiKey.LIST_PARTITION_REASSIGNMENTS,
            (0,),
            "topics",
            partitions("partition_indexes"),
            TRIO,
            **_NEW,
        ),
        "topic cluster",
        "cluster-describe",
    ),
    Case(
        about("on disk", ApiKey.DESCRIBE_LOG_DIRS, (1, 4), "topics", partitions("partitions", "topic"), TRIO),
        "topic cluster",
        "cluster-describe",
    ),
]

DELETED: list[Case] = [
    Case(
        about("deleted", ApiKey.DELETE_TOPICS, (1, 5), "topic_names", bare, ("missing", SECRET), **_NEW),
        "topic cluster",
        "topic-delete",
    ),
    Case(
        about("deleted by name", ApiKey.DELETE_TOPICS, (6,), "topics", named(), ("missing", SECRET), **_NEW),
        "topic",
        "topic-delete",
    ),
    Case(
        about("deleted by id", ApiKey.DELETE_TOPICS, (6,), "topics", _by_id, ("own", SECRET), **_NEW),
        "topic",
        "topic-delete",
    ),
]
"""Cases that delete topics; they end the matrix."""
