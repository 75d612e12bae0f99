"""ListConfigResources (74): the names of all that has configs (KIP-1142).

Versions 0-1. Version 0 lists subscriptions of clients' metrics; from 1 on also topics, brokers,
brokers' loggers and groups that have configs of their own, by type; no type: all of them. Refused:
other types (UNSUPPORTED_VERSION). Needs DESCRIBE_CONFIGS on the cluster
(CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.broker.api.k32_describe_configs import (
    RESOURCE_BROKER,
    RESOURCE_BROKER_LOGGER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
)
from fairlead_kafka.broker.api.rights import may_cluster
from fairlead_kafka.broker.controller import ClusterImage
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

_Row = ListConfigResourcesResponse.ConfigResource


def _brokers(image: ClusterImage) -> list[str]:
    return [str(info.node.node_id) for info in image.alive()]


_NAMES: dict[int, Callable[[ClusterImage], Iterable[str]]] = {
    RESOURCE_GROUP: lambda image: image.group_configs,
    RESOURCE_CLIENT_METRICS: lambda image: image.client_metrics,
    RESOURCE_BROKER_LOGGER: _brokers,
    RESOURCE_BROKER: _brokers,
    RESOURCE_TOPIC: lambda image: image.topics,
}
"""Type of resource → the names of those that there are."""


@serves(ApiKey.LIST_CONFIG_RESOURCES, versions=(0, 1))
def list_config_resources(
    broker: Services, request: Request[ListConfigResourcesRequest], session: Requester, reply: Reply
) -> None:
    """Serve ListConfigResources: list the names of resources that have configs, type by type."""
    answer = ListConfigResourcesResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, config_resources=[])
    every = [RESOURCE_CLIENT_METRICS] if request.version == 0 else list(_NAMES)
    wanted = (request.message.resource_types if request.version else []) or every
    if not may_cluster(session, AclOperation.DESCRIBE_CONFIGS):
        answer.error_code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    elif not set(wanted) <= set(every):
        answer.error_code = ErrorCode.UNSUPPORTED_VERSION
    else:
        answer.config_resources = [
            _Row(resource_name=name, resource_type=kind)
            for kind in dict.fromkeys(wanted)
            for name in _NAMES[kind](broker.controller.image)
        ]
    reply(answer)
