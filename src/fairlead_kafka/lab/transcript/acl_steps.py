"""ACLs and passwords: made, described and deleted by a user who may do it, with valid and invalid
fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypedDict, Unpack

from fairlead_kafka.base.acls import AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.lab.transcript.steps import PREFIX, Step, ask
from fairlead_kafka.wire import ApiKey, Message
from fairlead_kafka.wire.messages import (
    AlterUserScramCredentialsRequest,
    CreateAclsRequest,
    DeleteAclsRequest,
    DescribeUserScramCredentialsRequest,
)

_AclCreation = CreateAclsRequest.AclCreation
_ANY = 1
_WHO = "User:transcript"
_SHA_256, _SHA_512 = 1, 2


def acl(
    name: str,
    principal: str = _WHO,
    kind: int = AclResourceType.TOPIC,
    pattern: int = AclPatternType.LITERAL,
    operation: int = AclOperation.READ,
    permission: int = AclPermission.ALLOW,
    host: str = "*",
) -> _AclCreation:
    """A row of CreateAcls."""
    return _AclCreation(
        resource_type=int(kind),
        resource_name=name,
        resource_pattern_type=int(pattern),
        principal=principal,
        host=host,
        operation=int(operation),
        permission_type=int(permission),
    )


class Filtered(TypedDict):
    """The fields of a filter of DescribeAcls and DeleteAcls."""

    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int


class _More(TypedDict, total=False):
    resource: str | None
    kind: int
    pattern: int
    operation: int
    permission: int
    host: str


class _Wanted(_More, total=False):
    principal: str | None


def filtered(principal: str | None = _WHO, **more: Unpack[_More]) -> Filtered:
    """The fields of a filter of DescribeAcls and DeleteAcls."""
    return {
        "resource_type_filter": int(more.get("kind", _ANY)),
        "resource_name_filter": more.get("resource"),
        "pattern_type_filter": int(more.get("pattern", _ANY)),
        "principal_filter": principal,
        "host_filter": more.get("host"),
        "operation": int(more.get("operation", _ANY)),
        "permission_type": int(more.get("permission", _ANY)),
    }


def make(name: str, *rows: _AclCreation, versions: Iterable[int] = (3,)) -> Step:
    """A CreateAcls step; `rows` are the ACLs."""
    return ask(name, ApiKey.CREATE_ACLS, versions, creations=list(rows))


def describe(
    name: str, versions: Iterable[int] = (3,), rows: int | None = None, **wanted: Unpack[_Wanted]
) -> Step:
    """A DescribeAcls step; `rows`: it is sent again until there are that many ACLs, since brokers
    learn of ACLs after the controller."""
    step = ask(name, ApiKey.DESCRIBE_ACLS, versions, **filtered(**wanted))
    return step if rows is None else until_acls(step, rows)


def until_acls(step: Step, count: int) -> Step:
    """The step, sent again until the answer has `count` ACLs."""

    def holds(answer: Message) -> bool:
        return sum(len(resource.acls) for resource in answer.resources) == count

    return replace(step, until=holds)


def delete(name: str, *filters: Filtered, versions: Iterable[int] = (3,)) -> Step:
    """A DeleteAcls step; `filters` select the ACLs."""
    return ask(
        name,
        ApiKey.DELETE_ACLS,
        versions,
        filters=[DeleteAclsRequest.DeleteAclsFilter(**one) for one in filters],
    )


_LITERAL, _PREFIX = PREFIX + "acl", PREFIX + "ac"
ACLS: list[Step] = [
    make(
        "good ones",
        acl(_LITERAL),
        acl(_PREFIX, pattern=AclPatternType.PREFIXED, operation=AclOperation.WRITE),
        acl(
            "kafka-cluster",
            kind=AclResourceType.CLUSTER,
            operation=AclOperation.ALTER,
            permission=AclPermission.DENY,
        ),
        acl("*", kind=AclResourceType.GROUP, host="10.0.0.1"),
        versions=(1, 2, 3),
    ),
    make("the same again, twice", acl(_LITERAL), acl(_LITERAL)),
    make("none"),
    make("without a name", acl("")),
    make("of another cluster", acl("another", kind=AclResourceType.CLUSTER)),
    make("of a type that is none", acl("x", kind=77)),
    make("of any type", acl("x", kind=AclResourceType.ANY)),
    make("of any pattern", acl("x", pattern=AclPatternType.ANY)),
    make("of a pattern that matches", acl("x", pattern=AclPatternType.MATCH)),
    make("of a pattern that is none", acl("x", pattern=9)),
    make("of any operation", acl("x", operation=AclOperation.ANY)),
    make("of an operation that is none", acl("x", operation=99)),
    make(
        "of an operation that topics have not",
        acl(_LITERAL, operation=AclOperation.CLUSTER_ACTION, principal="User:odd"),
    ),
    make("of any permission", acl("x", permission=AclPermission.ANY)),
    make("of a permission that is none", acl("x", permission=9)),
    make("of a principal without a type", acl("x", "nobody")),
    make("of a principal without a name", acl("x", "User:")),
    make("of a principal of another type", acl(_LITERAL, "Group:all")),
    make("of no principal", acl("x", "")),
    make("from a host that is a name", acl(_LITERAL, "User:far", host="example.org")),
    make("from no host", acl(_LITERAL, "User:nowhere", host="")),
    make("one good, one bad", acl(_LITERAL, "User:good"), acl("", "User:bad")),
    describe("all of one", (1, 2, 3), rows=4),
    describe("by its name", resource=_LITERAL),
    describe(
        "by a name that it matches",
        resource=_LITERAL,
        pattern=AclPatternType.MATCH,
        kind=AclResourceType.TOPIC,
    ),
    describe("those of a literal name", pattern=AclPatternType.LITERAL),
    describe("those of a prefix", pattern=AclPatternType.PREFIXED),
    describe("those that deny", permission=AclPermission.DENY),
    describe("those of an operation", operation=AclOperation.WRITE),
    describe("those of a host", host="10.0.0.1"),
    describe("of a type that has none", kind=AclResourceType.TRANSACTIONAL_ID),
    describe("of nobody", principal="User:never"),
    describe("of a principal without a type", principal="never"),
    describe("of a type that is none", kind=77),
    describe("of a type 0", kind=0),
    describe("of a pattern that is none", pattern=9),
    describe("of an operation that is none", operation=99),
    describe("of a permission that is none", permission=9),
    delete("nothing"),
    delete("those of nobody", filtered("User:never")),
    delete("of a type that is none", filtered(kind=77)),
    delete("of a pattern that is none, beside a good one", filtered(pattern=9), filtered("User:never")),
    delete("of an operation that is none", filtered(operation=99)),
    delete("of a permission that is none", filtered(permission=9)),
    delete(
        "one, by two filters",
        filtered(resource=_LITERAL),
        filtered(resource=_LITERAL, kind=AclResourceType.TOPIC),
    ),
    delete("all that are left", filtered(), versions=(1, 2, 3)),
    *(
        delete(f"those of {who}", filtered(who))
        for who in ("User:odd", "Group:all", "User:far", "User:nowhere", "User:good", "User:")
    ),
    describe("all are gone", rows=0),
]
"""Steps for a cluster with an authorizer, by a user who may do everything; a cluster without one
answers SECURITY_DISABLED.
"""

# --- Passwords

_USER = PREFIX + "user"


def _alter(
    name: str,
    *upserted: tuple[str, int, int],
    deleted: Iterable[tuple[str, int]] = (),
    salt: bytes = b"some salt",
    password: bytes = b"x" * 32,
) -> Step:
    made = [
        AlterUserScramCredentialsRequest.ScramCredentialUpsertion(
            name=who, mechanism=kind, iterations=count, salt=salt, salted_password=password
        )
        for who, kind, count in upserted
    ]
    gone = [
        AlterUserScramCredentialsRequest.ScramCredentialDeletion(name=who, mechanism=kind)
        for who, kind in deleted
    ]
    return ask(name, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, (0,), deletions=gone, upsertions=made)


def _described(name: str, *users: str, mechanisms: int | None = None, iterations: int | None = None) -> Step:
    """A DescribeUserScramCredentials step.

    It is sent again until there are `mechanisms` mechanisms, the first with `iterations`
    iterations.
    """
    step = ask(
        name,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (0,),
        users=[DescribeUserScramCredentialsRequest.UserName(name=one) for one in users],
    )
    if mechanisms is None:
        return step

    def holds(answer: Message) -> bool:
        infos = [info for row in answer.results for info in row.credential_infos]
        return len(infos) == mechanisms and (
            iterations is None or iterations in {info.iterations for info in infos}
        )

    return replace(step, until=holds)


PASSWORDS: list[Step] = [
    _described("of nobody known", _USER),
    _described("of one twice", _USER, _USER),
    _described("of no name", ""),
    _alter("nothing"),
    _alter("one of a kind", (_USER, _SHA_256, 4096)),
    _alter("one of the other kind", (_USER, _SHA_512, 8192)),
    _alter("changed", (_USER, _SHA_256, 10_000)),
    _described("they are there", _USER, mechanisms=2, iterations=10_000),
    _alter("too few iterations", (_USER + "-2", _SHA_256, 4095)),
    _alter("too few iterations, of 512", (_USER + "-2", _SHA_512, 4095)),
    _alter("too many iterations", (_USER + "-2", _SHA_256, 16_385)),
    _alter("no iterations", (_USER + "-2", _SHA_256, 0)),
    _alter("a mechanism that is none", (_USER + "-2", 9, 4096)),
    _alter("mechanism 0", (_USER + "-2", 0, 4096)),
    _alter("no name", ("", _SHA_256, 4096)),
    _alter("no salt", (_USER + "-2", _SHA_256, 4096), salt=b""),
    _alter("no password", (_USER + "-2", _SHA_256, 4096), password=b""),
    _alter("one twice", (_USER + "-2", _SHA_256, 4096), (_USER + "-2", _SHA_256, 4096)),
    _alter("made and deleted", (_USER + "-2", _SHA_256, 4096), deleted=[(_USER + "-2", _SHA_256)]),
    _alter("one good, one bad", (_USER + "-3", _SHA_256, 4096), (_USER + "-4", _SHA_256, 1)),
    _alter("deleted what is not there", deleted=[(_USER + "-none", _SHA_256)]),
    _alter("deleted of a mechanism that is none", deleted=[(_USER, 9)]),
    _alter("deleted of no name", deleted=[("", _SHA_256)]),
    _alter("deleted", deleted=[(_USER, _SHA_256), (_USER + "-3", _SHA_256)]),
    _alter("deleted, the other kind", deleted=[(_USER, _SHA_512)]),
    _described("they are gone", _USER, mechanisms=0),
    _alter("deleted again", deleted=[(_USER, _SHA_256)]),
    _alter("two kinds in one request", (_USER + "-6", _SHA_256, 4096), (_USER + "-6", _SHA_512, 4096)),
    _alter("two kinds, of which one is bad", (_USER + "-5", _SHA_256, 4096), (_USER + "-5", _SHA_512, 1)),
]

STEPS: list[Step] = [
    describe("without an authorizer", (1, 2, 3)),
    describe("of a type that is none, without an authorizer", kind=77),
    make("without an authorizer", acl("x"), acl(""), versions=(1, 2, 3)),
    make("none, without an authorizer"),
    delete("without an authorizer", filtered(), filtered("User:never"), versions=(1, 2, 3)),
    delete("nothing, without an authorizer"),
    ask("a log-in where there is none", ApiKey.SASL_HANDSHAKE, (0, 1), mechanism="PLAIN"),
    ask("a log-in by no known mechanism", ApiKey.SASL_HANDSHAKE, (1,), mechanism="MAGIC"),
    ask("a token without a log-in", ApiKey.SASL_AUTHENTICATE, (0, 1, 2), auth_bytes=b"\0a\0b"),
    *PASSWORDS,
]
"""Steps for the transcript of a cluster without security."""
