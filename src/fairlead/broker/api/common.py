"""What several handlers say in the same words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from uuid import UUID

from fairlead.base.codes import ErrorCode
from fairlead.base.errors import BrokerError

NO_OPERATIONS = -(2**31)
"""Authorized operations that are not told: there is no authorizer."""
NO_ID = UUID(int=0)
"""No topic id."""


def reason(error: BrokerError) -> str:
    """The error's own words, without its name and number, which the answer carries as a code."""
    return str(error).partition(": ")[2]


def repeated(names: Iterable[Hashable]) -> set[Hashable]:
    """The names that come more than once."""
    return {name for name, count in Counter(names).items() if count > 1}


def peer_host(peer: str) -> str:
    """A peer's address as Kafka shows it in a group: a slash and the address without its port."""
    return "/" + (peer.rpartition(":")[0] or peer)


def told_fenced(error: int, knows: bool) -> int:
    """PRODUCER_FENCED as a client is told that does not know it: INVALID_PRODUCER_EPOCH."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if error == ErrorCode.PRODUCER_FENCED and not knows else error


class Gathering:
    """Counts what is still out before an answer can go; `done` once by whoever created it, when all has begun."""

    def __init__(self, complete: Callable[[], None]) -> None:
        self._complete = complete
        self._outstanding = 1

    def begin(self) -> None:
        """One more is out."""
        self._outstanding += 1

    def done(self) -> None:
        """One less; with the last one the answer goes."""
        self._outstanding -= 1
        if not self._outstanding:
            self._complete()
