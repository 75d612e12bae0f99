"""The answer of one operation, for callers that wait on other threads, await it, or are called
back."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from threading import TIMEOUT_MAX, Lock
from typing import TYPE_CHECKING, Generic, TypeVar

from fairlead_kafka.base.errors import TimedOut
from fairlead_kafka.base.guarded_log import GuardedLogger

if TYPE_CHECKING:
    import asyncio

_log = GuardedLogger("fairlead_kafka.runtime")

T = TypeVar("T")
LISTENS_S = 1.0
"""Seconds of one wait at most: a signal that comes in the microseconds just before Python waits for
a lock is handled when that wait ends."""


class Completion(Generic[T]):
    """The result or error of one operation, set once, by `set_result` or `set_error`; later calls
    of these are ignored. All methods from any thread.

    It has no lock of its own: the setter marks it done and then takes waiters and callbacks off
    their lists one by one; a thread that adds one looks at the mark afterwards. So either the
    setter sees the new entry, or the thread sees the mark, and a list's `pop` gives each entry to
    one thread only.
    """

    __slots__ = ("_callbacks", "_done", "_error", "_value", "_waiters")

    def __init__(self) -> None:
        self._done = False
        self._value: T  # set before `_done`, unless there is an error
        self._error: Exception | None = None
        self._waiters: list[Lock] = []
        self._callbacks: list[Callable[[Completion[T]], object]] = []

    def set_result(self, value: T) -> None:
        """Complete the operation with its result."""
        if not self._done:
            self._value = value
            self._finish()

    def set_error(self, error: Exception) -> None:
        """Complete the operation with an error."""
        if not self._done:
            self._error = error
            self._finish()

    def done(self) -> bool:
        """True once there is a result or an error."""
        return self._done

    def result(self, timeout_s: float | None = None) -> T:
        """The result, waited for. Raises the error if the operation failed, TimedOut after
        `timeout_s` seconds (None: no limit). KeyboardInterrupt is raised within LISTENS_S seconds
        of Ctrl-C."""
        if not self._done:
            waiter = Lock()
            waiter.acquire()
            self._waiters.append(waiter)
            left_s = TIMEOUT_MAX if timeout_s is None else max(timeout_s, 0)
            while (
                not self._done and not waiter.acquire(timeout=min(left_s, LISTENS_S)) and left_s > LISTENS_S
            ):
                left_s -= LISTENS_S
            if not self._done:
                with suppress(ValueError):  # it is done this instant
                    self._waiters.remove(waiter)
                raise TimedOut(f"no answer within {timeout_s} s")
        if self._error is not None:
            raise self._error
        return self._value

    def error(self) -> Exception | None:
        """The error with which the operation failed; None: it is not done, or has a result."""
        return self._error

    def add_done_callback(self, function: Callable[[Completion[T]], object]) -> None:
        """Call `function(self)` once the completion is done: on the host's thread, or here and now
        if it is done already."""
        self._callbacks.append(function)
        if self._done:
            self._call_back()

    def remove_done_callback(self, function: Callable[[Completion[T]], object]) -> None:
        """Do not call `function`, which was added, unless it is being called already."""
        with suppress(ValueError):
            self._callbacks.remove(function)

    def _finish(self) -> None:
        self._done = True
        while self._waiters:
            self._waiters.pop().release()
        if self._callbacks:
            self._call_back()

    def _call_back(self) -> None:
        while True:
            try:
                function = self._callbacks.pop(0)
            except IndexError:
                return
            try:
                function(self)
            except KeyboardInterrupt:
                raise
            except BaseException:  # a SystemExit would end the loop of everyone else
                _log.error("a callback of a finished operation raised", exc_info=True)


def wrap_async(completion: Completion[T], loop: asyncio.AbstractEventLoop | None = None) -> asyncio.Future[T]:
    """A future of `loop` (None: the running one) that follows `completion`. Cancelling the future
    leaves the operation alone."""
    import asyncio

    running = loop or asyncio.get_running_loop()
    future: asyncio.Future[T] = running.create_future()

    def complete() -> None:
        if future.done():
            return
        error = completion.error()
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(completion.result(0))

    def pass_on(_completion: Completion[T]) -> None:
        try:
            running.call_soon_threadsafe(complete)
        except RuntimeError:
            _log.debug(
                "an operation finished after the event loop that waited for it was closed",
            )

    def forget(ended: asyncio.Future[T]) -> None:
        if ended.cancelled():  # else each wait that is given up would leave a callback
            completion.remove_done_callback(pass_on)

    if completion.done():
        complete()
    else:
        completion.add_done_callback(pass_on)
        future.add_done_callback(forget)
    return future
