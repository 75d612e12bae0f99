"""The authorizer: decides which operations a principal may do on which resources."""

from __future__ import annotations

from collections.abc import Iterable

from fairlead_kafka.base.acls import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPatternType,
    AclPermission,
    AclResourceType,
)
from fairlead_kafka.base.checks import same
from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.config_broker_security import super_users
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.limits import ACL_DECISIONS_KEPT_MAX
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.authorizer.index import AclIndex
from fairlead_kafka.broker.authorizer.rules import EVERYONE, covers

_logger = GuardedLogger("fairlead_kafka.authorizer")

_ANY_NAME = "hardcode"
"""Resource name that is asked about first when any resource will do, as Kafka does: a principal
that may use all resources may use this one."""

_Asked = tuple[Principal, str, AclOperation, AclResourceType, str]


class Authorizer:
    """Decides by ACLs, as Kafka's StandardAuthorizer. `acls` are the present ones; call `changed`
    with those that are added and removed."""

    def __init__(
        self,
        acls: Iterable[AclBinding],
        superusers: frozenset[str] = frozenset(),
        allows_if_none: bool = False,
    ) -> None:
        self._index = AclIndex(acls)
        self._superusers = superusers
        self._allows_if_none = allows_if_none
        self._decided: dict[_Asked, bool] = {}

    @classmethod
    def of(cls, settings: Settings, acls: Iterable[AclBinding]) -> Authorizer | None:
        """The authorizer that a broker's settings ask for; None if they ask for none."""
        if not settings["authorizer.class.name"]:
            return None
        return cls(acls, super_users(settings["super.users"]), settings["allow.everyone.if.no.acl.found"])

    def changed(self, added: Iterable[AclBinding], removed: Iterable[AclBinding]) -> None:
        """Add and remove ACLs, and forget the decisions made before."""
        for binding in removed:
            self._index.remove(binding)
        for binding in added:
            self._index.add(binding)
        self._decided.clear()

    def allows(
        self,
        principal: Principal,
        host: str,
        operation: AclOperation,
        kind: AclResourceType,
        name: str,
        quiet: bool = False,
    ) -> bool:
        """True if `principal`, at `host` (as `rules.plain_host` spells it), may do `operation` on
        the resource. `quiet`: a refusal is not logged."""
        asked = (principal, host, operation, kind, name)
        decided = self._decided.get(asked)
        if decided is None:
            if len(self._decided) >= ACL_DECISIONS_KEPT_MAX:
                self._decided.clear()
            decided = self._decided[asked] = self._decide(*asked)
        if not (decided or quiet):
            _logger.info("%s from host %s may not %s %s:%s", principal, host, operation.name, kind.name, name)
        return decided

    def _decide(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType, name: str
    ) -> bool:
        who = str(principal)
        if who in self._superusers:
            return True
        named = allowed = False
        for by_principal in self._index.of_name(kind, name):
            named = True
            for holder in (who, EVERYONE):
                for acl, acl_host in by_principal.get(holder, {}).items():
                    if acl_host in (WILDCARD, host) and covers(acl.operation, acl.permission, operation):
                        if acl.permission is AclPermission.DENY:
                            return False
                        allowed = True
        return allowed or (not named and self._allows_if_none)

    def allows_somewhere(
        self, principal: Principal, host: str, operation: AclOperation, kind: AclResourceType
    ) -> bool:
        """True if there may be a resource of the type on which `principal` may do `operation`
        (Kafka's `authorizeByResourceType`).

        Only ACLs of this operation, or of ALL, count. An ACL that allows does not count if one that
        denies has the same name, or a prefix of it; if everything is denied the answer is False.
        """
        if self.allows(principal, host, operation, kind, _ANY_NAME, quiet=True):
            return True
        allowed: set[tuple[AclPatternType, str]] = set()
        denied: set[tuple[AclPatternType, str]] = set()
        for holder in (str(principal), EVERYONE):
            for acl, acl_host in self._index.of_principal(kind, holder).items():
                if acl_host in (WILDCARD, host) and acl.operation in (operation, AclOperation.ALL):
                    (denied if acl.permission is AclPermission.DENY else allowed).add(
                        (acl.pattern_type, acl.resource_name)
                    )
        everything = (AclPatternType.LITERAL, WILDCARD)
        if everything in denied or everything in allowed:
            return everything not in denied
        return any(not _dominated(pattern, denied) for pattern in allowed)

    def check(self, acls: Iterable[AclBinding]) -> None:
        """Check that the index and the decisions kept agree with `acls`; CheckFailed if not."""
        same("the ACLs that are indexed", self._index.parts(), AclIndex(acls).parts())
        for asked, decided in self._decided.items():
            same(f"what was decided of {asked}", decided, self._decide(*asked))


def _dominated(pattern: tuple[AclPatternType, str], denied: set[tuple[AclPatternType, str]]) -> bool:
    """Whether nothing that `pattern` allows is left by what is denied."""
    kind, name = pattern
    if kind is AclPatternType.LITERAL and pattern in denied:
        return True
    return any((AclPatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))
