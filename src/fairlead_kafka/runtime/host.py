"""The selector host: many machines on one daemon thread, with real sockets, files and time."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import socket
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.limits import ITERATION_READ_MAX_BYTES
from fairlead_kafka.base.units import NS_PER_S, ms_to_ns, s_to_ns
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
from fairlead_kafka.core.events import Accepted, Event, Submitted
from fairlead_kafka.core.machine import Machine
from fairlead_kafka.runtime.at_exit import close_at_exit
from fairlead_kafka.runtime.authenticating import authenticate, on_a_thread
from fairlead_kafka.runtime.clock import monotonic_ns, wall_ms
from fairlead_kafka.runtime.completion import Completion
from fairlead_kafka.runtime.disk import Disk
from fairlead_kafka.runtime.handle import Handle, call, crash, leave, refuse, resolve
from fairlead_kafka.runtime.linking import new_accepted_link, new_link
from fairlead_kafka.runtime.listener import hold_listener, listen, stop_listening
from fairlead_kafka.runtime.precise_selector import PreciseSelector
from fairlead_kafka.runtime.resolver import Resolver
from fairlead_kafka.runtime.sockets import RECEIVE_SMALL_BYTES, Link
from fairlead_kafka.runtime.waker import Waker

if TYPE_CHECKING:
    from fairlead_kafka.runtime.transport import Transport

ADVANCE_S = 60.0
"""How long `advance` waits for the loop's next two turns before it takes it to be ended."""
SLEEP_MAX_S = 3_600.0
"""Longest sleep of a loop that has nothing to do: `epoll` takes no more than 2**31 ms."""
SWEEP_MIN = 64
"""Times entered at least before those that count no more are taken out."""

_log = GuardedLogger("fairlead_kafka.runtime")


class SelectorHost:
    """Runs machines. `start`, `add`, `remove`, `submit`, `wake` and `close` may be called from any
    thread; the rest is the loop's.

    A machine that raises is logged and ended; the others go on. After `os.fork` the child must make
    a host of its own: using this one raises UsageError there. A host that is still open at the end
    of the process is closed then.
    """

    def __init__(self, name: str = "fairlead") -> None:
        self.name = name
        self._process = os.getpid()
        self._ahead_ns = self._ahead_ms = 0
        """How far what machines see is ahead of the clocks."""
        self._handles: dict[Handle, None] = {}
        self._due: list[tuple[int, int, Handle | Callable[[], None]]] = []
        self._serial = itertools.count()
        self._sweep_at = SWEEP_MIN
        self._to_step: list[Handle] = []
        self._touched: dict[Link, None] = {}
        self._parting: dict[Link, None] = {}  # closed by their machines, still sending
        self._inbox: deque[tuple[Handle, object] | tuple[None, Callable[[], None]]] = deque()
        self._asleep = False
        self._lock = threading.Lock()
        self._stopping = self._closed = self._shutting = False
        self._stop_by_ns = 0
        self.readable_bytes = ITERATION_READ_MAX_BYTES
        """Bytes that may still be read in this turn, from all connections."""
        self.scratch = memoryview(bytearray(RECEIVE_SMALL_BYTES))
        """Memory that links receive into, one after another."""
        self._first = 0
        self._selector = PreciseSelector()
        self._waker = Waker(self._selector)
        self._resolver = Resolver(self._post)
        self._aside = on_a_thread(self._post)
        self._login = partial(authenticate, deliver=self.deliver, aside=self._aside)
        self._disk = Disk(
            self.deliver,
            self._post,
            lambda wait_ns, function: self.call_at(self.now_ns() + wait_ns, function),
        )
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._carriers: dict[type, Callable[[Handle, Any], None]] = {
            Write: lambda handle, effect: self._on_link(
                handle, effect.connection, lambda link: link.write(effect.buffers)
            ),
            Resolve: lambda _handle, effect: resolve(effect),
            Call: lambda _handle, effect: call(effect),
            Connect: self._connect,
            Close: self._close,
            Hold: lambda handle, effect: self._on_link(
                handle, effect.connection, lambda link: link.hold(effect.held)
            ),
            Fill: lambda handle, effect: self._on_link(
                handle, effect.connection, lambda link: link.fill(effect.room)
            ),
            Authenticate: lambda handle, effect: self._on_link(
                handle, effect.connection, lambda link: self._login(handle, link, effect)
            ),
            AwaitSent: lambda handle, effect: self._on_link(
                handle, effect.connection, lambda link: link.await_sent(effect.position)
            ),
            Listen: self._listen,
            StopListening: stop_listening,
            HoldListener: hold_listener,
        }

    # From any thread

    def now_ns(self) -> int:
        """The monotonic clock that machines see."""
        return monotonic_ns() + self._ahead_ns

    def now_ms(self) -> int:
        """The time of day that machines see, in ms since 1970."""
        return wall_ms() + self._ahead_ms

    def advance(self, milliseconds: int) -> None:
        """Move the time that all machines see forward by `milliseconds`, and step them; returns
        when that is done. Waits for sockets, and the time-out of `close`, still go by the real
        clocks. UsageError on the loop's own thread, and once it is closed."""
        self._check()
        if self.is_current_thread():
            raise UsageError("a host's clock is moved from other threads than its own")
        done: Completion[None] = Completion()

        def move() -> None:
            self._ahead_ns += ms_to_ns(milliseconds)
            self._ahead_ms += milliseconds
            for handle in self._handles:
                self._queue(handle)
            self._post(lambda: done.set_result(None))  # in the next turn, after their steps

        self._post(move)
        done.result(ADVANCE_S)

    def is_current_thread(self) -> bool:
        """True on the loop's own thread, where callbacks run."""
        return self._thread is threading.current_thread()

    def is_forked(self) -> bool:
        """True in a process that was forked away from the one that made this host; the host's
        thread does not run there."""
        return os.getpid() != self._process

    def start(self) -> None:
        """Start the thread, which steps machines that were added, and delivers operations that were
        submitted, before. Call it once only. UsageError if the host was started before."""
        with self._lock:
            self._check()
            if self._thread.ident is not None:
                raise UsageError(f"host {self.name!r} was started before")
            close_at_exit(self)
            self._thread.start()

    def add(self, machine: Machine, transport: Transport | None = None) -> Handle:
        """Run `machine`, which is stepped at once. `transport`: how its connections are secured."""
        self._check()
        handle = Handle(machine, transport)
        self._post(lambda: self._add(handle))
        return handle

    def remove(self, handle: Handle) -> None:
        """Stop running a machine, and close its connections and listeners at once.

        Operations that it has not answered are left to the caller.
        """
        self._check()
        self._post(lambda: self._end(handle))

    def submit(self, handle: Handle, operation: object) -> None:
        """Deliver `events.Submitted(operation)`; if the machine has ended, fail
        `operation.completion`. UsageError once closed."""
        if self._closed or os.getpid() != self._process:
            self._check()
        self._inbox.append((handle, operation))
        if self._asleep:
            self._interrupt()
        if self._shutting:
            self._refuse_inbox()  # it came too late for the loop to see

    def wake(self, handle: Handle) -> None:
        """Step a machine soon, because something that it looks at in `step` has changed."""
        self._post(lambda: self._queue(handle))

    def close(self, timeout_s: float = 5.0) -> None:
        """End all machines and the thread, waiting for at most `timeout_s` seconds; connections
        that are being drained have that time too. Idempotent."""
        with self._lock:
            first = not self._closed
            self._closed = True
        if os.getpid() != self._process:
            return  # the thread was left behind in the parent
        if first:
            self._stop_by_ns = monotonic_ns() + s_to_ns(timeout_s)
            self._stopping = True
            if self._thread.ident is None:
                self._shut()
                return
            self._interrupt()
        if self._thread is not threading.current_thread():
            self._thread.join(max(timeout_s, 0))

    def _check(self) -> None:
        if os.getpid() != self._process:
            raise UsageError(
                f"host {self.name!r} belongs to another process (it was forked away): make a new one in this "
                "process"
            )
        if self._closed:
            raise UsageError(f"host {self.name!r} is closed")

    def _post(self, function: Callable[[], None]) -> None:
        self._inbox.append((None, function))
        if self._asleep:
            self._interrupt()

    def _interrupt(self) -> None:
        # One byte is enough however many wait: the loop looks through the whole inbox before it
        # sleeps again.
        try:
            self._asleep = False
            self._waker.wake()
        except OSError:
            pass  # full, so it will wake; or closed
        except BaseException:
            self._asleep = True  # Ctrl-C came in between: the next one has to send
            raise

    # The loop

    def _run(self) -> None:
        try:
            while not self._stopping:
                self._iterate(self._patience_s())
            while any(link.sending for link in self._parting) and monotonic_ns() < self._stop_by_ns:
                self._iterate(0.01)
        except Exception:
            _log.critical("host %r failed and is closed", self.name, exc_info=True)
        finally:
            self._closed = True
            self._shut()

    def _patience_s(self) -> float | None:
        self._asleep = True
        if self._inbox or self._to_step or self._stopping:
            self._asleep = False
            return 0
        if not self._due:
            return None
        due_s = (self._due[0][0] - self._ahead_ns - monotonic_ns()) / NS_PER_S
        return min(max(0.0, due_s), SLEEP_MAX_S)

    def _iterate(self, patience_s: float | None) -> None:
        ready = self._selector.select(patience_s)
        self._asleep = False
        if self.readable_bytes <= 0:  # connections that came too late to be read begin sooner now
            self._first += 1
            first = self._first % len(ready) if ready else 0
            ready = ready[first:] + ready[:first]
        self.readable_bytes = ITERATION_READ_MAX_BYTES
        for key, mask in ready:
            key.data(mask)
        self._empty_inbox()
        now_ns = monotonic_ns() + self._ahead_ns
        due = self._due
        while due and due[0][0] <= now_ns:
            when_ns, _serial, target = heapq.heappop(due)
            if not isinstance(target, Handle):
                target()
            elif when_ns == target.scheduled_ns:
                target.scheduled_ns = None
                if target.deadline_ns is not None and target.deadline_ns <= now_ns:
                    self._queue(target)
                else:
                    self._schedule(target)
        to_step, self._to_step = self._to_step, []
        for handle in to_step:
            self._step(handle)

    def _empty_inbox(self) -> None:
        # What is put in meanwhile waits for the next turn, so that a busy submitter cannot keep the
        # loop here.
        for _ in range(len(self._inbox)):
            item = self._inbox.popleft()
            if item[0] is None:
                item[1]()
            elif item[0].ended:
                refuse(*item)
            else:
                self.deliver(item[0], Submitted(item[1]))

    def deliver(self, handle: Handle, event: Event) -> None:
        """Give an event to a machine and have it stepped."""
        if handle.ended:
            return
        try:
            handle.machine.receive(event)
        except Exception as error:
            crash(handle, error, self._end)
            return
        if not handle.queued:
            handle.queued = True
            self._to_step.append(handle)

    def _queue(self, handle: Handle) -> None:
        if not handle.queued and not handle.ended:
            handle.queued = True
            self._to_step.append(handle)

    def _step(self, handle: Handle) -> None:
        handle.queued = False
        if handle.ended:
            return
        machine = handle.machine
        try:
            effects = machine.step(monotonic_ns() + self._ahead_ns, wall_ms() + self._ahead_ms)
            handle.deadline_ns = machine.deadline_ns()
            if effects:
                self._carry_out(handle, effects)
        except Exception as error:
            crash(handle, error, self._end)
            return
        self._schedule(handle)

    def _schedule(self, handle: Handle) -> None:
        # A deadline that moves away needs no new entry: the loop looks again when the old one comes
        # up.
        deadline_ns = handle.deadline_ns
        if (
            deadline_ns is None
            or handle.ended
            or (handle.scheduled_ns is not None and handle.scheduled_ns <= deadline_ns)
        ):
            return
        handle.scheduled_ns = deadline_ns
        self._enter(deadline_ns, handle)

    def _carry_out(self, handle: Handle, effects: Sequence[Effect]) -> None:
        carriers = self._carriers
        for effect in effects:
            carrier = carriers.get(type(effect))
            if carrier is not None:
                carrier(handle, effect)
            else:
                self._disk.carry_out(handle, cast(FileEffect, effect))
        # One flush per connection and step: the frames of a step leave in one system call.
        if self._touched:
            touched, self._touched = self._touched, {}
            for link in touched:
                link.flush()

    def call_at(self, when_ns: int, function: Callable[[], None]) -> None:
        """Call `function` once, at `when_ns` on the monotonic clock."""
        self._enter(when_ns, function)

    def _enter(self, when_ns: int, target: Handle | Callable[[], None]) -> None:
        """Enter a time at which to step a machine or call a function. Entries that do not count any
        more are removed once there may be as many of them as of others.

        A machine whose deadline comes nearer leaves an entry with the farther one behind, and a
        machine that has ended leaves its last: minutes away, and as many as there were steps or
        clients.
        """
        due = self._due
        if len(due) >= self._sweep_at:
            due[:] = [
                entry
                for entry in due
                if not isinstance(entry[2], Handle)
                or (entry[2].scheduled_ns == entry[0] and not entry[2].ended)
            ]
            heapq.heapify(due)
            self._sweep_at = max(2 * len(due), SWEEP_MIN)
        heapq.heappush(due, (when_ns, next(self._serial), target))

    def watch(self, sock: socket.socket, mask: int, watched: int, ready: Callable[[int], None]) -> None:
        """Have `ready` called when `sock` is ready for `mask` (0: never); `watched` is the mask so
        far."""
        if mask and watched:
            self._selector.modify(sock, mask, ready)
        elif mask:
            self._selector.register(sock, mask, ready)
        elif watched:
            self._selector.unregister(sock)

    # Effects

    def _connect(self, handle: Handle, effect: Connect) -> None:
        if handle.ended:
            return
        link = handle.links[effect.connection] = new_link(self, handle, effect, self._aside)
        self._resolver.resolve(effect.host, effect.port, link.connect)

    def _close(self, handle: Handle, effect: Close) -> None:
        link = handle.links.get(effect.connection)
        if link is not None:
            link.close(effect.drain)
            if link.parting:
                self._parting[link] = None

    def _on_link(self, handle: Handle, connection: int, function: Callable[[Link], None]) -> None:
        link = handle.links.get(connection)
        if link is not None:  # else it was lost, and the machine will hear of that
            function(link)
            self._touched[link] = None

    def parted(self, link: Link) -> None:
        """Called when a link's socket was closed."""
        self._parting.pop(link, None)

    def _listen(self, handle: Handle, effect: Listen) -> None:
        if handle.ended:
            return

        def accept(sock: socket.socket, peer: str) -> None:
            number = handle.next_accepted()
            link = handle.links[number] = new_accepted_link(self, handle, number, effect.listener, peer)
            self.deliver(handle, Accepted(number, effect.listener, peer))
            link.accepted(sock)

        listen(self, handle, effect, accept)

    # Beginnings and ends

    def _add(self, handle: Handle) -> None:
        self._handles[handle] = None
        self._queue(handle)

    def _end(self, handle: Handle) -> None:
        """End a machine: no event reaches it any more, and its connections and listeners close."""
        handle.ended = True
        self._handles.pop(handle, None)
        for link in list(handle.links.values()):
            link.close(drain=False)
        for listener in handle.listeners.values():
            listener.close()
        handle.listeners.clear()
        self._disk.forget(handle)

    def _refuse_inbox(self) -> None:
        with contextlib.suppress(IndexError):  # a late submitter may be doing the same
            while True:
                handle, item = self._inbox.popleft()
                if handle is not None:
                    refuse(handle, item)

    def _shut(self) -> None:
        """End the loop: tell the machines, fail operations that never reached them, and close
        everything."""
        error = UsageError(f"host {self.name!r} was closed")
        for handle in list(self._handles):
            leave(handle, error, self._end)
        self._shutting = True
        self._refuse_inbox()
        for link in list(self._parting):
            link.abandon()
        self._disk.close()
        self._selector.close()
        self._waker.close()
