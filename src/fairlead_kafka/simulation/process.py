"""One process that is a member of a group of either kind: a real machine, and an application that
can be made to read other topics, to hang, to close and to die.

The application is a generator: it yields a time to wait in ms, or an operation for a machine, and
is sent its result.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from functools import partial
from typing import ClassVar, Concatenate, NamedTuple, ParamSpec, TypeAlias, TypeVar, cast

from fairlead_kafka.base.errors import BrokerError, FairleadError
from fairlead_kafka.core.machine import Machine
from fairlead_kafka.runtime import Handle, VirtualHost
from fairlead_kafka.simulation.script import Script
from fairlead_kafka.simulation.workload import Completion

CALL_TIMEOUT_MS = 700.0
"""Milliseconds that a call of an application is waited for."""
P = ParamSpec("P")
T = TypeVar("T")


class Call(NamedTuple):
    """An operation for a machine; `make` is given its completion."""

    handle: Handle
    make: Callable[[Completion[object]], object]


Answer: TypeAlias = "tuple[object, Exception | None]"
Part: TypeAlias = Generator["float | Call", Answer, T]
"""A generator that is a part of a process's application, and returns a `T`. It yields a time to
wait, in ms, or a call, whose answer it is sent."""
Steps: TypeAlias = Part[None]


def called(
    handle: Handle,
    operation: Callable[Concatenate[Completion[T], P], object],
    *args: P.args,
    **kwargs: P.kwargs,
) -> Part[tuple[T, Exception | None]]:
    """Submit `operation(completion, *args, **kwargs)`; gives (result, None), or (undefined, the
    error)."""

    def make(done: Completion[object]) -> object:
        return operation(cast("Completion[T]", done), *args, **kwargs)

    value, error = yield Call(handle, make)
    return cast("T", value), error  # the answer to a call is its operation's


class Stage(NamedTuple):
    """The parts of the world that a member's process uses: the host, the script, and where
    violations are noted."""

    host: VirtualHost
    script: Script
    violated: Callable[[str], None]


class GroupProcess(ABC):
    """One process of a group's member, from its start to its end. `group`: the group, as violations
    call it; `ended` is called once, when the process has ended."""

    REFUSALS: ClassVar[frozenset[int]] = frozenset()
    """Errors of a group after which a process ends and another begins."""

    def __init__(
        self, stage: Stage, number: int, group: str, machine: Machine, ended: Callable[[], None]
    ) -> None:
        self.number = number
        self.ended = False
        self.handle = stage.host.add(machine)
        self._host, self._script, self._violated = stage
        self._group = group
        self._on_ended = ended
        self._topics: Sequence[str] = ()
        self._wanted: Sequence[str] = ()
        self._nap_ms = 0.0
        self._closing = False

    # What the story does with it

    def begin(self, topics: Sequence[str]) -> None:
        """Subscribe, and poll from now on."""
        self._wanted = topics
        steps = self._living()
        self._go_on(steps, lambda: next(steps))

    def subscribe(self, topics: Sequence[str]) -> None:
        """Read these topics from the next poll on."""
        self._wanted = topics

    def nap(self, ms: float) -> None:
        """Do nothing for `ms` milliseconds: the application hangs, its machine does not."""
        self._nap_ms = ms

    def close(self) -> None:
        """Commit or acknowledge what is left, leave the group, and end."""
        self._closing, self._nap_ms = True, 0.0

    def kill(self) -> None:
        """End as `kill -9` does."""
        if not self.ended:
            self._end("died")

    # Parts of the life

    @abstractmethod
    def _living(self) -> Steps:
        """The application as a generator, from its first poll until it has left the group."""

    def _rest(self) -> Steps:
        """Hang for as long as the last `nap` said, if there was one."""
        if self._nap_ms:
            wait_ms, self._nap_ms = self._nap_ms, 0.0
            yield wait_ms

    def _ends(self, error: Exception) -> bool:
        """True if the error ends this process; a retriable one is passed over by the next poll."""
        if not isinstance(error, FairleadError):
            raise error
        if isinstance(error, BrokerError) and error.code in self.REFUSALS:
            return True
        if isinstance(error, BrokerError) and error.retriable:
            return False
        self._violated(f"{self._group}: process {self.number} was told {error!r}")
        return True

    def _end(self, how: str) -> None:
        """End the process: nothing happens in it any more. `how`: "left" or "died"."""
        self.ended = True
        self._script.after(0.0, self._removed)

    def _removed(self) -> None:
        self._host.remove(self.handle)
        self._on_ended()

    # Running the generator

    def _go_on(self, steps: Steps, step: Callable[[], float | Call]) -> None:
        if self.ended:
            return
        try:
            wanted = step()
        except StopIteration:
            return
        if isinstance(wanted, Call):
            self._host.submit(wanted.handle, wanted.make(Completion(partial(self._answered, steps))))
        else:
            self._script.after(wanted, self._answered, steps, None, None)

    def _answered(self, steps: Steps, value: object, error: Exception | None) -> None:
        self._go_on(steps, lambda: steps.send((value, error)))
