"""Has a function of the broker raise, wherever it is called from: what a bug in it would do."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from types import CodeType, FrameType
from typing import Any

from fairlead_kafka.broker.guard import Guard

_BROKER = "/fairlead_kafka/broker/"


class Injected(Exception):
    """A fault planted on purpose."""


def place_of(code: CodeType) -> str:
    """The file of a function below `broker`, and its name."""
    return (
        f"{code.co_filename.partition(_BROKER)[2]}:{code.co_qualname}" if _BROKER in code.co_filename else ""
    )


@contextmanager
def raising(place: str, at_call: int = 1) -> Iterator[list[str]]:
    """Inside, the function at `place` raises Injected when it is entered for the `at_call`-th time;
    the list then has its name."""
    raised: list[str] = []
    calls, name = 0, place.rpartition(":")[2].rpartition(".")[2]

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        nonlocal calls  # its name first: this is asked at every call that anything makes
        if event == "call" and frame.f_code.co_name == name and place_of(frame.f_code) == place:
            calls += 1
            if calls == at_call:
                raised.append(place)
                sys.settrace(None)
                raise Injected(place)

    sys.settrace(look)  # unlike a profile function it is not asked about calls of C, and returns
    try:
        yield raised
    finally:
        sys.settrace(None)


def places(scenario: Callable[[], object]) -> Counter[str]:
    """How often each function of the broker is entered in a scenario."""
    entered: Counter[str] = Counter()

    def look(frame: FrameType, event: str, _argument: Any) -> None:
        if event == "call" and _BROKER in frame.f_code.co_filename:
            entered[place_of(frame.f_code)] += 1

    sys.settrace(look)
    try:
        scenario()
    finally:
        sys.settrace(None)
    return entered


def callbacks(scenario: Callable[[], object], others: Collection[str] = ()) -> Counter[str]:
    """How often each function that was left to be called later, or is called in somebody's name,
    and `others`, are called in a scenario."""
    called: Counter[str] = Counter()
    sound = Guard.call

    def call(guard: Guard, owner: Any, function: Callable[..., Any], *arguments: Any) -> None:
        called[place_of(_innermost(function).__code__)] += 1
        sound(guard, owner, function, *arguments)

    Guard.call = call  # type: ignore[method-assign]
    try:
        entered = places(scenario)
    finally:
        Guard.call = sound  # type: ignore[method-assign]
    return called + Counter({place: entered[place] for place in others})


def _innermost(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.args[1] if getattr(function.func, "__name__", "") == "call" else function.func
    return getattr(function, "__func__", function)
