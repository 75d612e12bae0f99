"""Keys and values of coordinators' records, field by field, in both of Kafka's encodings.

| | plain | compact (KIP-482, "flexible versions") |
|---|---|---|
| length of a string | int16, -1: null | unsigned varint of one more, 0: null |
| length of bytes, of an array | int32, -1: null | unsigned varint of one more, 0: null |
| end of a structure | nothing | tagged fields |

Numbers are big-endian in both. A key begins with an int16, the kind of record; a value with an
int16, its version, which determines the encoding.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Generic, TypeVar
from uuid import UUID

from fairlead_kafka.base.errors import DecodeError

K = TypeVar("K", bound=tuple[str, ...])
_VARINT_BITS_MAX = 35
_UUID_BYTES = 16
_SHOWN_BYTES_MAX = 64
_compiled = cache(struct.Struct)
"""The layouts that the code names: few."""


class Writer:
    """Writes the fields of a record one after another."""

    __slots__ = ("_compact", "_parts")

    def __init__(self, *, compact: bool = False) -> None:
        self._compact = compact
        self._parts: list[bytes] = []

    def joined(self) -> bytes:
        """All fields that were written, as bytes."""
        return b"".join(self._parts)

    def number(self, layout: str, *values: int) -> None:
        """Write numbers in a layout of `struct`."""
        self._parts.append(_compiled(layout).pack(*values))

    def varint(self, value: int) -> None:
        """Write an unsigned varint."""
        data = bytearray()
        while value >= 0x80:
            data.append(value & 0x7F | 0x80)
            value >>= 7
        data.append(value)
        self._parts.append(bytes(data))

    def uuid(self, uuid: UUID) -> None:
        """Write a UUID."""
        self._parts.append(uuid.bytes)

    def text(self, text: str | None) -> None:
        """Write a string, or null."""
        data = None if text is None else text.encode()
        self._length(">h", None if data is None else len(data))
        self._parts.append(data or b"")

    def data(self, data: bytes | None) -> None:
        """Write bytes behind their length, or null."""
        self._length(">i", None if data is None else len(data))
        self._parts.append(data or b"")

    def count(self, count: int | None) -> None:
        """Write the length of an array, or null. The array's items have to follow."""
        self._length(">i", count)

    def texts(self, texts: Iterable[str]) -> None:
        """Write an array of strings."""
        listed = list(texts)
        self.count(len(listed))
        for text in listed:
            self.text(text)

    def numbers(self, numbers: Iterable[int]) -> None:
        """Write an array of int32."""
        listed = list(numbers)
        self.count(len(listed))
        self._parts.append(struct.pack(f">{len(listed)}i", *listed))

    def partitions(self, partitions: Mapping[UUID, Iterable[int]]) -> None:
        """Write an array of structures: a topic id, and an array of its partitions."""
        self.count(len(partitions))
        for topic in sorted(partitions):
            self.uuid(topic)
            self.numbers(sorted(partitions[topic]))
            self.tags({})

    def tags(self, fields: Mapping[int, bytes]) -> None:
        """Write the tagged fields that end a structure; nothing in the plain encoding."""
        if not self._compact:
            return
        self.varint(len(fields))
        for tag, data in fields.items():
            self.varint(tag)
            self.varint(len(data))
            self._parts.append(data)

    def _length(self, layout: str, length: int | None) -> None:
        if self._compact:
            self.varint(0 if length is None else length + 1)
        else:
            self._parts.append(_compiled(layout).pack(-1 if length is None else length))


class Reader:
    """Reads the fields of a record one after another.

    Each method raises DecodeError, which says that the bytes are not `what`, if they end too early
    or have something else. `compact` may be set once the version has been read.
    """

    __slots__ = ("_data", "_position", "_what", "compact")

    def __init__(self, data: bytes, what: str, *, compact: bool = False) -> None:
        self._data = data
        self._what = what
        self.compact = compact
        self._position = 0

    def error(self) -> DecodeError:
        """The error for bytes that are not `what` they should be, at the position that was read
        last."""
        return DecodeError(f"not {self._what}: {self._data[:_SHOWN_BYTES_MAX]!r}", self._position)

    def version(self, newest: int) -> int:
        """Read the version of a value, from 0 to `newest`. DecodeError for another one."""
        version = self.number(">h")
        if not 0 <= version <= newest:
            raise DecodeError(f"{self._what} in version {version}; this release reads up to {newest}", 0)
        return version

    def left(self) -> int:
        """The number of bytes that are not read yet."""
        return len(self._data) - self._position

    def number(self, layout: str) -> int:
        """Read a number, in a layout of `struct`."""
        compiled = _compiled(layout)
        try:
            value: int = compiled.unpack_from(self._data, self._position)[0]
        except struct.error:
            raise self.error() from None
        self._position += compiled.size
        return value

    def varint(self) -> int:
        """Read an unsigned varint."""
        value = 0
        for shift in range(0, _VARINT_BITS_MAX, 7):
            byte = self.number(">B")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise self.error()

    def take(self, length: int) -> bytes:
        """Read `length` bytes."""
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise self.error()
        taken, self._position = self._data[self._position : end], end
        return taken

    def uuid(self) -> UUID:
        """Read a UUID."""
        return UUID(bytes=self.take(_UUID_BYTES))

    def text_or_null(self) -> str | None:
        """Read a string, or None for null."""
        length = self._length(">h")
        if length < 0:
            return None
        try:
            return self.take(length).decode()
        except UnicodeDecodeError:
            raise self.error() from None

    def text(self) -> str:
        """Read a string that may not be null."""
        text = self.text_or_null()
        if text is None:
            raise self.error()
        return text

    def data_or_null(self) -> bytes | None:
        """Read bytes behind their length, or None for null."""
        length = self._length(">i")
        return None if length < 0 else self.take(length)

    def data(self) -> bytes:
        """Read bytes behind their length, which may not be null."""
        data = self.data_or_null()
        if data is None:
            raise self.error()
        return data

    def count(self, *, nullable: bool = False) -> int:
        """Read the length of an array, whose items follow; 0 for null, if it is `nullable`. An item
        takes a byte at least, so DecodeError for more items than there are bytes left."""
        count = self._length(">i")
        if nullable and count < 0:
            return 0
        if not 0 <= count <= self.left():
            raise self.error()
        return count

    def texts(self) -> list[str]:
        """Read an array of strings."""
        return [self.text() for _ in range(self.count())]

    def numbers(self) -> list[int]:
        """Read an array of int32."""
        count = self.count()
        return list(struct.unpack(f">{count}i", self.take(4 * count)))

    def partitions(self) -> dict[UUID, frozenset[int]]:
        """Read partitions by topic id, as `Writer.partitions` writes them."""
        found: dict[UUID, frozenset[int]] = {}
        for _ in range(self.count()):
            topic = self.uuid()
            found[topic] = frozenset(self.numbers())
            self.tags()
        return found

    def tags(self) -> dict[int, bytes]:
        """Read the tagged fields that end a structure, by tag; none in the plain encoding."""
        if not self.compact:
            return {}
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}

    def tagged(self, fields: Mapping[int, bytes], tag: int, layout: str, default: int) -> int:
        """The number in one of the tagged fields that were read; `default` if there is no such
        field."""
        return default if tag not in fields else Reader(fields[tag], self._what).number(layout)

    def _length(self, layout: str) -> int:
        return self.varint() - 1 if self.compact else self.number(layout)


class KeysOfTexts(Generic[K]):
    """Encodes keys of records: the number of their kind, then strings in the plain encoding (a
    group, say, or a group and a member)."""

    def __init__(self, what: str, kinds: Mapping[int, Callable[..., K]]) -> None:
        """`what`: what a key is, in words, for errors. `kinds`: Kafka's number → the key's
        class."""
        self._what = what
        self._kinds = kinds
        self._numbers = {kind: number for number, kind in kinds.items()}

    def encode(self, key: K) -> bytes:
        """The bytes of a key."""
        writer = Writer()
        writer.number(">h", self._numbers[type(key)])
        for text in key:
            writer.text(text)
        return writer.joined()

    def decode(self, data: bytes) -> K | None:
        """The key, or None for a record of another kind. DecodeError for bytes that are no key."""
        reader = Reader(data, self._what)
        kind = self._kinds.get(reader.number(">h"))
        if kind is None:
            return None
        texts = []
        while reader.left():
            texts.append(reader.text())
        try:
            return kind(*texts)
        except TypeError:  # more or fewer strings than the key has
            raise reader.error() from None
