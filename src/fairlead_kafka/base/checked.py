"""Types checked at the door: a public method that is given something else says what it takes, and how to write it.

A class that is `checked` compares what its public methods are given with their annotations before they begin; what an annotation does not
say (a callable's parameters, items of an iterator) is not looked at.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial, wraps
from itertools import chain
from numbers import Integral, Real
from types import FunctionType, NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin

from fairlead_kafka.base.errors import UsageError

C = TypeVar("C", bound=type)
Accepts = Callable[[Any], bool]
SHOWN_MAX_LENGTH = 80
"""Of a value that is not what it should be, no more is shown."""
WORDS: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    NoneType: "None",
    Any: "anything",
    re.Pattern: "a compiled pattern",
}
NAME = "orders"
"""In examples; whoever gave a name sees it instead."""
CO_COROUTINE, CO_ASYNC_GENERATOR = 0x80, 0x200
"""Flags of code (`inspect`, which takes as long to load as the rest of this)."""
EXAMPLES: dict[str, str] = {
    "NewTopic": 'NewTopic("orders", partitions=3)',
    "NewPartitions": "NewPartitions(6)",
    "TopicPartition": 'TopicPartition("orders", 0)',
    "ConfigResource": 'ConfigResource.topic("orders")',
    "ConfigChange": 'ConfigChange("retention.ms", "60000")',
    "OffsetAndMetadata": "OffsetAndMetadata(42)",
    "Pattern": 're.compile("orders.*")',
    "RebalanceListener": "an object of a subclass of RebalanceListener",
}
"""How a value of a type is written, for those that are not Python's own."""


def checked(*unchecked: str) -> Callable[[C], C]:
    """A class decorator: check what public methods are given, but for those named, which check it themselves or are called too often."""

    def decorate(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            if isinstance(method, FunctionType) and name not in unchecked and (name == "__init__" or not name.startswith("_")):
                setattr(cls, name, _checking(method, cls.__name__ if name == "__init__" else name))
        return cls

    return decorate


def _checking(method: FunctionType, called: str) -> Callable[..., Any]:
    code = method.__code__
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    checks: dict[str, Accepts] | None = None

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        nonlocal checks
        if checks is None:
            checks = {name: _accepts(_resolved(method, name)) for name in parameters}
        for name, value in chain(zip(parameters, args, strict=False), kwargs.items()):
            accepts = checks.get(name)
            if accepts is not None and not accepts(value):
                raise _wrong(called, name, value, _resolved(method, name))

    # Of the method's own kind, for whoever asks what it is: a mock of a class gives what can be awaited for what can.
    if code.co_flags & CO_COROUTINE:

        @wraps(method)
        async def awaiting(self: Any, *args: Any, **kwargs: Any) -> Any:
            check(args, kwargs)
            return await method(self, *args, **kwargs)

        return awaiting
    if code.co_flags & CO_ASYNC_GENERATOR:

        @wraps(method)
        async def iterating(self: Any, *args: Any, **kwargs: Any) -> Any:
            check(args, kwargs)
            items = method(self, *args, **kwargs)
            try:
                async for item in items:
                    yield item
            finally:
                await items.aclose()

        return iterating

    @wraps(method)
    def checking(self: Any, *args: Any, **kwargs: Any) -> Any:
        check(args, kwargs)
        return method(self, *args, **kwargs)

    return checking


def _resolved(method: FunctionType, parameter: str) -> Any:
    """The type that a parameter is annotated with; Any if its name is not to be had at run time."""
    annotation = method.__annotations__.get(parameter, Any)
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, vars(sys.modules[method.__module__]))
    except (NameError, AttributeError, TypeError):
        return Any


def _accepts(kind: Any) -> Accepts:
    """A function that says whether a value is of a kind, as far as that can be seen without changing it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        any_of = [_accepts(each) for each in inner]
        return lambda value: any(accepts(value) for accepts in any_of)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        keys, values = (_accepts(each) for each in inner)
        return lambda value: isinstance(value, Mapping) and all(keys(key) and values(each) for key, each in value.items())
    if isinstance(origin, type) and issubclass(origin, Iterable) and origin is not tuple:
        return partial(_accepts_many, _accepts(inner[0]))
    if origin is Callable:
        return callable
    if isinstance(origin, type):
        kind = origin
    if kind is Any:
        return lambda value: True
    if kind is None or kind is NoneType:
        return lambda value: value is None
    if kind is int:
        return lambda value: isinstance(value, Integral) and not isinstance(value, bool)
    if kind is float:
        return lambda value: isinstance(value, Real) and not isinstance(value, bool)
    if isinstance(kind, type) and issubclass(kind, tuple):
        return lambda value: isinstance(value, tuple)  # a plain tuple of the same fields will do
    if not isinstance(kind, type):
        return lambda value: True
    wanted = _interface(kind)
    return lambda value: isinstance(value, kind) or (bool(wanted) and all(hasattr(value, name) for name in wanted))


def _interface(kind: type) -> list[str]:
    """The methods of a class that has nothing else, such as a listener: whatever has them all will do."""
    public = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    own = public and all(isinstance(value, FunctionType) for value in public.values()) and not hasattr(kind, "__dataclass_fields__")
    return list(public) if own and "__init__" not in vars(kind) else []


def _accepts_many(accepts: Accepts, value: Any) -> bool:
    """True for an iterable, but no text; its items are looked at where that does not use it up."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, (Sequence, set, frozenset, Mapping)) or all(map(accepts, value))


def _wrong(called: str, name: str, value: Any, kind: Any) -> UsageError:
    shown = repr(value) if name != "config" or isinstance(value, str) else type(value).__name__  # it may hold a password
    shown = shown if len(shown) <= SHOWN_MAX_LENGTH else f"{shown[: SHOWN_MAX_LENGTH - 3]}..."
    hint = _config_example(called, value) if name == "config" else _example(kind).replace(NAME, _name_in(value))
    return UsageError(f"{called}: {name} must be {_named(kind)}, not {shown}{f'; write {hint}' if hint else ''}")


def _name_in(value: Any) -> str:
    """The name that was given, if one was: the right call is shown with it."""
    given = value[0] if isinstance(value, (list, tuple)) and value else value
    return given if isinstance(given, str) and given.isprintable() and '"' not in given and given else NAME


def _named(kind: Any) -> str:
    """A kind in words: "a list of NewTopic", "a number or None"."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(_named(each) for each in inner)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return "a mapping" if inner[1] is Any else f"a mapping from {_named(inner[0])} to {_named(inner[1])}"
    if isinstance(origin, type) and issubclass(origin, Iterable) and origin is not tuple:
        return "a list of texts" if inner[0] is str else f"a list of {_named(inner[0])}"
    return WORDS.get(origin or kind) or getattr(kind, "__name__", None) or str(kind)


def _example(kind: Any) -> str:
    """How to write a value of a kind; empty where its name says it."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(filter(None, map(_example, inner)))
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, value = f'"{NAME}"' if inner[0] is str else _example(inner[0]), _example(inner[1])
        return f"{{{key}: {value or '...'}}}" if value or (key and inner[0] is not str) else ""
    if isinstance(origin, type) and issubclass(origin, Iterable) and origin is not tuple:
        item = _example(inner[0])
        return f"[{item}]" if item else f'["{NAME}"]' if inner[0] is str else ""
    return EXAMPLES.get(getattr(kind, "__name__", ""), "")


def _config_example(called: str, value: Any) -> str:
    if called == "Cluster":
        return 'Cluster(config={"num.partitions": 3})'
    servers = value if isinstance(value, str) and ":" in value else "localhost:9092"
    return f'{called}({{"bootstrap.servers": "{servers}"}})'
