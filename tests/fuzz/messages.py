"""Messages off a tape: any message of a schema, and an honest one with lies in it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead_kafka.wire import Message
from fairlead_kafka.wire.schema import Field, Structure
from tests.fuzz.tape import Tape

INTEGERS = {
    "int8": (0, 1, -1, 2, 127, -128),
    "int16": (0, 1, -1, 2, 5, 6, 3, 14, 15, 16, 27, 35, 47, 90, 32767, -32768),
    "uint16": (0, 9092, 1, 65535),
    "int32": (0, 1, -1, 2, 5, 100, 1000, 6000, 2**31 - 1, -(2**31), 2**24),
    "int64": (
        0,
        1,
        -1,
        -2,
        -3,
        -4,
        -5,
        5,
        100,
        1000,
        10**12,
        1_700_000_000_000,
        2**63 - 1,
        -(2**63),
        2**62,
        2**53,
    ),
}
LENGTHS = (0, 1, 2, 30, 126, 127, 128, 249, 250, 300, 32_766, 32_767, 32_768, 40_000)
"""Of text: around what a varint of one byte holds, a topic's name, an int16, and what compact
strings hold beyond it."""
LONG_SHARE = 20
DEEPEST = 6


def _noise(tape: Tape) -> bytes:
    return tape.raw(tape.below(80))


@dataclass
class Words:
    """What a peer that knows the cluster would say, so that what is made up reaches further than
    its door."""

    texts: Sequence[str] = ("t", "c", "g", "", "x")
    ids: Sequence[uuid.UUID] = (uuid.UUID(int=0), uuid.UUID(int=5))
    blobs: Sequence[bytes] = (b"", b"\0\0\0\0\0\1\0\1t", b"\0\1\0\0\0\1\0\1t\0\0\0\0")
    records: Callable[[Tape], bytes] = _noise
    by_name: dict[str, Sequence[Any]] = field(default_factory=dict)
    """Field name → values that make sense there, taken nine times of ten."""


def make(structure: Structure, tape: Tape, words: Words, depth: int = 0) -> Message:
    """Any message of a structure."""
    return Message(**{each.name: make_value(each, tape, words, depth) for each in structure.fields})


def make_value(each: Field, tape: Tape, words: Words, depth: int = 0) -> Any:
    """Any value of a field."""
    if each.array:
        if each.nullable and tape.chance(30):
            return None
        if depth >= DEEPEST:
            return []
        count = tape.pick((1, 0, 1, 2, 1, 1, 3, 1))
        if tape.chance(2):
            count = 200 if each.structure is None else 30
        return [_element(each, tape, words, depth) for _ in range(count)]
    if each.nullable and tape.chance(40):
        return None
    return _element(each, tape, words, depth)


def _element(each: Field, tape: Tape, words: Words, depth: int) -> Any:
    kind = each.kind
    if kind == "structure":
        assert each.structure is not None
        return make(each.structure, tape, words, depth + 1)
    likely = words.by_name.get(each.name)
    if likely is not None and not tape.chance(25):
        return tape.pick(likely)
    if kind == "string":
        return _text(tape, words)
    if kind == "bool":
        return tape.chance(128)
    if kind == "float64":
        return tape.pick((0.0, -1.0, 1e300, float("nan"), float("inf")))
    if kind == "uuid":
        return tape.pick(words.ids) if not tape.chance(30) else uuid.UUID(bytes=tape.raw(16))
    if kind == "bytes":
        return tape.pick(words.blobs) if not tape.chance(80) else tape.raw(tape.below(60))
    if kind == "records":
        return words.records(tape)
    return _integer(kind, tape)


def _text(tape: Tape, words: Words) -> str:
    if not tape.chance(LONG_SHARE):
        return tape.pick(words.texts)
    return tape.pick(("a", "é", "-", "0", "漢")) * tape.pick(LENGTHS)


def _integer(kind: str, tape: Tape) -> int:
    if not tape.chance(40):
        return tape.pick(INTEGERS[kind])
    size_bytes = {"int8": 1, "int16": 2, "uint16": 2, "int32": 4, "int64": 8}[kind]
    return int.from_bytes(tape.raw(size_bytes), "big", signed=kind != "uint16")


def copied(value: Any) -> Any:
    """A copy of a message that shares nothing with it but bytes; views, which frames are full of,
    become bytes."""
    if isinstance(value, Message):
        return Message(**{name: copied(each) for name, each in value.__dict__.items()})
    if isinstance(value, list):
        return [copied(each) for each in value]
    return bytes(value) if isinstance(value, memoryview) else value


def lie(message: Message, structure: Structure, tape: Tape, words: Words) -> Message:
    """The message with one to three of its fields, anywhere in it, saying something else."""
    changed = copied(message)
    for _ in range(tape.pick((1, 1, 2, 3))):
        _lie_in(changed, structure, tape, words, 0)
    return changed


def _lie_in(message: Message, structure: Structure, tape: Tape, words: Words, depth: int) -> None:
    if not structure.fields:
        return
    # The fields that hold structures are where most is, and most is to be told: they are entered
    # more often than replaced.
    nested = [
        each for each in structure.fields if each.kind == "structure" and getattr(message, each.name, None)
    ]
    if nested and tape.chance(190) and depth < DEEPEST:
        each = tape.pick(nested)
        value = getattr(message, each.name)
        assert each.structure is not None
        if not each.array:
            _lie_in(value, each.structure, tape, words, depth + 1)
        elif tape.chance(70):
            setattr(message, each.name, _other_list(each, value, tape, words))
        else:
            _lie_in(tape.pick(value), each.structure, tape, words, depth + 1)
        return
    each = tape.pick(structure.fields)
    value = getattr(message, each.name, None)
    if each.array and value and tape.chance(128):
        setattr(message, each.name, _other_list(each, value, tape, words))
    else:
        setattr(message, each.name, _other_value(each, value, tape, words))


def _other_list(each: Field, value: list[Any], tape: Tape, words: Words) -> Any:
    """A list with elements missing, twice, in another order, too many, or made up."""
    how = tape.below(8)
    at = tape.below(min(len(value), 256))
    if how == 0:
        return [*value[:at], *value[at + 1 :]]
    if how == 1:
        return [*value, copied(value[at])]
    if how == 2:
        return value[::-1]
    if how == 3:
        return value * tape.pick((2, 3, 50))
    if how == 4:
        return []
    if how == 5 and each.nullable:
        return None
    if how == 6:
        return [*value[:at], make_one(each, tape, words), *value[at + 1 :]]
    return [*value, make_one(each, tape, words)]


def make_one(each: Field, tape: Tape, words: Words) -> Any:
    """An element of a list."""
    return _element(each, tape, words, 1)


def _other_value(each: Field, value: Any, tape: Tape, words: Words) -> Any:
    if isinstance(value, int) and not isinstance(value, bool) and tape.chance(100):
        low = 0 if each.kind == "uint16" else None
        near = value + tape.pick((1, -1, 2, -2, 10, -10, 1000))
        return near if low is None or near >= low else value
    return make_value(each, tape, words, 1)


def garbled(data: bytes, tape: Tape) -> bytes:
    """The bytes with something overwritten, put in, taken out, or cut off; lengths and counts are
    what is put in."""
    changed = bytearray(data)
    for _ in range(tape.pick((1, 1, 1, 2, 4))):
        at = tape.below(min(len(changed) + 1, 65_536))
        how = tape.below(8)
        if how <= 1 and at < len(changed):
            changed[at] = tape.byte()
        elif how == 2 and at < len(changed):
            changed[at] ^= 1 << tape.below(8)
        elif how == 3:
            piece = tape.pick(LENGTH_PIECES)
            changed[at : at + len(piece)] = piece
        elif how == 4:
            changed[at:at] = tape.pick(LENGTH_PIECES)
        elif how == 5:
            del changed[at : at + 1 + tape.below(16)]
        elif how == 6:
            changed[at:at] = changed[at : at + 1 + tape.below(32)]
        else:
            del changed[at:]
    return bytes(changed)


LENGTH_PIECES = (
    b"\xff\xff\xff\xff\x0f", b"\xff\xff\xff\xff\x07", b"\x80\x80\x80\x80\x10", b"\x80" * 9 + b"\x01",
    b"\xff" * 10,
    b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\x80\0\0\0", b"\0\0\0\0", b"\0\0\0\1", b"\0\1\0\0",
    b"\xff\xff", b"\x7f\xff", b"\x80\0", b"\0", b"\x01", b"\x7f", b"\xfe\x01",
)  # fmt: skip
