"""Configs of topics and brokers. Sources: KIP-133, KIP-226, KIP-339."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from fairlead_kafka.admin.items import (
    ConfigChange,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    ResourceType,
    config_text,
)
from fairlead_kafka.admin.scripts import AdminScript, Outcome, outcome_of, per_item
from fairlead_kafka.core.connection import R
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey, RequestMessage
from fairlead_kafka.wire.messages import (
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

V = TypeVar("V")
Row = TypeVar(
    "Row",
    DescribeConfigsResponse.DescribeConfigsResult,
    IncrementalAlterConfigsResponse.AlterConfigsResourceResponse,
)


def describe_configs(
    resources: Sequence[ConfigResource],
) -> AdminScript[dict[ConfigResource, dict[str, ConfigEntry]]]:
    """Configs of resources: {resource: {config name: entry}}. ItemsFailed names the resources that
    failed."""

    def request(items: dict[ConfigResource, None]) -> DescribeConfigsRequest:
        row = DescribeConfigsRequest.DescribeConfigsResource
        wanted = [
            row(resource_type=int(one.type), resource_name=one.name, configuration_keys=None) for one in items
        ]
        return DescribeConfigsRequest(resources=wanted, include_synonyms=False, include_documentation=False)

    def read(
        answer: DescribeConfigsResponse,
    ) -> list[tuple[ConfigResource, Outcome[dict[str, ConfigEntry]]]]:
        return [
            (
                resource,
                outcome_of(
                    item.error_code,
                    item.error_message,
                    {config.name: _entry(config) for config in item.configs},
                ),
            )
            for resource, item in _named(answer.results)
        ]

    return per_item(
        "describe_configs", dict.fromkeys(resources), _by_node(ApiKey.DESCRIBE_CONFIGS, request), read
    )


def alter_configs(
    changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool
) -> AdminScript[dict[ConfigResource, None]]:
    """Change some configs of each resource and leave its others alone. ItemsFailed names the
    resources that failed."""

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

    def read(answer: IncrementalAlterConfigsResponse) -> list[tuple[ConfigResource, Outcome[None]]]:
        return [
            (resource, outcome_of(item.error_code, item.error_message, None))
            for resource, item in _named(answer.responses)
        ]

    return per_item("alter_configs", changes, _by_node(ApiKey.INCREMENTAL_ALTER_CONFIGS, request), read)


def _by_node(
    api_key: ApiKey, request: Callable[[dict[ConfigResource, V]], RequestMessage[R]]
) -> Callable[[dict[ConfigResource, V]], list[Ask[R]]]:
    """A function that makes the requests about resources: for each broker whose own configs are
    meant one to this broker, and one to any broker about everything else."""

    def ask(items: dict[ConfigResource, V]) -> list[Ask[R]]:
        groups: dict[int | None, dict[ConfigResource, V]] = {}
        for resource, item in items.items():
            own = (
                resource.type in (ResourceType.BROKER, ResourceType.BROKER_LOGGER)
                and resource.name.isdecimal()
            )
            groups.setdefault(int(resource.name) if own else None, {})[resource] = item
        return [Ask(api_key, request(group), node_id) for node_id, group in groups.items()]

    return ask


def _named(rows: Iterable[Row]) -> Iterator[tuple[ConfigResource, Row]]:
    """Rows of an answer, each with the resource that it is about.

    Rows about a type of resource that this client does not know are left out: nobody asked about
    them.
    """
    known = ResourceType.__members__.values()
    for row in rows:
        if row.resource_type in known:
            yield ConfigResource(ResourceType(row.resource_type), row.resource_name), row


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
