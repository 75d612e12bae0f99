"""Muting of a connection for a throttle time (KIP-219): no request is read from it or begun;
requests that were begun continue.

Requests read before wait with the session's other requests, within the session's bounds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.broker.purgatory import Deadlines


class MutingHost(Protocol):
    """The parts of a broker that mutings use."""

    now_ns: int
    deadlines: Deadlines


class Muted(Protocol):
    """The session that is muted, as its muting needs it."""

    closed: bool

    @property
    def broker(self) -> MutingHost:
        """The broker of the session."""

    def muting_changed(self) -> None:
        """Called when the session is muted, so that nothing is read from it or begun for it, or is
        muted no longer."""

    def serve(self) -> None:
        """Begin the requests that may begin now."""

    def on_close(self, function: Callable[[], None]) -> None:
        """Have `function` called when the connection ends."""

    def forget_on_close(self, function: Callable[[], None]) -> None:
        """Call `function` no more when the session closes; undoes `on_close`."""


class Muting:
    """Mutes one session: for some time nothing is read from it, and no request of it is begun."""

    __slots__ = ("_deadline", "_session", "_until_ns", "on")

    def __init__(self, session: Muted) -> None:
        self.on = False
        """True while nothing is to be read or begun."""
        self._session = session
        self._until_ns = 0
        self._deadline: int | None = None

    def begin(self, milliseconds: float) -> None:
        """Mute for `milliseconds` from now, or until an earlier muting ends if that is later."""
        session = self._session
        if session.closed or milliseconds <= 0:
            return
        self._until_ns = max(self._until_ns, session.broker.now_ns + ms_to_ns(milliseconds))
        if not self.on:
            self.on = True
            session.on_close(self._end)
            session.muting_changed()
            self._wait()

    def _wait(self) -> None:
        self._deadline = self._session.broker.deadlines.add(self._until_ns, self._due)

    def _due(self) -> None:
        session = self._session
        if session.broker.now_ns < self._until_ns:  # it was prolonged
            self._wait()
            return
        self.on = False
        session.forget_on_close(self._end)
        session.muting_changed()
        session.serve()

    def _end(self) -> None:
        """Called when the connection has ended, perhaps long before the muting's time."""
        if self._deadline is not None:
            self._session.broker.deadlines.cancel(self._deadline)
