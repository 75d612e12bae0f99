"""Owners of exceptions: the request, partition or task that fails if its code raises.

Almost all work of a broker is begun by a request of a client, a partition, or a periodic task. Much
of it continues later, on a timer, when a file was read or a write has reached its replicas, in a
step that serves others as well. So the beginner is kept as the *owner* of the work, and its
callbacks are bound to the owner: an exception that they raise fails only the owner. By kind of
owner:

    request                           its connection is closed; the client asks again
    partition                         offline on this broker until restarted (KAFKA_STORAGE_ERROR)
    shard of groups or transactions   it is read again from its log
    share partition                   its requests fail, and the next one begins it again
    stream of replicas, link          it is opened again
    compaction, rewriting of a file   what it is for is left as it is for an hour
    task                              it runs again at its next time
    decision of the controller        its asker is told UNKNOWN_SERVER_ERROR (`Controller`)

Every such exception is logged with its traceback, once a minute for each place in the code, and
counted in `errors`. SHARED names the parts that the whole broker depends on. After an exception
there the contents of the log, or the leaders, are in doubt, and no answer could be trusted: it ends
the broker (`SharedDamage`), which can be started again from its disk.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from functools import partial
from types import CodeType
from typing import Generic, Protocol, TypeVar

from fairlead_kafka.base.errors import BrokerError
from fairlead_kafka.base.guarded_log import GuardedLogger
from fairlead_kafka.base.limits import LOGGED_FAULTS_MAX
from fairlead_kafka.base.units import NS_PER_S

_logger = GuardedLogger("fairlead_kafka.broker")

SHARED = (
    "the writer of the log",
    "the checkpoints of the log",
    "the controller's state",
    "this broker's image of the cluster",
)
"""Names of the parts that all of a broker depends on, so that an exception in one ends it. `shared`
takes these and no others."""
LOG_AGAIN_NS = 60 * NS_PER_S
"""How long an exception from the same place in the code is counted without being logged again."""

F = TypeVar("F", bound=Callable[..., object])
P = TypeVar("P")


class SharedDamage(Exception):
    """Code marked as SHARED raised: the state that it keeps is in doubt, so the broker ends."""


_SHARED_CODE: dict[CodeType, str] = {}
"""The functions of what is shared, and its name."""


def shared(name: str) -> Callable[[F], F]:
    """Decorator: mark a function as part of `name` in SHARED: an exception out of it, other than a
    refusal (BrokerError), ends the broker. The function itself is unchanged: where an exception
    came from is looked up when there is one."""
    if name not in SHARED:
        raise AssertionError(f"{name!r} is not in SHARED")

    def mark(function: F) -> F:
        _SHARED_CODE[function.__code__] = name
        return function

    return mark


def damage_of(error: Exception) -> SharedDamage | None:
    """The SharedDamage that `error` means if shared code raised it; None if not, or if it is a
    refusal (BrokerError)."""
    if isinstance(error, SharedDamage):
        return error
    if isinstance(error, BrokerError):
        return None
    frame = error.__traceback__
    while frame is not None:
        name = _SHARED_CODE.get(frame.tb_frame.f_code)
        if name is not None:
            return SharedDamage(f"{name}: {error!r}")
        frame = frame.tb_next
    return None


class Owner(Protocol):
    """An object for which work is done, and which is called when that raises."""

    def failed(self, error: Exception) -> None:
        """Called when work for this owner raised `error`."""


class Task:
    """The owner of work that a broker does regularly by itself: after an exception, it is done
    again at its next time."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __str__(self) -> str:
        return self.name

    def failed(self, error: Exception) -> None:
        """Do nothing more: the exception was logged and counted."""


class PartitionOwner(Generic[P]):
    """The owner of work for a partition: if that raises, the partition goes offline."""

    __slots__ = ("_offline", "_partition")

    def __init__(self, partition: P, offline: Callable[[P], None]) -> None:
        self._partition = partition
        self._offline = offline

    def __str__(self) -> str:
        return str(self._partition)

    def failed(self, _error: Exception) -> None:
        """Take the partition offline, until the broker is started again."""
        self._offline(self._partition)


class Guard:
    """Calls functions in the name of the owner of their work, so that an exception is the owner's.
    A broker has one."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.owner: Owner | None = None
        """The owner that the broker works for just now; None: itself."""
        self.errors = 0
        """How many exceptions were counted (the metric `broker.errors`)."""
        self.now_ns = 0
        self._logged: dict[str, int] = {}

    def bind(self, function: Callable[..., object], owner: Owner | None = None) -> Callable[..., None]:
        """Bind `function` to `owner`, or to the present owner, to be called later in its name.

        The bound function returns nothing, and raises nothing but SharedDamage.
        """
        return partial(self.call, self.owner if owner is None else owner, function)

    def call(self, owner: Owner | None, function: Callable[..., object], *arguments: object) -> None:
        """Call `function` in the name of `owner`, which is informed if it raises."""
        before, self.owner = self.owner, owner
        try:
            function(*arguments)
        except Exception as error:
            self.blame(owner, error)
        finally:
            self.owner = before

    def blame(self, owner: Owner | None, error: Exception) -> None:
        """Handle `error`, which work for `owner` raised: log and count it, and tell the owner.
        Raises SharedDamage if it came out of code in SHARED."""
        damage = damage_of(error)
        if damage is error:
            raise error
        if damage is not None:
            raise damage from error
        self.errors += 1
        self._log(owner, error)
        if owner is None:
            return
        try:
            owner.failed(error)
        except Exception as another:
            self.blame(None, another)

    def _log(self, owner: Owner | None, error: Exception) -> None:
        frames = traceback.extract_tb(error.__traceback__)
        place = f"{type(error).__name__} {frames[-1].filename}:{frames[-1].lineno}" if frames else repr(error)
        last_ns = self._logged.pop(place, None)
        if last_ns is not None and self.now_ns - last_ns < LOG_AGAIN_NS:
            self._logged[place] = last_ns
            return
        self._logged[place] = self.now_ns
        if len(self._logged) > LOGGED_FAULTS_MAX:
            del self._logged[next(iter(self._logged))]
        whom = "of its own" if owner is None else f"for {owner}"
        _logger.error("%s failed in something done %s: %s", self.name, whom, error, exc_info=error)
