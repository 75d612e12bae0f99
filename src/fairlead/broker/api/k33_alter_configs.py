"""AlterConfigs (33): replace all configs of a topic, or all dynamic ones of a broker; what is not named goes back to its default.

Versions 0-2. Kafka has superseded it by IncrementalAlterConfigs (44), which see for what is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.broker.api.common import reason, repeated
from fairlead.broker.api.k32_describe_configs import RESOURCE_BROKER, RESOURCE_TOPIC, refuse_resource
from fairlead.broker.controller import changeable_configs, replacing
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


@serves(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Alter each resource, all of its configs or none."""
    message = request.message
    reply(Message(throttle_time_ms=0, responses=[_alter(broker, resource, message.validate_only) for resource in message.resources]))


def _alter(broker: Broker, resource: Any, validate_only: bool) -> Message:
    controller, name = broker.controller, resource.resource_name
    wanted = {config.name: config.value for config in resource.configs}
    error_code, error_message = ErrorCode.NONE, None
    try:
        if repeated(config.name for config in resource.configs):
            raise BrokerError(ErrorCode.INVALID_REQUEST, "a config is named more than once")
        if resource.resource_type == RESOURCE_TOPIC:
            controller.alter_topic_configs(name, replacing(changeable_configs(controller.topic(name)), wanted), validate_only)
        elif resource.resource_type == RESOURCE_BROKER:
            current = controller.image.broker_configs.get(name, {})
            controller.alter_broker_configs(name, replacing(current, wanted), validate_only)
        else:
            raise refuse_resource(resource.resource_type)
    except BrokerError as error:
        error_code, error_message = error.code, reason(error)
    return Message(error_code=error_code, error_message=error_message, resource_type=resource.resource_type, resource_name=name)
