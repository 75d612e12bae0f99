"""IncrementalAlterConfigs (44): set, delete, append to or subtract from configs of topics,
brokers and groups (KIP-339).

Versions 0-1. The broker named "" is the whole cluster. Refused: unknown or unsupported keys and
values that do not fit (INVALID_CONFIG, with the nearest right name), broker configs that are not
dynamic (INVALID_CONFIG), appending to what is not a list (INVALID_CONFIG), what would let records
of internal topics fall to retention (INVALID_CONFIG), a key named twice (INVALID_REQUEST),
other resources (INVALID_REQUEST). Needs ALTER_CONFIGS on the topic
(TOPIC_AUTHORIZATION_FAILED, whether it is there or not), or for anything but a topic or a group on
the cluster (CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from fairlead_kafka.base.acls import AclOperation
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import PendingParts, reason
from fairlead_kafka.broker.api.k32_describe_configs import (
    RESOURCE_BROKER,
    RESOURCE_CLIENT_METRICS,
    RESOURCE_GROUP,
    RESOURCE_TOPIC,
    Resource,
    demand_configs,
    refuse_resource,
)
from fairlead_kafka.broker.controller import (
    AlterBrokerConfigs,
    AlterClientMetrics,
    AlterGroupConfigs,
    AlterOperation,
    AlterTopicConfigs,
    ConfigAlteration,
)
from fairlead_kafka.broker.controller.names import check_topic_name
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse

_Asked = IncrementalAlterConfigsRequest.AlterConfigsResource
_Row = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
R = TypeVar("R", bound=Resource)
Alteration = AlterTopicConfigs | AlterBrokerConfigs | AlterClientMetrics | AlterGroupConfigs


class Altered(NamedTuple):
    """A resource whose configs a request alters, and its error code and text; code 0: they were
    altered."""

    kind: int
    name: str
    error: int
    text: str | None


@serves(ApiKey.INCREMENTAL_ALTER_CONFIGS, versions=(0, 1))
def incremental_alter_configs(
    broker: Services, request: Request[IncrementalAlterConfigsRequest], session: Requester, reply: Reply
) -> None:
    """Serve IncrementalAlterConfigs: alter the configs of each resource, all alterations of a
    resource or none."""
    message = request.message

    def answer(altered: list[Altered]) -> None:
        rows = [
            _Row(error_code=one.error, error_message=one.text, resource_type=one.kind, resource_name=one.name)
            for one in altered
        ]
        reply(IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=rows))

    alter_each(
        broker,
        session,
        message.resources,
        lambda resource: _decision(resource, message.validate_only),
        answer,
    )


def alter_each(
    broker: Services,
    session: Requester,
    resources: list[R],
    decision_of: Callable[[R], Alteration],
    answer: Callable[[list[Altered]], None],
) -> None:
    """Have the controller decide on each resource of an AlterConfigs or IncrementalAlterConfigs
    request, and answer for all."""
    outcomes: dict[int, BrokerError | None] = {}
    parts_pending = PendingParts(
        lambda: answer([_altered(resource, outcomes[number]) for number, resource in enumerate(resources)])
    )
    for number, resource in enumerate(resources):
        try:
            demand_configs(session, AclOperation.ALTER_CONFIGS, resource)
            decision = decision_of(resource)
        except BrokerError as error:
            outcomes[number] = error
        else:
            broker.controller.decide(decision, parts_pending.into(outcomes, number))
    parts_pending.done()


def _altered(resource: Resource, error: BrokerError | None) -> Altered:
    if error is None:
        return Altered(resource.resource_type, resource.resource_name, ErrorCode.NONE, None)
    return Altered(resource.resource_type, resource.resource_name, error.code, reason(error))


def _decision(resource: _Asked, validate_only: bool) -> Alteration:
    alterations = [
        ConfigAlteration(one.name, _operation(one.config_operation), one.value) for one in resource.configs
    ]
    if resource.resource_type == RESOURCE_TOPIC:
        check_topic_resource(resource.resource_name)
        return AlterTopicConfigs(resource.resource_name, alterations, validate_only)
    if resource.resource_type == RESOURCE_BROKER:
        return AlterBrokerConfigs(resource.resource_name, alterations, validate_only)
    if resource.resource_type == RESOURCE_CLIENT_METRICS:
        return AlterClientMetrics(resource.resource_name, alterations, validate_only)
    if resource.resource_type == RESOURCE_GROUP:
        return AlterGroupConfigs(resource.resource_name, alterations, validate_only)
    raise refuse_resource(resource.resource_type)


def check_topic_resource(name: str) -> None:
    """Raise BrokerError for a name that no topic has: INVALID_REQUEST for an empty one, else
    INVALID_TOPIC_EXCEPTION."""
    if not name:
        raise BrokerError(ErrorCode.INVALID_REQUEST, "Default topic resources are not allowed.")
    check_topic_name(name)


def _operation(number: int) -> AlterOperation:
    try:
        return AlterOperation(number)
    except ValueError:
        raise BrokerError(
            ErrorCode.INVALID_REQUEST,
            f"operation {number}: there are {', '.join(f'{one} {one.name}' for one in AlterOperation)}",
        ) from None
