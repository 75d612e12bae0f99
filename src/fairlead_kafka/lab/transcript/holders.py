"""Users of the secured transcript, each with topics, groups and transactional ids of its own and
one set of rights on them.

Every user has topics, groups and transactional ids that are named after it, so that the actions of
one do not affect another.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from fairlead_kafka.base.acls import (
    CLUSTER_NAME,
    RESOURCE_OPERATIONS,
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.lab.transcript.steps import PREFIX

ADMIN = "admin"
"""The super user of both systems."""
NOBODY = "nobody"
"""The user without any right."""
SECRET = PREFIX + "secret"
"""A topic, a group and a transactional id that nobody but ADMIN has a right on."""
PUBLIC = PREFIX + "public"
"""A topic that everybody may describe, by an ACL of User:*."""
DENIED, PREFIXED = "-denied", "-prefixed"
"""Suffixes of the names of a user's variants."""
PASSWORD = "transcript-password"
_KINDS = {
    "topic": AclResourceType.TOPIC,
    "group": AclResourceType.GROUP,
    "cluster": AclResourceType.CLUSTER,
    "tx": AclResourceType.TRANSACTIONAL_ID,
}
"""Short names of resource types in rights."""


@dataclass(frozen=True)
class Right:
    """A right of a user: an ACL on each of its own resources of a type, or, with `name`, on that
    resource."""

    kind: AclResourceType
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    prefixed: bool = False
    host: str = WILDCARD
    name: str | None = None


@dataclass(frozen=True)
class Holder:
    """A user of the secured transcript: its rights, and the names of its own topics, groups and
    ids."""

    user: str
    rights: tuple[Right, ...] = ()

    @property
    def prefix(self) -> str:
        """Prefix of the names of all the user's own resources, and of no other user's."""
        return f"{PREFIX}{self.user}."

    def own(self, name: str = "own") -> str:
        """Name of one of the user's own topics, groups or ids, which begins with its prefix."""
        return self.prefix + name

    def acls(self) -> list[AclBinding]:
        """ACLs that give the user its rights."""
        return [acl for right in self.rights for acl in self._acls_of(right)]

    def _acls_of(self, right: Right) -> Iterable[AclBinding]:
        if right.name is not None:
            names: tuple[str, ...] = (right.name,)
        elif right.kind is AclResourceType.CLUSTER:
            names = (CLUSTER_NAME,)
        else:
            names = (self.prefix,) if right.prefixed else tuple(map(self.own, OWN_THINGS[right.kind]))
        pattern = AclPatternType.PREFIXED if right.prefixed else AclPatternType.LITERAL
        for name in names:
            yield AclBinding(
                right.kind, name, pattern, f"User:{self.user}", right.host, right.operation, right.permission
            )


OWN_THINGS: dict[AclResourceType, tuple[str, ...]] = {
    AclResourceType.TOPIC: ("own", "missing", "new", "auto"),
    AclResourceType.GROUP: ("own", "joined", "missing"),
    AclResourceType.TRANSACTIONAL_ID: ("own", "new", "missing"),
}
"""Kind → names of the user's own things: one that exists from the start, those made on the way, and
one that never exists.
"""


def rights(*words: str, **more: object) -> tuple[Right, ...]:
    """Rights from texts such as `topic READ`."""
    found = []
    for word in words:
        kind, operation = word.split()
        found.append(replace(Right(_KINDS[kind], AclOperation[operation]), **more))  # type: ignore[arg-type]
    return tuple(found)


def _denied(*words: str, **more: object) -> tuple[Right, ...]:
    return rights(*words, permission=AclPermission.DENY, **more)


SINGLES: tuple[Holder, ...] = tuple(
    Holder(f"{word}-{operation.name.lower().replace('_', '-')}", (Right(kind, operation),))
    for word, kind in _KINDS.items()
    for operation in (*RESOURCE_OPERATIONS[kind], AclOperation.ALL)
)
"""Users with one right each: `topic-read`, `cluster-alter` and the like."""
_ALL = ("topic ALL", "group ALL", "cluster ALL", "tx ALL")
PAIRS: tuple[Holder, ...] = (
    Holder("commits", rights("group READ", "topic READ")),
    Holder("commits-unread", rights("group READ", "topic DESCRIBE")),
    Holder("looks-up", rights("group DESCRIBE", "topic DESCRIBE")),
    Holder("drops-offsets", rights("group DELETE", "topic READ")),
    Holder("writes-in-tx", rights("tx WRITE", "topic WRITE")),
    Holder("commits-in-tx", rights("tx WRITE", "group READ", "topic READ")),
    Holder("makes-on-demand", rights("topic DESCRIBE", "topic CREATE")),
    Holder("makes-and-tells", rights("topic CREATE", "topic DESCRIBE_CONFIGS")),
    Holder("everything", rights(*_ALL)),
)
"""Users for requests that need several rights."""
SPECIALS: tuple[Holder, ...] = (
    Holder(
        "blindfolded",
        rights(*_ALL) + _denied("topic DESCRIBE", "group DESCRIBE", "tx DESCRIBE", "cluster DESCRIBE"),
    ),
    Holder("reads-blindly", rights("topic READ") + _denied("topic DESCRIBE")),
    Holder(
        "denied-by-prefix",
        rights("topic READ", "topic WRITE") + _denied("topic READ", "topic WRITE", prefixed=True),
    ),
    Holder(
        "allowed-by-prefix-but", rights("topic READ", "topic WRITE", prefixed=True) + _denied("topic WRITE")
    ),
    Holder("from-elsewhere", rights(*_ALL, host="10.1.2.3")),
    Holder("from-here", rights("topic READ", "group READ", host="127.0.0.1")),
    Holder("not-from-here", rights(*_ALL) + _denied(*_ALL, host="127.0.0.1")),
    Holder("reads-all-topics", rights("topic READ", name=WILDCARD)),
    Holder("writes-all-topics-but", rights("topic WRITE", name=WILDCARD) + _denied("topic WRITE")),
    Holder("writes-but-no-topic", rights("topic WRITE") + _denied("topic WRITE", name=WILDCARD)),
)
"""Users with denials beside rights, and with hosts and wildcards."""


def _variants(holder: Holder) -> Iterable[Holder]:
    denied = tuple(replace(right, permission=AclPermission.DENY) for right in holder.rights[:1])
    yield Holder(holder.user + DENIED, holder.rights + denied)
    yield Holder(holder.user + PREFIXED, tuple(replace(right, prefixed=True) for right in holder.rights))


HOLDERS: dict[str, Holder] = {
    one.user: one
    for one in (
        Holder(NOBODY),
        *SINGLES,
        *PAIRS,
        *SPECIALS,
        *(variant for holder in (*SINGLES, *PAIRS) for variant in _variants(holder)),
    )
}
"""All users, by name."""
USERS = {ADMIN: PASSWORD, **dict.fromkeys(HOLDERS, PASSWORD)}
"""User name → password."""
