"""Elections and reassignments on one broker: nothing to elect, nowhere to go."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.lab.transcript.cluster_steps import appears, create, topic
from fairlead_kafka.lab.transcript.steps import JUST_CHANGED, PREFIX, Step, ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    AlterPartitionReassignmentsRequest,
    DescribeLogDirsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)

TOPIC = PREFIX + "replicas"
_PREFERRED, _UNCLEAN = 0, 1


def elect(
    name: str, kind: int, partitions: Iterable[int] | None, versions: Iterable[int] = (2,), to: str = TOPIC
) -> Step:
    """An ElectLeaders step; `partitions` None: all."""
    rows = (
        None
        if partitions is None
        else [ElectLeadersRequest.TopicPartitions(topic=to, partitions=list(partitions))]
    )
    return ask(
        name, ApiKey.ELECT_LEADERS, versions, election_type=kind, topic_partitions=rows, timeout_ms=5_000
    )


def reassign(
    name: str,
    partition: int,
    replicas: list[int] | None,
    versions: Iterable[int] = (0, 1),
    to: str = TOPIC,
    again_on: Iterable[int] = (),
) -> Step:
    """An AlterPartitionReassignments step of one partition; `replicas` None: take a reassignment
    back."""
    rows = [
        AlterPartitionReassignmentsRequest.ReassignableTopic(
            name=to,
            partitions=[
                AlterPartitionReassignmentsRequest.ReassignablePartition(
                    partition_index=partition, replicas=replicas
                )
            ],
        )
    ]
    return ask(
        name, ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions, topics=rows, timeout_ms=5_000, again_on=again_on
    )


def reassignments(name: str, partitions: Iterable[int] | None, to: str = TOPIC) -> Step:
    """A ListPartitionReassignments step; `partitions` None: all."""
    rows = (
        None
        if partitions is None
        else [
            ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(
                name=to, partition_indexes=list(partitions)
            )
        ]
    )
    return ask(name, ApiKey.LIST_PARTITION_REASSIGNMENTS, (0,), topics=rows, timeout_ms=5_000)


def _log_dirs(name: str, partitions: Iterable[int], to: str = TOPIC) -> Step:
    return ask(
        name,
        ApiKey.DESCRIBE_LOG_DIRS,
        range(1, 6),
        topics=[DescribeLogDirsRequest.DescribableLogDirTopic(topic=to, partitions=list(partitions))],
    )


STEPS: list[Step] = [
    create("a topic for replicas", topic(TOPIC, 2)),
    appears(TOPIC),
    elect("a preferred leader that leads", _PREFERRED, (0,), range(3)),
    elect("an unclean one that is not needed", _UNCLEAN, (0, 1)),
    elect("of a partition that is not there", _PREFERRED, (9,), range(3)),
    elect("of a topic that is not there", _PREFERRED, (0,), to=PREFIX + "missing"),
    elect("of no partition", _PREFERRED, ()),
    elect("of a kind that is not there", 7, (0,)),
    reassign("to where it is", 0, [0], again_on=JUST_CHANGED),
    reassign("to a broker that is not there", 0, [77]),
    reassign("to nobody", 0, []),
    reassign("twice to one", 0, [0, 0]),
    reassign("to a broker below zero", 0, [-1]),
    reassign("of a partition that is not there", 9, [0]),
    reassign("of a topic that is not there", 0, [0], to=PREFIX + "missing"),
    reassign("taken back, and none is under way", 1, None),
    ask("of nothing", ApiKey.ALTER_PARTITION_REASSIGNMENTS, (0,), topics=[], timeout_ms=5_000),
    reassignments("all", None),
    reassignments("of a partition", (0,)),
    reassignments("of a partition that is not there", (9,)),
    reassignments("of a topic that is not there", (0,), to=PREFIX + "missing"),
    _log_dirs("one partition", (0,)),
    _log_dirs("a partition that is not there", (9,)),
    _log_dirs("nothing", ()),
    _log_dirs("a topic that is not there", (0,), to=PREFIX + "missing"),
]
