"""kio as the judge of `fairlead_kafka.wire`: makes kio entities at will, and says what bytes and
what Message belong to them.

Written apart from `src/schemas/from_kio.py` on purpose: it goes by kio's annotations and metadata
alone.
"""

from __future__ import annotations

import dataclasses
import datetime
import io
import random
import typing
from uuid import UUID

from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from fairlead_kafka.wire import Message

EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
RANGES = {
    "int8": (-(2**7), 2**7 - 1),
    "int16": (-(2**15), 2**15 - 1),
    "uint16": (0, 2**16 - 1),
    "int32": (-(2**31), 2**31 - 1),
    "int64": (-(2**63), 2**63 - 1),
    "timedelta_i32": (-(2**31), 2**31 - 1),
    "timedelta_i64": (
        -(10**12),
        10**12,
    ),  # kio's timedelta goes through floats: beyond this it loses milliseconds itself
    "datetime_i64": (0, 2**41),
}
TEXTS = ("", "a", "events", "schlüssel-Ω", "x" * 127, "y" * 300)


class SeededChoice:
    """Choices from a seed."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def integer(self, low: int, high: int) -> int:
        return self._random.choice(
            (low, high, 0 if low <= 0 <= high else low, self._random.randint(low, high))
        )

    def one_of(self, options: typing.Sequence[typing.Any]) -> typing.Any:
        return self._random.choice(options)


class HypothesisChoice:
    """Choices that Hypothesis makes and shrinks."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def integer(self, low: int, high: int) -> int:
        return self._data.draw(st.integers(low, high))

    def one_of(self, options: typing.Sequence[typing.Any]) -> typing.Any:
        return self._data.draw(st.sampled_from(options))


def schema(api_key: int, version: int, direction: str) -> typing.Any:
    return (load_request_schema if direction == "request" else load_response_schema)(api_key, version)


def make(entity: typing.Any, choice: typing.Any) -> typing.Any:
    """An entity with fields as `choice` has it."""
    return entity(**{field.name: _field(field, choice) for field in dataclasses.fields(entity)})


def _field(field: typing.Any, choice: typing.Any) -> typing.Any:
    annotation, optional = _inner(field.type)
    tagged = "tag" in field.metadata
    if typing.get_origin(annotation) is tuple:
        if optional and not tagged and choice.integer(0, 3) == 3:
            return None
        element, _ = _inner(typing.get_args(annotation)[0])
        sizes = (0, 1, 2, 15, 16, 20) if not dataclasses.is_dataclass(element) else (0, 1, 2)
        return tuple(_value(field, element, False, choice) for _ in range(choice.one_of(sizes)))
    return _value(field, annotation, optional and not tagged, choice)


def _value(field: typing.Any, annotation: typing.Any, optional: bool, choice: typing.Any) -> typing.Any:
    if optional and choice.integer(0, 3) == 3:
        return None
    if dataclasses.is_dataclass(annotation):
        return make(annotation, choice)
    kind = field.metadata["kafka_type"]
    if kind in RANGES:
        number = choice.integer(*RANGES[kind])
        if kind.startswith("timedelta"):
            return datetime.timedelta(milliseconds=number)
        return EPOCH + datetime.timedelta(milliseconds=number) if kind == "datetime_i64" else number
    if kind == "uuid":
        return choice.one_of((None, UUID(int=1), UUID(int=2**128 - 1)))
    return choice.one_of(
        {
            "error_code": tuple(ErrorCode),
            "bool": (False, True),
            "float64": (0.0, -1.5, 1e300),
            "string": TEXTS,
            "bytes": (b"", b"\0", bytes(200)),
            "records": (b"", b"records", bytes(20_000)),
        }[kind]
    )


def _inner(annotation: typing.Any) -> tuple[typing.Any, bool]:
    arguments = typing.get_args(annotation)
    if type(None) in arguments and typing.get_origin(annotation) is not tuple:
        return next(argument for argument in arguments if argument is not type(None)), True
    return annotation, False


def to_bytes(entity: typing.Any) -> bytes:
    """What kio writes."""
    buffer = io.BytesIO()
    entity_writer(type(entity))(buffer, entity)
    return buffer.getvalue()


def from_bytes(entity: typing.Any, data: bytes) -> tuple[typing.Any, int]:
    """What kio reads, and how many bytes of it."""
    return entity_reader(entity)(data, 0)


def to_message(entity: typing.Any) -> Message:
    """The Message that stands for an entity."""
    fields = {}
    for field in dataclasses.fields(entity):
        value = getattr(entity, field.name)
        kind = field.metadata.get("kafka_type", "")
        name = field.name + ("_ms" if kind.startswith(("timedelta", "datetime")) else "")
        fields[name] = (
            [_plain(kind, item) for item in value] if isinstance(value, tuple) else _plain(kind, value)
        )
    return Message(**fields)


def _plain(kind: str, value: typing.Any) -> typing.Any:
    if dataclasses.is_dataclass(value):
        return to_message(value)
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if kind == "datetime_i64":
        return -1 if value is None else (value - EPOCH) // datetime.timedelta(milliseconds=1)
    if kind == "uuid":
        return value or UUID(int=0)
    return int(value) if kind == "error_code" else value
