"""AlterPartitionReassignments (45): partitions move to other brokers, or a move is cancelled
(KIP-455).

Versions 0-1; from 1 on the request may forbid that a move changes the number of replicas (KIP-860).
Every broker serves it and has the controller decide. The answer says that moves have begun;
ListPartitionReassignments (46) says which are not over. Refused per partition: a broker that is not
there or named twice, or no replicas (INVALID_REPLICA_ASSIGNMENT), nothing to cancel
(NO_REASSIGNMENT_IN_PROGRESS), another number of replicas where that is forbidden
(INVALID_REPLICATION_FACTOR), brokers that may not hold more (POLICY_VIOLATION, KIP-578), a
partition named twice (INVALID_REQUEST), no such partition (UNKNOWN_TOPIC_OR_PARTITION).
`timeout_ms` bounds nothing: nothing is waited for. Needs ALTER on the cluster
(CLUSTER_AUTHORIZATION_FAILED for every partition, and as a whole).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import one_each, reason, repeated
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import AlterReassignments, Reassignment
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

_Topic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
_Row = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse

_FACTOR_FROM_VERSION = 1


@serves(ApiKey.ALTER_PARTITION_REASSIGNMENTS, versions=(0, 1))
def alter_partition_reassignments(
    broker: Services, request: Request[AlterPartitionReassignmentsRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterPartitionReassignments: begin, change or cancel each move of a partition, or say
    why not."""
    message = request.message
    refused = cluster_refusal(session, AclOperation.ALTER)
    if refused is not None:
        reply(_refuse(message, refused))
        return
    may_change_factor = request.version < _FACTOR_FROM_VERSION or message.allow_replication_factor_change
    asked = [
        (topic.name, one.partition_index, one.replicas)
        for topic in message.topics
        for one in topic.partitions
    ]
    twice = repeated((topic, number) for topic, number, _ in asked)
    moves = [
        Reassignment(topic, number, None if replicas is None else list(replicas))
        for topic, number, replicas in asked
        if (topic, number) not in twice
    ]

    def decided(results: list[BrokerError | None] | None, error: BrokerError | None) -> None:
        outcomes: dict[tuple[str, int], BrokerError | None] = dict.fromkeys(
            twice,
            BrokerError(
                ErrorCode.INVALID_REQUEST, "the partition comes more than once in the request: name it once"
            ),
        )
        outcomes.update(
            ((move.topic, move.partition), outcome)
            for move, outcome in zip(moves, one_each(results, error, len(moves)), strict=True)
        )
        rows = [
            _Topic(
                name=topic.name,
                partitions=[
                    _row(one.partition_index, outcomes[topic.name, one.partition_index])
                    for one in topic.partitions
                ],
            )
            for topic in message.topics
        ]
        reply(
            AlterPartitionReassignmentsResponse(
                throttle_time_ms=0,
                allow_replication_factor_change=may_change_factor,
                error_code=ErrorCode.NONE,
                error_message=None,
                responses=rows,
            )
        )

    broker.controller.decide(AlterReassignments(moves, may_change_factor), decided)


def _refuse(
    message: AlterPartitionReassignmentsRequest, error: BrokerError
) -> AlterPartitionReassignmentsResponse:
    """The answer to a request that fails as a whole, with `error`."""
    rows = [
        _Topic(name=topic.name, partitions=[_row(one.partition_index, error) for one in topic.partitions])
        for topic in message.topics
    ]
    return AlterPartitionReassignmentsResponse(
        throttle_time_ms=0, error_code=error.code, error_message=reason(error), responses=rows
    )


def _row(number: int, error: BrokerError | None) -> _Row:
    if error is None:
        return _Row(partition_index=number, error_code=ErrorCode.NONE, error_message=None)
    return _Row(partition_index=number, error_code=error.code, error_message=reason(error))
