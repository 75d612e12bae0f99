"""Interceptors: user code that sees, and may change, records sent and received (KIP-42).

`interceptor.classes` names them. They are called in the order given, each with the result of the
one before. An exception of an interceptor is logged and not raised: the client continues with the
previous value. Without interceptors `send` costs nothing more, as it is chosen when the producer is
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Generic, Protocol, TypeVar, cast

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.base.guarded_log import GuardedLogger

LOGGER = GuardedLogger("fairlead_kafka.interceptors")
T = TypeVar("T")


class Closable(Protocol):
    """Method that producers' and consumers' interceptors have in common."""

    def close(self) -> None:
        """Called when the client is closed."""


I = TypeVar("I", bound=Closable)  # noqa: E741


class Chain(Generic[I]):
    """Interceptors, called one after the other."""

    def __init__(self, interceptors: Sequence[I]) -> None:
        self._interceptors: Sequence[I] = interceptors
        self._closed = False

    def changed(self, item: T, apply: Callable[[I, T], object], kind: type | tuple[type, ...]) -> T:
        """Pass `item` through all interceptors with `apply`, and return what the last one gives.

        If an interceptor raises, or gives something that is not of type `kind`, that is logged, and
        the next one gets `item` as it was.
        """
        for interceptor in self._interceptors:
            try:
                found = apply(interceptor, item)
                if not isinstance(found, kind):
                    raise TypeError(
                        f"it returned {found!r} instead of what it was given, or something like it"
                    )
                item = cast(T, found)
            except Exception:
                LOGGER.error(
                    "an interceptor (%r) raised; what it was given goes on as it was",
                    interceptor,
                    exc_info=True,
                )
        return item

    def each(self, call: Callable[[I], object]) -> None:
        """Call `call` with each interceptor; what one raises is logged."""
        for interceptor in self._interceptors:
            try:
                call(interceptor)
            except KeyboardInterrupt:
                raise
            except BaseException:  # a SystemExit on the client's own thread would end the client
                LOGGER.error("an interceptor (%r) raised", interceptor, exc_info=True)

    def close(self) -> None:
        """Close all interceptors, once."""
        if not self._closed:
            self._closed = True
            self.each(lambda interceptor: interceptor.close())


def made_of(given: object, config: Mapping[str, object], methods: tuple[str, ...], base: type[T]) -> list[T]:
    """The interceptors that `interceptor.classes` names, each with all methods of `base`.

    ConfigError if one cannot be imported or made, or has none of `methods`.
    """
    if given is None:
        return []
    items: Sequence[object] = given if isinstance(given, (list, tuple)) else [given]
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


def _looked_up(path: str) -> object:
    module, dot, name = path.rpartition(".")
    try:
        if not dot:
            raise ImportError("a dotted path is needed, such as package.module.Class")
        return getattr(import_module(module), name)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"interceptor.classes: {path!r} cannot be imported: {error}") from None


def _completed(item: object, base: type[T]) -> T:
    """A `base` object that calls the methods `item` has; methods that `item` lacks do nothing. For
    interceptors that are not subclasses of `base`."""
    made = base()
    for method in dir(base):
        if not method.startswith("_") and hasattr(item, method):
            setattr(made, method, getattr(item, method))
    return made
