"""Interceptors: code of the user's that sees, and may change, records on their way in and out (`interceptor.classes`, KIP-42).

They are called in the order given, each with what the one before made of it. What an interceptor raises is logged and goes no further:
the client carries on with what it had before. A client without interceptors does not know of them: its methods are chosen when it is made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Generic, Protocol, TypeVar, cast

from fairlead_kafka.base.errors import ConfigError

LOGGER = logging.getLogger("fairlead_kafka.interceptors")
T = TypeVar("T")


class Closable(Protocol):
    """What producers' and consumers' interceptors have in common."""

    def close(self) -> None:
        """The client is closed."""


I = TypeVar("I", bound=Closable)  # noqa: E741


class Chain(Generic[I]):
    """Interceptors one after the other."""

    def __init__(self, interceptors: Sequence[I]) -> None:
        self._interceptors: Sequence[I] = interceptors
        self._closed = False

    def changed(self, item: T, apply: Callable[[I, T], Any], kind: type | tuple[type, ...]) -> T:
        """What the last of them makes of `item`; what one makes that is of no such kind is left out, and logged."""
        for interceptor in self._interceptors:
            try:
                found = apply(interceptor, item)
                if not isinstance(found, kind):
                    raise TypeError(f"it returned {found!r} instead of what it was given, or something like it")
                item = cast(T, found)
            except Exception:
                LOGGER.exception("an interceptor (%r) raised; what it was given goes on as it was", interceptor)
        return item

    def told(self, tell: Callable[[I], object]) -> None:
        """Tell each of them something; what it raises is logged."""
        for interceptor in self._interceptors:
            try:
                tell(interceptor)
            except Exception:
                LOGGER.exception("an interceptor (%r) raised", interceptor)

    def close(self) -> None:
        """Close them all, once."""
        if not self._closed:
            self._closed = True
            self.told(lambda each: each.close())


def made_of(given: Any, config: Mapping[str, Any], methods: tuple[str, ...], base: type[T]) -> list[T]:
    """Those that `interceptor.classes` names, each with all methods of `base`. ConfigError if it names what cannot be had."""
    if given is None:
        return []
    items: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    if isinstance(given, str):
        items = [text.strip() for text in given.split(",")]
    made = []
    for item in items:
        if item == "":
            continue
        name = item
        if isinstance(item, str):
            item = _looked_up(item)
        if isinstance(item, type):
            try:
                item = item()
                getattr(item, "configure", lambda _: None)(config)
            except Exception as error:
                raise ConfigError(f"interceptor.classes: {name!r} could not be made: {error!r}") from error
        if not isinstance(item, base) and not any(hasattr(item, method) for method in methods):
            raise ConfigError(f"interceptor.classes: {name!r} has none of the methods {', '.join(methods)}")
        made.append(item if isinstance(item, base) else _completed(item, base))
    return made


def _looked_up(path: str) -> Any:
    module, dot, name = path.rpartition(".")
    try:
        if not dot:
            raise ImportError("a dotted path is needed, such as package.module.Class")
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"interceptor.classes: {path!r} cannot be imported: {error}") from None


def _completed(item: Any, base: type[T]) -> T:
    """An interceptor that is not one of ours by descent: what it lacks does nothing."""
    made = base()
    for method in dir(base):
        if not method.startswith("_") and hasattr(item, method):
            setattr(made, method, getattr(item, method))
    return made
