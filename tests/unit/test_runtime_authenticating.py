"""What log-ins take of threads."""

from __future__ import annotations

import threading

from fairlead_kafka.runtime.authenticating import THREADS_MAX, on_a_thread
from tests.support.waiting import PATIENCE_S


def test_only_so_many_log_ins_are_looked_at_at_once_and_all_in_the_end() -> None:
    count = 3 * THREADS_MAX
    begun, go_on, finished = threading.Semaphore(0), threading.Event(), threading.Semaphore(0)
    lock, now, most = threading.Lock(), 0, 0

    def work() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        begun.release()
        assert go_on.wait(PATIENCE_S)
        with lock:
            now -= 1

    aside = on_a_thread(lambda done: done())
    for _ in range(count):
        aside(work, finished.release)
    for _ in range(THREADS_MAX):
        assert begun.acquire(timeout=PATIENCE_S)
    assert not begun.acquire(blocking=False)
    go_on.set()
    for _ in range(count):
        assert finished.acquire(timeout=PATIENCE_S)
    assert most == THREADS_MAX
