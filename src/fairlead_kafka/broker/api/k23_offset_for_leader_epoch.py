"""OffsetForLeaderEpoch (23): where a leader epoch ended, so that a client can tell whether its log
was cut (KIP-101, KIP-320).

Versions 2-4, served by the partition's leader. Anyone's request is answered like a follower's, as
Kafka does: the present epoch ends where the log ends. Our own followers do not ask here: they meet
their leaders on the stream (`replication`). Needs CLUSTER_ACTION on the cluster, or DESCRIBE on
each topic (TOPIC_AUTHORIZATION_FAILED, whether it is there or not).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.rights import may_cluster, permitted
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse


@serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, versions=(2, 4))
def offset_for_leader_epoch(
    broker: Services, request: Request[OffsetForLeaderEpochRequest], session: Requester, reply: Reply
) -> None:
    """Serve OffsetForLeaderEpoch: answer with the offset at which each partition's leader epoch
    ended."""
    topics = []
    names = {asked.topic for asked in request.message.topics}
    follows = may_cluster(session, AclOperation.CLUSTER_ACTION, quiet=True)
    seen = names if follows else permitted(session, AclOperation.DESCRIBE, AclResourceType.TOPIC, names)
    for asked in request.message.topics:
        topic = broker.controller.image.topics.get(asked.topic)
        rows = []
        for data in asked.partitions:
            row = OffsetForLeaderEpochResponse.EpochEndOffset(
                error_code=ErrorCode.NONE, partition=data.partition, leader_epoch=-1, end_offset=-1
            )
            hidden = asked.topic not in seen
            partition = (
                ErrorCode.TOPIC_AUTHORIZATION_FAILED
                if hidden
                else broker.partitions.find(topic, data.partition, data.current_leader_epoch)
            )
            if isinstance(partition, int):
                row.error_code = partition
            else:
                epoch = broker.partitions.leader_epoch(partition)
                row.leader_epoch, row.end_offset = partition.epochs.end_offset(
                    data.leader_epoch, epoch, partition.log_end
                )
            rows.append(row)
        topics.append(
            OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult(topic=asked.topic, partitions=rows)
        )
    reply(OffsetForLeaderEpochResponse(throttle_time_ms=0, topics=topics))
