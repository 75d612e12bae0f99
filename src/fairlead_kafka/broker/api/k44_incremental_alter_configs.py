"""IncrementalAlterConfigs (44): set, delete, append to or subtract from configs of topics and brokers (KIP-339).

Versions 0-1. The broker named "" is the whole cluster. Refused: unknown or unsupported keys and values that do not fit
(INVALID_CONFIG, with the nearest right name), broker configs that are not dynamic (INVALID_CONFIG), appending to what is not a list
(INVALID_CONFIG), what would let records of internal topics fall to retention (INVALID_CONFIG), a key named twice (INVALID_REQUEST),
resources other than topics and brokers (INVALID_REQUEST). Needs ALTER_CONFIGS on the topic (TOPIC_AUTHORIZATION_FAILED, whether it is
there or not), or for anything but a topic or a group on the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import Gathering
from fairlead_kafka.broker.api.k32_describe_configs import (
    RESOURCE_BROKER,
    RESOURCE_TOPIC,
    demand_configs,
    refuse_resource,
    resource_row,
)
from fairlead_kafka.broker.controller import AlterBrokerConfigs, AlterOperation, AlterTopicConfigs, ConfigAlteration
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session


@serves(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
def incremental_alter_configs(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Alter each resource, all of its configs or none."""
    message = request.message
    alter_each(session, message, reply, lambda resource: _decision(resource, message.validate_only))


def alter_each(session: Session, message: Any, reply: Reply, decision_of: Callable[[Any], AlterTopicConfigs | AlterBrokerConfigs]) -> None:
    """Have the controller decide on each resource of an AlterConfigs or IncrementalAlterConfigs request, and answer for all."""
    outcomes: dict[int, BrokerError | None] = {}
    resources = list(enumerate(message.resources))
    answer = Gathering(
        lambda: reply(Message(throttle_time_ms=0, responses=[resource_row(resource, outcomes[number]) for number, resource in resources]))
    )
    for number, resource in resources:
        try:
            demand_configs(session, AclOperation.ALTER_CONFIGS, resource)
            decision = decision_of(resource)
        except BrokerError as error:
            outcomes[number] = error
        else:
            session.broker.controller.decide(decision, answer.into(outcomes, number))
    answer.done()


def _decision(resource: Any, validate_only: bool) -> AlterTopicConfigs | AlterBrokerConfigs:
    alterations = [ConfigAlteration(one.name, _operation(one.config_operation), one.value) for one in resource.configs]
    if resource.resource_type == RESOURCE_TOPIC:
        return AlterTopicConfigs(resource.resource_name, alterations, validate_only)
    if resource.resource_type == RESOURCE_BROKER:
        return AlterBrokerConfigs(resource.resource_name, alterations, validate_only)
    raise refuse_resource(resource.resource_type)


def _operation(number: int) -> AlterOperation:
    try:
        return AlterOperation(number)
    except ValueError:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST, f"operation {number}: there are {', '.join(f'{one} {one.name}' for one in AlterOperation)}"
        ) from None
