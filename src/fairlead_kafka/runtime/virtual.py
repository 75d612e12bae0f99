"""The virtual host: machines on one virtual clock, connected in memory; random only by a seed."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.base.units import NS_PER_MS, NS_PER_S, ms_to_ns
from fairlead_kafka.core.effects import (
    Authenticate,
    AwaitSent,
    Call,
    Close,
    Connect,
    Effect,
    FileEffect,
    Fill,
    Hold,
    HoldListener,
    Listen,
    Resolve,
    StopListening,
    Write,
)
from fairlead_kafka.core.events import Event, Submitted
from fairlead_kafka.core.machine import Machine, Rng
from fairlead_kafka.runtime.authenticating import authenticate
from fairlead_kafka.runtime.handle import Handle, call, crash, leave, refuse, resolve
from fairlead_kafka.runtime.virtual_disk import VirtualDisk
from fairlead_kafka.runtime.virtual_link import Conditions, VirtualLink
from fairlead_kafka.runtime.virtual_network import VirtualNetwork

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Transport

START_NS = 86_400 * NS_PER_S
"""A clock's time in the beginning. A host has been up for some time when a program starts: with a
clock at zero, what takes a moment that was never set for a recent one would not be seen."""
STEPS_PER_INSTANT_MAX = 100_000
"""More steps than this without time passing: some machine's deadline stays in the past."""


class VirtualHost:
    """Runs machines on the calling thread while `run_until` or `advance` is called, and not
    otherwise.

    `latency_ms` is the default of every link, one way; `chunk_bytes` cuts what is received into
    pieces of that size (None: as written). With `raise_errors` an exception of a machine is raised
    by `run_until` and `advance`; without, the machine is ended and the others go on, as on the
    selector host. `rng`: random faults of the links' `Conditions` are drawn from it, so the same
    seed gives the same run. A step takes no time, unless the machine's handle says how much
    (`Handle.work_ns`): then the step's effects come after that time, and events meanwhile wait for
    its end.
    """

    def __init__(
        self,
        *,
        latency_ms: float = 0.0,
        chunk_bytes: int | None = None,
        wall_ms: int = 1_700_000_000_000,
        raise_errors: bool = True,
        rng: Rng | None = None,
    ) -> None:
        self._now_ns = START_NS
        self._wall_offset_ms = wall_ms - START_NS // NS_PER_MS
        self._raise_errors = raise_errors
        self._due: list[tuple[int, int, Callable[..., None], tuple[object, ...]]] = []
        self._serial = itertools.count()
        self._handles: dict[Handle, None] = {}
        self._to_step: list[Handle] = []
        self._closed = False
        self.steps = 0
        """Steps of machines so far."""
        self.steps_max: int | None = None
        """More steps than this are a fault: some machine is busy with nothing. UsageError then."""
        self.trace: Callable[[int, Handle, Event], None] | None = None
        """Called with the time for every event that a machine is given: a transcript to print or
        compare."""
        self.stepped: Callable[[Machine], None] | None = None
        """Called with every machine that has taken a step."""
        self.network = VirtualNetwork(
            Conditions(latency_ms), chunk_bytes, rng, self.now_ns, self._call_at, self._deliver
        )
        self.disk = VirtualDisk(self._call_after, self._deliver)
        network = self.network
        self._carriers: dict[type, Callable[[Handle, Any], None]] = {
            Connect: lambda handle, effect: network.connect(
                handle, effect.connection, effect.host, effect.port
            ),
            Write: self._write,
            Close: self._close_link,
            Hold: self._hold,
            Fill: self._fill,
            Authenticate: self._authenticate,
            AwaitSent: self._await_sent,
            Listen: lambda handle, effect: network.listen(handle, effect.listener, effect.host, effect.port),
            StopListening: lambda handle, effect: network.stop_listening(handle, effect.listener),
            HoldListener: lambda handle, effect: network.hold_listener(handle, effect.listener, effect.held),
            Resolve: lambda _handle, effect: resolve(effect),
            Call: lambda _handle, effect: call(effect),
        }

    # As the selector host

    def now_ns(self) -> int:
        """The virtual clock, in ns."""
        return self._now_ns

    def now_ms(self) -> int:
        """The virtual time of day, in ms since 1970."""
        return self._wall_offset_ms + self._now_ns // NS_PER_MS

    def start(self) -> None:
        """Do nothing; it is there because `SelectorHost` has it."""

    def add(self, machine: Machine, transport: Transport | None = None) -> Handle:
        """Run `machine`, which has its first step when time next goes on. Of `transport` only
        log-ins are used: links are never encrypted."""
        self._check()
        handle = Handle(machine, transport)
        self._handles[handle] = None
        self._queue(handle)
        return handle

    def remove(self, handle: Handle) -> None:
        """Stop running a machine; the other ends of its connections see them closed."""
        self._check()
        self._end(handle)

    def submit(self, handle: Handle, operation: object) -> None:
        """Deliver `events.Submitted(operation)`; if the machine has ended, fail
        `operation.completion`."""
        self._check()
        if handle.ended:
            refuse(handle, operation)
        else:
            self._deliver(handle, Submitted(operation))

    def wake(self, handle: Handle) -> None:
        """Step a machine when time next goes on."""
        self._queue(handle)

    def close(self, timeout_s: float = 5.0) -> None:
        """End all machines at once; no time passes, so there is nothing to wait for `timeout_s`.
        Idempotent."""
        self._closed = True
        for handle in list(self._handles):
            leave(handle, UsageError("the virtual host was closed"), self._end)

    # For tests

    @property
    def files(self) -> dict[str, bytearray]:
        """Path → content of every file."""
        return self.disk.files

    @property
    def machines(self) -> list[Machine]:
        """All machines that run."""
        return [handle.machine for handle in self._handles]

    def link(self, one: Handle, other: Handle) -> VirtualLink:
        """The link between two machines: set its `conditions`, or `cut`, `heal` or `reset` it."""
        return self.network.link(one, other)

    def run_until(self, predicate: Callable[[], object], timeout_ms: float = 60_000) -> bool:
        """Let time go on until `predicate()` is true; TimedOut if it is not within `timeout_ms` of
        virtual time."""
        deadline_ns = self._now_ns + ms_to_ns(timeout_ms)
        self._run_until_quiet(predicate)
        while not predicate():
            if not self._due or self._due[0][0] > deadline_ns:
                self._now_ns = max(self._now_ns, deadline_ns)
                raise TimedOut(
                    f"{timeout_ms:g} ms of virtual time passed"
                    + ("" if self._due else ", and nothing was left to happen")
                )
            self._now_ns = max(self._now_ns, self._due[0][0])
            self._run_until_quiet(predicate)
        return True

    def advance(self, milliseconds: float) -> None:
        """Let exactly `milliseconds` of virtual time go by; 0: do everything that is due now."""
        until_ns = self._now_ns + ms_to_ns(milliseconds)
        self._run_until_quiet()
        while self._due and self._due[0][0] <= until_ns:
            self._now_ns = max(self._now_ns, self._due[0][0])
            self._run_until_quiet()
        self._now_ns = until_ns

    # Inside

    def _check(self) -> None:
        if self._closed:
            raise UsageError("the virtual host is closed")

    def _run_until_quiet(self, predicate: Callable[[], object] | None = None) -> None:
        """Do everything that is due now, or stop once the predicate is true. UsageError if machines
        are stepped endlessly while no time passes."""
        due, now_ns = self._due, self._now_ns
        steps = 0
        while predicate is None or not predicate():
            while due and due[0][0] <= now_ns:
                _, _, function, arguments = heapq.heappop(due)
                function(*arguments)
            if not self._to_step:
                return
            to_step, self._to_step = self._to_step, []
            for handle in to_step:
                self._step(handle)
            steps += len(to_step)
            if steps > STEPS_PER_INSTANT_MAX:
                raise UsageError(
                    f"{to_step[0]} keeps being stepped while no time passes: its deadline stays in the past"
                )
            if self.steps_max is not None and self.steps > self.steps_max:
                raise UsageError(
                    f"more than {self.steps_max} steps were taken, the last by {to_step[-1]}: some machine "
                    "is busy with nothing"
                )

    def _step(self, handle: Handle) -> None:
        handle.queued = False
        if handle.ended:
            return
        self.steps += 1
        machine, now_ns = handle.machine, self._now_ns
        try:
            effects = machine.step(now_ns, self._wall_offset_ms + now_ns // NS_PER_MS)
            handle.deadline_ns = machine.deadline_ns()
            work_ns = 0 if handle.work_ns is None else handle.work_ns()
            if work_ns:
                handle.busy_until_ns = now_ns + work_ns
            if effects and work_ns:
                self._call_at(handle.busy_until_ns, self._carry_out, handle, effects)
            elif effects:
                self._carry_out(handle, effects)
        except Exception as error:
            self._crash(handle, error)
            return
        if self.stepped is not None:
            self.stepped(machine)
        if handle.deadline_ns is not None:
            self._schedule(handle)

    def _carry_out(self, handle: Handle, effects: Sequence[Effect]) -> None:
        for effect in effects:
            carrier = self._carriers.get(type(effect))
            if carrier is not None:
                carrier(handle, effect)
            else:
                self.disk.carry_out(handle, cast(FileEffect, effect))

    def _schedule(self, handle: Handle) -> None:
        deadline_ns = handle.deadline_ns
        if (
            deadline_ns is None
            or handle.ended
            or (handle.scheduled_ns is not None and handle.scheduled_ns <= deadline_ns)
        ):
            return
        handle.scheduled_ns = deadline_ns
        self._call_at(deadline_ns, self._look, handle, deadline_ns)

    def _look(self, handle: Handle, scheduled_ns: int) -> None:
        """Step a machine if its deadline has come; do nothing if its deadline was changed since
        this call was planned."""
        if handle.scheduled_ns != scheduled_ns:
            return
        handle.scheduled_ns = None
        if handle.deadline_ns is not None and handle.deadline_ns <= self._now_ns:
            self._queue(handle)
        else:
            self._schedule(handle)

    def _call_at(self, when_ns: int, function: Callable[..., None], *arguments: object) -> None:
        heapq.heappush(self._due, (when_ns, next(self._serial), function, arguments))

    def _call_after(self, wait_ms: float, function: Callable[..., None], *arguments: object) -> None:
        self._call_at(self._now_ns + ms_to_ns(wait_ms), function, *arguments)

    def _deliver(self, handle: Handle, event: Event) -> None:
        if handle.ended:
            return
        if self.trace is not None:
            self.trace(self._now_ns, handle, event)
        try:
            handle.machine.receive(event)
        except Exception as error:
            self._crash(handle, error)
            return
        self._queue(handle)

    def _queue(self, handle: Handle) -> None:
        if not handle.queued and not handle.ended:
            handle.queued = True
            if handle.busy_until_ns > self._now_ns:
                self._call_at(handle.busy_until_ns, self._resume, handle)
            else:
                self._to_step.append(handle)

    def _resume(self, handle: Handle) -> None:
        self._to_step.append(handle)

    def _crash(self, handle: Handle, error: Exception) -> None:
        crash(handle, error, self._end)
        if self._raise_errors:
            raise error

    def _end(self, handle: Handle) -> None:
        handle.ended = True
        self._handles.pop(handle, None)
        self.network.release(handle)

    def _write(self, handle: Handle, effect: Write) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            end.write(effect.buffers)

    def _hold(self, handle: Handle, effect: Hold) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            end.hold(effect.held)

    def _fill(self, handle: Handle, effect: Fill) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            end.room = effect.room

    def _authenticate(self, handle: Handle, effect: Authenticate) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            authenticate(handle, end, effect, self._deliver, _at_once)

    def _await_sent(self, handle: Handle, effect: AwaitSent) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            end.await_sent(effect.position)

    def _close_link(self, handle: Handle, effect: Close) -> None:
        end = handle.links.get(effect.connection)
        if end is not None:
            end.close()


def _at_once(work: Callable[[], None], done: Callable[[], None]) -> None:
    """Do `work` at once and call `done`: an `Aside` that takes no virtual time."""
    work()
    done()
