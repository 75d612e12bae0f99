"""The table of quotas: entities that have one, and the look-up of the one that applies to a client
(KIP-55)."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from ipaddress import ip_address
from typing import NamedTuple

QuotaEntity = tuple[tuple[str, str | None], ...]
"""Entity that a quota is for: ("client-id", ...), ("ip", ...), ("user", ...) by type, in this
order; None: the default, for those that have none of their own."""

CLIENT_ID, IP, USER = "client-id", "ip", "user"
"""The types of entities, in the order in which an entity has them."""
PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"


class By(Enum):
    """How an entity names one part of a client."""

    NAME = "its own name"
    DEFAULT = "all that have none of their own"
    NOTHING = "not at all"


PRECEDENCE: tuple[tuple[By, By], ...] = (
    (By.NAME, By.NAME),
    (By.NAME, By.DEFAULT),
    (By.NAME, By.NOTHING),
    (By.DEFAULT, By.NAME),
    (By.DEFAULT, By.DEFAULT),
    (By.DEFAULT, By.NOTHING),
    (By.NOTHING, By.NAME),
    (By.NOTHING, By.DEFAULT),
)
"""(user, client id): the first of these entities that has a quota counts, and no other (Kafka's
`ClientQuotaManager`)."""


class Applied(NamedTuple):
    """The quota that holds for a client. Clients with the same `sharers` share it: (user, client
    id), each None if it makes no difference."""

    sharers: tuple[str | None, str | None]
    limit: float


class QuotaTable:
    """The values of one kind of quota, by entity."""

    def __init__(self) -> None:
        self._values: dict[QuotaEntity, float] = {}

    def __bool__(self) -> bool:
        return bool(self._values)

    def set(self, entity: QuotaEntity, value: float | None) -> None:
        """Set an entity's quota; None removes it."""
        if entity[0][0] == IP and entity[0][1] is not None:
            entity = ((IP, plain_address(entity[0][1])),)
        if value is None:
            self._values.pop(entity, None)
        else:
            self._values[entity] = value

    def of_client(self, user: str, client_id: str | None) -> Applied | None:
        """The quota that holds for a client; None: it has none. For a client without a client id
        only a user's own and the users' default count."""
        values = self._values
        for of_user, of_client in PRECEDENCE:
            if of_client is not By.NOTHING and not client_id:
                continue
            value = values.get(tuple(_parts(of_user, user, of_client, client_id)))
            if value is not None:
                sharers = (
                    None if of_user is By.NOTHING else user,
                    None if of_client is By.NOTHING else client_id,
                )
                return Applied(sharers, value)
        return None

    def of_address(self, address: str) -> float | None:
        """The quota for connections from an address, as `plain_address` has it; None: none."""
        return self._values.get(((IP, address),), self._values.get(((IP, None),)))


def _parts(of_user: By, user: str, of_client: By, client_id: str | None) -> Iterator[tuple[str, str | None]]:
    if of_client is not By.NOTHING:
        yield CLIENT_ID, client_id if of_client is By.NAME else None
    if of_user is not By.NOTHING:
        yield USER, user if of_user is By.NAME else None


def plain_address(text: str) -> str:
    """An address in the one spelling by which addresses are compared; a text that is no address
    stays as it is."""
    try:
        return str(ip_address(text.strip("[]")))
    except ValueError:
        return text
