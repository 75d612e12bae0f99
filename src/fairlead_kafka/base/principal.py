"""The user at the other end of a connection, as Kafka names it (`KafkaPrincipal`)."""

from __future__ import annotations

from typing import NamedTuple

USER = "User"
"""The only type that Kafka's own log-ins give."""


class Principal(NamedTuple):
    """A principal of ACLs: a type ("User") and a name ("alice")."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


ANONYMOUS = Principal(USER, "ANONYMOUS")
"""A client that did not authenticate: by PLAINTEXT, or by TLS without a certificate."""


def parse_principal(text: str) -> Principal:
    """A principal from `Type:name`. ValueError for anything else."""
    kind, colon, name = text.strip().partition(":")
    if not (kind and colon and name):
        raise ValueError(f"a principal is written Type:name, such as User:alice, got {text!r}")
    return Principal(kind, name)
