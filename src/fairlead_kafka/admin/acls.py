"""Access control lists: create, describe, delete entries. Sources: KIP-140, KIP-290."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead_kafka.admin.acl_items import binding_of
from fairlead_kafka.admin.scripts import AdminScript, Settled, about_one, explained, per_item
from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey, Message


def create_acls(bindings: Sequence[AclBinding]) -> AdminScript[dict[AclBinding, None]]:
    """Add entries; one that is there already is fine."""
    asked: list[AclBinding] = []

    def ask(items: dict[AclBinding, Any]) -> list[Ask]:
        asked[:] = items
        return [Ask(ApiKey.CREATE_ACLS, Message(creations=[_creation(one) for one in asked]), CONTROLLER)]

    def read(answer: Message) -> list[tuple[AclBinding, Settled]]:
        # Answers are in the order of what was asked, and name nothing.
        rows = zip(tuple(asked), answer.results, strict=False)
        return [(one, Settled(row.error_code, explained(row.error_code, row.error_message, "Alter"))) for one, row in rows]

    return per_item("create_acls", dict.fromkeys(bindings), ask, read)


def describe_acls(wanted: AclFilter) -> AdminScript[list[AclBinding]]:
    """The entries that a filter means, in order."""

    def read(answer: Message) -> Settled:
        found = [
            binding_of(of.resource_type, of.resource_name, of.pattern_type, row.principal, row.host, row.operation, row.permission_type)
            for of in answer.resources
            for row in of.acls
        ]
        return Settled(answer.error_code, explained(answer.error_code, answer.error_message, "Describe"), sorted(found))

    return about_one("describe_acls", Ask(ApiKey.DESCRIBE_ACLS, _filter(wanted)), read)


def delete_acls(filters: Sequence[AclFilter]) -> AdminScript[dict[AclFilter, list[AclBinding]]]:
    """{filter: the entries that it meant, which are gone}."""
    asked: list[AclFilter] = []

    def ask(items: dict[AclFilter, Any]) -> list[Ask]:
        asked[:] = items
        return [Ask(ApiKey.DELETE_ACLS, Message(filters=[_filter(one) for one in asked]), CONTROLLER)]

    def read(answer: Message) -> list[tuple[AclFilter, Settled]]:
        return [(one, _deleted(row)) for one, row in zip(tuple(asked), answer.filter_results, strict=False)]

    return per_item("delete_acls", dict.fromkeys(filters), ask, read)


def _creation(binding: AclBinding) -> Message:
    return Message(
        resource_type=int(binding.resource_type),
        resource_name=binding.resource_name,
        resource_pattern_type=int(binding.pattern_type),
        principal=binding.principal,
        host=binding.host,
        operation=int(binding.operation),
        permission_type=int(binding.permission),
    )


def _filter(wanted: AclFilter) -> Message:
    return Message(
        resource_type_filter=int(wanted.resource_type),
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=int(wanted.pattern_type),
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=int(wanted.operation),
        permission_type=int(wanted.permission),
    )


def _deleted(row: Message) -> Settled:
    """What became of one filter; an entry that it meant and that could not be deleted fails it."""
    failed = next((one for one in (row, *row.matching_acls) if one.error_code), None)
    if failed is not None:
        return Settled(failed.error_code, explained(failed.error_code, failed.error_message, "Alter"))
    found = [
        binding_of(one.resource_type, one.resource_name, one.pattern_type, one.principal, one.host, one.operation, one.permission_type)
        for one in row.matching_acls
    ]
    return Settled(0, None, sorted(found))
