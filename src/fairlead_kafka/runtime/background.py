"""What a process needs once: kernels compiled without anyone waiting for it, and dice."""

from __future__ import annotations

import atexit
import logging
import os
import random
import threading
import time
from typing import Any

from fairlead_kafka.base import kernel
from fairlead_kafka.base.units import MIB
from fairlead_kafka.core.machine import Dice
from fairlead_kafka.runtime.compiler_memory import release_compiler_memory
from fairlead_kafka.runtime.descriptors import is_shortage

_log = logging.getLogger("fairlead_kafka.runtime")
_lock = threading.Lock()
_started_in: int | None = None
_stop = threading.Event()
_work_bytes = 0

KERNELS_PAY_BYTES = 4 * MIB
"""Loading compiled kernels takes a second or two of CPU, even from the disk cache; the plain twins do this much in that time. A
process that handles less, as most Spark tasks over a small topic do, is better off without them."""
QUIET_S, QUIET_CPU_S = 0.2, 0.04
"""A process that used no more CPU than this in such a time has nothing better to do than to load kernels ..."""
PATIENCE_S = 3.0
"""... and one that never is so quiet needs them all the more."""
DESCRIPTORS_RETRY_S = 1.0
"""When a kernel is tried again for which no file could be opened."""
_compiling = threading.Lock()
"""Held while one kernel is imported for or compiled. A fork waits for it: a child that inherited the compiler's and the importer's locks
from a thread that it does not have would wait for them forever."""


def system_dice() -> Dice:
    """A generator seeded by the operating system."""
    return random.Random()


def count_kernel_work(size_bytes: int) -> None:
    """Say that kernels, or their plain twins, are given `size_bytes` of records; compiles them once they are sure to pay."""
    global _work_bytes
    _work_bytes += size_bytes  # not exact among threads, and need not be
    if _work_bytes >= KERNELS_PAY_BYTES:
        compile_kernels_in_background()


def compile_kernels_in_background(patiently: bool = False) -> None:
    """Compile all kernels on a thread of its own, once per process; calls are served by the plain twins until then.

    `patiently`: in the first quiet moment of the process, so that what it is busy with now does not wait for that; within PATIENCE_S.

    A process that ends meanwhile waits for the one kernel at hand: a thread that is cut off inside the compiler can take the
    interpreter down with it. So does a fork; the child compiles the rest (loads from the disk cache, mostly) for itself.
    """
    global _started_in
    with _lock:
        if _started_in == os.getpid():
            return
        _started_in = os.getpid()
    if all(each.ready for each in kernel.KERNELS):
        return
    thread = threading.Thread(target=_compile, args=(PATIENCE_S if patiently else 0.0,), name="fairlead-compile", daemon=True)
    atexit.register(_end, thread)
    thread.start()


def compile_kernels() -> None:
    """Compile all kernels now, on the calling thread: for measurements, which are not to include that."""
    for each in kernel.KERNELS:
        each.compile()
        release_compiler_memory()  # after each, so that its peak is not seen either


def _compile(patience_s: float) -> None:
    _await_quiet(patience_s)
    try:
        # One by one, as `kernel.compile_all` does, but so that the end of the process need not wait for all of them.
        for each in list(kernel.KERNELS):
            if _stop.is_set():
                return
            while not _compiled(each) and not _stop.wait(DESCRIPTORS_RETRY_S):
                pass
            release_compiler_memory()
    except Exception:
        _log.warning("kernels could not be compiled; their plain twins go on serving, slowly", exc_info=True)


def _compiled(each: kernel.Kernel[..., Any]) -> bool:
    """Compile a kernel; False if there was no descriptor for its file in the cache: connections have them all for now."""
    with _compiling:
        try:
            each.compile()
        except OSError as error:
            if not is_shortage(error):
                raise
            return False
    return True


def _await_quiet(patience_s: float) -> None:
    """Return when the process has been quiet for a moment, when it ends, or when `patience_s` is over."""
    for _ in range(round(patience_s / QUIET_S)):
        begun_s = time.process_time()
        if _stop.wait(QUIET_S) or time.process_time() - begun_s <= QUIET_CPU_S:
            return


def _end(thread: threading.Thread) -> None:
    _stop.set()
    thread.join()


if hasattr(os, "register_at_fork"):  # Windows does not fork
    os.register_at_fork(before=_compiling.acquire, after_in_parent=_compiling.release, after_in_child=_compiling.release)
