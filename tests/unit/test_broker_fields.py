"""Fields of coordinators' records: both encodings, at their edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

import pytest

from fairlead_kafka.base.errors import DecodeError
from fairlead_kafka.broker.fields import KeysOfTexts, Reader, Writer

TOPIC = UUID(int=7)


class Pair(NamedTuple):
    """A key of two strings."""

    first: str
    second: str


@pytest.mark.parametrize("compact", [False, True])
def test_what_is_written_is_read(compact: bool) -> None:
    writer = Writer(compact=compact)
    writer.number(">hq", -2, 2**62)
    writer.text("é" * 200)
    writer.text(None)
    writer.data(b"\0" * 300)
    writer.data(None)
    writer.texts(["a", ""])
    writer.numbers([1, -1])
    writer.count(None)
    writer.uuid(TOPIC)
    writer.partitions({TOPIC: [3, 1], UUID(int=2): []})
    writer.tags({5: b"\0\1"})
    reader = Reader(writer.joined(), "a sample", compact=compact)
    assert (reader.number(">h"), reader.number(">q")) == (-2, 2**62)
    assert (reader.text(), reader.text_or_null()) == ("é" * 200, None)
    assert (reader.data(), reader.data_or_null()) == (b"\0" * 300, None)
    assert (reader.texts(), reader.numbers(), reader.count(nullable=True)) == (["a", ""], [1, -1], 0)
    assert (reader.uuid(), reader.partitions()) == (TOPIC, {TOPIC: {1, 3}, UUID(int=2): frozenset()})
    tags = reader.tags()
    assert reader.tagged(tags, 5, ">h", -1) == (1 if compact else -1)
    assert reader.left() == 0


def test_bytes_are_kafkas() -> None:
    plain, compact = Writer(), Writer(compact=True)
    for writer in (plain, compact):
        writer.text("ab")
        writer.data(b"c")
        writer.numbers([1])
        writer.tags({})
    assert plain.joined() == bytes.fromhex("0002 6162 00000001 63 00000001 00000001")
    assert compact.joined() == bytes.fromhex("03 6162 02 63 02 00000001 00")


@pytest.mark.parametrize(
    ("data", "compact", "read"),
    [
        ("ffff", False, Reader.text),
        ("00", True, Reader.text),
        ("0002 61", False, Reader.text),
        ("0001 ff", False, Reader.text),
        ("ffffffff", False, Reader.data),
        ("ffffffff", False, Reader.count),
        ("00", True, Reader.count),
        ("00000002 00", False, Reader.count),
        ("7fffffff", False, Reader.numbers),
        ("ffffffffff01", True, Reader.varint),
        ("80", True, Reader.varint),
        ("0000", False, Reader.uuid),
        ("01 00 02 00", True, Reader.tags),
    ],
)
def test_other_bytes_are_refused_with_what_was_expected(
    data: str, compact: bool, read: Callable[[Reader], object]
) -> None:
    with pytest.raises(DecodeError, match="not a sample: b'"):
        read(Reader(bytes.fromhex(data), "a sample", compact=compact))


def test_versions_that_are_not_known_are_named() -> None:
    assert Reader(b"\0\1", "a sample").version(1) == 1
    for data in (b"\0\2", b"\xff\xff"):
        with pytest.raises(DecodeError, match=r"a sample in version .*; this release reads up to 1"):
            Reader(data, "a sample").version(1)


def test_keys_are_of_their_kind_and_whole() -> None:
    keys = KeysOfTexts("a pair", {9: Pair})
    data = keys.encode(Pair("g", "m"))
    assert data == bytes.fromhex("0009 0001 67 0001 6d")
    assert keys.decode(data) == Pair("g", "m")
    assert keys.decode(b"\0\1") is None
    for cut in (data[:-1], data[:5], data + b"\0\0"):
        with pytest.raises(DecodeError, match="not a pair"):
            keys.decode(cut)
