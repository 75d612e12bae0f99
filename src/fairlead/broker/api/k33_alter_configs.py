"""AlterConfigs (33): replace all configs of a topic, or all dynamic ones of a broker; what is not named goes back to its default.

Versions 0-2. Kafka has superseded it by IncrementalAlterConfigs (44), which see for what is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError
from fairlead.broker.api.common import Gathering, repeated
from fairlead.broker.api.k32_describe_configs import RESOURCE_BROKER, RESOURCE_TOPIC, refuse_resource, resource_row
from fairlead.broker.controller import AlterBrokerConfigs, AlterTopicConfigs, ClusterView, changeable_configs, replacing
from fairlead.broker.dispatch import Reply, serves
from fairlead.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead.broker.machine import Broker
    from fairlead.broker.sessions import Session


@serves(ApiKey.ALTER_CONFIGS, versions=(0, 2))
def alter_configs(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Alter each resource, all of its configs or none."""
    message = request.message
    outcomes: dict[int, BrokerError | None] = {}
    resources = list(enumerate(message.resources))
    answer = Gathering(
        lambda: reply(Message(throttle_time_ms=0, responses=[resource_row(resource, outcomes[number]) for number, resource in resources]))
    )
    for number, resource in resources:
        try:
            decision = _decision(broker.controller, resource, message.validate_only)
        except BrokerError as error:
            outcomes[number] = error
        else:
            broker.controller.decide(decision, answer.into(outcomes, number))
    answer.done()


def _decision(view: ClusterView, resource: Any, validate_only: bool) -> AlterTopicConfigs | AlterBrokerConfigs:
    name = resource.resource_name
    if repeated(config.name for config in resource.configs):
        raise BrokerError(ErrorCode.INVALID_REQUEST, "a config is named more than once")
    wanted = {config.name: config.value for config in resource.configs}
    if resource.resource_type == RESOURCE_TOPIC:
        return AlterTopicConfigs(name, replacing(changeable_configs(view.topic(name)), wanted), validate_only)
    if resource.resource_type == RESOURCE_BROKER:
        return AlterBrokerConfigs(name, replacing(view.image.broker_configs.get(name, {}), wanted), validate_only)
    raise refuse_resource(resource.resource_type)
