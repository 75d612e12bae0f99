"""Requests of a user with few rights, to be answered alike by this cluster and by Apache Kafka:
what is refused, and what that hides.

The world of all cases: topics OPEN, SECRET and SPARE with a partition each, GROUP with an offset of
each, TRANSACTION with an open transaction. GHOST is the name of what is not there. The cases are
asked one after the other, in their order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.wire import ApiKey, Message

OPEN, SECRET, SPARE, GHOST, GROUP, TRANSACTION = "open", "secret", "spare", "ghost", "group", "transaction"
ALICE = "User:alice"
NO_ID = UUID(int=0)
GHOST_ID = UUID(int=77)

Ids = Mapping[str, UUID]
Fields = Callable[[Ids], dict[str, Any]]


class Case(NamedTuple):
    """One request, with the rights that the user has then ("READ TOPIC open": allowed; "DENY …":
    denied)."""

    name: str
    rights: tuple[str, ...]
    api_key: ApiKey
    version: int
    fields: Fields


def binding(right: str) -> AclBinding:
    """An ACL of alice's: "[DENY] OPERATION TYPE [name]", the name with a star at its end for a
    prefix."""
    words = right.split()
    permission = AclPermission.DENY if words[0] == "DENY" else AclPermission.ALLOW
    operation, kind, *names = words[1:] if permission is AclPermission.DENY else words
    name = names[0] if names else CLUSTER_NAME
    prefix = len(name) > 1 and name.endswith("*")
    pattern = AclPatternType.PREFIXED if prefix else AclPatternType.LITERAL
    return AclBinding(
        AclResourceType[kind],
        name.rstrip("*") if prefix else name,
        pattern,
        ALICE,
        "*",
        AclOperation[operation],
        permission,
    )


def said(**fields: Any) -> Fields:
    """The same fields whatever the ids of topics are."""
    return lambda ids: fields


def cases(api_key: ApiKey, version: int, fields: Fields, **by_name: tuple[str, ...]) -> tuple[Case, ...]:
    """The same request under several rights, each by a name."""
    return tuple(
        Case(f"{api_key.name} {version} {name}", rights, api_key, version, fields)
        for name, rights in by_name.items()
    )


def named(*names: str, **more: Any) -> list[Message]:
    """Structures that differ in their `name` alone."""
    return [Message(name=name, **more) for name in names]


NAMES = (OPEN, SECRET, GHOST)
SOME = ("READ TOPIC open",)
