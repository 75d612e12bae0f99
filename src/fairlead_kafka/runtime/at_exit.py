"""Hosts that are still open at the end of the process are closed then."""

from __future__ import annotations

import atexit
import weakref

from fairlead_kafka.runtime.handle import Host

_TIMEOUT_S = 1.0
_hosts: weakref.WeakSet[Host] = weakref.WeakSet()


def close_at_exit(host: Host) -> None:
    """Have `host` closed at the end of the process, if it is still there."""
    _hosts.add(host)


def _close_all() -> None:
    for host in list(_hosts):
        host.close(_TIMEOUT_S)


atexit.register(_close_all)
