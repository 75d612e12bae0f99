"""Clients in virtual time: their machines run on a virtual host, and waiting for anything lets its
time go on."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from math import inf
from typing import Any

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.runtime import Completion, VirtualHost, wrap_async
from tests.support.checked import checked

LONGEST_S = 600.0
"""Virtual seconds that a wait without a limit takes at most."""
FOR_A_THREAD_S = 5.0
"""Seconds that a wait without a limit then takes for what another thread ends."""


class VirtualHosted:
    """The `client.hosting.Host` of a machine on a virtual host."""

    forked = reached = unattended = False

    def __init__(self, host: VirtualHost, machine: Any) -> None:
        self.host, self.machine = host, machine
        self.inside = False
        self.handle = host.add(machine)
        self.now_ns, self.now_ms = host.now_ns, host.now_ms

    def submit(self, operation: object) -> None:
        self.host.submit(self.handle, operation)

    def wait(self, completion: Completion, timeout_s: float | None) -> Any:
        """Let virtual time go on until it is done."""
        if not completion.done() and timeout_s != 0:
            limit_s = LONGEST_S if timeout_s in (None, inf) else max(timeout_s, 0)
            try:
                self.host.run_until(completion.done, limit_s * 1000)
            except TimedOut:
                if timeout_s is None:
                    return completion.result(FOR_A_THREAD_S)
        return completion.result(0)

    def future(self, completion: Completion, loop: asyncio.AbstractEventLoop) -> Any:
        return wrap_async(completion, loop)

    def closer(self, work: Callable[[], None], name: str) -> _Closer:
        return _Closer(work)

    def close(self, timeout_s: float | None = None) -> None:
        self.host.remove(self.handle)


class Pumped(VirtualHosted):
    """Lets virtual time go on until something awaited is done, but for work that a thread does."""

    def future(self, completion: Completion, loop: asyncio.AbstractEventLoop) -> Any:
        if self.host._due or self.host._to_step:
            with contextlib.suppress(TimeoutError):
                self.host.run_until(completion.done, 60_000)
        return super().future(completion, loop)


class _Closer:
    """Ends a machine where it is told to."""

    def __init__(self, work: Callable[[], None]) -> None:
        self.start = work

    def join(self) -> None:
        """It is over."""


class Opening:
    """A `client.hosting.Opener`: machines on this host, with rngs of one seed. `hosted`: all
    made."""

    def __init__(self, host: VirtualHost, kind: type[VirtualHosted] = VirtualHosted) -> None:
        self.host, self.kind, self.seed = host, kind, 1
        self.hosted: list[VirtualHosted] = []

    @property
    def machine(self) -> Any:
        """The machine of the newest client."""
        return self.hosted[-1].machine

    def __call__(
        self, machine_factory: Callable[[Any], Any], settings: object, name: str = ""
    ) -> VirtualHosted:
        made = self.kind(self.host, checked(machine_factory(random.Random(self.seed))))
        self.hosted.append(made)
        return made
