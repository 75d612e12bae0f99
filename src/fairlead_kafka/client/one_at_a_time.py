"""`OneAtATime`: lets one of several calls of a client run at a time; and closing, of which one runs
as well."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import GeneratorType
from typing import Protocol, TypeVar, cast

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.client.hosting import Steps

T = TypeVar("T")


class CallUnderWay(UsageError):
    """Another call runs that this one may not run beside."""


class CloseUnderWay(UsageError):
    """Another thread or task closes the client already."""


class OneAtATime:
    """Lets one of several steps run at a time. `refusal` makes the error for others meanwhile.

    They run until they end, however they do. So there is no lock that must be released, which
    Ctrl-C could prevent.
    """

    def __init__(self, refusal: Callable[[], UsageError]) -> None:
        self._refusal = refusal
        self._steps: dict[GeneratorType[object, object, object], None] = {}
        """Steps that have ended, that run, and that are to run, in this order."""

    def run(self, steps: Steps[T]) -> Steps[T]:
        """Drive `steps`; the refusal is raised while others are driven."""
        mine = cast("GeneratorType[object, object, object]", steps)
        try:
            self._steps[mine] = None
            for other in list(self._steps):
                if other is mine:
                    break
                if other.gi_frame is not None:
                    raise self._refusal()
                self._steps.pop(other, None)  # it has ended
            return (yield from steps)
        except BaseException:  # not at a result: between that and the caller nothing is called
            steps.close()
            raise


class Closing(Protocol):
    """The calls of a client, as far as they end it."""

    def close(self) -> Steps[None]:
        """Shut the machine; CloseUnderWay while other steps of this method are driven."""

    def end(self) -> None:
        """Stop the host."""


def closes() -> OneAtATime:
    """Runs the steps that close a client, once at a time."""
    return OneAtATime(lambda: CloseUnderWay("another thread or task closes this client"))


def close_blocking(calls: Closing, run: Callable[[Steps[None]], None]) -> None:
    """Close a client, by steps that `run` drives, and stop its host; do nothing while another
    thread does that."""
    first = True
    try:
        run(calls.close())
    except CloseUnderWay:
        first = False
    finally:
        if first:
            calls.end()


async def close_async(calls: Closing, run: Callable[[Steps[None]], Awaitable[None]]) -> None:
    """As `close_blocking`, on the running event loop."""
    import asyncio

    first = True
    try:
        await run(calls.close())
    except CloseUnderWay:
        first = False
    finally:
        if first:
            await asyncio.get_running_loop().run_in_executor(None, calls.end)
