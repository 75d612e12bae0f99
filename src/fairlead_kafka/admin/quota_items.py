"""Arguments and results of admin calls on quotas (`org.apache.kafka.common.quota`).

Sources: KIP-546, KIP-612.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.nearest import nearest

USER, CLIENT_ID, IP = "user", "client-id", "ip"
_TYPES = (USER, CLIENT_ID, IP)
_WAYS = (
    "{'user': name}, {'client-id': id}, both of them, or {'ip': address}; None as a name stands for all "
    "that have no quota of their own"
)


@dataclass(slots=True, frozen=True)
class ClientQuotaEntity:
    """Entity that a quota is for: `ClientQuotaEntity({"user": "alice"})`.

    By "user", "client-id", both of them, or "ip". A name that is None is the default: for all that
    have no quota of their own.
    """

    entries: Mapping[str, str | None]

    def __hash__(self) -> int:
        return hash(frozenset(self.entries.items()))

    def __str__(self) -> str:
        return ", ".join(
            f"{kind} {'(default)' if name is None else name}"
            for kind, name in sorted(self.entries.items(), reverse=True)
        )


class ClientQuotaMatch(IntEnum):
    """Ways to match the name of an entity: by the name given, the default alone, or any of its
    type."""

    EXACT = 0
    DEFAULT = 1
    SPECIFIED = 2


class ClientQuotaFilterComponent(NamedTuple):
    """Condition on one type of an entity's names ("user", "client-id", "ip")."""

    entity_type: str
    match: ClientQuotaMatch
    name: str | None = None

    @classmethod
    def of_entity(cls, entity_type: str, name: str) -> ClientQuotaFilterComponent:
        """A condition: the entity has this name."""
        return cls(entity_type, ClientQuotaMatch.EXACT, name)

    @classmethod
    def of_default_entity(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """A condition: the entity is the default of this type."""
        return cls(entity_type, ClientQuotaMatch.DEFAULT)

    @classmethod
    def of_entity_type(cls, entity_type: str) -> ClientQuotaFilterComponent:
        """A condition: the entity has this type, by name or as the default."""
        return cls(entity_type, ClientQuotaMatch.SPECIFIED)


class ClientQuotaFilter(NamedTuple):
    """Selects the quotas of entities that meet the condition of every component; without
    components, all.

    `strict`: entities that have other types too are left out.
    """

    components: Sequence[ClientQuotaFilterComponent] = ()
    strict: bool = False


ALL_QUOTAS = ClientQuotaFilter()


def check_quotas(call: str, entity: ClientQuotaEntity, quotas: Mapping[str, float | None]) -> None:
    """Raise UsageError, whose text begins with `call`, for an entity that cannot have quotas.

    Also for quotas that are not numbers above 0.
    """
    _check_types(call, entity.entries)
    for kind, name in entity.entries.items():
        if name == "" and kind != CLIENT_ID:
            raise UsageError(f"{call}: the name of {kind!r} is empty; None is the default")
    for key, value in quotas.items():
        if value is not None and not 0 < value < float("inf"):
            raise UsageError(
                f"{call}: {key} of {entity} must be a number above 0, or None to take it back, not {value}"
            )


def checked_quota_filter(call: str, given: ClientQuotaFilter) -> ClientQuotaFilter:
    """The filter, with all its parts as named tuples. UsageError, whose text begins with `call`,
    for a filter that no broker takes."""
    whole = ClientQuotaFilter(*given)
    wanted = ClientQuotaFilter([ClientQuotaFilterComponent(*each) for each in whole.components], whole.strict)
    names = [component.entity_type for component in wanted.components]
    if len(set(names)) < len(names):
        raise UsageError(f"{call}: a filter has one component for each type, not {', '.join(names)}")
    if names:
        _check_types(call, dict.fromkeys(names))
    for component in wanted.components:
        if (component.name is None) == (component.match == ClientQuotaMatch.EXACT):
            raise UsageError(
                f"{call}: a component has a name if it means this one, and else none: {component}"
            )
    return wanted


def _check_types(call: str, entries: Mapping[str, str | None]) -> None:
    for kind in entries:
        if kind not in _TYPES:
            near = nearest(kind, _TYPES)
            raise UsageError(
                f"{call}: {kind!r} has no quotas{f'; did you mean {near!r}?' if near else ''}; it must be "
                f"{_WAYS}"
            )
    if not entries or (IP in entries and len(entries) > 1):
        raise UsageError(f"{call}: a quota is for {_WAYS}")
