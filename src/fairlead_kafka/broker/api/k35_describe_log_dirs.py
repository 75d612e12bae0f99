"""DescribeLogDirs (35): how much of each replica hosted here is on disk.

Versions 1-5. A broker has one log directory with one log for all its partitions, so a partition's
size is that of its batches in it. There are no future replicas (nothing moves between directories),
and how large the disk is nobody asked (-1). Needs DESCRIBE on the cluster
(CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeLogDirsRequest, DescribeLogDirsResponse

_Row = DescribeLogDirsResponse.DescribeLogDirsPartition

_UNKNOWN_BYTES = -1


@serves(ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 5))
def describe_log_dirs(
    broker: Services, request: Request[DescribeLogDirsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeLogDirs: describe the broker's one directory. Partitions that are not hosted
    here are left out, as in Kafka."""
    if not may_cluster(session, AclOperation.DESCRIBE):
        reply(
            DescribeLogDirsResponse(
                throttle_time_ms=0, error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, results=[]
            )
        )
        return
    images, asked = broker.controller.image.topics, request.message.topics
    wanted: list[tuple[TopicImage, Sequence[int]]]
    if asked is None:
        wanted = [(topic, range(len(topic.partitions))) for topic in images.values()]
    else:
        wanted = [(images[one.topic], one.partitions) for one in asked if one.topic in images]
    topics = [
        DescribeLogDirsResponse.DescribeLogDirsTopic(
            name=topic.name, partitions=_rows(broker, topic, numbers)
        )
        for topic, numbers in wanted
    ]
    result = DescribeLogDirsResponse.DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=broker.folder,
        topics=[topic for topic in topics if topic.partitions],
        total_bytes=_UNKNOWN_BYTES,
        usable_bytes=_UNKNOWN_BYTES,
    )
    reply(DescribeLogDirsResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, results=[result]))


def _rows(broker: Services, topic: TopicImage, numbers: Sequence[int]) -> list[_Row]:
    rows = []
    for number in numbers:
        if 0 <= number < len(topic.partitions) and broker.node_id in topic.partitions[number].replicas:
            partition = broker.logs.known(topic.topic_id, number)
            size_bytes = 0 if partition is None else partition.size_bytes
            rows.append(
                _Row(partition_index=number, partition_size=size_bytes, offset_lag=0, is_future_key=False)
            )
    return rows
