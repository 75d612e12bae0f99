"""The connection that a request came by, as handlers see it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.acls import AclOperation, AclResourceType
from fairlead_kafka.base.principal import Principal
from fairlead_kafka.broker.authorizer import Authorizer
from fairlead_kafka.broker.login import ServerLogin
from fairlead_kafka.broker.quotas.quotas import Toll
from fairlead_kafka.wire import ApiMessage

Reply = Callable[[ApiMessage | None], None]
"""Answers a request: the response, or None for no answer (acks=0). May be called in a later step;
the first call counts."""


class Requester(Protocol):
    """A client's connection while a request of it is served (`sessions.Session` is one)."""

    peer: str
    """The other end's address, as the host names it."""
    host: str
    """The other end's address without its port, as ACLs name it."""
    listener: str
    """Name of the listener it came to."""
    principal: Principal
    """Principal at the other end."""
    client_id: str | None
    """Client id of its newest request."""
    software: tuple[str, str] | None
    """Name and version of the client's software, from its ApiVersions request (KIP-511)."""
    login: ServerLogin | None
    """Its log-in; None: nobody has to log in."""

    @property
    def authorizer(self) -> Authorizer | None:
        """The authorizer that decides what the principal may do; None: everything is allowed."""

    @property
    def toll(self) -> Toll | None:
        """Quota charge of the request that is being served; None: it is not charged."""

    def may(self, operation: AclOperation, kind: AclResourceType, name: str, quiet: bool = False) -> bool:
        """Whether the principal may do this; `quiet`: a refusal is not logged."""

    def give_back(self) -> None:
        """Stop counting the memory of the served request's frame: its handler does not need it any
        more."""

    def close(self, reason: str | None = None) -> None:
        """End the connection, with a warning in the log if there is a reason."""

    def on_close(self, function: Callable[[], None]) -> None:
        """Have `function` called when the connection ends; for handlers that wait."""

    def forget_on_close(self, function: Callable[[], None]) -> None:
        """Call `function` no more when the connection ends; undoes `on_close`."""
