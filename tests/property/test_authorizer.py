"""The authorizer against a plain reading of Kafka's rules, over any ACLs that come and go and any
request."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from fairlead_kafka.base.acls import AclBinding, AclOperation, AclPatternType, AclPermission, AclResourceType
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.authorizer import Authorizer

_ALLOW, _DENY = AclPermission.ALLOW, AclPermission.DENY
_LITERAL, _PREFIXED = AclPatternType.LITERAL, AclPatternType.PREFIXED
_NAMES = st.sampled_from(["a", "ab", "abc", "abd", "b", "ba", "*", "*x", "hardcode", "hard", "!"])
_PRINCIPALS = [
    Principal("User", "alice"),
    Principal("User", "bob"),
    Principal("Group", "alice"),
    Principal("User", "*"),
]
_HOSTS = ["1.1.1.1", "2.2.2.2"]
_KINDS = st.sampled_from([AclResourceType.TOPIC, AclResourceType.GROUP])
_OPERATIONS = st.sampled_from([one for one in AclOperation if one > AclOperation.ALL])
_ACLS = st.builds(
    AclBinding,
    _KINDS,
    _NAMES,
    st.sampled_from([_LITERAL, _PREFIXED]),
    st.sampled_from([*map(str, _PRINCIPALS)]),
    st.sampled_from([*_HOSTS, "*"]),
    st.one_of(st.just(AclOperation.ALL), _OPERATIONS),
    st.sampled_from([_ALLOW, _DENY]),
)
_SUPER = frozenset({"User:bob"})
_IMPLIED = {
    AclOperation.DESCRIBE: {AclOperation.READ, AclOperation.WRITE, AclOperation.DELETE, AclOperation.ALTER},
    AclOperation.DESCRIBE_CONFIGS: {AclOperation.ALTER_CONFIGS},
}


def speaks(acl: AclBinding, principal: Principal, host: str, kind: AclResourceType) -> bool:
    """It is of the type, for the principal, from the host."""
    return (
        acl.resource_type is kind and acl.principal in (str(principal), "User:*") and acl.host in (host, "*")
    )


def has_name(acl: AclBinding, name: str) -> bool:
    if acl.pattern_type is _PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def plainly_allows(
    acls: Iterable[AclBinding],
    principal: Principal,
    host: str,
    operation: AclOperation,
    kind: AclResourceType,
    name: str,
    if_none: bool,
) -> bool:
    if str(principal) in _SUPER:
        return True
    named = [acl for acl in acls if acl.resource_type is kind and has_name(acl, name)]
    if not named:
        return if_none
    about = [acl for acl in named if speaks(acl, principal, host, kind)]
    if any(acl.permission is _DENY and acl.operation in (operation, AclOperation.ALL) for acl in about):
        return False
    enough = {operation, AclOperation.ALL, *_IMPLIED.get(operation, ())}
    return any(acl.permission is _ALLOW and acl.operation in enough for acl in about)


def plainly_allows_somewhere(
    acls: Iterable[AclBinding],
    principal: Principal,
    host: str,
    operation: AclOperation,
    kind: AclResourceType,
    if_none: bool,
) -> bool:
    """`Authorizer.authorizeByResourceType` of Kafka."""
    if plainly_allows(acls, principal, host, operation, kind, "hardcode", if_none):
        return True
    about = [
        acl
        for acl in acls
        if speaks(acl, principal, host, kind) and acl.operation in (operation, AclOperation.ALL)
    ]
    patterns = {
        permission: {(acl.pattern_type, acl.resource_name) for acl in about if acl.permission is permission}
        for permission in (_ALLOW, _DENY)
    }
    if (_LITERAL, "*") in patterns[_DENY]:
        return False
    if (_LITERAL, "*") in patterns[_ALLOW]:
        return True
    for pattern, name in patterns[_ALLOW]:
        by_name = pattern is _LITERAL and (_LITERAL, name) in patterns[_DENY]
        by_prefix = any(kind is _PREFIXED and name.startswith(denied) for kind, denied in patterns[_DENY])
        if not by_name and not by_prefix:
            return True
    return False


@given(
    st.lists(_ACLS, max_size=12),
    st.lists(st.lists(_ACLS, max_size=4), max_size=4),
    st.lists(
        st.tuples(st.sampled_from(_PRINCIPALS), st.sampled_from(_HOSTS), _OPERATIONS, _KINDS, _NAMES),
        min_size=1,
        max_size=12,
    ),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_what_is_allowed_is_what_the_acls_say(
    first: list[AclBinding],
    later: list[list[AclBinding]],
    asked: list[tuple[Principal, str, AclOperation, AclResourceType, str]],
    if_none: bool,
    rng: object,
) -> None:
    acls = dict.fromkeys(first)
    authorizer = Authorizer(acls, _SUPER, if_none)
    for added in [[], *later]:
        removed = [acl for acl in acls if rng.random() < 0.4] if added else []  # type: ignore[attr-defined]
        for acl in removed:
            del acls[acl]
        new = [acl for acl in dict.fromkeys(added) if acl not in acls]
        acls.update(dict.fromkeys(new))
        authorizer.changed(new, removed)
        for _twice in range(2):  # the second time it is known already
            for principal, host, operation, kind, name in asked:
                expected = plainly_allows(acls, principal, host, operation, kind, name, if_none)
                assert authorizer.allows(principal, host, operation, kind, name) is expected
                somewhere = plainly_allows_somewhere(acls, principal, host, operation, kind, if_none)
                assert authorizer.allows_somewhere(principal, host, operation, kind) is somewhere
        authorizer.check(acls)
