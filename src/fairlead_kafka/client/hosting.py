"""Hosting of a machine: one selector loop on a thread of its own per client, and shared waits.

A client class never touches its machine's state: it submits operations, each with a `Completion`
that the machine answers. A blocking class waits on the completion, an async class awaits it; what
happens in between is written once, as a generator that yields `Wait`s (`Steps`), and driven by
`run_blocking` or `run_async`. So the two client APIs cannot drift.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from dataclasses import dataclass
from threading import Thread
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeAlias, TypeVar, cast, runtime_checkable
from uuid import UUID
from weakref import finalize

from fairlead_kafka.base.config import Settings
from fairlead_kafka.base.errors import TimedOut, UsageError
from fairlead_kafka.base.units import s_to_ns
from fairlead_kafka.core import AwaitConnection
from fairlead_kafka.core.machine import Machine, Rng
from fairlead_kafka.core.pushing import GetInstanceId
from fairlead_kafka.runtime import Completion, SelectorHost, system_rng, wrap_async

if TYPE_CHECKING:
    import asyncio

    from fairlead_kafka.runtime.transport import Transport

FIRST_CONNECTION: Final = "bootstrap.connection.timeout.ms"
INSIDE = (
    "this call waits for the client, and was made on the client's own thread, by a callback or a log "
    "handler: make it on another thread (a log handler: behind a logging.handlers.QueueHandler)"
)
"""Text of the error of a call that would wait for itself."""
LONGEST_S = 10.0**6
"""Longest time-out, seconds (eleven days), so that its nanoseconds stay a small number."""
M = TypeVar("M", bound=Machine)
M_co = TypeVar("M_co", bound=Machine, covariant=True)
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


class Submitting(Protocol):
    """Takes operations for a machine."""

    def submit(self, operation: object) -> None:
        """Deliver `events.Submitted(operation)` to the machine. UsageError once the machine has
        ended."""


class Connecting(Submitting, Protocol):
    """A host, as far as a wait for the first connection needs it: it submits the wait and has the
    clock."""

    reached: bool
    """True once a wait for the first connection has succeeded."""

    def now_ns(self) -> int:
        """The machine's monotonic clock, ns."""


class Waiting(Protocol):
    """How a caller's thread, or its event loop, waits for a completion."""

    def wait(self, completion: Completion[T], timeout_s: float | None) -> T:
        """The result of `completion`, waited for. Raises the completion's error, or TimedOut after
        `timeout_s` seconds (None: no limit)."""

    def future(self, completion: Completion[T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
        """A future of `loop` that follows `completion`."""


class Closer(Protocol):
    """Work on a thread of its own that ends a machine's thread."""

    def start(self) -> None:
        """Begin the work. RuntimeError if the interpreter starts no threads any more."""

    def join(self) -> None:
        """Wait for the end of the work. RuntimeError if it was not started."""


class Host(Connecting, Waiting, Protocol[M_co]):
    """All that a client class needs of what runs its machine: clock, thread and waits.

    `Hosted` is the one of production. One in virtual time lets its time go on in `wait`.
    """

    @property
    def machine(self) -> M_co:
        """The machine; only for what may be read from another thread."""

    @property
    def inside(self) -> bool:
        """True on the machine's own thread, where a wait for the machine would never end."""

    @property
    def forked(self) -> bool:
        """True in a forked child process: the machine runs in the parent, which closes it."""

    @property
    def unattended(self) -> bool:
        """True if the machine works on while nobody waits, so that the interpreter's end must end
        it."""

    def now_ms(self) -> int:
        """The machine's time of day, ms since 1970."""

    def closer(self, work: Callable[[], None], name: str) -> Closer:
        """The function `work`, which calls `close`, as a Closer. It may be started from any thread,
        the machine's too."""

    def close(self, timeout_s: float | None = None) -> None:
        """End the machine, waiting for `timeout_s` seconds at most (None: a default)."""


@runtime_checkable
class Opener(Protocol):
    """Makes a machine, with an rng, and runs it on a host: `open_host`, or a test's own."""

    def __call__(self, machine_factory: Callable[[Rng], M], settings: Settings, name: str) -> Host[M]:
        """Make the machine and run it on a host. Connections are secured as `settings` say; `name`
        is the thread's. ConfigError if that cannot work."""


class Hosted(Generic[M]):
    """A machine on a host of its own. `submit` may be called from any thread; `close` ends the
    thread."""

    def __init__(self, machine: M, name: str, transport: Transport | None = None) -> None:
        self.machine = machine
        self.reached = False
        """True once a wait for the first connection has succeeded."""
        self._host = SelectorHost(name)
        self._host.start()
        self._handle = self._host.add(machine, transport)
        self.now_ns: Callable[[], int] = self._host.now_ns
        """The machine's monotonic clock, ns."""

    def submit(self, operation: object) -> None:
        """Deliver `events.Submitted(operation)` to the machine and wake its thread."""
        self._host.submit(self._handle, operation)

    @property
    def inside(self) -> bool:
        """True on the host's own thread, where a wait for the machine would never end."""
        return self._host.is_current_thread()

    @property
    def forked(self) -> bool:
        """True in a forked child process: the machine runs in the parent, which closes it."""
        return self._host.is_forked()

    @property
    def unattended(self) -> bool:
        """True: the machine's thread runs by itself, also while no caller waits."""
        return True

    def wait(self, completion: Completion[T], timeout_s: float | None) -> T:
        """The result of `completion`, waited for on this thread for `timeout_s` seconds at most;
        see `Completion.result`.

        UsageError on the host's own thread, which would wait for itself.
        """
        if not completion.done() and self.inside:
            raise UsageError(INSIDE)
        return completion.result(timeout_s)

    def future(self, completion: Completion[T], loop: asyncio.AbstractEventLoop) -> asyncio.Future[T]:
        """A future of `loop` that follows `completion`."""
        return wrap_async(completion, loop)

    def closer(self, work: Callable[[], None], name: str) -> Thread:
        """A daemon thread that runs `work`, which calls `close`."""
        return Thread(target=work, name=name, daemon=True)

    def now_ms(self) -> int:
        """The machine's time of day, ms since 1970."""
        return self._host.now_ms()

    def close(self, timeout_s: float | None = None) -> None:
        """Stop the thread, and close its connections and files. Waits for the thread's end for
        `timeout_s` seconds at most (None: 5)."""
        self._host.close(5.0 if timeout_s is None else timeout_s)


def closed(client: str) -> UsageError:
    """The error that every call of a closed client raises."""
    return UsageError(f"this {client} is closed; make a new one")


def forked_away(client: str) -> UsageError:
    """The error that every call of a client raises in a process that was forked away from its
    own."""
    return UsageError(
        f"this {client} belongs to another process (it was forked away); make a new one in this process"
    )


def end_with(client: object, abandon: Callable[[], None]) -> None:
    """Call `abandon` when the client object is dropped, so that the thread of an unclosed one ends.

    The garbage collector calls it, on any thread and in the middle of anything: it must take no
    lock, wait for nothing, and not refer to the client object.
    """
    finalize(client, abandon).atexit = False  # the interpreter's end is the hosts' own affair


def abandon(
    hosted: Submitting, end: Callable[[], None], *operations: Callable[[Completion[object]], object]
) -> None:
    """Submit operations one after the other, whatever each is answered, then call `end`. Returns
    without waiting for them.

    `end` is called on the machine's thread, or, without operations, at once.
    """
    if not operations:
        end()
        return
    completion: Completion[object] = Completion()
    completion.add_done_callback(lambda _: abandon(hosted, end, *operations[1:]))
    with suppress(UsageError):  # the thread has ended already
        hosted.submit(operations[0](completion))


def open_host(machine_factory: Callable[[Rng], M], settings: Settings, name: str = "fairlead") -> Hosted[M]:
    """Make a machine, with the system's rng, and run it on a new host.

    Connections are secured as `settings` say. ConfigError if that cannot work.
    """
    transport: Transport | None = None
    if settings["security.protocol"] != "PLAINTEXT":
        from fairlead_kafka.security import client_transport  # most programs never need it

        transport = client_transport(settings)
    return Hosted(machine_factory(system_rng()), name, transport)


@dataclass(slots=True)
class Wait(Generic[T_co]):
    """One wait in the steps of a call, for a completion whose result is a `T_co`.

    `timeout_s` seconds, None: without limit. On a time-out `on_timeout` returns the error to raise,
    or None to go on with None as result; without `on_timeout` a TimeoutError is raised.
    """

    completion: Completion[T_co]
    timeout_s: float | None = None
    on_timeout: Callable[[], Exception | None] | None = None


Steps: TypeAlias = Generator[Wait[object], object, T]
"""Steps of a call: yields what to wait for, is sent the results, returns the answer."""


def wait_for(completion: Completion[T]) -> Steps[T]:
    """The result of `completion`, waited for without limit. `yield from` this in steps."""
    wait = Wait(completion)
    result = yield wait
    # The answer to a wait is its completion's result, which type checkers cannot see: a generator
    # is sent one type of value.
    return cast("T", result)


def wait_until(
    completion: Completion[T],
    timeout_s: float | None,
    on_timeout: Callable[[], Exception | None] = lambda: None,
) -> Steps[T | None]:
    """The result of `completion`, or None after `timeout_s` seconds (None: without limit).

    An error that `on_timeout` returns is raised instead. `yield from` this in steps.
    """
    wait = Wait(completion, timeout_s, on_timeout)
    result = yield wait
    return cast("T | None", result)  # as in `wait_for`


def connect(hosted: Connecting, settings: Settings, timeout_s: float | None) -> Steps[None]:
    """Wait until a broker is reached; NoBrokerReached, naming what is wrong, after `timeout_s`
    seconds. None stands for `bootstrap.connection.timeout.ms`."""
    if not hosted.reached:
        seconds = settings[FIRST_CONNECTION] / 1000 if timeout_s is None else min(timeout_s, LONGEST_S)
        deadline_ns = hosted.now_ns() + s_to_ns(seconds)
        completion: Completion[None] = Completion()
        hosted.submit(AwaitConnection(completion, deadline_ns))
        yield from wait_for(completion)
        hosted.reached = True


def instance_id(hosted: Connecting, timeout_s: float) -> Steps[UUID]:
    """The id under which this client pushes metrics (KIP-714), once a broker gave it.

    TimedOut after `timeout_s` seconds; UsageError where `enable.metrics.push` is false.
    """
    deadline_ns = hosted.now_ns() + s_to_ns(min(timeout_s, LONGEST_S))
    completion: Completion[UUID] = Completion()
    hosted.submit(GetInstanceId(completion, deadline_ns))
    return (yield from wait_for(completion))


def connect_first(
    hosted: Connecting, settings: Settings, timeout_s: float | None, default: str
) -> Steps[None]:
    """Wait for the client's first connection, if `timeout_s` is None and no broker was ever
    reached.

    NoBrokerReached after `bootstrap.connection.timeout.ms`, or after the config `default` if that
    is shorter. So a call without a time-out does not wait out its default one to no purpose.
    """
    if timeout_s is None and not hosted.reached:
        yield from connect(
            hosted, settings, min(settings.integer(default), settings[FIRST_CONNECTION]) / 1000
        )


def run_blocking(steps: Steps[T], waiting: Waiting | None = None) -> T:
    """Drive `steps` on the calling thread, and return their result. `waiting` is how it waits for
    completions: the host; None: each completion by itself.

    KeyboardInterrupt is raised at once, and ends the steps. Once they return, nothing is called
    any more that Ctrl-C could end: the caller has their result.
    """
    try:
        wait = next(steps)
        while True:
            try:
                value = (
                    wait.completion.result(wait.timeout_s)
                    if waiting is None
                    else waiting.wait(wait.completion, wait.timeout_s)
                )
            except TimedOut as error:
                if wait.completion.done():  # the answer itself is a time-out
                    wait = steps.throw(error)
                else:
                    wait = _after_timeout(steps, wait, error)
            except Exception as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except BaseException:
        steps.close()
        raise


async def run_async(steps: Steps[T], waiting: Waiting | None = None) -> T:
    """Drive `steps` on the running event loop, and return their result; `waiting`: as in
    `run_blocking`.

    Cancelling the task ends the steps.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    try:
        wait = next(steps)
        while True:
            future = (
                wrap_async(wait.completion, loop)
                if waiting is None
                else waiting.future(wait.completion, loop)
            )
            try:
                async with asyncio.timeout(wait.timeout_s):  # wait_for of 3.11 may swallow a cancellation
                    value = await future
            except TimeoutError as error:
                if wait.completion.done() and isinstance(error, TimedOut):
                    wait = steps.throw(error)
                else:
                    wait = _after_timeout(steps, wait, error)
            except Exception as error:
                wait = steps.throw(error)
            else:
                wait = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    except BaseException:
        steps.close()
        raise


class Offload(Protocol):
    """Runs work on a thread, so that an event loop goes on: `offload`."""

    def __call__(self, work: Callable[[], T]) -> Completion[T]:
        """Begin `work` on a thread; the completion has its result, or its error."""


def offload(work: Callable[[], T]) -> Completion[T]:
    """Run `work` on the running loop's default executor; the completion has its result, or its
    error."""
    import asyncio

    completion: Completion[T] = Completion()

    def run() -> None:
        try:
            completion.set_result(work())
        except Exception as error:
            completion.set_error(error)
        except BaseException as error:  # no error that a call could raise, but the caller waits
            completion.set_error(UsageError(f"work on a thread ended in {error!r}"))

    asyncio.get_running_loop().run_in_executor(None, run)
    return completion


def _after_timeout(steps: Steps[T], wait: Wait[object], error: Exception) -> Wait[object]:
    instead = wait.on_timeout() if wait.on_timeout is not None else error
    return steps.send(None) if instead is None else steps.throw(instead)
