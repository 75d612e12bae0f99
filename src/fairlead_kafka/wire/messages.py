"""Kafka's requests and responses by name: `FetchRequest(max_wait_ms=500,
topics=[FetchRequest.FetchTopic(topic="a")])`.

`messages.pyi` beside this file has their fields for type checkers; it is written by
`src/schemas/stubs.py`. At run time a class is made when it is first named, and accepts any field:
the codec checks the names.
"""

from __future__ import annotations

from fairlead_kafka.wire.message import ApiMessage


class _MessageType(type):
    """Metaclass that makes the classes of the structures within a message when they are first
    named."""

    def __getattr__(cls, name: str) -> type[ApiMessage]:
        if not name[:1].isupper():
            raise AttributeError(f"{cls.__name__} has no attribute {name!r}")
        made = _MessageType(name, (ApiMessage,), {"__qualname__": f"{cls.__qualname__}.{name}"})
        setattr(cls, name, made)
        return made


def __getattr__(name: str) -> type[ApiMessage]:
    if not name.endswith(("Request", "Response")):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    made = globals()[name] = _MessageType(name, (ApiMessage,), {})
    return made
