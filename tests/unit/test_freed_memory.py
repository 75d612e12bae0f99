"""What the allocator is asked for: the C library's own calls, and nothing where it has none."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from fairlead_kafka import runtime
from fairlead_kafka.cli import cluster
from fairlead_kafka.runtime import LongRunning, freed_memory, keep_freed_memory
from fairlead_kafka.runtime.freed_memory import GIVE_BACK_S, give_back_freed_memory
from fairlead_kafka.testing import broker_process


def test_freed_memory_is_asked_of_the_c_library(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def ask(*given: object) -> int:
        asked.append(given)
        return 1

    library = SimpleNamespace(malloc_trim=ask, mallopt=ask)
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    assert give_back_freed_memory()
    assert keep_freed_memory(kept_bytes=5)
    assert asked == [(0,), (-3, 32 << 20), (-1, 5)]


def test_a_process_that_runs_for_long_gives_back_each_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []
    now_s = 5.0
    library = SimpleNamespace(
        malloc_trim=lambda pad: asked.append(("trim", pad)), mallopt=lambda *given: asked.append(given) or 1
    )
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: library)
    monkeypatch.setattr(freed_memory, "time", SimpleNamespace(monotonic=lambda: now_s))
    memory = LongRunning()
    assert asked == [(-3, 128 << 10)]
    asked.clear()
    for second in range(int(3 * GIVE_BACK_S)):
        now_s = 5.0 + second
        memory.look()
    assert asked == [("trim", 0)] * 2
    memory.give_back()
    now_s += GIVE_BACK_S - 1
    memory.look()
    assert asked == [("trim", 0)] * 3, "the minute begins again"


@pytest.mark.parametrize("call", [give_back_freed_memory, keep_freed_memory])
def test_another_c_library_is_left_alone(monkeypatch: pytest.MonkeyPatch, call: Callable[[], bool]) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _name: SimpleNamespace())
    assert not call()


class _Counted(LongRunning):
    """Counts its looks."""

    looks = 0

    def __init__(self) -> None:
        pass  # the tests' own process keeps its settings

    def look(self) -> None:
        _Counted.looks += 1


def test_a_broker_process_looks_each_time_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "looks", 0)
    monkeypatch.setattr(broker_process, "LongRunning", _Counted)
    handle = SimpleNamespace(ended=False)
    waits: list[float] = []

    def ready(timeout_s: float) -> bool:
        waits.append(timeout_s)
        handle.ended = len(waits) == 3
        return False

    assert broker_process._watch(SimpleNamespace(ready=ready), None, handle, os.getppid()) == 1  # type: ignore[arg-type]
    assert _Counted.looks == 3


def test_a_cluster_on_the_command_line_looks_each_time_it_waited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_Counted, "looks", 0)
    monkeypatch.setattr(runtime, "LongRunning", _Counted)
    waits = iter((False, False, True))
    stop = SimpleNamespace(wait=lambda _timeout_s: next(waits))
    cluster._serve(SimpleNamespace(brokers=[], controller_running=True), stop, threading.Event())  # type: ignore[arg-type]
    assert _Counted.looks == 2
