"""Checks of ACL entries and of filters for them, before anything is sent (`AclControlManager`)."""

from __future__ import annotations

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    RESOURCE_OPERATIONS,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    spelled,
)
from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.principal import parse_principal

_NOT_OF_ENTRIES = frozenset({"UNKNOWN", "ANY", "MATCH"})
"""Enum values for filters only, or for neither (UNKNOWN); an entry says exactly what it means."""
_NO_BITS = -(2**31)
"""Bits of an answer where nothing was asked for, or of a version without the field
(`MetadataResponse.AUTHORIZED_OPERATIONS_OMITTED`)."""


def check_binding(where: str, binding: AclBinding) -> None:
    """Raise UsageError, whose text begins with `where`, for an ACL entry that no broker takes.

    Also for an entry that could never allow or deny anything.
    """
    for name, value in binding._asdict().items():
        if getattr(value, "name", "") in _NOT_OF_ENTRIES:
            raise UsageError(
                f"{where}: {name} {value.name} is for filters; an entry says exactly what it means"
            )
        if value == "":
            raise UsageError(f"{where}: {name} is empty")
    if binding.resource_type == AclResourceType.CLUSTER and binding.resource_name != CLUSTER_NAME:
        raise UsageError(
            f"{where}: the only resource of type CLUSTER is {CLUSTER_NAME!r}, not {binding.resource_name!r}"
        )
    try:
        parse_principal(binding.principal)
    except ValueError as error:
        raise UsageError(f"{where}: {error}") from None
    has = RESOURCE_OPERATIONS[binding.resource_type]
    if binding.operation not in (AclOperation.ALL, *has):
        named = ", ".join(map(spelled, (AclOperation.ALL, *has)))
        raise UsageError(
            f"{where}: a {_said(binding.resource_type)} has no operation {spelled(binding.operation)}; it "
            f"has {named}"
        )


def check_filter(where: str, wanted: AclFilter) -> None:
    """Raise UsageError, whose text begins with `where`, for a filter with something UNKNOWN, which
    brokers refuse."""
    for name, value in wanted._asdict().items():
        if getattr(value, "name", "") == "UNKNOWN":
            raise UsageError(f"{where}: {name} is UNKNOWN; leave it out for any")


def operations_of(bits: int) -> frozenset[AclOperation] | None:
    """The ACL operations whose bits are set in `bits` (bit n: operation n, KIP-430); None if the
    broker did not report them."""
    if bits == _NO_BITS:
        return None
    return frozenset(
        operation for operation in AclOperation if operation > AclOperation.ANY and bits >> operation & 1
    )


def binding_of(
    resource_type: int,
    name: str,
    pattern_type: int,
    principal: str,
    host: str,
    operation: int,
    permission: int,
) -> AclBinding:
    """An ACL entry made of the fields of a broker's answer. Numbers that this client does not know
    become UNKNOWN."""
    return AclBinding(
        AclResourceType(resource_type)
        if resource_type in AclResourceType.__members__.values()
        else AclResourceType.UNKNOWN,
        name,
        AclPatternType(pattern_type)
        if pattern_type in AclPatternType.__members__.values()
        else AclPatternType.UNKNOWN,
        principal,
        host,
        AclOperation(operation) if operation in AclOperation.__members__.values() else AclOperation.UNKNOWN,
        AclPermission(permission)
        if permission in AclPermission.__members__.values()
        else AclPermission.UNKNOWN,
    )


def _said(resource_type: AclResourceType) -> str:
    return resource_type.name.lower().replace("_", " ")
