"""A hosted machine: the state that both hosts keep of it, and handling of its exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.core.effects import Call, Resolve
from fairlead_kafka.core.machine import Machine

if TYPE_CHECKING:  # it needs ssl, which most programs never load
    from fairlead_kafka.runtime.transport import Transport

T = TypeVar("T")
_log = GuardedLogger("fairlead_kafka.runtime")


class Host(Protocol):
    """The host of machines, as client APIs and launchers see it: a `SelectorHost` or a
    `VirtualHost`."""

    def add(self, machine: Machine, transport: Transport | None = None) -> Handle:
        """Run `machine`, which is stepped at once. `transport`: how its connections are secured."""

    def remove(self, handle: Handle) -> None:
        """Stop running a machine, and close its connections and listeners."""

    def submit(self, handle: Handle, operation: object) -> None:
        """Deliver `events.Submitted(operation)` to a machine."""

    def wake(self, handle: Handle) -> None:
        """Step a machine soon, because something that it looks at in `step` has changed."""

    def now_ns(self) -> int:
        """The monotonic clock that machines see."""

    def now_ms(self) -> int:
        """The time of day that machines see, in ms since 1970."""

    def close(self, timeout_s: float = 5.0) -> None:
        """End all machines, within `timeout_s` seconds. Idempotent."""


class Handle:
    """A machine on a host. Opaque to its holder, but for `machine` and `error`."""

    def __init__(self, machine: Machine, transport: Transport | None = None) -> None:
        self.machine = machine
        self.transport = transport
        """How its connections are secured; None: they are not."""
        self.error: Exception | None = None
        """The exception that the machine raised; it is not stepped any more. None: it has not."""
        self.ended = False
        """Removed, crashed, or its host closed: nothing reaches the machine any more."""
        self.queued = False
        self.deadline_ns: int | None = None
        """When the machine wants to be stepped; None: not until an event."""
        self.scheduled_ns: int | None = None
        """When its host looks at the deadline again."""
        self.last_accepted = 0
        self.work_ns: Callable[[], int] | None = None
        """On the virtual host: asked after each step how long it took (see `VirtualHost`). None: no
        time."""
        self.busy_until_ns = 0
        """When its last step ends, on the virtual host's clock."""
        self.links: dict[int, Any] = {}
        self.listeners: dict[int, Any] = {}

    def next_accepted(self) -> int:
        """The number for the next accepted connection: -1, -2, ..."""
        self.last_accepted -= 1
        return self.last_accepted

    def __repr__(self) -> str:
        return f"<Handle {type(self.machine).__name__}>"


def resolve(effect: Resolve[T]) -> None:
    """Complete an operation, as `effect` says; an exception of a callback that this calls is
    logged, not raised."""
    try:
        if effect.error is not None:
            effect.completion.set_error(effect.error)
        else:
            effect.completion.set_result(cast("T", effect.value))  # None only where that is the result
    except Exception:
        _log.error("an operation could not be answered", exc_info=True)


def call(effect: Call) -> None:
    """Run a user's callback; what it raises is logged, not passed on."""
    try:
        effect.function(*effect.arguments)
    except (
        BaseException
    ):  # asyncio's CancelledError or a SystemExit is no reason to end the loop of everyone else
        _log.error("a callback raised", exc_info=True)


def crash(handle: Handle, error: Exception, release: Callable[[Handle], None]) -> None:
    """End a machine that raised `error`: log it, give back its connections and files (`release`),
    and fail its operations (`give_up`)."""
    _log.error("%s raised and is ended; its connections are closed", handle, exc_info=error)
    handle.error = error
    leave(handle, error, release)


def leave(handle: Handle, error: Exception, release: Callable[[Handle], None]) -> None:
    """Give back a machine's connections and files by `release`, and fail its operations (`give_up`)
    also if that raises."""
    handle.ended = True
    try:
        release(handle)
    except Exception:
        _log.error("what %s held could not be given back", handle, exc_info=True)
    finally:
        give_up(handle, error)


def give_up(handle: Handle, error: Exception) -> None:
    """Tell a machine that it will not be stepped again, by its optional `crashed(error)`.

    Of the effects that it returns, Resolve and Call are carried out, so that it can fail operations
    that callers still wait for.
    """
    crashed = getattr(handle.machine, "crashed", None)
    if crashed is None:
        return
    try:
        effects = crashed(error) or ()
    except Exception:
        _log.error("%s raised again while it was told that it had ended", handle, exc_info=True)
        return
    for effect in effects:
        if isinstance(effect, Resolve):
            resolve(effect)
        elif isinstance(effect, Call):
            call(effect)


def refuse(handle: Handle, operation: object) -> None:
    """Fail an operation that came after its machine's end with UsageError, if it carries a
    completion."""
    completion = getattr(operation, "completion", None)
    if completion is not None and hasattr(completion, "set_error"):
        why = f"it failed earlier: {handle.error!r}" if handle.error is not None else "it is closed"
        error = UsageError(f"{type(handle.machine).__name__} takes no operations any more, {why}")
        resolve(Resolve(completion, None, error))
