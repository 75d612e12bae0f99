"""DescribeConfigs (32): every config of a topic or broker, and where each value comes from.

Versions 1-4. The keys are those that this release has, see `docs/configuration.md`. Any broker answers for every broker; the broker
named "" is the whole cluster, of which only the dynamic configs are listed (as Kafka does). Refused: resources other than topics
and brokers (INVALID_REQUEST): there are no broker loggers, client metrics or group configs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import ConfigType
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.api.common import reason
from fairlead_kafka.broker.controller import DescribedConfig
from fairlead_kafka.broker.controller.names import check_topic_name
from fairlead_kafka.broker.dispatch import Reply, serves
from fairlead_kafka.wire import ApiKey, Message, Request

if TYPE_CHECKING:
    from fairlead_kafka.broker.machine import Broker
    from fairlead_kafka.broker.sessions import Session

RESOURCE_TOPIC = 2
RESOURCE_BROKER = 4

_WIRE_TYPES: dict[ConfigType, int] = {
    ConfigType.ANY: 0,
    ConfigType.BOOLEAN: 1,
    ConfigType.STRING: 2,
    ConfigType.INT: 3,
    ConfigType.LONG: 5,
    ConfigType.DOUBLE: 6,
    ConfigType.LIST: 7,
    ConfigType.PASSWORD: 9,
}
"""Kafka's `DescribeConfigsResponse.ConfigType`."""


def refuse_resource(resource_type: int) -> BrokerError:
    """The error for a resource that has no configs here."""
    return BrokerError(
        ErrorCode.INVALID_REQUEST,
        f"resource type {resource_type}: only topics ({RESOURCE_TOPIC}) and brokers ({RESOURCE_BROKER}) have configs",
    )


@serves(ApiKey.DESCRIBE_CONFIGS, versions=(1, 4))
def describe_configs(broker: Broker, request: Request, session: Session, reply: Reply) -> None:
    """Describe each resource."""
    message = request.message
    reply(Message(throttle_time_ms=0, results=[_describe(broker, message, resource) for resource in message.resources]))


def _describe(broker: Broker, message: Message, resource: Any) -> Message:
    try:
        configs = _configs_of(broker, resource)
    except BrokerError as error:
        return _result(resource, error.code, reason(error), [])
    wanted = resource.configuration_keys
    chosen = [config for config in configs if not wanted or config.key.name in wanted]
    rows = [_row(config, message.include_synonyms, message.include_documentation) for config in chosen]
    return _result(resource, ErrorCode.NONE, None, rows)


def _configs_of(broker: Broker, resource: Any) -> list[DescribedConfig]:
    if resource.resource_type == RESOURCE_TOPIC:
        check_topic_name(resource.resource_name)
        return broker.controller.describe_topic_configs(resource.resource_name, broker.node_id)
    if resource.resource_type == RESOURCE_BROKER:
        return broker.controller.describe_broker_configs(resource.resource_name)
    raise refuse_resource(resource.resource_type)


def resource_row(resource: Any, error: BrokerError | None) -> Message:
    """What came of altering a resource's configs, in both requests that do."""
    code, text = (ErrorCode.NONE, None) if error is None else (error.code, reason(error))
    return Message(error_code=code, error_message=text, resource_type=resource.resource_type, resource_name=resource.resource_name)


def _result(resource: Any, error_code: int, error_message: str | None, rows: list[Message]) -> Message:
    return Message(
        error_code=error_code,
        error_message=error_message,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
        configs=rows,
    )


def _row(config: DescribedConfig, with_synonyms: bool, with_documentation: bool) -> Message:
    secret = config.key.type is ConfigType.PASSWORD
    told = [one for one in config.synonyms if with_synonyms and one.value is not None]
    synonyms = [Message(name=one.key, value=None if secret else one.value, source=int(one.source)) for one in told]
    return Message(
        name=config.key.name,
        value=None if secret else config.value,
        read_only=config.read_only,
        config_source=int(config.source),
        is_sensitive=secret,
        synonyms=synonyms,
        config_type=_WIRE_TYPES[config.key.type],
        documentation=config.key.doc if with_documentation else None,
    )
