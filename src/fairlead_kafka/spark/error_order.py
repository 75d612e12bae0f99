"""Makes Spark print Fairlead's errors with the message first, and below it the frames that led
there.

Spark sends the text of a traceback to the driver, frames and causes first, so that a user scrolls
past thirty of them to learn what is wrong. Such an error is raised again here, where Spark called,
and its frames and causes become a note, which Python prints behind the message.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from functools import wraps
from inspect import CO_GENERATOR
from types import FunctionType
from typing import ParamSpec, TypeVar

from fairlead_kafka.base.errors import FairleadError

C = TypeVar("C", bound=type)
P = ParamSpec("P")
R = TypeVar("R")


def errors_first(cls: C) -> C:
    """A class decorator for classes that Spark calls: its public methods raise our errors as
    `reported_first`."""
    for name, method in list(vars(cls).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(cls, name, (_generating if method.__code__.co_flags & CO_GENERATOR else _calling)(method))
    return cls


def reported_first(error: FairleadError) -> FairleadError:
    """The error without its traceback and its causes, which become a note on it, once. (Spark shows
    the end of a traceback first: so our error comes first.)"""
    if not getattr(error, "__notes__", None):
        causes = [f"\nIt came of {_named(cause)}" for cause in _causes(error)]
        frames = "".join(traceback.format_tb(error.__traceback__))
        error.add_note("".join(causes) + f"\nIt was raised here:\n{frames.rstrip()}")
    return error.with_traceback(None)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The causes of the error, nearest first."""
    seen = {id(error)}
    cause = error.__cause__
    while cause is not None and id(cause) not in seen:
        yield cause
        seen.add(id(cause))
        cause = cause.__cause__


def _named(cause: BaseException) -> str:
    return "".join(traceback.format_exception_only(cause)).rstrip()


def _calling(method: Callable[P, R]) -> Callable[P, R]:
    @wraps(method)
    def calling(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return method(*args, **kwargs)
        except FairleadError as error:
            raise reported_first(error) from None

    return calling


def _generating(method: Callable[P, Iterator[R]]) -> Callable[P, Iterator[R]]:
    @wraps(method)
    def calling(*args: P.args, **kwargs: P.kwargs) -> Iterator[R]:
        try:
            yield from method(*args, **kwargs)
        except FairleadError as error:
            raise reported_first(error) from None

    return calling
