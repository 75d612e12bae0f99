"""Has a function that the broker calls raise, as a bug in it would: a handler, a callback, a
method."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from importlib import import_module
from threading import get_ident
from types import CodeType
from typing import Any
from unittest.mock import patch

from fairlead_kafka.broker.dispatch import PRIVATE, REGISTRY
from fairlead_kafka.broker.guard import _SHARED_CODE, Guard, SharedDamage

_BROKER = "/fairlead_kafka/broker/"

Look = Callable[[CodeType], None]
"""Is shown what is called next, and may raise in its place."""


class Injected(Exception):
    """A fault planted on purpose."""


class Fault:
    """Raises Injected in place of the function at `place` when it is called for the `at_call`-th
    time since `armed` was set; `raised` then.

    For a function that all of a broker depends on it is SharedDamage, as if it came out of it.
    """

    def __init__(self, place: str, at_call: int = 1) -> None:
        self.place = place
        self.armed = self.raised = False
        self._calls_left = at_call

    def __call__(self, code: CodeType) -> None:
        if not self.armed or self.raised or place_of(code) != self.place:
            return
        self._calls_left -= 1
        if self._calls_left == 0:
            self.raised = True
            raise SharedDamage(self.place) if code in _SHARED_CODE else Injected(self.place)


def place_of(code: CodeType) -> str:
    """The file of a function below `broker`, and its name."""
    return f"{code.co_filename.partition(_BROKER)[2]}:{code.co_qualname}"


@contextmanager
def before_each_call(look: Look, methods: Collection[str]) -> Iterator[None]:
    """Inside, `look` is shown each handler, each function that was left to be called later or is
    called in somebody's name, and `methods`, before it is called in this thread: a cluster that
    another test left may have a thread of its own.

    A broker has to be made inside, for what it leaves to be called later to be shown.
    """
    here = get_ident()

    def look_here(code: CodeType) -> None:
        if get_ident() == here:
            look(code)

    with ExitStack() as stack:
        sound = Guard.call

        def call(guard: Guard, owner: Any, function: Callable[..., Any], *arguments: Any) -> None:
            sound(guard, owner, _shown(look_here, function), *arguments)

        stack.enter_context(patch.object(Guard, "call", call))
        for table in (REGISTRY, PRIVATE):
            looked = {key: replace(api, handler=_shown(look_here, api.handler)) for key, api in table.items()}
            stack.enter_context(patch.dict(table, looked))  # type: ignore[arg-type]
        for place in methods:
            file, _, name = place.partition(":")
            owner, _, method = name.rpartition(".")
            module = import_module(f"fairlead_kafka.broker.{file.removesuffix('.py').replace('/', '.')}")
            kind = getattr(module, owner)
            stack.enter_context(patch.object(kind, method, _shown(look_here, getattr(kind, method))))
        yield


def _shown(look: Look, function: Callable[..., Any]) -> Callable[..., Any]:
    code = _innermost(function).__code__

    def called(*arguments: Any) -> Any:
        look(code)
        return function(*arguments)

    return called


def _innermost(function: Any) -> Any:
    while isinstance(function, partial):
        function = function.args[1] if getattr(function.func, "__name__", "") == "call" else function.func
    return getattr(function, "__func__", function)
