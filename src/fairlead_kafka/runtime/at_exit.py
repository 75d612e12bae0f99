"""Closes hosts that are still open when the process ends: clients first, then their clusters."""

from __future__ import annotations

import atexit
import weakref
from collections.abc import Callable

from fairlead_kafka.runtime.handle import Host

_TIMEOUT_S = 1.0
_hosts: weakref.WeakSet[Host] = weakref.WeakSet()
_last: dict[Host, Callable[[], None]] = {}


def close_at_exit(host: Host) -> None:
    """Have `host` closed at the end of the process, if it is still open then."""
    _hosts.add(host)


def close_last(host: Host, close: Callable[[], None]) -> None:
    """Have `host` closed by calling `close` at the end of the process, after all other hosts:
    clients would complain if their cluster ended first."""
    _hosts.discard(host)
    _last[host] = close


def was_closed(host: Host) -> None:
    """Forget `host`, which needs no closing by `close_last` any more."""
    _last.pop(host, None)


def _close_all() -> None:
    for host in list(_hosts):
        host.close(_TIMEOUT_S)
    for close in list(_last.values()):
        close()


atexit.register(_close_all)
