"""Serializers and deserializers that configs such as `key.serializer` give, by name or as a
function."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import signature
from typing import cast

from fairlead_kafka.base.errors import ConfigError
from fairlead_kafka.formats.context import Deserializer, Serializer

_SIMPLE = "fairlead_kafka.formats.simple"
_JSON = "fairlead_kafka.formats.json_serde"
_HOMES: Mapping[str, tuple[str, str]] = {
    "string": (_SIMPLE, "String"),
    "integer": (_SIMPLE, "Integer"),
    "long": (_SIMPLE, "Long"),
    "double": (_SIMPLE, "Double"),
    "json": (_JSON, "Json"),
}
_BYTES = ("bytes", "ByteArraySerializer", "ByteArrayDeserializer")


def serializer_of(key: str, given: object) -> Serializer | None:
    """The serializer that the config `key` gives; None for bytes as they are.

    `given` is a function, the name of a format, or of Kafka's class for it. ConfigError for
    anything else.
    """
    return cast("Serializer | None", _format_of(key, given, "Serializer"))


def deserializer_of(key: str, given: object) -> Deserializer | None:
    """The deserializer that the config `key` gives; see `serializer_of`."""
    return cast("Deserializer | None", _format_of(key, given, "Deserializer"))


def _format_of(key: str, given: object, ending: str) -> object:
    """The function that `given` is or names (`ending`: Serializer or Deserializer), unchecked; None
    for bytes as they are. ConfigError for any other value."""
    if given is None:
        return None
    if isinstance(given, str):
        name = given.strip().rpartition(".")[2]
        if name in _BYTES:
            return None
        found = _HOMES.get(name.removesuffix(ending).lower() if name.endswith(ending) else name)
        if found is None:
            raise ConfigError(
                f"{key}: must be a function or one of bytes, {', '.join(_HOMES)}, got {given!r}; "
                f"Avro, Protobuf and "
                "JSON Schema need more than a name: see fairlead_kafka.formats"
            )
        made: object = getattr(import_module(found[0]), found[1] + ending)()
        return made
    if isinstance(given, type):
        raise ConfigError(f"{key}: give an object of {given.__name__}, not the class")
    if not callable(given):
        raise ConfigError(f"{key}: must be a function of a value and a SerializationContext, got {given!r}")
    if not _takes_two(given):
        raise ConfigError(
            f"{key}: is called with a value and a SerializationContext, and {_name(given)} does not take two "
            "arguments; write lambda value, _: FUNCTION(value)"
        )
    return given


def _takes_two(given: Callable[..., object]) -> bool:
    """True if the function can be called with two arguments, or does not say (as some builtins)."""
    try:
        takes = signature(given, follow_wrapped=False)
    except Exception:  # it has no signature, or a strange one, or names in annotations that are not there
        return True
    try:
        takes.bind(None, None)
    except TypeError:
        return False
    return True


def _name(given: object) -> str:
    return getattr(given, "__qualname__", "") or repr(given)
