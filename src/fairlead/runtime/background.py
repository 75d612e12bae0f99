"""What a process needs once: kernels compiled without anyone waiting for it, and dice."""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading

from fairlead.base import kernel
from fairlead.core.machine import Dice

_log = logging.getLogger("fairlead.runtime")
_lock = threading.Lock()
_started_in: int | None = None
_stop = threading.Event()


def system_dice() -> Dice:
    """A generator seeded by the operating system."""
    return random.Random()


def compile_kernels_in_background() -> None:
    """Compile all kernels on a thread of its own, once per process; calls are served by the plain twins until then.

    A process that ends meanwhile waits for the one kernel at hand: a thread that is cut off inside the compiler can take the
    interpreter down with it. A forked child compiles (loads from the disk cache, mostly) for itself.
    """
    global _started_in
    with _lock:
        if _started_in == os.getpid():
            return
        _started_in = os.getpid()
    if all(each.ready for each in kernel.KERNELS):
        return
    thread = threading.Thread(target=_compile, name="fairlead-compile", daemon=True)
    atexit.register(_end, thread)
    thread.start()


def _compile() -> None:
    try:
        # One by one, as `kernel.compile_all` does, but so that the end of the process need not wait for all of them.
        for each in list(kernel.KERNELS):
            if _stop.is_set():
                return
            each.compile()
    except Exception:
        _log.warning("kernels could not be compiled; their plain twins go on serving, slowly", exc_info=True)


def _end(thread: threading.Thread) -> None:
    _stop.set()
    thread.join()
