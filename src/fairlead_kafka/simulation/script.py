"""`Script`: plans events of a world, as a machine, so that it takes part in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import count

from fairlead_kafka.base.units import ms_to_ns
from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import Event
from fairlead_kafka.runtime import VirtualHost

Action = Callable[..., None]


class Script:
    """Calls functions at their times, in the order of planning if the times are equal.

    The functions may plan more, and change the host.
    """

    def __init__(self, host: VirtualHost) -> None:
        self._host = host
        self._due: list[tuple[int, int, Action, tuple[object, ...]]] = []
        self._serial = count()
        self._handle = host.add(self)

    def at(self, when_ns: int, function: Action, *arguments: object) -> None:
        """Call `function(*arguments)` at `when_ns` (virtual clock), or as soon as possible if that
        is past."""
        heappush(self._due, (when_ns, next(self._serial), function, arguments))
        self._host.wake(self._handle)

    def after(self, wait_ms: float, function: Action, *arguments: object) -> None:
        """Call `function(*arguments)` in `wait_ms` milliseconds."""
        self.at(self._host.now_ns() + ms_to_ns(wait_ms), function, *arguments)

    # The machine protocol

    def receive(self, event: Event) -> None:
        """Never called: nothing is sent to a script."""

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Call the functions that are due."""
        while self._due and self._due[0][0] <= now_ns:
            _, _, function, arguments = heappop(self._due)
            function(*arguments)
        return ()

    def deadline_ns(self) -> int | None:
        """Time when the next function is due, ns; None: none is planned."""
        return self._due[0][0] if self._due else None
