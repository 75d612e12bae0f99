"""ElectLeaders (43): partitions get their preferred leader, or where nobody in sync is alive any
leader at all (KIP-460).

Versions 0-2; version 0 knows the preferred leader alone. Every broker serves it and has the
controller decide. Null for the partitions means all of them, and only those that needed an election
are answered. Refused per partition: nothing to do (ELECTION_NOT_NEEDED), the preferred leader is
down or not in sync (PREFERRED_LEADER_NOT_AVAILABLE), no replica is alive
(ELIGIBLE_LEADERS_NOT_AVAILABLE), no such partition (UNKNOWN_TOPIC_OR_PARTITION); as a whole: a type
that is not one (INVALID_REQUEST). The election is over when the answer is sent, so `timeout_ms`
bounds nothing. An unclean election loses what the new leader lacks: that is what the caller asks
for. Needs ALTER on the cluster (CLUSTER_AUTHORIZATION_FAILED for every partition, and from version
1 on as a whole).
"""

from __future__ import annotations

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.api.rights import cluster_refusal
from fairlead_kafka.broker.controller import ElectLeaders
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ElectLeadersRequest, ElectLeadersResponse

_Row = ElectLeadersResponse.PartitionResult

_PREFERRED = 0
_TYPES_FROM_VERSION = 1


@serves(ApiKey.ELECT_LEADERS, versions=(0, 2))
def elect_leaders(
    broker: Services, request: Request[ElectLeadersRequest], session: Requester, reply: Reply
) -> None:
    """Serve ElectLeaders: have the controller elect leaders of the partitions."""
    message = request.message
    election_type = message.election_type if request.version >= _TYPES_FROM_VERSION else _PREFERRED
    asked = message.topic_partitions
    partitions = (
        None if asked is None else [(one.topic, number) for one in asked for number in one.partitions]
    )

    def decided(results: list[tuple[str, int, BrokerError | None]] | None, error: BrokerError | None) -> None:
        by_topic: dict[str, list[_Row]] = {} if asked is None else {one.topic: [] for one in asked}
        for topic, number, refused in results or [(*one, error) for one in partitions or ()]:
            by_topic.setdefault(topic, []).append(_row(number, refused))
        rows = [
            ElectLeadersResponse.ReplicaElectionResult(topic=topic, partition_result=partition_rows)
            for topic, partition_rows in by_topic.items()
        ]
        reply(
            ElectLeadersResponse(
                throttle_time_ms=0,
                error_code=ErrorCode.NONE if error is None else error.code,
                replica_election_results=rows,
            )
        )

    refused = cluster_refusal(session, AclOperation.ALTER)
    if refused is not None:
        decided(None, refused)
    else:
        broker.controller.decide(ElectLeaders(election_type, partitions), decided)


def _row(number: int, error: BrokerError | None) -> _Row:
    if error is None:
        return _Row(partition_id=number, error_code=ErrorCode.NONE, error_message=None)
    return _Row(partition_id=number, error_code=error.code, error_message=reason(error))
