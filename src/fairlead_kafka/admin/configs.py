"""Configs of topics and brokers. Sources: KIP-133, KIP-226, KIP-339."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from fairlead_kafka.admin.items import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
    config_text,
)
from fairlead_kafka.admin.scripts import AdminScript, Settled, per_item
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


def describe_configs(
    resources: Sequence[ConfigResource],
) -> AdminScript[dict[ConfigResource, dict[str, ConfigEntry]]]:
    """Configs of resources: {resource: {config name: entry}}."""

    def request(items: dict[ConfigResource, Any]) -> DescribeConfigsRequest:
        row = DescribeConfigsRequest.DescribeConfigsResource
        wanted = [
            row(resource_type=int(one.type), resource_name=one.name, configuration_keys=None) for one in items
        ]
        return DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)

    def read(answer: DescribeConfigsResponse) -> list[tuple[ConfigResource, Settled]]:
        return [
            (
                _resource(item),
                Settled(
                    item.error_code,
                    item.error_message,
                    {config.name: _entry(config) for config in item.configs},
                ),
            )
            for item in answer.results
        ]

    return per_item(
        "describe_configs", dict.fromkeys(resources), _by_node(ApiKey.DESCRIBE_CONFIGS, request), read
    )


def alter_configs(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> AdminScript[dict[ConfigResource, None]]:
    """Change some configs of each resource and leave its others alone."""

    def request(items: dict[ConfigResource, Sequence[ConfigChange]]) -> IncrementalAlterConfigsRequest:
        change_row = IncrementalAlterConfigsRequest.AlterableConfig
        resources = [
            IncrementalAlterConfigsRequest.AlterConfigsResource(
                resource_type=int(resource.type),
                resource_name=resource.name,
                configs=[
                    change_row(
                        name=change.name,
                        config_operation=int(change.operation),
                        value=config_text(change.value),
                    )
                    for change in wanted
                ],
            )
            for resource, wanted in items.items()
        ]
        return IncrementalAlterConfigsRequest(resources=resources, validate_only=validate_only)

    def read(answer: IncrementalAlterConfigsResponse) -> list[tuple[ConfigResource, Settled]]:
        return [(_resource(item), Settled(item.error_code, item.error_message)) for item in answer.responses]

    return per_item("alter_configs", changes, _by_node(ApiKey.INCREMENTAL_ALTER_CONFIGS, request), read)


def _by_node(
    api_key: ApiKey, request: Callable[[dict[ConfigResource, Any]], RequestMessage[R]]
) -> Callable[[dict[ConfigResource, Any]], list[Ask[R]]]:
    """One request to each broker whose own configs are meant, and one to any broker about
    everything else."""

    def ask(items: dict[ConfigResource, Any]) -> list[Ask[R]]:
        groups: dict[int | None, dict[ConfigResource, Any]] = {}
        for resource, item in items.items():
            own = (
                resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
                and resource.name.isdecimal()
            )
            groups.setdefault(int(resource.name) if own else None, {})[resource] = item
        return [Ask(api_key, request(group), node_id) for node_id, group in groups.items()]

    return ask


def _resource(
    item: DescribeConfigsResponse.DescribeConfigsResult
    | IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
) -> ConfigResource:
    """Resource that a row of an answer is about.

    A type whose number is unknown to us stays a number, and equals nothing that was asked for.
    """
    number: Any = item.resource_type
    return ConfigResource(
        ResourceType(number) if number in ResourceType.__members__.values() else number, item.resource_name
    )


def _entry(config: DescribeConfigsResponse.DescribeConfigsResourceResult) -> ConfigEntry:
    source = config.config_source
    known = source in ConfigSource.__members__.values()
    return ConfigEntry(
        config.name,
        config.value,
        ConfigSource(source) if known else source,
        config.read_only,
        config.is_sensitive,
    )
