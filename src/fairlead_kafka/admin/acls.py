"""Access control lists: create, describe, delete entries. Sources: KIP-140, KIP-290."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from fairlead_kafka.admin.acl_items import binding_of
from fairlead_kafka.admin.scripts import (
    AdminScript,
    Done,
    Outcome,
    Refused,
    about_one,
    explained,
    outcome_of,
    per_item,
)
from fairlead_kafka.base.acls import AclBinding, AclFilter
from fairlead_kafka.core.network import CONTROLLER
from fairlead_kafka.core.script import Ask
from fairlead_kafka.wire import ApiKey
from fairlead_kafka.wire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

F = TypeVar("F", DescribeAclsRequest, DeleteAclsRequest.DeleteAclsFilter)


def create_acls(bindings: Sequence[AclBinding]) -> AdminScript[dict[AclBinding, None]]:
    """Create ACL entries. An entry that exists already is no error; ItemsFailed names those that
    were refused."""
    asked: list[AclBinding] = []

    def ask(items: dict[AclBinding, None]) -> list[Ask[CreateAclsResponse]]:
        asked[:] = items
        return [
            Ask(
                ApiKey.CREATE_ACLS, CreateAclsRequest(creations=[_creation(one) for one in asked]), CONTROLLER
            )
        ]

    def read(answer: CreateAclsResponse) -> list[tuple[AclBinding, Outcome[None]]]:
        # Answers are in the order of what was asked, and name nothing.
        rows = zip(tuple(asked), answer.results, strict=False)
        return [
            (one, outcome_of(row.error_code, explained(row.error_code, row.error_message, "Alter"), None))
            for one, row in rows
        ]

    return per_item("create_acls", dict.fromkeys(bindings), ask, read)


def describe_acls(wanted: AclFilter) -> AdminScript[list[AclBinding]]:
    """ACL entries that match a filter, sorted. BrokerError if the broker refuses."""

    def read(answer: DescribeAclsResponse) -> Outcome[list[AclBinding]]:
        found = [
            binding_of(
                of.resource_type,
                of.resource_name,
                of.pattern_type,
                row.principal,
                row.host,
                row.operation,
                row.permission_type,
            )
            for of in answer.resources
            for row in of.acls
        ]
        return outcome_of(
            answer.error_code, explained(answer.error_code, answer.error_message, "Describe"), sorted(found)
        )

    return about_one("describe_acls", Ask(ApiKey.DESCRIBE_ACLS, _filter(DescribeAclsRequest, wanted)), read)


def delete_acls(filters: Sequence[AclFilter]) -> AdminScript[dict[AclFilter, list[AclBinding]]]:
    """Delete ACL entries that match filters: {filter: entries deleted}. ItemsFailed names the
    filters that failed."""
    asked: list[AclFilter] = []

    def ask(items: dict[AclFilter, None]) -> list[Ask[DeleteAclsResponse]]:
        asked[:] = items
        filters = [_filter(DeleteAclsRequest.DeleteAclsFilter, one) for one in asked]
        return [Ask(ApiKey.DELETE_ACLS, DeleteAclsRequest(filters=filters), CONTROLLER)]

    def read(answer: DeleteAclsResponse) -> list[tuple[AclFilter, Outcome[list[AclBinding]]]]:
        return [(one, _deleted(row)) for one, row in zip(tuple(asked), answer.filter_results, strict=False)]

    return per_item("delete_acls", dict.fromkeys(filters), ask, read)


def _creation(binding: AclBinding) -> CreateAclsRequest.AclCreation:
    return CreateAclsRequest.AclCreation(
        resource_type=int(binding.resource_type),
        resource_name=binding.resource_name,
        resource_pattern_type=int(binding.pattern_type),
        principal=binding.principal,
        host=binding.host,
        operation=int(binding.operation),
        permission_type=int(binding.permission),
    )


def _filter(made: type[F], wanted: AclFilter) -> F:
    return made(
        resource_type_filter=int(wanted.resource_type),
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=int(wanted.pattern_type),
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=int(wanted.operation),
        permission_type=int(wanted.permission),
    )


def _deleted(row: DeleteAclsResponse.DeleteAclsFilterResult) -> Outcome[list[AclBinding]]:
    """One filter's outcome in an answer: the entries deleted, or Refused if one that matches could
    not be deleted."""
    rows: list[DeleteAclsResponse.DeleteAclsFilterResult | DeleteAclsResponse.DeleteAclsMatchingAcl]
    rows = [row, *row.matching_acls]
    failed = next((one for one in rows if one.error_code), None)
    if failed is not None:
        return Refused(failed.error_code, explained(failed.error_code, failed.error_message, "Alter"))
    found = [
        binding_of(
            one.resource_type,
            one.resource_name,
            one.pattern_type,
            one.principal,
            one.host,
            one.operation,
            one.permission_type,
        )
        for one in row.matching_acls
    ]
    return Done(sorted(found))
