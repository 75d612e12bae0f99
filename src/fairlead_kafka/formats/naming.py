"""Values of `key.serializer`, `value.deserializer` and so on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from fairlead_kafka.base.errors import ConfigError

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


def format_of(key: str, given: object) -> Callable[..., Any] | None:
    """The serializer or deserializer that the config `key` gives; None for bytes as they are.

    A function, or the name of a format, or of Kafka's class for it. ConfigError for anything else.
    """
    if given is None:
        return None
    ending = "Serializer" if key.endswith(".serializer") else "Deserializer"
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
        made: Callable[..., Any] = getattr(import_module(found[0]), found[1] + ending)()
        return made
    if isinstance(given, type):
        raise ConfigError(f"{key}: give an object of {given.__name__}, not the class")
    if not callable(given):
        raise ConfigError(f"{key}: must be a function of a value and a SerializationContext, got {given!r}")
    return given
