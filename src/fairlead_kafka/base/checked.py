"""Checks of the arguments of public methods: the error says what the method takes, with an example.

A class that is `checked` compares the arguments of its public methods with their annotations before
they begin, down to the fields of named tuples and dataclasses and to the bounds of numbers
(`base.within`). The code behind may then trust the types: a machine that gets a text instead of a
number would fail, and its client with it. Parts that annotations do not describe (a callable's
parameters, items of an iterator) are not checked.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial, wraps
from itertools import chain
from numbers import Integral, Real
from types import FunctionType, NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, cast, get_args, get_origin

from fairlead_kafka.base.errors import UsageError
from fairlead_kafka.base.limits import STRING_MAX_BYTES

C = TypeVar("C", bound=type)
Accepts = Callable[[object], bool]
SHOWN_MAX_LENGTH = 80
"""Characters of a wrong value that an error message shows."""
WORDS: dict[object, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    bytes: "bytes",
    NoneType: "None",
    Any: "anything",
    object: "anything",
    re.Pattern: "a compiled pattern",
}
PLURALS = {str: "texts", int: "whole numbers", float: "numbers"}
NAME = "orders"
"""The topic in the examples of error messages, unless the caller gave a name."""
CO_COROUTINE, CO_ASYNC_GENERATOR = 0x80, 0x200
"""Flags of code objects, copied from `inspect`, which takes as long to load as this module."""
EXAMPLES: dict[str, str] = {
    "NewTopic": 'NewTopic("orders", partitions=3)',
    "NewPartitions": "NewPartitions(6)",
    "TopicPartition": 'TopicPartition("orders", 0)',
    "ConfigResource": 'ConfigResource.topic("orders")',
    "ConfigChange": 'ConfigChange.set("retention.ms", "60000")',
    "ResourceType": "ResourceType.TOPIC",
    "ConfigOperation": "ConfigOperation.SET",
    "OffsetAndMetadata": "OffsetAndMetadata(42)",
    "Pattern": 're.compile("orders.*")',
    "AclBinding": 'AclBinding(AclResourceType.TOPIC, "orders", AclPatternType.LITERAL, "User:alice", "*", '
    "AclOperation.READ, "
    "AclPermission.ALLOW)",
    "AclFilter": 'AclFilter(AclResourceType.TOPIC, "orders")',
    "AclResourceType": "AclResourceType.TOPIC",
    "AclPatternType": "AclPatternType.LITERAL",
    "AclOperation": "AclOperation.READ",
    "AclPermission": "AclPermission.ALLOW",
    "ScramMechanism": "ScramMechanism.SCRAM_SHA_512",
    "ScramCredentialInfo": "ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512)",
    "UserScramCredentialUpsertion": 'UserScramCredentialUpsertion("alice", '
    "ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512), password)",
    "UserScramCredentialDeletion": 'UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_512)',
    "ClientQuotaEntity": 'ClientQuotaEntity({"user": "alice"})',
    "ClientQuotaFilter": 'ClientQuotaFilter([ClientQuotaFilterComponent.of_entity("user", "alice")])',
    "ClientQuotaFilterComponent": 'ClientQuotaFilterComponent.of_entity("user", "alice")',
    "RebalanceListener": "an object of a subclass of RebalanceListener",
    "AcknowledgeType": "AcknowledgeType.ACCEPT",
    "AcknowledgementCommitCallback": "a function that takes offsets and an error",
}
"""Type name → how a value of it is written, for types that are not Python's own."""


def checked(*unchecked: str) -> Callable[[C], C]:
    """A class decorator: check the arguments of public methods, but for those named in `unchecked`.

    (Those check their arguments themselves, or are called too often.) A wrong argument is a
    UsageError.
    """

    def decorate(cls: C) -> C:
        for name, method in list(vars(cls).items()):
            if (
                isinstance(method, FunctionType)
                and name not in unchecked
                and (name == "__init__" or not name.startswith("_"))
            ):
                setattr(cls, name, _checking(method, cls.__name__ if name == "__init__" else name))
        return cls

    return decorate


def check(called: str, name: str, value: object, kind: object) -> None:
    """Check one argument, as a `checked` class does; UsageError if `value` is not of `kind`.
    `called` and `name` are the call's and the argument's names in the error."""
    if not _accepts(kind)(value):
        raise _wrong(called, name, value, kind)


def _checking(method: FunctionType, called: str) -> Callable[..., object]:
    code = method.__code__
    parameters = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    checks: dict[str, Accepts] | None = None

    def check(args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        nonlocal checks
        if checks is None:
            checks = {name: _accepts(_resolved(method, name)) for name in parameters}
        for name, value in chain(zip(parameters, args, strict=False), kwargs.items()):
            accepts = checks.get(name)
            if accepts is not None and not accepts(value):
                raise _wrong(called, name, value, _resolved(method, name))

    # The wrapper is of the method's own kind, for code that inspects it: a mock of a class makes
    # its coroutine methods awaitable.
    if code.co_flags & CO_COROUTINE:

        @wraps(method)
        async def awaiting(self: object, *args: object, **kwargs: object) -> object:
            check(args, kwargs)
            return await method(self, *args, **kwargs)

        return awaiting
    if code.co_flags & CO_ASYNC_GENERATOR:

        @wraps(method)
        async def iterating(self: object, *args: object, **kwargs: object) -> object:
            check(args, kwargs)
            items = method(self, *args, **kwargs)
            try:
                async for item in items:
                    yield item
            finally:
                await items.aclose()

        return iterating

    @wraps(method)
    def checking(self: object, *args: object, **kwargs: object) -> object:
        check(args, kwargs)
        return method(self, *args, **kwargs)

    return checking


def _resolved(method: FunctionType, parameter: str) -> object:
    """The type that a parameter is annotated with; `object` if that name cannot be resolved at run
    time."""
    return _evaluated(method.__annotations__.get(parameter, object), method.__module__)


def _evaluated(annotation: object, module: str) -> object:
    text = getattr(annotation, "__forward_arg__", annotation)  # as named tuples keep what is written as text
    if not isinstance(text, str):
        return text
    try:
        return eval(text, vars(sys.modules[module]))
    except (NameError, AttributeError, TypeError):
        return object


@cache
def _accepts(kind: object) -> Accepts:
    """A function that says whether a value is of `kind`, as far as that can be seen without using
    the value up."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return partial(_accepts_within, _accepts(inner[0]), *inner[1][:2])
    if origin in (Union, UnionType):
        any_of = [_accepts(each) for each in inner]
        if any(getattr(each, "__name__", "") == "PathLike" for each in inner):
            any_of.append(
                lambda value: isinstance(value, str)
            )  # the operating system's to judge, not Kafka's
        if len(any_of) == 2:
            first, second = any_of
            return lambda value: first(value) or second(value)  # most often; half of the time
        return lambda value: any(accepts(value) for accepts in any_of)
    if _is_mapping(origin):
        keys, values = (_accepts(each) for each in inner)
        return lambda value: (
            isinstance(value, Mapping) and all(keys(key) and values(each) for key, each in value.items())
        )
    if _is_iterable(origin):
        return partial(_accepts_many, _accepts(inner[0]))
    if origin is Callable:
        return callable
    if origin is Literal:
        return inner.__contains__
    if isinstance(origin, type):
        kind = origin
    if kind is Any or not (kind is None or isinstance(kind, type)):
        return lambda value: True
    return _accepts_instance(kind)


def _accepts_instance(kind: type | None) -> Accepts:
    if kind is None or kind is NoneType:
        return lambda value: value is None
    if kind is str:
        return lambda value: isinstance(value, str) and not _uncarried(value)
    if kind is int:
        return lambda value: (
            type(value) is int or (isinstance(value, Integral) and not isinstance(value, bool))
        )
    if kind is float:
        return lambda value: type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))
    if hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"):
        return lambda value: (
            _has_fields(value, kind) and all(_accepts(each)(field) for _, field, each in _fields(value, kind))
        )
    wanted = _interface(kind)
    return lambda value: (
        isinstance(value, kind) or (bool(wanted) and all(hasattr(value, name) for name in wanted))
    )


def _uncarried(text: str) -> str:
    """Why Kafka cannot carry a text; empty if it can. (Machines write texts into records and
    requests; one that cannot be encoded would fail there.)"""
    if text.isascii() and len(text) <= STRING_MAX_BYTES:
        return ""
    try:
        size_bytes = len(text.encode())
    except UnicodeEncodeError as error:
        return f"not valid text ({error.reason})"
    return (
        ""
        if size_bytes <= STRING_MAX_BYTES
        else f"{size_bytes} bytes of UTF-8; Kafka carries at most {STRING_MAX_BYTES}"
    )


def _accepts_within(accepts: Accepts, least: float, most: float, value: object) -> bool:
    return accepts(value) and least <= cast("float", value) <= most  # what is accepted is a number


def _is_mapping(origin: object) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_iterable(origin: object) -> bool:
    return isinstance(origin, type) and issubclass(origin, Iterable) and origin is not tuple


@cache
def _kinds_of_fields(kind: type) -> dict[str, object]:
    """The fields of `kind`, a named tuple or a dataclass: {name: type}."""
    names: Iterable[str] = getattr(kind, "_fields", None) or kind.__dataclass_fields__  # type: ignore[attr-defined]
    return {name: _evaluated(kind.__annotations__.get(name, object), kind.__module__) for name in names}


def _has_fields(value: object, kind: type) -> bool:
    """True for one of the kind; for a named tuple also a plain tuple with its fields in their
    order, without those that have defaults."""
    if not issubclass(kind, tuple):
        return isinstance(value, kind)
    most = len(kind._fields)  # type: ignore[attr-defined]
    return isinstance(value, tuple) and most - len(kind._field_defaults) <= len(value) <= most  # type: ignore[attr-defined]


def _fields(value: object, kind: type) -> Iterator[tuple[str, object, object]]:
    """Name, value and type of each field of `value`, whose type `kind` is a named tuple or a
    dataclass."""
    kinds = _kinds_of_fields(kind)
    if isinstance(value, tuple):
        return zip(kinds, value, kinds.values(), strict=False)
    return ((name, getattr(value, name), each) for name, each in kinds.items())


def _interface(kind: type) -> list[str]:
    """The names of the public methods of `kind` if it is an interface such as a listener: a class
    with nothing else. An object needs all of them. Empty for any other class."""
    public = {name: value for name, value in vars(kind).items() if not name.startswith("_")}
    own = (
        public
        and all(isinstance(value, FunctionType) for value in public.values())
        and not hasattr(kind, "__dataclass_fields__")
    )
    return list(public) if own and "__init__" not in vars(kind) else []


def _accepts_many(accepts: Accepts, value: object) -> bool:
    """True for an iterable that is no text or bytes. Its items are checked too if that does not use
    them up."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        return False
    return not isinstance(value, (Sequence, set, frozenset, Mapping)) or all(map(accepts, value))


def _wrong(called: str, name: str, value: object, kind: object) -> UsageError:
    where, part, wanted = _wrong_part(name, value, kind)
    if isinstance(part, str) and (why := _uncarried(part)):
        return UsageError(f"{called}: {where} is {why}")
    hidden = where.partition("[")[0] == "alterations" and "." not in where
    hidden = hidden or (name == "config" and not isinstance(part, str))  # it may hold a password
    shown = type(part).__name__ if hidden else _shown(part)
    if name == "config":
        hint = _config_example(called, value)
    else:
        hint = _member(part, wanted) or _example(kind).replace(NAME, _name_in(value, kind))
    return UsageError(
        f"{called}: {where} must be {_named(wanted)}, not {shown}{f'; write {hint}' if hint else ''}"
    )


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= SHOWN_MAX_LENGTH else f"{shown[: SHOWN_MAX_LENGTH - 3]}..."


def _wrong_part(where: str, value: object, kind: object) -> tuple[str, object, object]:
    """The innermost wrong part of a value: its place, its value, and the type it should have."""
    for part in _parts(where, value, kind):
        if not _accepts(part[2])(part[1]):
            return _wrong_part(*part)
    return where, value, kind


def _parts(where: str, value: object, kind: object) -> Iterator[tuple[str, object, object]]:
    """The parts of a value whose container has the right type: place, value and type of each."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        yield where, value, inner[0]  # of a text, say that a number is wanted, and nothing of its bounds
    elif origin in (Union, UnionType):
        for each in inner:
            if get_origin(each) is not Annotated:
                yield from _parts(where, value, each)
    elif _is_mapping(origin) and isinstance(value, Mapping):
        for key, each in value.items():
            yield f"{where}: key {_shown(key)}", key, inner[0]
            yield f"{where}[{_shown(key)}]", each, inner[1]
    elif _is_iterable(origin) and isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        yield from ((f"{where}[{number}]", each, inner[0]) for number, each in enumerate(value))
    elif (
        isinstance(kind, type)
        and (hasattr(kind, "_fields") or hasattr(kind, "__dataclass_fields__"))
        and _has_fields(value, kind)
    ):
        yield from ((f"{where}.{name}", field, each) for name, field, each in _fields(value, kind))


def _member(part: object, wanted: object) -> str:
    """The member of the enum `wanted` that the text `part` names, as code ("ResourceType.TOPIC").
    Empty if it names none, or `wanted` is no enum."""
    members = getattr(wanted, "__members__", {})
    name = part.upper().replace("-", "_") if isinstance(part, str) else ""
    return f"{wanted.__name__}.{name}" if name in members else ""  # type: ignore[attr-defined]


def _name_in(value: object, kind: object) -> str:
    """The name in a wrong `value`, to be shown in the error's example; NAME if there is none."""
    given = next(iter(value), None) if isinstance(value, (list, tuple, Mapping)) else value
    if isinstance(given, tuple):  # a TopicPartition, or a ConfigResource, or what was to be one
        while inner := get_args(kind):
            kind = inner[0]
        fields = getattr(kind, "_fields", ())
        at = fields.index("name") if "name" in fields else 0
        given = given[at] if at < len(given) else None
    else:
        given = getattr(given, "name", given)  # a NewTopic's
    return given if isinstance(given, str) and given.isprintable() and '"' not in given and given else NAME


def _named(kind: object) -> str:
    """`kind` in words, for an error: "a list of NewTopic", "a number or None"."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return f"{_named(inner[0])} {inner[1]}"
    if origin in (Union, UnionType):
        return " or ".join(_named(each) for each in inner)
    if origin is Literal:
        return " or ".join(map(repr, inner))
    if _is_mapping(origin):
        return (
            "a mapping"
            if inner[1] in (Any, object)
            else f"a mapping from {_named(inner[0])} to {_named(inner[1])}"
        )
    if _is_iterable(origin):
        plain = get_args(inner[0])[0] if get_origin(inner[0]) is Annotated else inner[0]
        return f"a list of {PLURALS.get(plain) or _named(inner[0])}"
    return WORDS.get(origin or kind) or getattr(kind, "__name__", None) or str(kind)


def _example(kind: object) -> str:
    """How to write a value of `kind` in Python, for an error; empty if its type needs no
    example."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return " or ".join(filter(None, map(_example, inner)))
    if _is_mapping(origin):
        key, value = f'"{NAME}"' if inner[0] is str else _example(inner[0]), _example(inner[1])
        return f"{{{key}: {value or '...'}}}" if value or (key and inner[0] is not str) else ""
    if _is_iterable(origin):
        item = _example(inner[0])
        return f"[{item}]" if item else f'["{NAME}"]' if inner[0] is str else ""
    return EXAMPLES.get(getattr(kind, "__name__", ""), "")


def _config_example(called: str, value: object) -> str:
    if called == "Cluster":
        return 'Cluster(config={"num.partitions": 3})'
    servers = value if isinstance(value, str) and ":" in value else "localhost:9092"
    return f'{called}({{"bootstrap.servers": "{servers}"}})'
