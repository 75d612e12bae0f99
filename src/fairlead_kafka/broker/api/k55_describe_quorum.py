"""DescribeQuorum (55): who keeps the metadata log, and how far it is (KIP-595).

Versions 0-2. The truth here is a quorum of one: the broker that speaks for the controller votes and
leads, and the other live brokers observe. The log's end is the number of its records since the
cluster began, and every live broker has them. Refused: any partition but `__cluster_metadata`'s
first (UNKNOWN_TOPIC_OR_PARTITION). Needs DESCRIBE on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import NO_ID, reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import METADATA_TOPIC
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeQuorumRequest, DescribeQuorumResponse

_Partition = DescribeQuorumResponse.PartitionData
_Replica = DescribeQuorumResponse.ReplicaState


@serves(ApiKey.DESCRIBE_QUORUM, versions=(0, 2))
def describe_quorum(
    broker: Services, request: Request[DescribeQuorumRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeQuorum: describe the one partition of the metadata log."""
    answer = DescribeQuorumResponse(error_code=ErrorCode.NONE, error_message=None, topics=[], nodes=[])
    refused = cluster_refusal(session, AclOperation.DESCRIBE)
    if refused is not None:
        answer.error_code, answer.error_message = refused.code, reason(refused)
        reply(answer)
        return
    for topic in request.message.topics:
        rows = [
            _described(broker)
            if topic.topic_name == METADATA_TOPIC and one.partition_index == 0
            else _unknown(one.partition_index)
            for one in topic.partitions
        ]
        answer.topics.append(DescribeQuorumResponse.TopicData(topic_name=topic.topic_name, partitions=rows))
    image = broker.controller.image
    if any(not row.error_code for topic in answer.topics for row in topic.partitions):
        node = image.brokers[image.controller_id()].endpoint(session.listener)
        where = DescribeQuorumResponse.Listener(name=session.listener, host=node.host, port=node.port)
        answer.nodes = [DescribeQuorumResponse.Node(node_id=node.node_id, listeners=[where])]
    reply(answer)


def _described(broker: Services) -> _Partition:
    image = broker.controller.image
    leader, alive = image.controller_id(), [info.node.node_id for info in image.alive()]
    states = {
        node_id: _Replica(
            replica_id=node_id,
            log_end_offset=image.log_end,
            last_fetch_timestamp=broker.wall_ms,
            last_caught_up_timestamp=broker.wall_ms,
            replica_directory_id=NO_ID,
        )
        for node_id in alive
    }
    return _Partition(
        partition_index=0,
        error_code=ErrorCode.NONE,
        error_message=None,
        leader_id=leader,
        leader_epoch=max(image.brokers[leader].epoch, 1),
        high_watermark=image.log_end,
        current_voters=[states[leader]],
        observers=[states[node_id] for node_id in alive if node_id != leader],
    )


def _unknown(number: int) -> _Partition:
    return _Partition(
        partition_index=number,
        error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        error_message="only the metadata log has a quorum",
        leader_id=0,
        leader_epoch=0,
        high_watermark=0,
        current_voters=[],
        observers=[],
    )
