"""The machine protocol: all logic is in machines, whose effects a host carries out.

A machine owns no socket, file, thread, clock or rng. `receive` only queues; `step` works on all
events that have arrived and returns effects; `deadline_ns` says when to step again if nothing
arrives. There is nothing to cancel: the host reads the deadline after each step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from fairlead_kafka.core.effects import Effect
from fairlead_kafka.core.events import Event


class Machine(Protocol):
    """A state machine that a host runs. All calls come from one thread, the host's."""

    def receive(self, event: Event) -> None:
        """Queue `event` for the next step, and do nothing else."""

    def step(self, now_ns: int, wall_ms: int) -> Sequence[Effect]:
        """Work on everything queued, until nothing is left to do, and return the effects for the
        host. `now_ns` is monotonic; `wall_ms` is milliseconds since 1970."""

    def deadline_ns(self) -> int | None:
        """When to step if nothing arrives, on the clock of `now_ns`; None: not until an event."""


class Rng(Protocol):
    """Injected randomness; `random.Random` fits."""

    def random(self) -> float:
        """A float in [0, 1)."""

    def randrange(self, stop: int, /) -> int:
        """An integer in [0, stop)."""


class MemoryPool(Protocol):
    """The account of `buffer.memory`: client APIs reserve bytes, and may wait for them; the machine
    releases them."""

    def release(self, size_bytes: int) -> None:
        """Give back `size_bytes`, which a record that is delivered or failed has held."""

    def waiting(self) -> bool:
        """True if a caller is blocked because memory is used up: batches then do not linger."""
