"""AlterReplicaLogDirs (34): have replicas in another log directory of their broker (KIP-113).

Versions 1-2. A broker has one directory, which its launcher chose. A replica is there already, so
naming it changes nothing; every other directory is LOG_DIR_NOT_FOUND. A partition that is not there
is UNKNOWN_TOPIC_OR_PARTITION, one that is not hosted here REPLICA_NOT_AVAILABLE. Needs ALTER on the
cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

_Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
_Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult


@serves(ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2))
def alter_replica_log_dirs(
    broker: Services, request: Request[AlterReplicaLogDirsRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterReplicaLogDirs: answer for each replica whether it is in the folder that is asked
    for."""
    allowed = may_cluster(session, AclOperation.ALTER)
    wanted = {
        (topic.name, number): one.path
        for one in request.message.dirs
        for topic in one.topics
        for number in topic.partitions
    }
    rows: dict[str, list[_Partition]] = {}
    for (name, number), path in wanted.items():
        error = _error(broker, name, number, path) if allowed else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        rows.setdefault(name, []).append(_Partition(partition_index=number, error_code=error))
    results = [_Topic(topic_name=name, partitions=partitions) for name, partitions in rows.items()]
    reply(AlterReplicaLogDirsResponse(throttle_time_ms=0, results=results))


def _error(broker: Services, name: str, number: int, path: str) -> int:
    partition = broker.controller.image.partition(name, number)
    if path != broker.folder:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.NONE if broker.node_id in partition.replicas else ErrorCode.REPLICA_NOT_AVAILABLE
