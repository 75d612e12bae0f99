"""DescribeCluster (60): the cluster's id, its controller and its brokers.

Versions 0-2. The controller named is the live broker with the lowest id; requests for it may go to
any broker. Brokers that are down are answered from version 2 on if asked for (fenced, in Kafka's
words). Refused: the controllers' endpoints (MISMATCHED_ENDPOINT_TYPE): there is no quorum to
connect to. Needs no right; the authorized operations, if asked for, are 0 without DESCRIBE on the
cluster.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.ids import NO_LEADER
from fairlead_kafka.broker.api.rights import NO_OPERATIONS, cluster_operations
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeClusterRequest, DescribeClusterResponse

_ENDPOINT_BROKERS, _ENDPOINT_CONTROLLERS = 1, 2


@serves(ApiKey.DESCRIBE_CLUSTER, versions=(0, 2))
def describe_cluster(
    broker: Services, request: Request[DescribeClusterRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeCluster: answer with the cluster's id, controller and brokers."""
    image, message = broker.controller.image, request.message
    error_code, error_message = ErrorCode.NONE, None
    infos = [image.brokers[node_id] for node_id in sorted(image.brokers)]
    if message.endpoint_type != _ENDPOINT_BROKERS:
        known = message.endpoint_type == _ENDPOINT_CONTROLLERS
        error_code, infos = (
            ErrorCode.MISMATCHED_ENDPOINT_TYPE if known else ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            [],
        )
        error_message = (
            f"endpoint type {message.endpoint_type}: a broker was asked, and knows brokers "
            f"({_ENDPOINT_BROKERS}) only"
        )
    brokers = [
        DescribeClusterResponse.DescribeClusterBroker(
            broker_id=node.node_id, host=node.host, port=node.port, rack=node.rack, is_fenced=not info.alive
        )
        for info, node in ((info, info.endpoint(session.listener)) for info in infos)
        if info.alive or message.include_fenced_brokers
    ]
    with_operations = message.include_cluster_authorized_operations and not error_code
    reply(
        DescribeClusterResponse(
            throttle_time_ms=0,
            error_code=error_code,
            error_message=error_message,
            endpoint_type=_ENDPOINT_BROKERS,
            cluster_id="" if error_code else image.cluster_id,
            controller_id=NO_LEADER if error_code else image.controller_id(),
            brokers=brokers,
            cluster_authorized_operations=cluster_operations(session) if with_operations else NO_OPERATIONS,
        )
    )
