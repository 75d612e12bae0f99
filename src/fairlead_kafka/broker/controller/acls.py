"""Creation, deletion and validation of ACLs, and filters of ACLs (Kafka's `AclControlManager`,
`AclBindingFilter`)."""

from __future__ import annotations

from collections.abc import Sequence

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.fold import acls_record
from fairlead_kafka.broker.controller.journal import Journal

_PATTERNS = (AclPatternType.LITERAL, AclPatternType.PREFIXED)
_PERMISSIONS = (AclPermission.ALLOW, AclPermission.DENY)


class Acls:
    """Part of the controller: decides on creating and deleting ACLs."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def create(self, bindings: Sequence[AclBinding]) -> list[BrokerError | None]:
        """Create ACLs, in one decision; for each None, or the error INVALID_REQUEST."""
        errors = [check_new(binding) for binding in bindings]
        there = self._journal.image.acls
        new = dict.fromkeys(
            one for one, error in zip(bindings, errors, strict=True) if error is None and one not in there
        )
        if new:
            self._journal.commit([acls_record(added=new)])
        return errors

    def delete(self, filters: Sequence[AclFilter]) -> list[list[AclBinding] | BrokerError]:
        """Delete ACLs, in one decision. For each filter the ACLs that match it, also those that
        another filter took, or the error INVALID_REQUEST."""
        results: list[list[AclBinding] | BrokerError] = []
        gone: dict[AclBinding, None] = {}
        for wanted in filters:
            error = check_filter(wanted)
            if error is not None:
                results.append(error)
                continue
            found = self._matching(wanted)
            gone.update(dict.fromkeys(found))
            results.append(found)
        if gone:
            self._journal.commit([acls_record(removed=gone)])
        return results

    def _matching(self, wanted: AclFilter) -> list[AclBinding]:
        acls = self._journal.image.acls
        one = AclBinding(*wanted)  # type: ignore[arg-type]
        if (
            one in acls
        ):  # as tools delete them: an ACL has neither None nor ANY, so such a filter is for this one alone
            return [one]
        return [binding for binding in acls if matches(wanted, binding)]


def check_new(binding: AclBinding) -> BrokerError | None:
    """The error INVALID_REQUEST for an invalid ACL, with what is wrong; None: it is valid. An
    operation that the type of resource does not have is allowed, as in Kafka."""
    kind, name = binding.resource_type, binding.resource_name
    wrong = None
    if kind in (AclResourceType.UNKNOWN, AclResourceType.ANY):
        wrong = f"an ACL is on resources of one type, not {kind.name}"
    elif kind is AclResourceType.CLUSTER and name != CLUSTER_NAME:
        wrong = f"the only resource of type CLUSTER is {CLUSTER_NAME!r}, not {name!r}"
    elif not name:
        wrong = "an ACL needs a resource's name"
    elif binding.pattern_type not in _PATTERNS:
        wrong = f"a name is LITERAL or PREFIXED, not {binding.pattern_type.name}"
    elif binding.operation in (AclOperation.UNKNOWN, AclOperation.ANY):
        wrong = f"an ACL is about one operation, or ALL, not {binding.operation.name}"
    elif binding.permission not in _PERMISSIONS:
        wrong = f"a right is allowed or denied, not {binding.permission.name}"
    elif ":" not in binding.principal:
        wrong = f"a principal is written Type:name, such as User:alice, got {binding.principal!r}"
    return None if wrong is None else BrokerError(ErrorCode.INVALID_REQUEST, wrong)


def check_filter(wanted: AclFilter) -> BrokerError | None:
    """The error INVALID_REQUEST for a filter with something that this release does not know; None:
    all is known."""
    for value in (wanted.resource_type, wanted.pattern_type, wanted.operation, wanted.permission):
        if value is type(value)(0):  # UNKNOWN, in each of them
            return BrokerError(
                ErrorCode.INVALID_REQUEST,
                f"the filter has an unknown {type(value).__name__.removeprefix('Acl')}",
            )
    return None


def matches(wanted: AclFilter, binding: AclBinding) -> bool:
    """True if an ACL matches a filter."""
    return (
        wanted.resource_type in (AclResourceType.ANY, binding.resource_type)
        and _has_name(wanted, binding)
        and wanted.principal in (None, binding.principal)
        and wanted.host in (None, binding.host)
        and wanted.operation in (AclOperation.ANY, binding.operation)
        and wanted.permission in (AclPermission.ANY, binding.permission)
    )


def _has_name(wanted: AclFilter, binding: AclBinding) -> bool:
    """True if an ACL's pattern matches a filter's pattern type and name (None: any).

    With MATCH the ACL's pattern must apply to the name; else both names must be equal.
    """
    kind, name = wanted.pattern_type, wanted.resource_name
    if kind not in (AclPatternType.ANY, AclPatternType.MATCH, binding.pattern_type):
        return False
    if name is None or name == binding.resource_name:
        return True
    if kind is not AclPatternType.MATCH:
        return False
    if binding.pattern_type is AclPatternType.PREFIXED:
        return name.startswith(binding.resource_name)
    return binding.resource_name == WILDCARD
