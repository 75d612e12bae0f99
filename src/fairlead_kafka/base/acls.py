"""Access control lists as in Kafka's protocol: the operations that a principal may do on a resource
(`org.apache.kafka.common.acl`, KIP-11, KIP-290)."""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

WILDCARD = "*"
"""As a resource's name, literal: every resource of its type. As a host: every host. In `User:*`:
every user."""
CLUSTER_NAME = "kafka-cluster"
"""The only name of a resource of type CLUSTER."""


class AclResourceType(IntEnum):
    """Type of the resource that an ACL is about. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclPatternType(IntEnum):
    """How the resource name of an ACL is matched.

    ANY and MATCH are for filters: every pattern type; every pattern that applies to the name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Operation that an ACL allows or denies. ALL: all that its resource has. ANY: for filters."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Whether an ACL allows or denies its operation. ANY is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def spelled(value: IntEnum) -> str:
    """A name as Kafka's tools write it: DescribeConfigs, Allow, TransactionalId
    (`SecurityUtils.operationName`)."""
    return "".join(word.capitalize() for word in value.name.split("_"))


class AclBinding(NamedTuple):
    """One ACL entry: `principal`, from `host`, is allowed or denied `operation` on the resource.

    A principal is written "User:alice", or "User:*" for every user; host "*" is every host.
    """

    resource_type: AclResourceType
    resource_name: str
    pattern_type: AclPatternType
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission

    def __str__(self) -> str:
        pattern = (
            "" if self.pattern_type == AclPatternType.LITERAL else f" ({self.pattern_type.name.lower()})"
        )
        host = "" if self.host == WILDCARD else f" from {self.host}"
        resource = f"{self.resource_type.name.lower().replace('_', ' ')} {self.resource_name}{pattern}"
        return f"{spelled(self.permission)} {self.principal}{host} {spelled(self.operation)} on {resource}"


class AclFilter(NamedTuple):
    """Selects ACL entries by their fields; None and ANY match every value."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    pattern_type: AclPatternType = AclPatternType.ANY
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def __str__(self) -> str:
        parts = {name: value for name, value in self._asdict().items() if value is not None and value != 1}
        shown = [
            f"{name}={spelled(value) if isinstance(value, IntEnum) else value}"
            for name, value in parts.items()
        ]
        return f"entries with {', '.join(shown)}" if shown else "all entries"


ALL_ENTRIES = AclFilter()
RESOURCE_OPERATIONS: dict[AclResourceType, tuple[AclOperation, ...]] = {
    AclResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.GROUP: (
        AclOperation.READ,
        AclOperation.DELETE,
        AclOperation.DESCRIBE,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
    ),
    AclResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        AclOperation.DESCRIBE_CONFIGS,
        AclOperation.ALTER_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    AclResourceType.TRANSACTIONAL_ID: (
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    AclResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    AclResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""Resource type → the operations it has (`AclEntry.supportedOperations`)."""
