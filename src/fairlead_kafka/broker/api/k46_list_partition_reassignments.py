"""ListPartitionReassignments (46): the partitions that are being moved (KIP-455).

Version 0. Null for the topics means all. Partitions that are not on the move, or not there, are
left out, as Kafka does. Needs DESCRIBE on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import TopicImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse

_Topic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
_Row = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


@serves(ApiKey.LIST_PARTITION_REASSIGNMENTS, versions=(0, 0))
def list_partition_reassignments(
    broker: Services, request: Request[ListPartitionReassignmentsRequest], session: Requester, reply: Reply
) -> None:
    """Serve ListPartitionReassignments: list the moves of partitions under way."""
    refused = cluster_refusal(session, AclOperation.DESCRIBE)
    if refused is not None:
        reply(
            ListPartitionReassignmentsResponse(
                throttle_time_ms=0, error_code=refused.code, error_message=reason(refused), topics=[]
            )
        )
        return
    topics, asked = broker.controller.image.topics, request.message.topics
    if asked is None:
        listed = [(topic, _moving(topic, range(len(topic.partitions)))) for topic in topics.values()]
    else:
        named = {one.name: one.partition_indexes for one in asked}
        listed = [
            (topics[name], _moving(topics[name], numbers))
            for name, numbers in named.items()
            if name in topics
        ]
    rows = [_Topic(name=topic.name, partitions=partitions) for topic, partitions in listed if partitions]
    reply(
        ListPartitionReassignmentsResponse(
            throttle_time_ms=0, error_code=ErrorCode.NONE, error_message=None, topics=rows
        )
    )


def _moving(topic: TopicImage, numbers: Iterable[int]) -> list[_Row]:
    return [
        _Row(
            partition_index=number,
            replicas=list(one.replicas),
            adding_replicas=list(one.adding),
            removing_replicas=list(one.removing),
        )
        for number, one in (
            (number, topic.partitions[number]) for number in numbers if 0 <= number < len(topic.partitions)
        )
        if one.adding or one.removing
    ]
