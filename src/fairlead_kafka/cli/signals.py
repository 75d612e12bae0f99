"""Handlers of signals for as long as a command runs."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def handling(handler: Callable[[int, object], object], *numbers: signal.Signals) -> Iterator[None]:
    """Have `handler(number, frame)` called for these signals within the block; afterwards they are
    handled as before, unless another handler was set meanwhile. On the main thread only."""
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, former in before.items():
            if signal.getsignal(number) is handler:
                # None: a handler that Python did not set, and cannot set again
                signal.signal(number, signal.SIG_DFL if former is None else former)
