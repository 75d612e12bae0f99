"""A selector whose short waits end on time, not up to a millisecond later."""

from __future__ import annotations

import select
import selectors
import sys
from typing import TYPE_CHECKING

from fairlead_kafka.base.units import NS_PER_S, s_to_ns
from fairlead_kafka.runtime.clock import monotonic_ns

_LONG_S = 0.1
"""Seconds from which on waits are left as they are: a millisecond does not matter there."""
_FD_SETSIZE = 1024
if TYPE_CHECKING and sys.platform == "linux":
    _Selector = selectors.EpollSelector  # it has a descriptor, which DefaultSelector need not
else:
    _Selector = selectors.DefaultSelector


class PreciseSelector(_Selector):
    """The system's best selector; on Linux, short waits end within some 0.1 ms of their time.

    `epoll_wait` counts in whole milliseconds, and Python rounds up. Where an answer is due 20 ms
    after a request, or a batch leaves after `linger.ms`, that is a twentieth, or a fifth, too late.
    `select` counts in microseconds, and can wait for the epoll descriptor as for any other. It is
    asked for what is left beyond whole milliseconds only: as a rule something comes before, and
    then one call is enough.
    """

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for files that are ready, as `selectors.BaseSelector.select` does, for `timeout`
        seconds, also for fractions of a millisecond."""
        if sys.platform == "linux" and timeout is not None and 0 < timeout < _LONG_S:
            number = self.fileno()
            if number < _FD_SETSIZE:
                until_ns = monotonic_ns() + s_to_ns(timeout)
                whole_s = int(timeout * 1000) / 1000
                if whole_s and (ready := super().select(whole_s)):
                    return ready
                if (left_ns := until_ns - monotonic_ns()) > 0:
                    select.select((number,), (), (), left_ns / NS_PER_S)
                timeout = 0
        return super().select(timeout)
