"""Decisions and their results as JSON, and back: the messages between a broker and the controller.

Numbers, texts, booleans, null and lists are themselves; everything else is an object with one key
that says what it is. Only decisions, the named tuples and enums of the controller's own modules and
of ACLs can be named, so no input can create an object of another class.
"""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from enum import Enum
from uuid import UUID

from fairlead_kafka.base import acls
from fairlead_kafka.base.errors import BrokerError, DecodeError
from fairlead_kafka.base.ids import Node
from fairlead_kafka.broker.controller import (
    ClusterImage,
    ClusterView,
    Decision,
    ScramCredential,
    TopicCreated,
    TopicImage,
    configs,
    decisions,
)
from fairlead_kafka.broker.controller.fold import apply, topic_record


def _named() -> dict[str, type]:
    found = {
        name: each
        for module in (acls, configs, decisions)
        for name, each in vars(module).items()
        if isinstance(each, type)
        and (
            hasattr(each, "_fields")
            or issubclass(each, Enum)
            or (issubclass(each, Decision) and is_dataclass(each))
        )
    }
    return found | {"Node": Node, "ScramCredential": ScramCredential}


_NAMED = _named()
_PLAIN = (str, int, float, type(None))


def dump(value: object, view: ClusterView) -> bytes:
    """Bytes of a decision or a result; a topic that `view` has is written by its id alone, for the
    other side has it too. TypeError for a value that is not plain data."""
    return json.dumps(_out(value, view), separators=(",", ":")).encode()


def load(data: bytes | memoryview, view: ClusterView) -> object:
    """The decision or result that `dump` made bytes of. DecodeError if they hold none."""
    try:
        return _in(json.loads(bytes(data)), view)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise DecodeError(f"not a decision or its result: {error!r}", 0) from error


def _out(value: object, view: ClusterView) -> object:
    kind = type(value)
    if kind in _PLAIN or kind is bool:
        return value
    if isinstance(value, list):
        return [_out(one, view) for one in value]
    name = kind.__name__
    if _NAMED.get(name) is kind:
        if isinstance(value, Enum):
            return {"enum": [name, value.value]}
        if isinstance(value, Decision):
            return {"object": [name, *(_out(getattr(value, part), view) for part in value.__slots__)]}
        if isinstance(value, tuple):
            return {"object": [name, *(_out(part, view) for part in value)]}
    return _out_other(value, view)


def _out_other(value: object, view: ClusterView) -> object:
    if isinstance(value, TopicImage):
        if view.image.topics_by_id.get(value.topic_id) is value:
            return {"known": value.topic_id.hex}
        return {"topic": topic_record(value)}
    if isinstance(value, BrokerError):
        return {"error": [int(value.code), value.context]}
    if isinstance(value, UUID):
        return {"uuid": value.hex}
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    if isinstance(value, tuple):
        return {"tuple": [_out(one, view) for one in value]}
    if isinstance(value, dict):
        return {"map": [[_out(key, view), _out(one, view)] for key, one in value.items()]}
    if isinstance(value, _PLAIN):
        return value.value if isinstance(value, Enum) else value
    raise TypeError(
        f"a decision's fields and its result are plain values; {type(value).__name__} is not: {value!r}"
    )


def _in(value: object, view: ClusterView) -> object:
    if isinstance(value, list):
        return [_in(one, view) for one in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "object":
        return _NAMED[content[0]](*(_in(part, view) for part in content[1:]))
    if kind == "enum":
        return _NAMED[content[0]](content[1])
    if kind == "tuple":
        return tuple(_in(one, view) for one in content)
    if kind == "map":
        return {_in(key, view): _in(one, view) for key, one in content}
    if kind == "bytes":
        return bytes.fromhex(content)
    if kind == "uuid":
        return UUID(hex=content)
    if kind == "error":
        return BrokerError(*content)
    if kind == "known":
        return view.image.topics_by_id[UUID(hex=content)]
    created = apply(ClusterImage(), {"type": "topic", **content}) if kind == "topic" else None
    if not isinstance(created, TopicCreated):
        raise TypeError(f"no such kind of value: {kind}")
    return created.topic
