"""Index of ACLs by resource pattern and by principal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from fairlead_kafka.base.acls import WILDCARD, AclBinding, AclPatternType, AclResourceType
from fairlead_kafka.broker.authorizer.rules import plain_host

Hosts = dict[AclBinding, str]
"""ACLs, each with its host in the spelling of `plain_host`."""


class AclIndex:
    """ACLs by their pattern and principal, so that those that apply to a name are found without
    looking at the others."""

    def __init__(self, bindings: Iterable[AclBinding] = ()) -> None:
        self._by_pattern: dict[tuple[AclResourceType, AclPatternType, str], dict[str, Hosts]] = {}
        """ACLs by resource type and pattern, then by principal."""
        self._prefix_lengths: dict[AclResourceType, Counter[int]] = {}
        """Number of prefix patterns of each length, by resource type."""
        self._by_principal: dict[tuple[AclResourceType, str], Hosts] = {}
        for binding in bindings:
            self.add(binding)

    def add(self, binding: AclBinding) -> None:
        """Add an ACL; does nothing if it is there already."""
        host = plain_host(binding.host)
        kind, principal = binding.resource_type, binding.principal
        pattern = (kind, binding.pattern_type, binding.resource_name)
        if pattern not in self._by_pattern:
            self._by_pattern[pattern] = {}
            if binding.pattern_type is AclPatternType.PREFIXED:
                self._prefix_lengths.setdefault(kind, Counter())[len(binding.resource_name)] += 1
        self._by_pattern[pattern].setdefault(principal, {})[binding] = host
        self._by_principal.setdefault((kind, principal), {})[binding] = host

    def remove(self, binding: AclBinding) -> None:
        """Remove an ACL; does nothing if it is not there."""
        kind, principal = binding.resource_type, binding.principal
        pattern = (kind, binding.pattern_type, binding.resource_name)
        by_principal = self._by_pattern.get(pattern, {})
        if binding not in by_principal.get(principal, ()):
            return
        del by_principal[principal][binding], self._by_principal[kind, principal][binding]
        if not self._by_principal[kind, principal]:
            del self._by_principal[kind, principal]
        if not by_principal[principal]:
            del by_principal[principal]
        if not by_principal:
            del self._by_pattern[pattern]
            if binding.pattern_type is AclPatternType.PREFIXED:
                lengths, length = self._prefix_lengths[kind], len(binding.resource_name)
                lengths[length] -= 1
                if not lengths[length]:
                    del lengths[length]
                if not lengths:
                    del self._prefix_lengths[kind]

    def of_name(self, kind: AclResourceType, name: str) -> Iterator[Mapping[str, Hosts]]:
        """The ACLs by principal of each pattern that matches the name."""
        by_pattern = self._by_pattern
        literal = by_pattern.get((kind, AclPatternType.LITERAL, name))
        if literal is not None:
            yield literal
        everything = by_pattern.get((kind, AclPatternType.LITERAL, WILDCARD))
        if everything is not None and everything is not literal:
            yield everything
        for length in self._prefix_lengths.get(kind, ()):
            prefixed = (
                by_pattern.get((kind, AclPatternType.PREFIXED, name[:length]))
                if length <= len(name)
                else None
            )
            if prefixed is not None:
                yield prefixed

    def of_principal(self, kind: AclResourceType, principal: str) -> Hosts:
        """The ACLs for a principal, whatever resource of the type they are on."""
        return self._by_principal.get((kind, principal), {})

    def parts(self) -> tuple[object, ...]:
        """All state of the index, for a comparison with another one."""
        return self._by_pattern, self._prefix_lengths, self._by_principal
