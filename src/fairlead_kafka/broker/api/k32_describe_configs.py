"""DescribeConfigs (32): every config of a topic, broker or group, and where each value comes
from.

Versions 1-4. The keys are those that this release has, see `docs/reference/configuration.md`. Every
broker answers for every broker; the broker named "" is the whole cluster, of which only the dynamic
configs are listed (as Kafka does). Refused: other resources (INVALID_REQUEST): there are no broker
loggers and client metrics. Needs DESCRIBE_CONFIGS on the topic (TOPIC_AUTHORIZATION_FAILED, whether
it is there or not), or for anything but a topic or a group on the cluster
(CLUSTER_AUTHORIZATION_FAILED).
"""

from __future__ import annotations

from typing import Protocol

from fairlead_kafka.base.acls import CLUSTER_NAME, AclOperation, AclResourceType
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import ConfigKey, ConfigType
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import distinct, reason
from fairlead_kafka.broker.api.rights import demand
from fairlead_kafka.broker.controller import DescribedConfig
from fairlead_kafka.broker.controller.names import check_topic_name
from fairlead_kafka.broker.dispatch import serves
from fairlead_kafka.broker.requester import Reply, Requester
from fairlead_kafka.broker.services import Services
from fairlead_kafka.wire import ApiKey, Request
from fairlead_kafka.wire.messages import DescribeConfigsRequest, DescribeConfigsResponse

_Asked = DescribeConfigsRequest.DescribeConfigsResource
_Result = DescribeConfigsResponse.DescribeConfigsResult
_Row = DescribeConfigsResponse.DescribeConfigsResourceResult

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4
RESOURCE_BROKER_LOGGER = 8
RESOURCE_CLIENT_METRICS = 16
RESOURCE_GROUP = 32

_WIRE_TYPES: dict[ConfigType, int] = {
    ConfigType.ANY: 0,
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.SHORT: 4,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
    ConfigType.CLASS: 8,
    ConfigType.PASSWORD: 9,
}
"""Kafka's `DescribeConfigsResponse.ConfigType`."""


class Resource(Protocol):
    """A resource with configs, as the requests that describe and alter them name it."""

    resource_type: int
    resource_name: str


def refuse_resource(resource_type: int) -> BrokerError:
    """The error for a type of resource that has no configs here."""
    return BrokerError(
        ErrorCode.INVALID_REQUEST,
        f"resource type {resource_type}: topics ({RESOURCE_TOPIC}), brokers ({RESOURCE_BROKER}), groups "
        f"({RESOURCE_GROUP}) and clients' metrics ({RESOURCE_CLIENT_METRICS}) have configs",
    )


def demand_configs(session: Requester, operation: AclOperation, resource: Resource) -> None:
    """Raise BrokerError unless the session's user has the right to the operation on a resource's
    configs."""
    if resource.resource_type == RESOURCE_TOPIC:
        demand(session, operation, AclResourceType.TOPIC, resource.resource_name)
    elif resource.resource_type == RESOURCE_GROUP:
        demand(session, operation, AclResourceType.GROUP, resource.resource_name)
    else:
        demand(session, operation, AclResourceType.CLUSTER, CLUSTER_NAME)


@serves(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(
    broker: Services, request: Request[DescribeConfigsRequest], session: Requester, reply: Reply
) -> None:
    """Serve DescribeConfigs: answer with the configs of each resource."""
    message = request.message
    resources = distinct(message.resources)
    reply(
        DescribeConfigsResponse(
            throttle_time_ms=0,
            results=[_describe(broker, session, message, resource) for resource in resources],
        )
    )


def _describe(
    broker: Services, session: Requester, message: DescribeConfigsRequest, resource: _Asked
) -> _Result:
    try:
        demand_configs(session, AclOperation.DESCRIBE_CONFIGS, resource)
        configs = _configs_of(broker, resource)
    except BrokerError as error:
        return _result(resource, error.code, reason(error), [])
    wanted = resource.configuration_keys
    chosen = [config for config in configs if not wanted or config.key.name in wanted]
    rows = [_row(config, message.include_synonyms, message.include_documentation) for config in chosen]
    return _result(resource, ErrorCode.NONE, None, rows)


def _configs_of(broker: Services, resource: _Asked) -> list[DescribedConfig]:
    if resource.resource_type == RESOURCE_TOPIC:
        check_topic_name(resource.resource_name)
        return broker.controller.describe_topic_configs(resource.resource_name, broker.node_id)
    if resource.resource_type == RESOURCE_BROKER:
        own = {"log.dir": broker.folder, "log.dirs": broker.folder}
        is_mine = resource.resource_name == str(broker.node_id)
        return broker.controller.describe_broker_configs(resource.resource_name, own if is_mine else None)
    if resource.resource_type == RESOURCE_CLIENT_METRICS:
        return broker.controller.describe_client_metrics(resource.resource_name)
    if resource.resource_type == RESOURCE_GROUP:
        return broker.controller.describe_group_configs(resource.resource_name)
    raise refuse_resource(resource.resource_type)


def _result(resource: _Asked, error_code: int, error_message: str | None, rows: list[_Row]) -> _Result:
    return _Result(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=rows,
    )


def _row(config: DescribedConfig, with_synonyms: bool, with_documentation: bool) -> _Row:
    secret = config.key.type is ConfigType.PASSWORD
    shown = [one for one in config.synonyms if with_synonyms and one.value is not None]
    synonyms = [
        DescribeConfigsResponse.DescribeConfigsSynonym(
            name=one.key, value=None if secret else one.value, source=int(one.source)
        )
        for one in shown
    ]
    return _Row(
        name=config.key.name,
        value=None if secret else config.value,
        read_only=config.read_only,
        config_source=int(config.source),
        is_sensitive=secret,
        synonyms=synonyms,
        config_type=_WIRE_TYPES[config.key.kafka_type or config.key.type],
        documentation=documentation(config.key) if with_documentation else None,
    )


def documentation(key: ConfigKey) -> str:
    """A config's meaning in words, and, if it has no effect here, why."""
    return f"{key.doc} Of no effect here: {key.no_effect}." if key.no_effect else key.doc
