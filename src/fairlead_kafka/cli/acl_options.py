"""Entries of access control lists from the options of `fairlead acls`, which are those of Kafka's
AclCommand."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated

import typer

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
    spelled,
)
from fairlead_kafka.base.errors import ConfigError, UsageError
from fairlead_kafka.base.nearest import nearest
from fairlead_kafka.base.principal import parse_principal

_PRODUCER = {
    AclResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
    AclResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
}
_CONSUMER = {
    AclResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
    AclResourceType.GROUP: (AclOperation.READ,),
}
_OPERATIONS = {spelled(operation): operation for operation in AclOperation if operation > AclOperation.ANY}

_ANYWHERE: Sequence[str | None] = (None,)


@dataclass(frozen=True, slots=True)
class Resources:
    """The options that name resources of ACLs. Names are prefixes if `prefixed`; `WILDCARD` is all
    resources of a type."""

    topics: Annotated[
        list[str] | None, typer.Option("--topic", help="On this topic; * is every topic. May be repeated.")
    ] = None
    groups: Annotated[
        list[str] | None, typer.Option("--group", help="On this group; * is every group. May be repeated.")
    ] = None
    transactional_ids: Annotated[
        list[str] | None,
        typer.Option(
            "--transactional-id", help="On this transactional id, or * for every one. May be repeated."
        ),
    ] = None
    cluster: Annotated[bool, typer.Option("--cluster", help="On the cluster itself.")] = False
    prefixed: Annotated[
        bool,
        typer.Option("--prefixed", help="The names are prefixes: orders means orders, orders-eu, orders2."),
    ] = False

    def of(self, pattern: AclPatternType) -> Iterator[tuple[AclResourceType, str, AclPatternType]]:
        """Each resource that is named, with its type, and its pattern type: PREFIXED, or else
        `pattern`."""
        pattern = AclPatternType.PREFIXED if self.prefixed else pattern
        yield from ((AclResourceType.TOPIC, name, pattern) for name in self.topics or ())
        yield from ((AclResourceType.GROUP, name, pattern) for name in self.groups or ())
        yield from (
            (AclResourceType.TRANSACTIONAL_ID, name, pattern) for name in self.transactional_ids or ()
        )
        if self.cluster:
            yield AclResourceType.CLUSTER, CLUSTER_NAME, AclPatternType.LITERAL

    def filters(self, pattern: AclPatternType) -> list[AclFilter]:
        """Filters for the entries on these resources; on everything, if none is named.

        Names match by `pattern` unless they are prefixes.
        """
        return [AclFilter(kind, name, found) for kind, name, found in self.of(pattern)] or [AclFilter()]


@dataclass(frozen=True, slots=True)
class People:
    """The options that name principals, their hosts, and their role: allowed, denied, producer or
    consumer."""

    allowed: Annotated[
        list[str] | None,
        typer.Option("--allow-principal", help="Allowed: User:alice, or User:* for all. May be repeated."),
    ] = None
    denied: Annotated[
        list[str] | None,
        typer.Option("--deny-principal", help="Denied, whatever allows it. May be repeated."),
    ] = None
    allow_hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", help="Allowed from this IP address; none given: from all."),
    ] = None
    deny_hosts: Annotated[
        list[str] | None,
        typer.Option("--deny-host", help="Denied from this IP address; none given: from all."),
    ] = None
    producer: Annotated[
        bool,
        typer.Option(
            "--producer",
            help="What a producer needs: Write, Describe, Create on topics; Write, Describe on transactional "
            "ids.",
        ),
    ] = False
    consumer: Annotated[
        bool,
        typer.Option("--consumer", help="What a consumer needs: Read, Describe on topics; Read on groups."),
    ] = False


@dataclass(frozen=True, slots=True)
class Entries:
    """The ACL entries that the options mean. UsageError, or ConfigError, if the options do not go
    together."""

    resources: Resources
    people: People
    operations: Sequence[str] = ()

    def __post_init__(self) -> None:
        principals("--allow-principal", self.people.allowed or ())
        principals("--deny-principal", self.people.denied or ())
        for option, hosts, who in (
            ("allow", self.people.allow_hosts, self.people.allowed),
            ("deny", self.people.deny_hosts, self.people.denied),
        ):
            if hosts and not who:
                raise UsageError(f"--{option}-host says from where for --{option}-principal: give both")
        if self.people.producer or self.people.consumer:
            self._check_roles()

    def to_add(self) -> list[AclBinding]:
        """The entries to add. UsageError if no principal or no resource is named."""
        if not (self.people.allowed or self.people.denied):
            raise UsageError(
                "say for whom: --allow-principal or --deny-principal, such as --allow-principal User:alice"
            )
        if not list(self.resources.of(AclPatternType.LITERAL)):
            raise UsageError("say on what: --topic, --group, --transactional-id or --cluster")
        found = [
            AclBinding(kind, name, pattern, who, host or WILDCARD, operation or AclOperation.ALL, permission)
            for kind, name, pattern, operation in self._operations()
            for who, host, permission in self._people()
        ]
        return sorted(set(found))

    def to_remove(self) -> list[AclFilter]:
        """Filters for the entries to remove; an option that is not given matches anything.
        UsageError if neither a principal nor a resource is named."""
        of = list(self.resources.of(AclPatternType.LITERAL))
        people: list[tuple[str | None, str | None, AclPermission]] = list(self._people())
        if not of and not people:
            raise UsageError(
                "say which: --topic, --group, --transactional-id, --cluster, --allow-principal or "
                "--deny-principal"
            )
        what: list[tuple[AclResourceType, str | None, AclPatternType, AclOperation | None]] = list(
            self._operations()
        )
        if not of:
            what = [
                (AclResourceType.ANY, None, AclPatternType.ANY, operation)
                for operation in self._named_operations() or [None]
            ]
        return [
            AclFilter(kind, name, pattern, who, host, operation or AclOperation.ANY, permission)
            for kind, name, pattern, operation in what
            for who, host, permission in people or [(None, None, AclPermission.ANY)]
        ]

    def _operations(self) -> Iterator[tuple[AclResourceType, str, AclPatternType, AclOperation | None]]:
        """Each resource with each operation on it; None if no operation is given."""
        roles = [
            role
            for role, wanted in ((_PRODUCER, self.people.producer), (_CONSUMER, self.people.consumer))
            if wanted
        ]
        for kind, name, pattern in self.resources.of(AclPatternType.LITERAL):
            if roles:
                yield from (
                    (kind, name, pattern, operation) for role in roles for operation in role.get(kind, ())
                )
            else:
                yield from (
                    (kind, name, pattern, operation) for operation in self._named_operations() or [None]
                )

    def _people(self) -> Iterator[tuple[str, str | None, AclPermission]]:
        """Each principal with each host (None if no host is given), and ALLOW or DENY."""
        yield from (
            (who, host, AclPermission.ALLOW)
            for who, host in product(self.people.allowed or (), self.people.allow_hosts or _ANYWHERE)
        )
        yield from (
            (who, host, AclPermission.DENY)
            for who, host in product(self.people.denied or (), self.people.deny_hosts or _ANYWHERE)
        )

    def _named_operations(self) -> list[AclOperation | None]:
        return [operation_of(name) for name in self.operations]

    def _check_roles(self) -> None:
        role = "--producer" if self.people.producer else "--consumer"
        of = self.resources
        if self.operations:
            raise UsageError(f"{role} stands for the operations that it needs: leave --operation out")
        if self.people.denied:
            raise UsageError(f"{role} gives rights: leave --deny-principal out")
        if of.cluster:
            raise UsageError(f"{role} needs no right on the cluster: leave --cluster out")
        if not of.topics:
            raise UsageError(f"{role} needs a topic: add --topic")
        if self.people.consumer and not of.groups:
            raise UsageError("--consumer needs a group: add --group")
        if of.groups and not self.people.consumer:
            raise UsageError("--producer needs no right on a group: leave --group out, or add --consumer")
        if of.transactional_ids and not self.people.producer:
            raise UsageError(
                "--consumer needs no right on a transactional id: leave --transactional-id out, or add "
                "--producer"
            )


def principals(option: str, texts: Sequence[str]) -> Sequence[str]:
    """The texts of the option `option`, checked. ConfigError for one that is no principal."""
    for text in texts:
        try:
            parse_principal(text)
        except ValueError as error:
            raise ConfigError(f"{option}: {error}") from None
    return texts


def operation_of(text: str) -> AclOperation:
    """The operation of a name: DescribeConfigs, describe_configs, describe-configs. ConfigError if
    there is none."""
    plain = re.sub("[-_]", "", text).lower()
    for name, operation in _OPERATIONS.items():
        if name.lower() == plain:
            return operation
    near = nearest(text, _OPERATIONS)
    raise ConfigError(
        f"--operation {text}: is none of {', '.join(_OPERATIONS)}"
        + (f"; did you mean {near}?" if near else "")
    )
