"""AlterConfigs (33): replace all configs of a topic or group, or all dynamic ones of a broker; what
is not named goes back to its default.

Versions 0-2. Kafka has superseded it by IncrementalAlterConfigs (44), which see for what it needs
and what is refused.
"""

from __future__ import annotations

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import repeated
from fairlead_kafka.broker.api.k32_describe_configs import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    refuse_resource,
)
from fairlead_kafka.broker.api.k44_incremental_alter_configs import (
    Alteration,
    Altered,
    alter_each,
    check_topic_resource,
)
from fairlead_kafka.broker.controller import (
    AlterBrokerConfigs,
    AlterClientMetrics,
    AlterGroupConfigs,
    AlterTopicConfigs,
    ClusterView,
    changeable_configs,
    replacing,
)
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import AlterConfigsRequest, AlterConfigsResponse

_Asked = AlterConfigsRequest.AlterConfigsResource
_Row = AlterConfigsResponse.AlterConfigsResourceResponse


@serves(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(
    broker: Services, request: Request[AlterConfigsRequest], session: Requester, reply: Reply
) -> None:
    """Serve AlterConfigs: replace the configs of each resource, all of them or none."""
    message = request.message

    def decision_of(resource: _Asked) -> Alteration:
        return _decision(broker.controller, resource, message.validate_only)

    def answer(altered: list[Altered]) -> None:
        rows = [
            _Row(error_code=one.error, error_message=one.text, resource_type=one.kind, resource_name=one.name)
            for one in altered
        ]
        reply(AlterConfigsResponse(throttle_time_ms=0, responses=rows))

    alter_each(broker, session, message.resources, decision_of, answer)


def _decision(view: ClusterView, resource: _Asked, validate_only: bool) -> Alteration:
    name = resource.resource_name
    if repeated(config.name for config in resource.configs):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a config is named more than once")
    wanted = {config.name: config.value for config in resource.configs}
    if resource.resource_type == RESOURCE_TOPIC:
        check_topic_resource(name)
        return AlterTopicConfigs(name, replacing(changeable_configs(view.topic(name)), wanted), validate_only)
    if resource.resource_type == RESOURCE_BROKER:
        return AlterBrokerConfigs(
            name, replacing(view.image.broker_configs.get(name, {}), wanted), validate_only
        )
    if resource.resource_type == RESOURCE_CLIENT_METRICS:
        return AlterClientMetrics(
            name, replacing(view.image.client_metrics.get(name, {}), wanted), validate_only
        )
    if resource.resource_type == RESOURCE_GROUP:
        return AlterGroupConfigs(
            name, replacing(view.image.group_configs.get(name, {}), wanted), validate_only
        )
    raise refuse_resource(resource.resource_type)
