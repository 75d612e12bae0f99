"""Changes of client quotas: each entity's are validated, and made all or none (Kafka's
`ClientQuotaControlManager`)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from ipaddress import ip_address

from fairlead_kafka.base.codes import ErrorCode
from fairlead_kafka.base.config import INT_MAX, LONG_MAX
from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.broker.controller.decisions import QuotaAlteration
from fairlead_kafka.broker.controller.fold import MetadataRecord, client_quotas_record
from fairlead_kafka.broker.controller.journal import Journal
from fairlead_kafka.broker.quota_table import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    QuotaEntity,
)

_CLIENT_KEYS: dict[str, float | None] = {
    PRODUCER_BYTE_RATE: LONG_MAX,
    CONSUMER_BYTE_RATE: LONG_MAX,
    REQUEST_PERCENTAGE: None,
    CONTROLLER_MUTATION_RATE: None,
}
_IP_KEYS: dict[str, float | None] = {CONNECTION_CREATION_RATE: INT_MAX}
"""Quota → its largest value if it is a whole number, None if it need not be one."""
_FRACTION_MAX = 1e-6


class QuotaAlterations:
    """Decides on alterations of client quotas."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def alter(self, alterations: Sequence[QuotaAlteration], validate_only: bool) -> list[BrokerError | None]:
        """Set and remove quotas, in one decision; for each entity None, or the error for which none
        of its alterations was made."""
        results: list[BrokerError | None] = []
        records: list[MetadataRecord] = []
        for alteration in alterations:
            try:
                entity = checked_entity(alteration.entity)
                changed = self._changed(entity, _checked_values(entity, alteration.values))
            except BrokerError as error:
                results.append(error)
                continue
            results.append(None)
            if changed:
                records.append(client_quotas_record(entity, changed))
        if records and not validate_only:
            self._journal.commit(records)
        return results

    def _changed(self, entity: QuotaEntity, values: Mapping[str, float | None]) -> dict[str, float | None]:
        current = self._journal.image.client_quotas.get(entity, {})
        return {key: value for key, value in values.items() if current.get(key) != value}


def checked_entity(parts: Sequence[tuple[str, str | None]]) -> QuotaEntity:
    """The entity of these parts, in order. BrokerError(INVALID_REQUEST) for an entity that cannot
    have quotas."""
    types = [kind for kind, _ in parts]
    if not types:
        raise _refused("an entity needs a user, a client-id or an ip")
    for kind, name in parts:
        if kind not in (CLIENT_ID, IP, USER):
            raise _refused(f"there is no entity type {kind!r}: there are {CLIENT_ID}, {IP} and {USER}")
        if types.count(kind) > 1:
            raise _refused(f"an entity has one {kind}, and this one has {types.count(kind)}")
        if name == "":
            raise _refused(f"an empty {kind} is nobody's; null means all who have no quota of their own")
    if IP in types and len(types) > 1:
        raise _refused(f"an {IP} has quotas of its own, and not together with a {USER} or a {CLIENT_ID}")
    entity = tuple(sorted((kind, name) for kind, name in parts))
    address = entity[0][1]
    if types == [IP] and address is not None:
        try:
            ip_address(address)
        except ValueError:
            raise _refused(f"{address!r} is no address (names are not looked up)") from None
    return entity


def _checked_values(
    entity: QuotaEntity, values: Sequence[tuple[str, float | None]]
) -> dict[str, float | None]:
    """Quotas by key; None: to be removed. BrokerError(INVALID_REQUEST) for an invalid key or
    value."""
    keys = _IP_KEYS if entity[0][0] == IP else _CLIENT_KEYS
    checked: dict[str, float | None] = {}
    for key, value in values:
        if key in checked:
            raise _refused(f"{key} comes more than once for one entity")
        if value is not None:
            if key not in keys:
                raise _refused(f"{key!r} is no quota of this entity: there are {', '.join(keys)}")
            _check_value(key, value, keys[key])
        checked[key] = value
    return checked


def _check_value(key: str, value: float, largest: float | None) -> None:
    if not math.isfinite(value) or value <= 0:
        raise _refused(f"{key} must be greater than 0, and is {value}")
    if largest is not None:
        if value > largest:
            raise _refused(f"{key} is {largest} at most, and is {value}")
        if value % 1 > _FRACTION_MAX:
            raise _refused(f"{key} is a whole number, and is {value}")


def _refused(text: str) -> BrokerError:
    return BrokerError(ErrorCode.INVALID_REQUEST, text)
