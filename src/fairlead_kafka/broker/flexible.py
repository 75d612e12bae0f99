"""Values of records in Kafka's flexible encoding (KIP-482): compact lengths, and tagged fields at the
end, as coordinators write them."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping


class Writer:
    """Puts flexible values into bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []

    def joined(self) -> bytes:
        """All that was written."""
        return b"".join(self._parts)

    def raw(self, data: bytes) -> None:
        """Write bytes as they are."""
        self._parts.append(data)

    def number(self, layout: str, *values: int) -> None:
        """Write numbers in a layout of `struct`."""
        self._parts.append(struct.pack(layout, *values))

    def varint(self, value: int) -> None:
        """Write an unsigned varint."""
        data = bytearray()
        while value >= 0x80:
            data.append(value & 0x7F | 0x80)
            value >>= 7
        data.append(value)
        self._parts.append(bytes(data))

    def data(self, data: bytes) -> None:
        """Write bytes behind their length."""
        self.varint(len(data) + 1)
        self._parts.append(data)

    def text(self, text: str | None) -> None:
        """Write a compact string, or null."""
        if text is None:
            self.varint(0)
        else:
            self.data(text.encode())

    def texts(self, texts: Iterable[str]) -> None:
        """Write an array of strings."""
        listed = list(texts)
        self.varint(len(listed) + 1)
        for text in listed:
            self.text(text)

    def numbers(self, numbers: Iterable[int]) -> None:
        """Write an array of int32."""
        listed = list(numbers)
        self.varint(len(listed) + 1)
        self._parts.append(struct.pack(f">{len(listed)}i", *listed))

    def tags(self, fields: Mapping[int, bytes]) -> None:
        """Write tagged fields."""
        self.varint(len(fields))
        for tag, data in fields.items():
            self.varint(tag)
            self.varint(len(data))
            self._parts.append(data)


class Reader:
    """Takes flexible values off bytes; struct.error or IndexError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def number(self, layout: str) -> int:
        """Take a number off, in a layout of `struct`."""
        (value,) = struct.unpack_from(layout, self._data, self._position)
        self._position += struct.calcsize(layout)
        return int(value)

    def varint(self) -> int:
        """Take an unsigned varint off."""
        value = shift = 0
        while shift < 35:
            byte = self._data[self._position]
            self._position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7
        raise struct.error("a number without an end")

    def count(self) -> int:
        """The length of an array, which no more than the bytes that are left can hold."""
        count = self.varint() - 1
        if not 0 <= count <= len(self._data) - self._position:
            raise struct.error("cut short")
        return count

    def take(self, length: int) -> bytes:
        """Take so many bytes off."""
        end = self._position + length
        if length < 0 or end > len(self._data):
            raise struct.error("cut short")
        taken, self._position = self._data[self._position : end], end
        return taken

    def data(self) -> bytes:
        """Take bytes off behind their length."""
        return self.take(self.varint() - 1)

    def text_or_null(self) -> str | None:
        """Take a compact string off, or null."""
        length = self.varint() - 1
        return None if length < 0 else self.take(length).decode()

    def text(self) -> str:
        """Take a compact string off."""
        text = self.text_or_null()
        if text is None:
            raise struct.error("null")
        return text

    def numbers(self) -> list[int]:
        """Take an array of int32 off."""
        count = self.count()
        return list(struct.unpack(f">{count}i", self.take(4 * count)))

    def tags(self) -> dict[int, bytes]:
        """Take tagged fields off."""
        return {self.varint(): self.take(self.varint()) for _ in range(self.varint())}
